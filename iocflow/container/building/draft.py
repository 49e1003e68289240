"""The processors of a description without any object of the user's, to be drawn and listed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NoReturn

from iocflow.activity import Activity
from iocflow.async_runner import AsyncRunner
from iocflow.container.building.assembler import Assembler
from iocflow.container.checking.description import Bean, Inner, Process, Reference, Value
from iocflow.container.checking.graph import Graph
from iocflow.context import ProcessContext
from iocflow.error_handling import HandlesErrors
from iocflow.errors import IocflowError

__all__ = ["Draft", "DraftError"]


class DraftError(IocflowError):
    """A draft was used like the application; it can only be looked at."""


class Draft:
    """Has in place of every bean a stand-in that carries its id; an application has its objects from here, too."""

    def __init__(self, beans: Mapping[str, Bean], processes: Mapping[str, Process], graph: Graph) -> None:
        """Take the description, and assemble its processors."""
        self.ids = (*beans, *processes)
        self.processor_ids = tuple(processes)
        self.runner = AsyncRunner()
        self._beans = beans
        self._objects: dict[str, Any] = {}
        for id in graph.order:
            self._objects[id] = self._processor(processes[id]) if id in processes else StandIn(id, beans[id])

    def get(self, id: str) -> Any:
        """Return the processor, or what stands in for the bean."""
        return self._objects[id]

    def value(self, value: Value) -> Any:
        """Return what stands where the description has a bean."""
        if isinstance(value, Inner):
            return StandIn(getattr(value.bean.target, "__name__", "inner bean"), value.bean)
        if isinstance(value, Reference):
            return self._objects[value.id]
        raise DraftError(f"nothing stands in for {value}")

    def override(self, id: str, replacement: object) -> contextlib.AbstractContextManager[None]:
        """Refuse."""
        raise DraftError(f"{id} cannot be replaced by {replacement}: this application is a draft")

    def close(self) -> None:
        """Close nothing but the loop, which never ran."""
        self.runner.close()

    def _processor(self, process: Process) -> Any:
        context = process.context or ProcessContext
        return Assembler(self, self._beans.get, context).processor(process, (), (), self.runner)


class StandIn(Activity[Any]):
    """Stands where a bean would, whatever role it has there."""

    def __init__(self, name: str, bean: Bean) -> None:
        """Take the bean's name; what its class says of itself without being constructed is taken over."""
        self.name = self.__name__ = name
        own = getattr(bean.type, "error_handler", None)
        self.error_handler = own if isinstance(own, HandlesErrors) and not isinstance(own, type) else None

    def execute(self, context: Any) -> NoReturn:  # noqa: ARG002 - an activity takes it
        """Refuse."""
        raise DraftError(f"{self.name} is only drawn")

    def handle_error(self, context: Any, error: Exception) -> NoReturn:
        """Refuse."""
        raise DraftError(f"{self.name} is only drawn; {context} failed") from error

    def poll(self) -> NoReturn:
        """Refuse."""
        raise DraftError(f"{self.name} is only drawn")

    def __call__(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise DraftError(f"{self.name} is only drawn")
