"""The providers of one application by id, and what overriding does to them."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dependency_injector import providers

from iocflow.activity import Activity
from iocflow.async_runner import AsyncRunner
from iocflow.container.building.assembler import Assembler
from iocflow.container.building.builder import Builder, Provider
from iocflow.container.building.isolating import Isolating
from iocflow.container.building.lifecycle import Lifecycle
from iocflow.container.checking.description import Bean, Block, Process, Wire
from iocflow.container.checking.graph import Graph, all_steps, children
from iocflow.container.failures import BuildError, CloseError, UnfitError
from iocflow.isolation.messages import Make
from iocflow.wiring import Place

__all__ = ["Registry"]


class Registry:
    """Builds what a checked document describes.

    The ids are kept here and not as attributes of a dependency-injector container, many of whose own attributes are
    words that a bean may be called by.
    """

    def __init__(
        self,
        beans: Mapping[str, Bean],
        processes: Mapping[str, Process],
        graph: Graph,
        hooks: Mapping[str, Iterable[Wire]],
        refusal: Callable[[Place, str], BuildError],
        maker: Callable[[Place, str], Make],
    ) -> None:
        """Take the description; `hooks` are the `observers` and `interceptors` of all processors.

        `refusal` makes the error about what cannot be built at some place, `maker` what makes in another process the
        activity of the step at some place.
        """
        self._beans = beans
        self._processes = processes
        self._graph = graph
        self._hooks = hooks
        self._refusal = refusal
        self._isolating = Isolating(maker)
        self.runner = AsyncRunner()
        self.processor_ids = tuple(processes)
        self.ids = (*beans, *processes)
        self._lock = threading.RLock()
        self._replaced: list[str] = []
        self._hooked: dict[str, tuple[Any, ...]] = {}
        self._lifecycle = Lifecycle(self.runner)
        self.providers: dict[str, Provider[Any]] = {}

    def build(self, overrides: Mapping[str, object]) -> None:
        """Build every singleton and processor, in this thread and in the order of their needs.

        What only an overridden bean would have needed is built when it is asked for, if ever.

        Raises:
            BuildError: One could not be built; those that were are closed.
        """
        self._provide(overrides)
        wanted = self._graph.wanted()
        for id in self._graph.order:
            if id in wanted and self._is_shared(id):
                try:
                    self.providers[id]()
                except Exception as error:
                    raise self.failed(id, self._place(id), error) from error
                except BaseException:
                    self.close()
                    raise

    def _provide(self, overrides: Mapping[str, object]) -> Builder:
        builder = Builder(self._lifecycle, self._provider_of, self._beans.get)
        self._replaced += overrides
        for id in self._graph.order:
            self.providers[id] = providers.Object(overrides[id]) if id in overrides else self._provider(id, builder)
        return builder

    def activity_at(self, place: Place, name: str) -> Activity[Any]:
        """Return the activity of the step at a place, for a process of its own: only what it needs is built."""
        builder = self._provide({})
        for process in self._processes.values():
            for step in all_steps((*children(process.shape), *process.finally_)):
                if (step.place, step.name) == (place, name) and not isinstance(step.what, Block):
                    return Assembler(builder, self._beans.get, None).activity(step.what, name)
        raise self._refusal(place, f"step `{name}` is not there any more: the file was changed")

    def failed(self, id: str, place: Place, error: Exception) -> BuildError:
        """Close what was built; return the error about `id`, which tells also what could not be closed."""
        notes = [note for note in getattr(error, "__notes__", ()) if f"bean `{id}`" not in note]
        try:
            self.close()
        except CloseError as others:
            notes += [f"and {', '.join(one.__notes__)}: {type(one).__name__}: {one}" for one in others.exceptions]
        if isinstance(error, UnfitError):
            return self._refusal(error.place, "; ".join((str(error), *notes)))
        return self._refusal(place, "; ".join((f"`{id}` cannot be built: {type(error).__name__}: {error}", *notes)))

    def get(self, id: str) -> Any:
        """Return the bean or processor: the one there is, or a new one where it is a prototype."""
        return self.providers[id]()

    def close(self) -> None:
        """Close all beans, last built first, then the loop of async code."""
        try:
            self._lifecycle.close()
        finally:
            self._isolating.close()
            self.runner.close()

    @contextlib.contextmanager
    def override(self, id: str, replacement: object) -> Iterator[None]:
        """Replace a bean, and what was built with it, for a while.

        Everything that needs the bean is built anew with the replacement; at the end those are closed, and the former
        ones are there again, as they were.
        """
        layer = Lifecycle(self.runner)
        builder = Builder(layer, self._provider_of, self._beans.get)
        with self._lock:
            shared = [one for one in self._graph.dependants(id, without=self._replaced) if self._is_shared(one)]
            changed, hooked = [id, *shared], self._hooked
            fresh = [providers.Object(replacement), *(self._provider(one, builder) for one in shared)]
            for one, provider in zip(changed, fresh, strict=True):
                self.providers[one].override(provider)
            self._replaced.append(id)
            self._hooked = {}
        try:
            for one in shared:
                self.providers[one]()
            yield
        finally:
            with self._lock:
                for one in changed:
                    self.providers[one].reset_last_overriding()
                self._replaced.remove(id)
                self._hooked = hooked
            layer.close()

    def _is_shared(self, id: str) -> bool:
        return id in self._processes or self._beans[id].scope == "singleton"

    def _provider_of(self, id: str) -> Provider[Any]:
        return self.providers[id]

    def _provider(self, id: str, builder: Builder) -> Provider[Any]:
        if id in self._beans:
            return builder.provider(self._beans[id])
        return providers.ThreadSafeSingleton(functools.partial(self._processor, self._processes[id], builder))

    def _processor(self, process: Process, builder: Builder) -> Any:
        # What replaces beans are objects of this process.
        isolating = None if self._replaced else self._isolating
        assembler = Assembler(builder, self._beans.get, self._context(process), isolating)
        hooks = [self._hook(key, builder) for key in ("observers", "interceptors")]
        return assembler.processor(process, hooks[0], hooks[1], self.runner)

    def _context(self, process: Process) -> Any:
        """Return what makes the contexts: the class itself, which is quicker, unless a bean gives it something."""
        bean = self._beans.get(process.context_bean)
        plain = bean is None or not (bean.positional or bean.keywords or bean.set or bean.init or bean.kind != "class")
        return process.context if plain else self.providers[process.context_bean]

    def _hook(self, key: str, builder: Builder) -> tuple[Any, ...]:
        if key not in self._hooked:
            self._hooked[key] = tuple(builder.value(wire) for wire in self._hooks.get(key, ()))
        return self._hooked[key]

    def _place(self, id: str) -> Place:
        return self._beans[id].place if id in self._beans else self._processes[id].place
