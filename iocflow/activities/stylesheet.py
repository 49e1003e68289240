"""XSLT 1.0 stylesheets, compiled, and what neither they nor the documents may do."""

from __future__ import annotations

import codecs
import threading
from pathlib import Path
from typing import Any

from lxml import etree

from iocflow.activities.errors import StylesheetError

__all__ = ["Stylesheet", "declares_entities", "safe_parser"]

_DENY_ALL: etree.XSLTAccessControl = etree.XSLTAccessControl.DENY_ALL  # type: ignore[attr-defined]  # not in the stub
_XSL = "{http://www.w3.org/1999/XSL/Transform}"
_NOISE = ("error", "unknown error", "runtime error", "compilation error")


class _NoOtherFiles(etree.Resolver):
    """Refuses whatever a stylesheet includes or imports: libxslt's access control does not cover these two."""

    def resolve(self, system_url: str, public_id: str, context: object = None) -> Any:  # noqa: ARG002
        """Raise, whatever is asked for."""
        raise StylesheetError(f"a stylesheet must not read other files, and this one asks for {system_url}")


class Stylesheet:
    """A stylesheet that was read and compiled; it neither reads other files nor reaches the network.

    Attributes:
        path: The file, as it was named.
        encoding: What its last `xsl:output` asks for; UTF-8 when none does.
    """

    def __init__(self, path: str | Path) -> None:
        """Read and compile the file.

        Raises:
            StylesheetError: It is missing, broken, or asks for other files; the message begins with `file:line`.
        """
        self.path = str(path)
        self._tree = self._parsed()
        self.encoding = self._output_encoding()
        self._of_thread = threading.local()
        self.compiled()

    def compiled(self) -> etree.XSLT:
        """Return the stylesheet compiled for this thread: lxml would compile it anew for each call from another one."""
        transform: etree.XSLT | None = getattr(self._of_thread, "transform", None)
        if transform is None:
            try:
                transform = etree.XSLT(self._tree, access_control=_DENY_ALL)
            except etree.XSLTParseError as error:
                raise StylesheetError(self.told(error)) from error
            except StylesheetError as error:
                raise StylesheetError(f"{self.path}:{self._line_of_import()}: {error}") from error
            self._of_thread.transform = transform
        return transform

    def told(self, error: Exception) -> str:
        """Return libxslt's messages as one line that begins with the place."""
        entries = list(getattr(error, "error_log", ()))
        line = next((entry.line for entry in entries if entry.line > 0), 1)
        said = dict.fromkeys(entry.message.strip() for entry in entries)
        told = [text for text in said if text not in _NOISE and not text.startswith(_NOISE[2:])] or [str(error)]
        return f"{self.path}:{line}: {'; '.join(told[-2:])}"

    def _parsed(self) -> etree._Element:
        try:
            text = Path(self.path).read_bytes()
            tree = etree.fromstring(text, safe_parser(), base_url=self.path)
        except OSError as error:
            raise StylesheetError(
                f"{self.path}:1: cannot read the stylesheet: {error.strerror}; correct the path"
            ) from error
        except etree.XMLSyntaxError as error:
            raise StylesheetError(f"{self.path}:{error.lineno}: {error.msg}") from error
        if declares_entities(tree):
            remedy = "write character references instead, as in &#160;"
            raise StylesheetError(f"{self.path}:1: entities are not resolved in a stylesheet; {remedy}")
        return tree

    def _output_encoding(self) -> str:
        named = [output.get("encoding") for output in self._tree.iterchildren(f"{_XSL}output")]
        encoding = next((name for name in reversed(named) if name), "UTF-8")
        try:
            return codecs.lookup(encoding).name
        except LookupError as error:
            raise StylesheetError(f"{self.path}:1: xsl:output names an unknown encoding {encoding!r}") from error

    def _line_of_import(self) -> str:
        return next((str(part.sourceline) for part in self._tree.iter(f"{_XSL}import", f"{_XSL}include")), "1")


def safe_parser(encoding: str | None = None) -> etree.XMLParser:
    """Return a parser of its own for one document: it resolves nothing and loads nothing."""
    parser = etree.XMLParser(
        encoding=encoding, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    parser.resolvers.add(_NoOtherFiles())
    return parser


def declares_entities(tree: etree._Element | etree._ElementTree) -> bool:
    """Tell whether the document's own DTD declares any entity; string values expand them, however they are parsed."""
    root = tree.getroottree() if isinstance(tree, etree._Element) else tree
    dtd = root.docinfo.internalDTD
    return dtd is not None and any(True for _ in dtd.iterentities())  # type: ignore[attr-defined]  # not in the stub
