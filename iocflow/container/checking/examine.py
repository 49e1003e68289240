"""A document checked as a whole: everything that is wrong with it, before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from iocflow.activity import Activity
from iocflow.container.checking.description import Process
from iocflow.container.checking.durables import check_durables
from iocflow.container.checking.graph import Graph
from iocflow.container.checking.isolations import check_isolations
from iocflow.container.checking.sections import Workbench
from iocflow.container.checking.warnings import warn_about_state, warn_about_time
from iocflow.container.extensions import ExtensionError
from iocflow.container.inspecting.annotations import shown_one
from iocflow.container.reading import Document, adopt
from iocflow.durable.section import StoreReader
from iocflow.wiring import Place, SectionReader, Table, Wired, did_you_mean

__all__ = ["Examined", "examine", "examine_durables", "examine_store"]

_FIRST = ("beans", "processors", "observers", "interceptors")


@dataclass(frozen=True, slots=True)
class Examined:
    """A document after all checks; when none of its mistakes is more than a warning, it can be built.

    Attributes:
        builders: By section, what makes its object.
    """

    bench: Workbench
    graph: Graph
    builders: Mapping[str, Callable[[Wired], object]]


def examine(document: Document, overrides: Mapping[str, object]) -> Examined:
    """Check `document`, in which `overrides` replace beans; all mistakes are in its findings."""
    bench = Workbench(document, dict(overrides))
    graph, builders = _checked(bench)
    for profile, other in document.unchosen:
        _checked(Workbench(other, dict(overrides), bench))
        adopt(document.findings, other.findings, profile)
    warn_about_time(bench, bench.bean_section.roles)
    warn_about_state(bench, graph.shared)
    if not document.findings.failed:  # a mistake can make what is used look unused
        graph.check_unused(bench.bean_section.used_templates)
    return Examined(bench, graph, builders)


def _checked(bench: Workbench) -> tuple[Graph, Mapping[str, Callable[[Wired], object]]]:
    """Check all sections and how they fit together; return who needs whom, and what makes the object of a section."""
    document = bench.document
    readers = dict(_readers(document))
    for key, section in (("beans", bench.bean_section), ("processors", bench.processor_section)):
        table = document.sections.get(key)
        if isinstance(table, Table):
            section.declare(table)
    _check_overrides(bench)
    builders = {key: reader.read(document.sections[key], bench) for key, reader in readers.items()}
    graph = Graph(bench, [wire for wires in bench.hooks.values() for wire in wires])
    graph.check_captures()
    graph.check_closers()
    check_durables(bench)
    check_isolations(bench)
    return graph, builders


def examine_durables(document: Document) -> Mapping[str, Process]:
    """Check how processors are durable, and nothing else of them; return those that are, by id."""
    bench = Workbench(document, {})
    beans, processors = document.sections.get("beans"), document.sections.get("processors")
    if isinstance(beans, Table):
        bench.bean_section.declare(beans)
    if isinstance(processors, Table):
        bench.processor_section.describe_durables(processors)
    check_durables(bench)
    return {id: process for id, process in bench.described.items() if process.durable is not None}


def examine_store(document: Document) -> str:
    """Check the section `store`, which the document has; return its URL."""
    return StoreReader().url(document.sections["store"], Workbench(document, {}))


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
    for id, override in bench.overrides.items():
        if id in bench.templates:
            bench.error(bench.templates[id], f"the override `{id}` is of a template, which is never built")
        elif id not in bench.beans and id not in bench.processors and bench.document.complete:
            text = f"the override `{id}` is of no bean or processor of the file"
            bench.error(Place(bench.document.path, 1, 1), text, did_you_mean(id, bench.ids))
        elif id in bench.processors and not (isinstance(override, Activity) or callable(override)):
            text = f"the override of the processor `{id}` is {shown_one(type(override))}"
            bench.error(
                bench.processors[id].place, text, "give a Processor, or an activity where it is a part of others"
            )
