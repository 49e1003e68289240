"""The application: beans and processors, ready to be used."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, overload

from iocflow.async_runner import AsyncRunner
from iocflow.container.durable_app import DurableApp
from iocflow.container.failures import ClosedError, CloseError, UnknownIdError, WrongTypeError
from iocflow.container.inspecting.annotations import Candidate, fits, shown_one
from iocflow.container.python_wiring import check_wiring
from iocflow.container.secrets import OwnLoggers, Secrets
from iocflow.container.stored import Stored
from iocflow.context import ProcessContext
from iocflow.durable.section import StoreSettings
from iocflow.errors import DuplicateNameError
from iocflow.hooks import Interceptor, RunObserver
from iocflow.processor import Processor
from iocflow.wiring import Mistake, Wired, did_you_mean

if TYPE_CHECKING:  # they are loaded when they are needed
    from iocflow.durable.job import Durable
    from iocflow.store.contract import Store

__all__ = ["App", "Objects", "Origin"]

C = TypeVar("C", bound=ProcessContext)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Origin:
    """What an application knows of its file."""

    path: str = ""
    warnings: tuple[Mistake, ...] = ()
    secrets: Secrets = field(default_factory=Secrets)
    loggers: OwnLoggers = field(default_factory=lambda: OwnLoggers(None))


class Objects(Protocol):
    """Where an application has its objects from.

    Attributes:
        ids: All of them, those of processors included.
        processor_ids: Those of processors, in order.
        runner: Where awaitables run; closed with the rest.
    """

    ids: tuple[str, ...]
    processor_ids: tuple[str, ...]
    runner: AsyncRunner

    def get(self, id: str) -> Any:
        """Return the object of a known id."""

    def override(self, id: str, replacement: object) -> contextlib.AbstractContextManager[None]:
        """Replace it for a while."""

    def close(self) -> None:
        """Close what was built."""


class App(DurableApp):
    """An application, built from a container file by `load`, or here from processors that were built in Python.

    Use it as a context manager: leaving closes what was built, last built first. Like a mapping, it has beans and
    processors by id, and their ids.

    Attributes:
        path: The container file; empty when it was built in Python.
        warnings: What the checks found that is probably not meant.
        secrets: The secrets that were put in for placeholders; `mask` and `filter` keep them out of texts and logs.
            iocflow's own loggers have that filter while the application is open.
        runner: The one loop on which awaitables of activities run; its thread starts at first need.
    """

    def __init__(
        self,
        *processors: Processor[Any],
        observers: Iterable[RunObserver] = (),
        interceptors: Iterable[Interceptor] = (),
        launchers: Iterable[object] = (),
        store: str | Store | None = None,
        durable: Mapping[str, Durable] | None = None,
        worker: Mapping[str, Any] | None = None,
    ) -> None:
        """Take processors, and what `observers:`, `interceptors:` and `launchers:` say in a file.

        Args:
            processors: The processors.
            observers: Get the events of all runs.
            interceptors: Wrap every attempt of every activity.
            launchers: Start runs in a daemon.
            store: Where durable runs are kept: a URL, as `sqlite:///var/app.db`, or an open store, which is not closed.
            durable: How the runs of each durable processor are, by its name; with a store and without this, all are.
            worker: `threads`, `lease` and the like, in seconds, as `iocflow.durable.settings.WorkerSettings` has them.

        Raises:
            WrongTypeError: One is no processor, or what stands in it is for another context, or lacks arguments.
            DuplicateNameError: Two processors have the same name.
            UnknownIdError: `durable` names no processor.
            ContextTypeError: The context of a durable processor cannot be stored.
            UnknownActivityError: The answer of a handler goes to no activity of its processor.
        """
        built = _Built(processors)
        check_wiring(processors)
        observed, intercepted, started = tuple(observers), tuple(interceptors), tuple(launchers)
        for processor in processors:
            processor.hooked(observed, intercepted, built.runner)
        sections: dict[str, Callable[[Wired], object]] = {"launchers": lambda _: started, "worker": lambda _: worker}
        if isinstance(store, str):
            sections["store"] = lambda _: StoreSettings(store)
        options: Mapping[str, Any] = {id: {} for id in (built.ids if store else ())} if durable is None else durable
        self._set(built, Origin(), sections, options, None if isinstance(store, str) else store)
        self._stored.jobs()

    @classmethod
    def wired(
        cls,
        objects: Objects,
        origin: Origin,
        sections: Mapping[str, Callable[[Wired], object]],
        durable: Mapping[str, Mapping[str, str]],
    ) -> Self:
        """Return the application of a container file, for `load`; `durable` has the options of durable processors."""
        app = cls.__new__(cls)
        app._set(objects, origin, sections, durable)
        return app

    def _set(
        self,
        objects: Objects,
        origin: Origin,
        sections: Mapping[str, Callable[[Wired], object]],
        durable: Mapping[str, Any],
        store: Store | None = None,
    ) -> None:
        self.path = origin.path
        self.warnings = origin.warnings
        self.secrets = origin.secrets
        self._loggers = origin.loggers
        self.runner = objects.runner
        self._objects = objects
        self._builders = sections
        self._sections: dict[str, object] = {}
        self._closed = False
        self._lock = threading.RLock()
        self._stored = Stored(self, durable, store)
        self._stored.entrust()

    # Look-ups.

    def __getitem__(self, id: str) -> Any:
        """Return the bean or processor of that id; a prototype is made anew each time.

        Raises:
            UnknownIdError: There is none; a KeyError.
        """
        self._refuse_unknown(id)
        return self._objects.get(id)

    def __contains__(self, id: object) -> bool:
        """Return whether there is a bean or processor of that id."""
        self._refuse_closed()
        return id in self._objects.ids

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of beans and processors, in the order of the file; nothing is built for it."""
        self._refuse_closed()
        return iter(self._objects.ids)

    def __len__(self) -> int:
        """Return how many beans and processors there are."""
        self._refuse_closed()
        return len(self._objects.ids)

    def __bool__(self) -> bool:
        """Return True: an application without any bean is one, too."""
        return True

    # As a callable, because `type[T]` takes no Protocol and no abstract class, which are what one asks for.
    def get(self, id: str, type: Callable[..., T]) -> T:
        """Return the bean of that id, which is a `type`: a class, or a Protocol, which is compared by what it names.

        Raises:
            UnknownIdError: There is none.
            WrongTypeError: It is of another type.
        """
        found = self[id]
        if not fits(Candidate(found.__class__, objects=(found,)), type):
            raise WrongTypeError(f"`{id}` is {shown_one(found.__class__)}, not {shown_one(type)}")
        typed: T = found
        return typed

    @overload
    def processor(self, id: str) -> Processor[Any]: ...
    @overload
    def processor(self, id: str, context: type[C]) -> Processor[C]: ...
    def processor(self, id: str, context: type[C] | None = None) -> Processor[Any]:
        """Return the processor of that id, whose runs have a `context` of that type.

        Raises:
            UnknownIdError: There is none.
            WrongTypeError: It is no processor, or its context is of another type.
        """
        if id not in self._objects.processor_ids and id not in self._objects.ids:
            self._refuse_unknown(id, self._objects.processor_ids)
        found = self[id]
        if not isinstance(found, Processor):
            raise WrongTypeError(f"`{id}` is {shown_one(type(found))}, no processor")
        if context is not None and not issubclass(found.context_type, context):
            works = f"works on {shown_one(found.context_type)}"
            raise WrongTypeError(f"the processor `{id}` {works}, not on {shown_one(context)}")
        return found

    @property
    def processors(self) -> Mapping[str, Processor[Any]]:
        """All processors by id, in the order of the file."""
        return MappingProxyType({id: self[id] for id in self._objects.processor_ids})

    def section(self, key: str) -> object | None:
        """Return what the section of that key became, as the launchers of `launchers`; None when there is none."""
        self._refuse_closed()
        with self._lock:
            if key not in self._sections and key in self._builders:
                self._sections[key] = self._builders[key](self)
            return self._sections.get(key)

    # Overriding and closing.

    @contextlib.contextmanager
    def override(self, id: str, replacement: object) -> Iterator[None]:
        """Replace a bean for a while, in a test.

        All that was built with it (processors too) is built anew with the replacement when it is looked up; at the end
        the former objects are there again. What was looked up before keeps what it has.

        Raises:
            UnknownIdError: There is no such bean.
        """
        self._refuse_unknown(id)
        with self._objects.override(id, replacement):
            with self._lock:
                former, self._sections = self._sections, {}
            try:
                with self._stored.overridden():
                    yield
            finally:
                with self._lock:
                    self._sections = former

    def close(self) -> None:
        """Close what was built, last built first, each one even if another fails; later calls do nothing.

        Raises:
            CloseError: With all that was raised.
            BaseException: What interrupted a bean's closing, as Ctrl-C does; the others are closed all the same.
        """
        if not self._closed:
            self._closed = True
            try:
                self._objects.close()
            finally:
                self._stored.close()
                self._loggers.take_off()

    def __enter__(self) -> Self:
        """Return itself."""
        self._refuse_closed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; an error of closing is added to one that was on its way already."""
        try:
            self.close()
        except CloseError as failures:
            if error is None:
                raise
            for failure in failures.exceptions:
                error.add_note(f"{', '.join(failure.__notes__)}: {type(failure).__name__}: {failure}")

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ClosedError(f"the application{f' of {self.path}' if self.path else ''} is closed")

    def _refuse_unknown(self, id: str, known: Iterable[str] | None = None) -> None:
        self._refuse_closed()
        if id not in self._objects.ids:
            where = self.path or "the application"
            remedy = did_you_mean(id, self._objects.ids if known is None else known)
            raise UnknownIdError(f"{where} has no bean or processor `{id}`; {remedy}")


class _Built:
    """The processors of an application that is built in Python."""

    def __init__(self, processors: Iterable[Processor[Any]]) -> None:
        self.runner = AsyncRunner()
        self._by_id: dict[str, object] = {}
        for processor in processors:
            if not isinstance(processor, Processor):
                raise WrongTypeError(f"an App takes processors, as App(first, second), or a file's: not {processor!r}")
            if processor.name in self._by_id:
                raise DuplicateNameError(
                    f"two processors are named {processor.name!r}; give one of them another `name=`"
                )
            self._by_id[processor.name] = processor
        self.ids = self.processor_ids = tuple(self._by_id)

    def get(self, id: str) -> Any:
        return self._by_id[id]

    @contextlib.contextmanager
    def override(self, id: str, replacement: object) -> Iterator[None]:
        former, self._by_id = self._by_id, {**self._by_id, id: replacement}
        try:
            yield
        finally:
            self._by_id = former

    def close(self) -> None:
        self.runner.close()
