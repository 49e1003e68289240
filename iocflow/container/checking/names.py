"""From dotted names in a container file to the classes and functions they stand for, default-deny."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Literal, TypeGuard

from iocflow.container.checking.importing import Packages, failed, imported, remedy_for_missing
from iocflow.container.nodes import clipped, is_unresolved
from iocflow.container.reading.allowing import is_dotted, is_standard, lies_in
from iocflow.container.reading.document import Document
from iocflow.wiring import Place, Scalar, did_you_mean

__all__ = ["Names", "Want"]

Want = Literal["class", "function", "exception", "any"]

_WANTED: dict[Want, str] = {
    "class": "a class",
    "function": "a plain function",
    "exception": "an exception class",
    "any": "a class or a plain function",
}
_READY_MADE = "iocflow.activities"
# modules of the standard library that do something when imported: open a browser, an editor, a demonstration
_NEVER_IMPORTED = ("antigravity", "this", "idlelib", "turtledemo", "lib2to3")


@dataclass(frozen=True, slots=True)
class _Name:
    """A name that is being resolved; `shown` is how messages call it, the placeholder if there is one."""

    place: Place
    module: str
    attribute: str
    shown: str
    want: Want
    what: str
    relative: bool

    @property
    def full(self) -> str:
        return f"{self.module}.{self.attribute}"

    @property
    def shown_module(self) -> str:
        return f"module of `{self.shown}`" if self.is_placeholder else f"module `{self.module}`"

    @property
    def is_placeholder(self) -> bool:
        return "${" in self.shown


class Names:
    """Finds what the names of one document stand for, within the packages that it is allowed to reach."""

    def __init__(self, document: Document) -> None:
        """Take the document, with what it allows."""
        self._document = document
        self._findings = document.findings
        self._packages = Packages(document)
        self._broken: set[str] = set()  # modules whose import raised, which is said once

    def resolve(self, node: Scalar, want: Want, what: str) -> object | None:
        """Return what `node` names, or note why it cannot be had (in `document.findings`) and return None.

        For a document that is for elsewhere nothing is imported; then None says nothing of what is not there.

        Args:
            node: A dotted name, or `.Name` which is relative to the `package:` of its file.
            want: `any` is a class or a plain function.
            what: The place in words, for the message: "class of bean smtp-sender".
        """
        if is_unresolved(node):
            return None
        name = self._name(node, want, what)
        if name is None or not self._may_import(name):
            return None
        if self._document.elsewhere and name.module not in sys.modules:
            return None  # what a test's profile names need not be installed where the application runs
        if name.relative and not self._packages.is_there(name.place.file):
            return None
        module = self._imported(name)
        if module is None:
            return None
        try:
            found = getattr(module, name.attribute)
        except AttributeError:
            self._note_unknown(name, module)
            return None
        except Exception as error:  # noqa: BLE001 - a module's own `__getattr__` may raise anything
            why = failed(error)
            self._note(name, f"`{name.shown}` cannot be had: {why.raised}", why.remedy(f"the {name.shown_module}"))
            return None
        return found if self._fits(found, name) and self._may_use(name, found) else None

    def _name(self, node: Scalar, want: Want, what: str) -> _Name | None:
        """Return the parts of the name, or note that it is none."""
        text = node.value if isinstance(node.value, str) else ""
        written = clipped(node.text)
        full = text
        if text.startswith("."):
            package = self._document.packages.get(node.place.file)
            if package == "":  # what it says is wrong, which is noted there
                return None
            if package is None:
                remedy = "write `package: your.package` at the top of the file, or the full name"
                self._findings.error(
                    node.place, f"{what}: `{written}` is relative, but the file has no `package:`", remedy
                )
                return None
            full = package + text
        if not is_dotted(full):
            remedy = "write `package.module.Name`, or `.Name` in the `package:` of the file"
            self._findings.error(node.place, f"{what}: `{written}` is no dotted name", remedy)
            return None
        module, _, attribute = full.rpartition(".")
        if not module and want == "exception":
            module = "builtins"
        elif not module:
            remedy = f"write `.{written}` for one in the `package:` of the file, or `package.module.{written}`"
            self._findings.error(node.place, f"{what}: `{written}` is no dotted name", remedy)
            return None
        return _Name(node.place, module, attribute, written if "${" in node.text else full, want, what, full != text)

    def _may_import(self, name: _Name) -> bool:
        """Return whether the module may be imported, else note how to allow it."""
        top = name.module.partition(".")[0]
        if top == "iocflow":
            if (
                name.module == "iocflow"
                or lies_in(name.module, (_READY_MADE,))
                or self._is_component(name.full, name.module)
            ):
                return True
            remedy = f"the ready-made ones are in `{_READY_MADE}` and `iocflow` itself"
            self._note(name, f"`{name.shown}` is a part inside of iocflow", remedy)
            return False
        if lies_in(name.module, self._document.allow) or self._is_component(name.full, name.module):
            return True
        if is_standard(name.module):
            if name.want == "exception" and top not in _NEVER_IMPORTED and "__main__" not in name.module:
                return True
            self._note_standard(name, name.shown)
            return False
        self._note_outside(name, f"`{name.shown}` lies outside of the allowed packages", name.module)
        return False

    def _may_use(self, name: _Name, found: type | FunctionType) -> bool:
        """Return whether what was found comes from an allowed package itself, and was not only imported there."""
        home = found.__module__
        if not isinstance(home, str):
            self._note(name, f"`{name.shown}` does not tell its module", "name one that is defined in a module")
            return False
        if lies_in(home, self._document.allow) or self._is_component(name.full, home):
            return True
        if home.partition(".")[0] == "iocflow":
            if lies_in(home, (_READY_MADE,)) or _is_core_file(home):
                return True
            self._note(name, f"`{name.shown}` cannot be named in a container file", "use it in Python")
            return False
        if is_standard(home):
            if name.want == "exception":
                return True
            self._note_standard(name, name.shown if name.is_placeholder else f"{home}.{found.__qualname__}")
            return False
        self._note_outside(name, f"`{name.shown}` comes from `{home}`, outside of the allowed packages", home)
        return False

    def _is_component(self, full: str, module: str) -> bool:
        """Return whether the name itself is registered, or the package in which `module` lies."""
        components = self._document.extensions.components
        return full in components or lies_in(module, components)

    def _imported(self, name: _Name) -> ModuleType | None:
        """Return the module, or note why it cannot be imported; one whose import raises is noted once."""
        if name.module in self._broken:
            return None
        found = imported(name.module)
        if isinstance(found, ModuleType):
            return found
        if found.missing:
            what = f"there is no {name.shown_module if name.is_placeholder else f'module `{found.missing}`'}"
            self._note(name, what, remedy_for_missing(found.missing, name.place.file))
        else:
            self._broken.add(name.module)
            what = f"the {name.shown_module} cannot be imported: {found.raised}"
            self._note(name, what, found.remedy("the module"))
        return None

    def _fits(self, found: object, name: _Name) -> TypeGuard[type | FunctionType]:
        """Return whether what was found is of the wanted kind, else note what it is."""
        if _is_wanted(name.want, found):
            return True
        if name.want == "exception" and isinstance(found, type) and issubclass(found, BaseException):
            self._note(name, f"`{name.shown}` is no `Exception`, so no handler ever sees it", "name an `Exception`")
        else:
            what = f"`{name.shown}` is {_kind(found)}, not {_WANTED[name.want]}"
            self._note(name, what, _other_key(name.want, found))
        return False

    def _note_unknown(self, name: _Name, module: ModuleType) -> None:
        inside = vars(module)
        names = [n for n in dir(module) if n[0] != "_" and (n not in inside or _is_wanted(name.want, inside[n]))]
        what = f"`{name.shown}` names nothing" if name.is_placeholder else f"no `{name.attribute}`"
        self._note(name, f"{what} in the {name.shown_module}", did_you_mean(name.attribute, names))

    def _note_standard(self, name: _Name, shown_name: str) -> None:
        what = f"`{shown_name}` is the standard library's, which no container file can name"
        self._note(name, what, "call it in a function of your own package, and name that")

    def _note_outside(self, name: _Name, what: str, module: str) -> None:
        allow = self._document.allow
        near = difflib.get_close_matches(module, allow, n=1, cutoff=0.8)
        added = "its package" if name.is_placeholder else f"`{module.partition('.')[0]}`"
        remedy = f"add {added} to `allow:` of `{self._document.path}` or `[tool.iocflow] allow` of pyproject.toml"
        if near:
            remedy = f"did you mean `{near[0]}`? If not, {remedy}"
        self._note(name, f"{what} ({', '.join(allow) or 'none'})", remedy)

    def _note(self, name: _Name, what: str, remedy: str) -> None:
        self._findings.error(name.place, f"{name.what}: {what}", remedy)


def _is_wanted(want: Want, found: object) -> bool:
    if isinstance(found, type):
        return want in ("class", "any") or (want == "exception" and issubclass(found, Exception))
    return want in ("function", "any") and isinstance(found, FunctionType)


def _is_core_file(module: str) -> bool:
    """Return whether `module` is one of iocflow's files, not of its folders, which hold the loader and the daemon."""
    return module.count(".") == 1 and not hasattr(sys.modules.get(module), "__path__")


def _kind(found: object) -> str:
    if isinstance(found, type):
        return "a class"
    if isinstance(found, FunctionType):
        return "a function"
    if isinstance(found, BuiltinFunctionType):
        return "a built-in function"
    return "a module" if isinstance(found, ModuleType) else f"a value of type `{type(found).__name__}`"


def _other_key(want: Want, found: object) -> str:
    """Return which key takes what was found, where there is one."""
    if want == "class" and isinstance(found, FunctionType):
        return "a function goes under `call:` or `factory:`"
    if want == "function" and isinstance(found, type):
        return "a class goes under `class:`"
    return f"name {_WANTED[want]}"
