"""What works, but is probably not meant: time limits that nobody keeps, and activities that keep state of a run."""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
import types
from collections.abc import Iterable, Iterator
from typing import Any

from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Bean, Block, Chosen, Step
from iocflow.container.checking.graph import all_steps, bean_of, children
from iocflow.container.checking.roles import Roles
from iocflow.container.inspecting.annotations import member_of, shown
from iocflow.wiring import Place

__all__ = ["warn_about_state", "warn_about_time"]

_STORE_ATTR, _LOAD_FAST, _COPY, _SWAP, _CACHE = (
    dis.opmap[name] for name in ("STORE_ATTR", "LOAD_FAST", "COPY", "SWAP", "CACHE")
)
_WATCHES = {"remaining", "deadline", "cancelled"}


def warn_about_time(checks: Checks, roles: Roles) -> None:
    """Warn about time limits of code that is neither async nor looks at the time that is left."""
    for id, bean in checks.defined.items():
        if bean.time_limit is not None and id not in checks.overrides:
            target = bean.target if bean.kind == "call" else bean.type
            excused = bean.isolate is not None or _transactional(bean.mode)
            if target is not object and not excused and not _keeps_time(target):
                _warn_of_limit(checks, bean.place, f"the time limit of bean `{id}`", target)
    for process in checks.described.values():
        for step in all_steps((*children(process.shape), *process.finally_)):
            if step.time_limit is None or _transactional(step.mode):
                continue
            for target in _targets(step, checks, roles):
                if not _keeps_time(target):
                    text = f"the time limit of step `{step.name}` of processor `{process.id}`"
                    _warn_of_limit(checks, step.place, text, target)


def _targets(step: Step, checks: Checks, roles: Roles) -> Iterator[Any]:
    """Yield the classes and functions that the limit of a step is about, and that no limit can kill with their process.

    Another processor's are its own business.
    """
    bean = bean_of(step, checks.defined)
    if isinstance(step.what, Block):
        for inner in children(step.what.shape):
            yield from _targets(inner, checks, roles)
    elif step.isolate is None and (bean is None or bean.isolate is None):
        target = roles.target(step.what)
        if target is not None and target is not object:
            yield target


def _transactional(mode: Chosen | None) -> bool:
    """Return whether the limit is asked for by the mode, and what runs so long holds the store's lock anyway."""
    return mode is not None and mode.word == "transactional"


def _warn_of_limit(checks: Checks, place: Place, what: str, target: Any) -> None:
    checks.warn(
        place,
        f"{what} cannot be enforced: `{shown(target) if isinstance(target, type) else target.__name__}` is not async",
        "write it as `async def`, let it look at `context.step.remaining()`, or write `isolate: process`",
    )


def _keeps_time(target: Any) -> bool:
    """Whether the code can be cancelled, or reads the time that is left."""
    execute = member_of(target, "execute") if isinstance(target, type) else target
    if not inspect.isfunction(execute) or inspect.iscoroutinefunction(execute):
        return True
    functions = [execute]
    if isinstance(target, type):
        functions += [one for base in target.__mro__ for one in vars(base).values() if inspect.isfunction(one)]
    return any(not _WATCHES.isdisjoint(_names(function.__code__)) for function in functions)


def _names(code: types.CodeType) -> set[str]:
    """Return the attributes that a function, and those defined in it, may read."""
    inner = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def warn_about_state(checks: Checks, shared: Iterable[Bean]) -> None:
    """Warn about singletons whose `execute` writes on the object that all runs share; `shared` are the inner ones."""
    known: dict[types.FunctionType, tuple[tuple[int, str], ...]] = {}
    named = (bean for id, bean in checks.defined.items() if bean.scope == "singleton" and id not in checks.overrides)
    for bean in (*named, *shared):
        execute = member_of(bean.type, "execute")
        if not inspect.isfunction(execute):
            continue
        if execute not in known:
            known[execute] = tuple(_written(execute))
        called = bean.id or bean.type.__name__
        for line, name in known[execute]:
            checks.warn(
                bean.place,
                f"`{execute.__qualname__}` sets `self.{name}`, and `{called}` is a singleton that all runs share",
                "keep what belongs to a run on the context",
                related=[(Place(execute.__code__.co_filename, line, 1), "here")],
            )


def _written(function: types.FunctionType) -> Iterator[tuple[int, str]]:
    """Yield line and name of each attribute of its first parameter that a method sets."""
    code = function.__code__
    if not code.co_argcount or not _may_write(code):
        return
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # there is no source to look at: code from a zip file, or typed in
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node.value, ast.Name) and node.value.id == code.co_varnames[0]:
            yield code.co_firstlineno + node.lineno - 1, node.attr


def _may_write(code: types.CodeType) -> bool:
    """Return whether a method may set an attribute of its first parameter; in doubt it may.

    The source tells for certain, but reading it takes ten times as long, and most activities set attributes of their
    context only: what is set is then on the stack by a `LOAD_FAST` of another variable than the first.
    """
    if code.co_varnames[0] in code.co_cellvars:  # a function inside of it may do so
        return _STORE_ATTR in code.co_code[::2]
    before = (_CACHE, 0)
    for instruction in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if instruction[0] == _CACHE:
            continue
        # `x.n += 1` has its `x` copied at its begin, and swapped to the top at its end
        sets = instruction == (_COPY, 1) or (instruction[0] == _STORE_ATTR and before[0] != _SWAP)
        if sets and (before[0] != _LOAD_FAST or before[1] == 0):
            return True
        before = instruction
    return False
