"""Importing the modules that a file names, and saying why one cannot be had."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from dataclasses import dataclass
from types import ModuleType

from iocflow.container.reading.allowing import lies_in
from iocflow.container.reading.document import Document
from iocflow.wiring import did_you_mean

__all__ = ["Failure", "Packages", "failed", "imported", "raised", "remedy_for_missing"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a module cannot be had.

    Attributes:
        missing: What is missing of its dotted name.
        raised: Or else what its import raised.
        lacking: The other module that its import did not find, if that was the reason.
    """

    missing: str = ""
    raised: str = ""
    lacking: str = ""

    def remedy(self, what: str) -> str:
        """Return what to do about an import that raised; `what` was imported."""
        if self.lacking:
            return f"install what has `{self.lacking}`, or correct the name where it is imported"
        return f"correct {what}"


def imported(name: str) -> ModuleType | Failure:
    """Return the module of that name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and lies_in(name, (error.name,)):
            return Failure(missing=error.name)
        return failed(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module may raise anything while it is imported
        return failed(error)


def failed(error: BaseException) -> Failure:
    """Return what the code of a module raised, and the module that it did not find, if that was the reason."""
    cause = error.__cause__ if isinstance(error, ImportError) and error.__cause__ else error
    return Failure(raised=raised(error), lacking=(cause.name or "") if isinstance(cause, ModuleNotFoundError) else "")


def raised(error: BaseException, *besides: str) -> str:
    """Return the error's type and message, and where it was raised when that is in a file, `besides` some others."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    own = [frame for frame in frames if frame.filename not in (__file__, importlib.__file__, *besides)]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


def remedy_for_missing(missing: str, file: str) -> str:
    """Return what to write instead of the module `missing`, or where to look for it; `file` names it."""
    parent, _, last = missing.rpartition(".")
    if not parent:
        return _remedy_for_top(missing, file)
    around = sys.modules.get(parent)
    path = getattr(around, "__path__", None)
    if path is None or last in vars(around):
        return "a name is one look-up in a module: `package.module.Name`, and nothing inside of `Name`"
    return did_you_mean(last, [found.name for found in pkgutil.iter_modules(path)])


def _remedy_for_top(name: str, file: str) -> str:
    """Return where a module that lies in no package was looked for, and the one that was probably meant."""
    here = os.getcwd()
    on_path = any(os.path.abspath(entry) == here for entry in sys.path)
    folder = f"the current folder, {here}"
    looked = (
        f"the import path has {folder}, and no `{name}`"
        if on_path
        else f"{folder}, is not on the import path: the command line puts it there, `load()` does not"
    )
    home = os.path.dirname(os.path.abspath(file))
    while home != os.path.dirname(home):
        if home != here and (os.path.isdir(os.path.join(home, name)) or os.path.isfile(f"{home}/{name}.py")):
            return f"there is one in {home}: run from there, or add that to PYTHONPATH; {looked}"
        home = os.path.dirname(home)
    known = {found.name for found in pkgutil.iter_modules()} if on_path else set()
    known |= {entry.name for entry in os.scandir(here) if entry.is_dir() and entry.name.isidentifier()}
    near = did_you_mean(name, known - {name}, listed=0)
    return f"{near} ({looked})" if near.startswith("did you mean") else looked


class Packages:
    """The `package:` of each file of a document; one that cannot be imported is told once, where it stands."""

    def __init__(self, document: Document) -> None:
        """Take the document."""
        self._document = document
        self._known: dict[str, bool] = {}

    def is_there(self, file: str) -> bool:
        """Return whether the package of the file `file`, which is allowed, can be imported."""
        if file not in self._known:
            found = imported(self._document.packages[file])
            self._known[file] = isinstance(found, ModuleType)
            if isinstance(found, Failure):
                self._note(file, found)
        return self._known[file]

    def _note(self, file: str, failure: Failure) -> None:
        name, place = self._document.packages[file], self._document.package_places[file]
        if failure.missing:
            of_it = "" if failure.missing == name else f": there is no `{failure.missing}`"
            what = f"there is no package `{name}`{of_it}"
            self._document.findings.error(place, what, remedy_for_missing(failure.missing, file))
        else:
            what = f"the package `{name}` cannot be imported: {failure.raised}"
            self._document.findings.error(place, what, failure.remedy("it"))
