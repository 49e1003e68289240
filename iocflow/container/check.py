"""Checking a container file as a whole: everything that is wrong with it, before anything is built."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iocflow.container.document import Document, read_document
from iocflow.container.extensions import ExtensionError
from iocflow.container.graph import Graph
from iocflow.container.rendering import in_order, render
from iocflow.container.sections import Declares, Workbench
from iocflow.container.summary import summary_of
from iocflow.container.warnings import warn_about_state, warn_about_time
from iocflow.wiring import Mistake, Place, SectionReader, Wired, did_you_mean

__all__ = ["Checked", "Examined", "check", "examine"]

_FIRST = ("beans", "processors", "observers", "interceptors")


@dataclass(frozen=True, slots=True)
class Examined:
    """A document after all checks; when none of its mistakes is more than a warning, it can be built.

    Attributes:
        builders: By section, what makes its object.
    """

    document: Document
    bench: Workbench
    graph: Graph
    builders: Mapping[str, Callable[[Wired], object]]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks found.

    Attributes:
        path: The file.
        mistakes: Everything, warnings too, in the order of the files' lines.
        summary: What is wired, as plain data (JSON-able): `processors` by id with `kind`, `context`, `steps`,
            `handlers`; the number of `beans`; `launchers` by name with their keys.
    """

    path: str
    mistakes: tuple[Mistake, ...]
    summary: Mapping[str, Any]
    sources: Mapping[str, Any]

    @property
    def failed(self) -> bool:
        """Whether the file cannot be loaded."""
        return any(not mistake.warning for mistake in self.mistakes)

    def rendered(self, *, colour: bool = False) -> str:
        """Return all mistakes as text, with the lines of the file and a caret under each place."""
        return render(self.mistakes, self.sources, colour=colour)


def check(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    override: Mapping[str, object] | None = None,
) -> Checked:
    """Check the file at `path` as `load` does, and construct nothing; the arguments are those of `load`."""
    examined = examine(path, profiles=profiles, values=values, allow=allow, override=override)
    document = examined.document
    summary = summary_of(document, examined.bench)
    return Checked(document.path, in_order(document.findings.mistakes), summary, document.sources)


def examine(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str],
    values: Mapping[str, Any] | None,
    allow: Iterable[str],
    override: Mapping[str, object] | None,
) -> Examined:
    """Read and check the file at `path`; all mistakes are in the document's findings."""
    document = read_document(path, profiles=profiles, values=values, allow=allow)
    bench = Workbench(document, dict(override or {}))
    readers = dict(_readers(document))
    for key, reader in readers.items():
        if isinstance(reader, Declares):
            reader.declare(document.sections[key], bench)
    _check_overrides(bench)
    builders = {key: reader.read(document.sections[key], bench) for key, reader in readers.items()}
    graph = Graph(bench, [wire for wires in bench.hooks.values() for wire in wires])
    graph.check_captures()
    graph.check_closers()
    warn_about_time(bench, bench.bean_section.roles)
    warn_about_state(bench)
    if not document.findings.failed:  # a mistake can make what is used look unused
        graph.check_unused(bench.bean_section.used_templates)
    return Examined(document, bench, graph, builders)


def _readers(document: Document) -> Iterable[tuple[str, SectionReader]]:
    """Yield the readers of the document's sections: the container's own first, then the others as the file has them."""
    keys = [key for key in _FIRST if key in document.sections]
    for key in (*keys, *(key for key in document.sections if key not in _FIRST)):
        try:
            yield key, document.extensions.reader(key)
        except ExtensionError as error:
            remedy = "install a version of it that fits, or remove the section"
            document.findings.error(document.sections[key].place, str(error), remedy)


def _check_overrides(bench: Workbench) -> None:
    """Note overrides of what the file does not define; what their uses want of the others is checked with the uses."""
    for id in bench.overrides:
        if id in bench.templates:
            bench.findings.error(bench.templates[id], f"the override `{id}` is of a template, which is never built")
        elif id not in bench.beans and id not in bench.processors and bench.document.complete:
            text = f"the override `{id}` is of no bean or processor of the file"
            bench.findings.error(Place(bench.document.path, 1, 1), text, did_you_mean(id, bench.ids))
