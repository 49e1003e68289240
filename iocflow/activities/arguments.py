"""Rules about arguments, written once: constructors keep them, and the check of a container file tells of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, get_args

from iocflow.activities.fields import check_path
from iocflow.errors import IocflowError

__all__ = ["Rule", "chosen", "complaints", "demanded", "keep", "path_rules"]

Rule = tuple[str, Callable[[], object]]
"""A parameter's name, and what raises when its argument cannot be used: an `IocflowError` or a `ValueError`."""


def keep(rules: Iterable[Rule]) -> None:
    """Raise what the first rule raises that is broken; for constructors."""
    for _, rule in rules:
        rule()


def complaints(rules: Iterable[Rule]) -> Iterator[tuple[str, str]]:
    """Yield the parameter and the message of every rule that is broken; for `check_arguments`."""
    for name, rule in rules:
        try:
            rule()
        except (IocflowError, ValueError) as error:
            yield name, str(error).removeprefix(f"{name}: ")


def path_rules(given: Mapping[str, Any], *names: str) -> Iterator[Rule]:
    """Yield the rules that those of `names` which are `given` must be paths of fields."""
    for name in names:
        if name in given:
            yield name, partial(check_path, given[name], name)


def demanded(name: str, fits: object, why: str) -> Rule:
    """Return the rule that the argument `name` must fit; `why` tells what is wrong with it and what to write."""
    return name, partial(_demand, name, fits, why)


def chosen(given: Mapping[str, Any], name: str, words: Any) -> Iterator[Rule]:
    """Yield the rule that `name`, where it is given, must be one of `words`, which is a `Literal`."""
    if name in given:
        *others, last = known = get_args(words)
        yield demanded(name, given[name] in known, f"write {', '.join(others)} or {last}, not {given[name]!r}")


def _demand(name: str, fits: object, why: str) -> None:
    if not fits:
        raise ValueError(f"{name}: {why}")
