"""What is said of an override that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iocflow.container import Checked, check, load
from iocflow.container.inspecting.annotations import shown_one
from tests.unit.container import parts

BODY = """
beans:
  smtp: {class: .Smtp, args: {host: h}}
  holder: {class: %s, args: {%s: !ref smtp}}
processors:
  p: {context: .Order, sequence: [.Note]}
"""


@pytest.mark.parametrize(
    ("cls", "argument", "remedy"),
    [
        (".more.Guard", "smtp", "let the fake subclass `Smtp`, or annotate a Protocol that names what is used of it"),
        (".Hub", "sender", "refer to a bean that fits"),
    ],
)
def test_a_fake_that_does_not_fit(checked: Callable[..., Checked], cls: str, argument: str, remedy: str) -> None:
    """For a concrete class the remedy is in Python; the methods of a Protocol are what a fake has to have."""
    found = checked(BODY % (cls, argument), override={"smtp": parts.Clock()})
    (mistake,) = (one for one in found.mistakes if not one.warning)
    assert mistake.remedy == remedy
    assert "and the override of `smtp` is a `Clock`" in mistake.what


NONE = {"union": "Unguarded", "named": "UnguardedByName", "never": "Guard", "listed": "Listed"}


def test_none_stands_in_where_it_is_taken(write: Callable[[str], Path]) -> None:
    """An override by None is what it says: fit for `Smtp | None`, in every spelling, and for nothing else."""
    beans = "".join(f"  {name}: {{class: .more.{cls}, args: {{smtp: !ref smtp}}}}\n" for name, cls in NONE.items())
    path = write(f"beans:\n  smtp: {{class: .Smtp, args: {{host: h}}}}\n{beans}")
    found = check(path, override={"smtp": None})
    assert [one.what.partition("`, and")[0] for one in found.mistakes if not one.warning] == [
        "`smtp` of bean `never` wants `Smtp",
        "`smtp` of bean `listed` wants `list[None]",
    ]
    path.write_text(path.read_text(encoding="utf-8").partition("  never")[0], encoding="utf-8")
    with load(path, override={"smtp": None}) as app:
        assert (app["union"].smtp, app["named"].smtp) == (None, None)


@pytest.mark.parametrize("fake", [5, None, parts.Clock()], ids=lambda fake: type(fake).__name__)
def test_a_processor_is_replaced_by_what_can_do_something(checked: Callable[..., Checked], fake: object) -> None:
    """An object that is neither an activity nor a function stands in for no processor, whoever uses it."""
    (mistake,) = checked("processors:\n  p: {context: .Order, sequence: [.Note]}\n", override={"p": fake}).mistakes
    assert mistake.what == f"the override of the processor `p` is {shown_one(type(fake))}"
    assert mistake.place.line == 4
