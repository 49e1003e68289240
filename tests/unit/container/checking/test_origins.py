"""A mistake that comes through a placeholder shows where it is used and where the value comes from."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iocflow.container import Checked

BODY = """
    values:
      fee: abc
      host: mx
      fees: {fee: "${fee}"}
      often: "${every}"
      every: never
      attempts: "${env:ORIGINS_ATTEMPTS:many}"
    beans:
      smtp: {class: .Smtp, args: {host: "${host}", port: "${fees.fee}"}}
      note: {class: .Send, args: {delegate: !ref smtp}, time-limit: "${often}"}
    processors:
      p:
        context: .Order
        sequence: [note]
        max-steps: "${attempts}"
        concurrency: "${secret:ORIGINS_MANY:${every}}"
    launchers:
      often: {processor: p, every: "${every}"}
"""


@pytest.mark.parametrize(
    ("line", "options", "related"),
    [
        (11, {}, ["6:10: `fees.fee` is defined here", "4:3: `fee` is defined here"]),
        (11, {"values": {"fee": "x"}}, ["6:10: `fees.fee` is defined here", "4:3: `fee` is given"]),
        (11, {"values": {"fees": {"fee": "x"}}}, ["6:10: `fees.fee` is given"]),
        (12, {}, ["7:3: `often` is defined here", "8:3: `every` is defined here"]),
        (17, {}, ["9:3: `attempts` is defined here"]),
        (18, {}, ["8:3: `every` is defined here"]),
        (20, {}, ["8:3: `every` is defined here"]),
        (20, {"values": {"every": "x"}}, ["8:3: `every` is given"]),
    ],
)
def test_origins(checked: Callable[..., Checked], line: int, options: dict[str, object], related: list[str]) -> None:
    """Arguments, time limits, numbers and launchers alike; through other values too; given ones are called so."""
    (mistake,) = (one for one in checked(BODY, **options).mistakes if one.place.line == line)
    told = [f"{place}: {text}".removeprefix("app.yaml:") for place, text in mistake.related]
    given = [text.replace("given by `--set` or `values=`, in place of what stands here", "given") for text in told]
    assert given == related


def test_what_comes_from_outside(checked: Callable[..., Checked], monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is named, not its values, and the line is shown once."""
    monkeypatch.setenv("ORIGINS_ATTEMPTS", "manifold")
    monkeypatch.setenv("ORIGINS_MANY", "some secret")
    found = checked(BODY)
    assert "9:13: `ORIGINS_ATTEMPTS` is taken from the environment" in found.rendered()
    assert "18:18: the secret `ORIGINS_MANY` is taken from the environment or its file" in found.rendered()
    assert "manifold" not in found.rendered()
    assert "some secret" not in found.rendered()
    assert found.rendered().count("secret:ORIGINS_MANY") == 2  # the message, and the line
