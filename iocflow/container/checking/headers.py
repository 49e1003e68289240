"""What a bean is, before it is known what it is given: its maker, its class, its scope."""

from __future__ import annotations

import difflib
import inspect
import types
from typing import Any, Literal, get_origin

from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Bean, Demand
from iocflow.container.checking.step_options import chosen_at
from iocflow.container.inspecting.annotations import UNKNOWN, alternatives, is_protocol, met_by, shown
from iocflow.container.inspecting.calling import yielding
from iocflow.container.nodes import described
from iocflow.wiring import Place, Scalar, Table

__all__ = ["BEAN_KEYS", "LATER_BEAN_KEYS", "MAKERS", "SCOPES", "read_header", "refuse_keys"]

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
    "mode",
    "on-lost",
    "isolate",
)
LATER_BEAN_KEYS = {"undo": "comes with compensation"}
SCOPES = ("singleton", "prototype")
_INNER_KEYS = tuple(key for key in BEAN_KEYS if key not in ("scope", "parent", "abstract", "depends-on"))
_CALL_KEYS = ("call", "args", "parent", "abstract", "on-error", "time-limit", "mode", "on-lost", "isolate")


def read_header(id: str, place: Place, table: Table, checks: Checks, *, template: bool = False) -> Bean:
    """Return a bean with its maker and scope; `id` is empty for an inner one. What it is given is read later.

    A template may leave it to others what makes them, or name a class that is abstract.
    """
    bean = Bean(id, place, "class", None, object)
    refuse_keys(table, bean.owner, checks, inner=not id)
    bean.scope = _scope(table, bean.owner, checks)
    makers = [maker for maker in MAKERS if maker in table.entries]
    if len(makers) > 1:
        names = " and ".join(f"`{maker}`" for maker in makers)
        checks.error(table.keys[makers[1]], f"{bean.owner} has {names}", "keep one of them")
    if makers:
        bean.kind = makers[0]
        bean.target = _target(table, bean.kind, bean.owner, checks, template=template)
        bean.type, bean.loose = _made(bean.kind, bean.target, checks)
        if bean.kind == "factory" and bean.target is not None:
            bean.demands.append(_promise(bean, table.entries["factory"].place, checks))
    elif not template and not any(
        difflib.get_close_matches(key, MAKERS) for key in table.entries if key not in BEAN_KEYS
    ):
        remedy = "write `class:` (or `call:`, `factory:`), or the `parent:` it has that from"
        checks.error(place, f"{bean.owner} does not say what makes it", remedy)
    if bean.kind == "factory" and inspect.iscoroutinefunction(bean.target):
        remedy = "let it return the object itself, and connect in `init:`, which may be async"
        checks.error(table.entries["factory"].place, f"`factory` of {bean.owner} is an async function", remedy)
    elif bean.kind == "factory" and yielding(bean.target):
        remedy = "let it return the object itself, and name what ends it in `close:`"
        checks.error(table.entries["factory"].place, f"`factory` of {bean.owner} is a generator", remedy)
    return bean


def refuse_keys(table: Table, owner: str, checks: Checks, *, inner: bool) -> None:
    """Note the keys of a bean that it cannot have."""
    known = _CALL_KEYS if "call" in table.entries else _INNER_KEYS if inner else BEAN_KEYS
    elsewhere = [key for key in table.entries if key in BEAN_KEYS and key not in known]
    checks.unknown_keys(table, (*known, *elsewhere), owner, later=LATER_BEAN_KEYS)
    for key in elsewhere:
        if key not in MAKERS:
            why = "is a plain function" if "call" in table.entries else "belongs to the bean that holds it"
            checks.error(table.keys[key], f"{owner} cannot have `{key}`: it {why}", "remove it")


def _target(table: Table, kind: str, owner: str, checks: Checks, *, template: bool) -> Any:
    node = table.entries[kind]
    what = f"`{kind}` of {owner}"
    if checks.text(node, what) is None or not isinstance(node, Scalar):
        return None
    target = checks.resolve(node, "class" if kind == "class" else "function", what)
    if isinstance(target, type) and not template and (inspect.isabstract(target) or is_protocol(target)):
        lacking = ", ".join(f"`{name}`" for name in sorted(getattr(target, "__abstractmethods__", ())))
        text = f"{what} is {described(node)}, which is abstract" + (f": it lacks {lacking}" if lacking else "")
        checks.error(node.place, text, "name a class that implements it")
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
    known = isinstance(cls, type) and returned not in (UNKNOWN, Any) and not others
    return (cls if known else object), True


def _promise(bean: Bean, place: Place, checks: Checks) -> Demand:
    """Return that a factory makes what its annotation says; None only when it says that."""
    returns = checks.signatures.of(bean.target).returns
    what = "something" if returns is UNKNOWN else f"`{shown(returns)}`"
    return Demand(place, f"`factory` of {bean.owner} is to make {what}", met_by(returns))


def _scope(table: Table, owner: str, checks: Checks) -> Literal["singleton", "prototype"]:
    scope = chosen_at(table, "scope", owner, SCOPES, checks)
    return "prototype" if scope and scope.word == "prototype" else "singleton"
