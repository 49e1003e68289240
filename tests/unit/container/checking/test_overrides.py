"""What is said of an override that does not fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iocflow.container import Checked
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
