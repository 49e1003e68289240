"""Signals that no store could keep, or no run take: refused at their senders."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from iocflow import ProcessContext
from iocflow.durable.contexts.codec import DEFAULT_LIMIT
from iocflow.durable.errors import SignalTimeoutError, SubmitError
from tests.integration.durable.house import House


class Deal(ProcessContext):
    """What was heard."""

    seed_data: None
    heard: str = ""


def hear(context: Deal) -> None:
    context.heard = context.step.wait_for("approved")


@pytest.mark.parametrize("name", ["", "a\0b", "a\ud800", "n" * 256], ids=["empty", "NUL", "surrogate", "long"])
def test_a_name_that_no_store_keeps_is_refused(house: House, name: str) -> None:
    """A signal by such a name is refused at its sender, and nothing is stored."""
    house.sequence(hear, context=Deal)
    run = house.submit()
    with pytest.raises(SubmitError, match=r"the signal's name is .*no name of a signal"):
        house.client.signal(run, name, 1)
    assert house.kinds(run) == ["submitted"]


@pytest.mark.parametrize("data", ["x" * DEFAULT_LIMIT, "ä" * (DEFAULT_LIMIT // 2), {"half": "\ud800"}, float("nan")])
def test_data_that_no_context_holds_is_refused(house: House, data: Any) -> None:
    """A signal is refused at its sender where its data could never be stored with the run that takes it."""
    house.sequence(hear, context=Deal)
    run = house.submit()
    with pytest.raises(SubmitError, match=r"signal 'approved' (has 16,777,218 bytes|cannot be written)"):
        house.client.signal(run, "approved", data)
    assert house.kinds(run) == ["submitted"]


def test_the_most_that_a_signal_brings(house: House) -> None:
    """Data at the limit is taken, stored and given to the activity that waits; names with any sign are found."""
    name = "ß" * 255

    def measure(context: Deal) -> None:
        context.heard = str(len(context.step.wait_for(name)))

    house.sequence(measure, context=Deal)
    run = house.submit()
    assert house.client.signal(run, name, "x" * (DEFAULT_LIMIT - 2))
    house.work()
    assert house.context(run).heard == str(DEFAULT_LIMIT - 2)


@pytest.mark.parametrize(
    ("name", "timeout", "told"),
    [
        ("approved", "20 parsecs", r"hear: the timeout of the wait for 'approved' is '20 parsecs', no duration"),
        ("approved", float("nan"), "no duration"),
        ("approved", True, "no duration"),
        ("approved", [20], "no duration"),
        ("approved", 1e300, "no duration"),
        ("", None, "hear waits for a signal whose name is '', which is no name of a signal"),
        ("a\0b", None, "no name of a signal"),
    ],
)
def test_a_wait_that_cannot_be_fails_its_activity(house: House, name: str, timeout: Any, told: str) -> None:
    """The activity fails and says why, as with any other error; its run holds up nobody."""

    def hear(context: Deal) -> None:
        context.step.wait_for(name, timeout=timeout)

    house.sequence(hear, context=Deal)
    runs = [house.submit(group="g") for _ in range(2)]
    house.work()
    assert house.wait_all(runs) == ["failed"] * 2
    error = house.client.status(runs[0]).error
    assert error is not None
    assert error["type"].endswith("SubmitError")
    assert re.search(told, error["message"])


@pytest.mark.parametrize("timeout", [60, 60.0, "1m", timedelta(minutes=1), 0, -1.0])
def test_a_timeout_is_written_as_any_duration(house: House, timeout: Any) -> None:
    """Seconds, a `timedelta`, or text as in the container file; also one that is over already."""

    def hear(context: Deal) -> None:
        try:
            context.step.wait_for("approved", timeout=timeout)
        except SignalTimeoutError:
            context.heard = "nothing"

    house.sequence(hear, context=Deal)
    run = house.submit()
    house.work()
    house.kit.advance(61)
    house.work()
    assert house.wait_all([run]) == ["completed"]
    assert house.context(run).heard == "nothing"
