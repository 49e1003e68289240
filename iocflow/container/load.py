"""From a container file to a running application."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from iocflow.container.app import App, Origin
from iocflow.container.check import Examined, examine
from iocflow.container.failures import BuildError
from iocflow.container.registry import Registry
from iocflow.container.rendering import in_order, render
from iocflow.wiring import ConfigurationError, Mistake, Place

__all__ = ["load"]


def load(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    override: Mapping[str, object] | None = None,
) -> App:
    """Return the application that the container file at `path` describes, built; close it, or use it in a `with`.

    The import path is left alone: the modules that the file names must be importable.

    Args:
        path: The container file.
        profiles: The names of profiles; a later one replaces what an earlier one says.
        values: What wins over the file's `values:`, by dotted key (`{"smtp.host": "localhost"}`).
        allow: Packages that the file may name, beside those that it allows itself.
        override: Objects that replace beans by id, for tests; the real ones are never built.

    Raises:
        ConfigurationError: The file has mistakes; all are told, and nothing was constructed.
        BuildError: A constructor, factory or `init` raised; what was built before is closed again.
    """
    examined = examine(path, profiles=profiles, values=values, allow=allow, override=override)
    document = examined.document
    mistakes = in_order(document.findings.mistakes)
    if document.findings.failed:
        raise ConfigurationError(mistakes, render(mistakes, document.sources))
    return _built(examined, mistakes)


def _built(examined: Examined, warnings: tuple[Mistake, ...]) -> App:
    document, bench = examined.document, examined.bench

    def refusal(place: Place, text: str) -> BuildError:
        mistake = Mistake(place, document.secrets.mask(text))
        return BuildError([mistake], render([mistake], document.sources))

    registry = Registry(bench.defined, bench.described, examined.graph, bench.hooks, refusal)
    registry.build(bench.overrides)
    origin = Origin(document.path, warnings, document.secrets, bench.requirements)
    app = App.wired(registry, origin, examined.builders)
    for key in examined.builders:
        try:
            app.section(key)
        except Exception as error:
            raise registry.failed(key, document.sections[key].place, error) from error
    return app
