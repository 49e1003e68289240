"""Whether a method or function can be called with what it is going to be given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from iocflow.container.inspecting.calling import refusal


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper that takes anything."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Methods:
    """Methods of every shape; what they are given is called `context`."""

    def plain(self, context: Any) -> None: ...
    def nothing(self) -> None: ...
    def optional(self, context: Any, more: int = 1) -> None: ...
    def further(self, context: Any, more: int) -> None: ...
    def by_position(self, context: Any, /) -> None: ...
    def anything(self, *args: Any, **kwargs: Any) -> None: ...
    def by_name(self, context: Any, *, more: int) -> None: ...
    def by_name_optional(self, context: Any, *, more: int = 1) -> None: ...
    def only_by_name(self, *, context: Any) -> None: ...

    @staticmethod
    def static(context: Any) -> None: ...
    @classmethod
    def of_class(cls, context: Any) -> None: ...
    @decorated
    def wrapped(self) -> None: ...

    builtin = len


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("plain", ""),
        ("nothing", "takes no `context`"),
        ("optional", ""),
        ("further", "needs `more` beside `context`"),
        ("by_position", ""),
        ("anything", ""),
        ("by_name", "needs `more` beside `context`"),
        ("by_name_optional", ""),
        ("only_by_name", "takes no `context`"),
        ("static", ""),
        ("of_class", ""),
        ("wrapped", ""),
        ("builtin", ""),
        ("not_there", ""),
    ],
)
def test_a_method_is_refused_for_what_it_lacks(name: str, why: str) -> None:
    """A method can be called when it takes what it is given and needs nothing else; what nobody knows is let pass."""
    assert refusal(Methods, name, ("context",)) == why


def test_what_is_given_by_name_is_not_needed() -> None:
    """A parameter that the file gives by name is not missing, whether it can be given by position or not."""
    assert refusal(Methods, "further", ("context",), {"more"}) == ""
    assert refusal(Methods, "by_name", ("context",), {"more"}) == ""


def test_a_function_has_no_first_parameter_of_its_own() -> None:
    """All parameters of a function count, and none is given by an object."""
    assert refusal(Methods.plain, "", ("context",)) == "needs `context` beside `context`"
    assert refusal(Methods.static, "", ("context",)) == ""
