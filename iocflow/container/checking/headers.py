"""What a bean is, before it is known what it is given: its maker, its class, its scope."""

from __future__ import annotations

import difflib
import inspect
import types
from dataclasses import dataclass
from typing import Any, Literal, get_origin

from iocflow.container.checking.checks import Checks
from iocflow.container.inspecting.annotations import UNKNOWN, alternatives, is_protocol
from iocflow.container.nodes import described
from iocflow.wiring import Place, Scalar, Table, did_you_mean

__all__ = ["BEAN_KEYS", "LATER_BEAN_KEYS", "MAKERS", "SCOPES", "Header", "read_header"]

MAKERS: tuple[Literal["class", "call", "factory"], ...] = ("class", "call", "factory")
BEAN_KEYS = (
    *MAKERS,
    "args",
    "set",
    "scope",
    "parent",
    "abstract",
    "init",
    "close",
    "depends-on",
    "on-error",
    "time-limit",
)
LATER_BEAN_KEYS = {
    "undo": "comes with durable runs",
    "mode": "comes with durable runs",
    "on-lost": "comes with durable runs",
    "isolate": "comes with activities in processes of their own",
}
SCOPES: tuple[Literal["singleton", "prototype"], ...] = ("singleton", "prototype")
_INNER_KEYS = tuple(key for key in BEAN_KEYS if key not in ("scope", "parent", "abstract", "depends-on"))
_CALL_KEYS = ("call", "args", "parent", "abstract", "on-error", "time-limit")


@dataclass(frozen=True, slots=True)
class Header:
    """The maker of one bean; `target` is None when the file's is wrong, `made` is the class of what it makes."""

    id: str
    place: Place
    table: Table
    kind: Literal["class", "call", "factory"]
    target: Any
    made: type
    loose: bool
    scope: Literal["singleton", "prototype"]

    @property
    def owner(self) -> str:
        """The bean in the words of a message."""
        return f"bean `{self.id}`" if self.id else "the inner bean"


def read_header(id: str, place: Place, table: Table, checks: Checks) -> Header:
    """Read the maker and the scope of a bean; `id` is empty for an inner one."""
    owner = f"bean `{id}`" if id else "the inner bean"
    _refuse_keys(table, owner, checks, inner=not id)
    makers = [maker for maker in MAKERS if maker in table.entries]
    if len(makers) > 1:
        names = " and ".join(f"`{maker}`" for maker in makers)
        checks.findings.error(table.keys[makers[1]], f"{owner} has {names}", "keep one of them")
    if not makers and not any(difflib.get_close_matches(key, MAKERS) for key in table.entries if key not in BEAN_KEYS):
        remedy = "write `class:` (or `call:`, `factory:`), or the `parent:` it has that from"
        checks.findings.error(place, f"{owner} does not say what makes it", remedy)
    if not makers:
        return Header(id, place, table, "class", None, object, loose=False, scope=_scope(table, owner, checks))
    kind = makers[0]
    target = _target(table, kind, owner, checks)
    made, loose = _made(kind, target, checks)
    if kind == "factory" and inspect.iscoroutinefunction(target):
        remedy = "let it return the object itself, and connect in `init:`, which may be async"
        checks.findings.error(table.entries[kind].place, f"`factory` of {owner} is an async function", remedy)
    return Header(id, place, table, kind, target, made, loose, _scope(table, owner, checks))


def _refuse_keys(table: Table, owner: str, checks: Checks, *, inner: bool) -> None:
    known = _CALL_KEYS if "call" in table.entries else _INNER_KEYS if inner else BEAN_KEYS
    for key, place, _ in table:
        if key in LATER_BEAN_KEYS:
            checks.findings.error(place, f"`{key}` {LATER_BEAN_KEYS[key]}, which this version has not", "remove it")
        elif key not in BEAN_KEYS:
            checks.findings.error(place, f"{owner} has no key `{key}`", did_you_mean(key, known, listed=16))
        elif key not in known and key not in MAKERS:
            why = "is a plain function" if "call" in table.entries else "belongs to the bean that holds it"
            checks.findings.error(place, f"{owner} cannot have `{key}`: it {why}", "remove it")


def _target(table: Table, kind: str, owner: str, checks: Checks) -> Any:
    node = table.entries[kind]
    what = f"`{kind}` of {owner}"
    if checks.text(node, what) is None or not isinstance(node, Scalar):
        return None
    target = checks.resolve(node, "class" if kind == "class" else "function", what)
    if isinstance(target, type) and (inspect.isabstract(target) or is_protocol(target)):
        lacking = ", ".join(f"`{name}`" for name in sorted(getattr(target, "__abstractmethods__", ())))
        text = f"{what} is {described(node)}, which is abstract" + (f": it lacks {lacking}" if lacking else "")
        checks.findings.error(node.place, text, "name a class that implements it")
        return None
    return target


def _made(kind: str, target: Any, checks: Checks) -> tuple[type, bool]:
    """Return the class of what the maker makes, and whether it may be a subclass of that."""
    if target is None:
        return object, False
    if kind == "class":
        return target, False
    if kind == "call":
        return types.FunctionType, False
    (returned, *others) = alternatives(checks.signatures.of(target).returns)
    cls = get_origin(returned) or returned
    known = isinstance(cls, type) and returned is not UNKNOWN and not others
    return (cls if known else object), True


def _scope(table: Table, owner: str, checks: Checks) -> Literal["singleton", "prototype"]:
    node = table.entries.get("scope")
    name = None if node is None else checks.text(node, f"`scope` of {owner}")
    if node is None or name is None:
        return "singleton"
    for scope in SCOPES:
        if scope == name:
            return scope
    checks.findings.error(node.place, f"`scope` of {owner} is `{name}`, which is none", did_you_mean(name, SCOPES))
    return "singleton"
