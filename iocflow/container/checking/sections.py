"""The readers of the container's own sections: `beans`, `processors`, `observers`, `interceptors`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iocflow.container.checking.beans import Beans
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Wire
from iocflow.container.checking.processors import Processors
from iocflow.container.checking.roles import INTERCEPTOR, OBSERVER, Role
from iocflow.container.checking.section_schemas import beans_schema, hook_schema, processors_schema
from iocflow.container.reading import Document
from iocflow.wiring import Node, Wired

__all__ = ["BeansReader", "InterceptorsReader", "ObserversReader", "ProcessorsReader", "Workbench"]


class Workbench(Checks):
    """The checks with the readers of beans and processors; the scope that all section readers are lent.

    Attributes:
        hooks: The observers and interceptors of all processors, by their section's key.
    """

    def __init__(self, document: Document, overrides: Mapping[str, object], like: Checks | None = None) -> None:
        """Take what `Checks` takes."""
        super().__init__(document, overrides, like)
        self.bean_section = Beans(self)
        self.processor_section = Processors(self, self.bean_section)
        self.hooks: dict[str, tuple[Wire, ...]] = {}


class BeansReader:
    """Reads the section `beans`, whose ids `examine` has made known before."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the section."""
        return beans_schema()

    def read(self, section: Node, scope: Workbench) -> Callable[[Wired], object]:  # noqa: ARG002 - a reader's shape
        """Check what the beans are given; the application itself builds them."""
        scope.bean_section.describe()
        return lambda _: tuple(scope.beans)


class ProcessorsReader:
    """Reads the section `processors`, whose ids `examine` has made known before."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the section."""
        return processors_schema()

    def read(self, section: Node, scope: Workbench) -> Callable[[Wired], object]:  # noqa: ARG002 - a reader's shape
        """Check what the processors run; the application itself builds them."""
        scope.processor_section.describe()
        return lambda _: tuple(scope.processors)


class _HooksReader:
    """Reads a list of beans that go to every processor."""

    key: str
    role: Role

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the section."""
        return hook_schema()

    def read(self, section: Node, scope: Workbench) -> Callable[[Wired], object]:
        """Check that each one fills its role."""
        wires = []
        for node in scope.listed(section):
            what = f"an entry of `{self.key}`"
            fit = scope.bean_section.roles.filling(self.role)
            wire = scope.bean_section.wired(node, what, "any", fit)
            if wire is not None:
                scope.bean_section.roles.fills(wire, self.role, node.place, what)
                wires.append(wire)
        scope.hooks[self.key] = tuple(wires)
        return lambda _: tuple(wires)


class ObserversReader(_HooksReader):
    """Reads the section `observers`: they get the events of all runs."""

    key = "observers"
    role = OBSERVER


class InterceptorsReader(_HooksReader):
    """Reads the section `interceptors`: they wrap every attempt of every activity, the first one outermost."""

    key = "interceptors"
    role = INTERCEPTOR
