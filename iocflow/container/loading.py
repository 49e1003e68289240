"""The entrances: each reads and checks a file in the same way; only `load` builds it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from iocflow.activity import Activity
from iocflow.container.app import App, Objects, Origin
from iocflow.container.building import Draft, Registry
from iocflow.container.checking import Examined, examine
from iocflow.container.checking.summary import summary_of
from iocflow.container.failures import BuildError
from iocflow.container.reading import Document, read_document
from iocflow.container.rendering import in_order, render
from iocflow.container.secrets import OwnLoggers, Secrets
from iocflow.wiring import ConfigurationError, Mistake, Place

__all__ = ["Blueprint", "Checked", "blueprint", "check", "load", "refused"]


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
    document: Document

    @property
    def failed(self) -> bool:
        """Whether the file cannot be loaded."""
        return any(not mistake.warning for mistake in self.mistakes)

    def rendered(self, *, colour: bool = False) -> str:
        """Return all mistakes as text, with the lines of the file and a caret under each place."""
        return _rendered(self.document, self.mistakes, colour=colour)


@dataclass(frozen=True, slots=True)
class Source:
    """What a file is loaded with, for another process to do the same; see `load`."""

    path: str | os.PathLike[str]
    profiles: tuple[str, ...]
    values: Mapping[str, Any] | None
    allow: tuple[str, ...]

    def activity_at(self, place: Place, name: str) -> Activity[Any]:
        """Return the activity of the step at a place; of the rest of the file only what that needs is built."""
        made = blueprint(self.path, profiles=self.profiles, values=self.values, allow=self.allow)
        return made.registry().activity_at(place, name)


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A file that passed all checks; nothing is constructed yet.

    Attributes:
        warnings: What the checks found that is probably not meant.
    """

    examined: Examined
    warnings: tuple[Mistake, ...]
    source: Source

    @property
    def processor_ids(self) -> tuple[str, ...]:
        """The ids of the processors, in the order of the file."""
        return tuple(self.examined.bench.described)

    def build(self) -> App:
        """Return the application, built; iocflow's own loggers mask its secrets until it is closed.

        Raises:
            BuildError: A constructor, factory or `init` raised; what was built before is closed again.
        """
        secrets = self.examined.bench.document.secrets
        loggers = OwnLoggers(None if secrets.empty else secrets.filter())
        loggers.put_on()  # before anything is built, as a constructor may make it log
        try:
            app = self._built(loggers)
        except BaseException:
            loggers.take_off()
            raise
        loggers.put_on()  # building may have imported what logs
        return app

    def _built(self, loggers: OwnLoggers) -> App:
        bench, registry = self.examined.bench, self.registry()
        registry.build(bench.overrides)
        app = self._app(registry, loggers)
        for key in self.examined.builders:
            try:
                app.section(key)
            except Exception as error:
                raise registry.failed(key, bench.document.sections[key].place, error) from error
        return app

    def registry(self) -> Registry:
        """Return what builds the file's objects; it has built none."""
        bench = self.examined.bench
        maker = functools.partial(functools.partial, self.source.activity_at)
        return Registry(bench.defined, bench.described, self.examined.graph, bench.hooks, self._refusal, maker)

    def draft(self) -> App:
        """Return the application over stand-ins: its processors have plans, its launchers timings, and none can run.

        Nothing of the user's is constructed, so that it can be looked at wherever the file is.
        """
        bench = self.examined.bench
        return self._app(Draft(bench.defined, bench.described, self.examined.graph), OwnLoggers(None))

    def _app(self, objects: Objects, loggers: OwnLoggers) -> App:
        document = self.examined.bench.document
        origin = Origin(document.path, self.warnings, document.secrets, loggers)
        described = self.examined.bench.described
        durable = {id: process.durable for id, process in described.items() if process.durable is not None}
        return App.wired(objects, origin, self.examined.builders, durable)

    def _refusal(self, place: Place, text: str) -> BuildError:
        document = self.examined.bench.document
        mistake = Mistake(place, document.secrets.mask(text))
        return BuildError([mistake], _rendered(document, [mistake]))


def load(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    override: Mapping[str, object] | None = None,
    secrets: Secrets | None = None,
) -> App:
    """Return the application that the container file at `path` describes, built; close it, or use it in a `with`.

    The import path is left alone: the modules that the file names must be importable.

    Args:
        path: The container file.
        profiles: The names of profiles; a later one replaces what an earlier one says.
        values: What wins over the file's `values:`, by dotted key (`{"smtp.host": "localhost"}`).
        allow: Packages that the file may name, beside those that it allows itself; never the standard library.
        override: Objects that replace beans by id, for tests; the real ones are never built.
        secrets: Gets the secrets that the file names, before anything is built, and is then `app.secrets`: whoever
            masks logs can begin with it.

    Raises:
        ConfigurationError: The file has mistakes; all are told, and nothing was constructed.
        BuildError: A constructor, factory or `init` raised; what was built before is closed again.
    """
    return blueprint(path, profiles=profiles, values=values, allow=allow, override=override, secrets=secrets).build()


def blueprint(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    override: Mapping[str, object] | None = None,
    secrets: Secrets | None = None,
) -> Blueprint:
    """Return what `load` would build, checked; the arguments are those of `load`.

    Raises:
        ConfigurationError: The file has mistakes; all are told.
    """
    source = Source(path, tuple(profiles), values, tuple(allow))
    document = read_document(path, profiles=source.profiles, values=values, allow=source.allow, secrets=secrets)
    examined = examine(document, override or {})
    if document.findings.failed:
        raise refused(document)
    return Blueprint(examined, _mistakes(document), source)


def check(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    override: Mapping[str, object] | None = None,
) -> Checked:
    """Check the file at `path` as `load` does, and construct nothing; the arguments are those of `load`."""
    document = read_document(path, profiles=profiles, values=values, allow=allow)
    summary = summary_of(examine(document, override or {}).bench)
    return Checked(document.path, _mistakes(document), summary, document)


def refused(document: Document) -> ConfigurationError:
    """Return the error that tells all mistakes of a document."""
    mistakes = _mistakes(document)
    return ConfigurationError(mistakes, _rendered(document, mistakes))


def _mistakes(document: Document) -> tuple[Mistake, ...]:
    """Return all mistakes in order, the secrets that another library may have quoted in one masked."""
    mask, found = document.secrets.mask, in_order(document.findings.mistakes)
    return tuple(replace(one, what=mask(one.what), remedy=mask(one.remedy)) for one in found)


def _rendered(document: Document, mistakes: Iterable[Mistake], *, colour: bool = False) -> str:
    """Return the mistakes as text; a line of a file that holds a secret's value is masked, too."""
    return document.secrets.mask(render(mistakes, document.sources, colour=colour))
