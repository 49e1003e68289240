"""FILE, the argument of most commands: a container file, or `module:app` for an application built in Python."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from iocflow.cli.command import Session, UsageError
from iocflow.container import App, Secrets, blueprint
from iocflow.container.checking.importing import raised
from iocflow.wiring import ConfigurationError, did_you_mean

__all__ = ["File", "applications", "is_module", "open_app", "require_file"]

File = Annotated[
    str, typer.Argument(metavar="FILE", help="A container file, or MODULE:APP for an App built in Python.")
]

_MODULE = re.compile(r"(?P<module>\w+(\.\w+)*):(?P<app>\w+)")


def is_module(file: str) -> bool:
    """Return whether `file` means an application built in Python."""
    return bool(_MODULE.fullmatch(file)) and not os.path.exists(file)


def require_file(file: str) -> None:
    """Refuse a file that is not there.

    Raises:
        UsageError: With the file that was probably meant.
    """
    path = Path(file)
    if path.is_dir():
        raise UsageError(f"{file} is a folder; name a container file in it")
    if not path.exists():
        if path.is_symlink():
            nowhere = f"{file} is a link that leads nowhere, to {path.readlink()}"
            raise UsageError(f"{nowhere}; let it lead to a container file, or name another one")
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        files = [str(each) for each in beside if each.suffix in (".yaml", ".yml") and each.exists()]
        remedy = did_you_mean(file, files) if files else f"{path.parent.resolve()} holds no container file"
        raise UsageError(f"there is no file {file}; {remedy}")


def applications(module: ModuleType) -> dict[str, App]:
    """Return the applications that a module defines, by name."""
    return {name: value for name, value in vars(module).items() if isinstance(value, App)}


def open_app(session: Session, file: str, *, processor: str | None = None, drawn: bool = False) -> App:
    """Return the application of `file`; the caller closes it. From now on its secrets are masked.

    Args:
        session: What the command works with.
        file: What FILE is on the command line.
        processor: The id of a processor that the command needs.
        drawn: Whether it is looked at only: nothing that a container file names is constructed then.

    Raises:
        UsageError: There is no such file, module, application or processor; nothing was constructed.
        ConfigurationError: The file has mistakes, and nothing was constructed; or the module cannot be imported.
    """
    if is_module(file):
        app = _imported(session, file)
        session.mask(app.secrets.mask)
        _require_processor(file, processor, app.processors)
        return app
    require_file(file)
    secrets = Secrets()
    session.mask(secrets.mask)  # before anything is built, as a constructor may log what it was given
    found = blueprint(file, profiles=session.profiles, values=session.values, secrets=secrets)
    _require_processor(file, processor, found.processor_ids)
    return found.draft() if drawn else found.build()


def _require_processor(file: str, id: str | None, known: Iterable[str]) -> None:
    """Refuse a processor that is not there, and tell which one was probably meant."""
    if id is not None and id not in known:
        raise UsageError(f"{file} has no processor {id}; {did_you_mean(id, known)}")


def _imported(session: Session, file: str) -> App:
    """Import `module:app`."""
    if session.profiles or session.values:
        raise UsageError(f"--profile and --set are for container files; {file} is built in Python")
    module_name, _, name = file.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is None or not f"{module_name}.".startswith(f"{missing}."):
            what = f"iocflow: {file}: the module {module_name} cannot be imported: {raised(error, __file__)}"
            raise ConfigurationError([], what) from error
        raise UsageError(f"{file}: there is no module {missing} in {os.getcwd()} or on the import path") from error
    apps = applications(module)
    if name not in apps:
        there = f"is a {type(getattr(module, name)).__name__}" if hasattr(module, name) else "is not there"
        raise UsageError(f"{file}: {name} {there}, an App is wanted; {did_you_mean(name, apps)}")
    return apps[name]
