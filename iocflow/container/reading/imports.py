"""A container file and the files that it imports, each read once."""

from __future__ import annotations

import difflib
import os

from iocflow.container.extensions import Extensions
from iocflow.container.nodes import clipped
from iocflow.container.reading.files import Refusal, lines_of, read_text
from iocflow.container.reading.structure import SourceFile, read_structure
from iocflow.container.reading.yaml_nodes import parse
from iocflow.wiring import Findings, Place, Scalar

__all__ = ["FileReader"]

_LISTED = 12


class FileReader:
    """Reads a root file with its imports.

    Attributes:
        files: What was read, imported files before those that import them, so that the root file is the last.
        sources: The lines of each file, refused ones too.
        complete: Whether every file could be read, so that what is missing is really missing.
    """

    def __init__(self, extensions: Extensions, findings: Findings) -> None:
        """Take the extensions, which know more sections."""
        self.files: list[SourceFile] = []
        self.sources: dict[str, list[str]] = {}
        self.complete = True
        self._extensions = extensions
        self._findings = findings
        self._read: set[str] = set()
        self._open: dict[str, str] = {}  # the files whose imports are being read, by real path, the root first

    def read(self, path: str, importing: Scalar | None = None) -> None:
        """Read the file at `path`, which `importing` names, and before it what it imports."""
        real = _real(path)
        if real in self._open:
            self._note_cycle(real, path, importing)
            return
        if real in self._read:
            return
        self._read.add(real)
        source = self._source(path, importing)
        if source is None:
            self.complete = False
            return
        self._open[real] = path
        for imported in source.imports:
            self.read(_beside(path, str(imported.value)), imported)
        del self._open[real]
        self.files.append(source)

    def _source(self, path: str, importing: Scalar | None) -> SourceFile | None:
        text = read_text(path)
        if isinstance(text, Refusal):
            self._note_refusal(path, importing, text)
            return None
        lines = self.sources[path] = lines_of(text)
        table = parse(text, path, lines, self._findings)
        if table is None:
            return None
        source = SourceFile(path, os.path.dirname(os.path.abspath(path)))
        self.complete &= read_structure(source, table, self._extensions, self._findings)
        return source

    def _note_refusal(self, path: str, importing: Scalar | None, refusal: Refusal) -> None:
        if refusal.line:  # the file can be shown
            self.sources[path] = lines_of(refusal.text)
            place = Place(path, refusal.line, refusal.column)
            related = ((importing.place, "imported here"),) if importing else ()
            self._findings.error(place, refusal.what, refusal.remedy, related=related)
            return
        place = importing.place if importing else Place(path, 1, 1)
        written = importing.text if importing else path
        self._findings.error(place, f"`{clipped(written)}` {refusal.what}", refusal.remedy or _nearest(path, written))

    def _note_cycle(self, real: str, path: str, importing: Scalar | None) -> None:
        if importing:
            names = list(self._open.values())
            circle = " -> ".join([*names[list(self._open).index(real) :], self._open[real]])
            self._findings.error(
                importing.place, f"`{clipped(path)}` imports itself: {circle}", "remove one of the imports"
            )


def _real(path: str) -> str:
    return path if "\0" in path else os.path.realpath(path)  # which raises for a null byte; reading it is refused


def _beside(path: str, imported: str) -> str:
    """Return the path of what the file at `path` imports, in the short form when that is the same file."""
    joined = os.path.join(os.path.dirname(path), imported)
    short = os.path.normpath(joined)
    return short if _real(short) == _real(joined) else joined


def _nearest(path: str, written: str) -> str:
    """Return the remedy for the file at `path`, `written` so, that is not there: one of that folder."""
    folder = os.path.dirname(path)
    try:
        files = (name for name in os.listdir(folder or ".") if name.endswith((".yaml", ".yml")))
        names = sorted(name for name in files if os.path.exists(os.path.join(folder, name)))
    except OSError:
        return f"there is no folder `{clipped(folder)}`"
    stems = {os.path.splitext(name)[0]: os.path.join(os.path.dirname(written), name) for name in names}
    near = difflib.get_close_matches(os.path.splitext(os.path.basename(path))[0], stems, n=1)
    if near:
        return f"did you mean `{stems[near[0]]}`?"
    return f"its folder holds: {', '.join(names[:_LISTED])}" if names else "its folder holds no container file"
