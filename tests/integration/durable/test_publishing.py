"""Outgoing events of durable runs: sent when the step is on record, never when it failed, each run's in its order."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any

import pytest

from iocflow import CONTINUE, ParallelSplitProcessor, ProcessContext, RetryingErrorHandler, SequenceProcessor, activity
from iocflow.activities import PublishEvent
from iocflow.durable.outgoing import PublishError, PublishRefusedError
from iocflow.durable.relay import Relay, publishers_of
from tests.integration.durable.house import House


class Work(ProcessContext):
    """A context with a number, which is what events tell."""

    seed_data: int | None
    n: int = 0
    left: int = 0
    right: int = 0


class Place:
    """A publisher that keeps what it is sent, and fails as it is told."""

    def __init__(self, name: str = "place:a") -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self.fails: list[type[PublishError]] = []
        self.closed = 0

    def publish(self, id: str, document: bytes) -> None:
        """Take an event, or fail."""
        event = json.loads(document)
        assert event["id"] == id
        if self.fails:
            raise self.fails.pop(0)("not now")
        self.events.append(event)

    def close(self) -> None:
        """Note it."""
        self.closed += 1

    @property
    def told(self) -> list[Any]:
        """The data of the events, in order."""
        return [event["data"] for event in self.events]


class Publish(PublishEvent):
    """A `PublishEvent` to a place of the test."""

    def __init__(self, place: Place, data: str = "n") -> None:
        super().__init__("folder:unused", "com.example.done", data)
        self.publisher = place


def add(context: Work) -> None:
    context.n += 1


def relay(house: House) -> Relay:
    """Return the relay of what is wired."""
    return Relay(house.store, publishers_of(house.jobs.values()))


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.parametrize("mode", ["leased", "transactional"])
def test_events_of_a_run_go_out_in_order(house: House, place: Place, mode: str) -> None:
    """Each event has what the context was then, and the step's key as its id; nothing is sent while a worker works."""
    publish = activity(Publish(place), name="publish", mode=mode)
    house.sequence(add, publish, add, publish, context=Work)
    runs = [house.submit() for _ in range(3)]
    house.work()
    assert place.events == []
    assert relay(house).flush() == 0
    assert sorted(place.told) == [1, 1, 1, 2, 2, 2]
    for run in runs:
        number = house.client.status(run).number
        mine = [event for event in place.events if number in event["id"]]
        assert [event["data"] for event in mine] == [1, 2]
        assert house.trail(run) == "add, publish, add, publish"
        assert [kind for kind in house.kinds(run) if "publish" in kind] == ["published", "published"]
    assert len({event["id"] for event in place.events}) == 6
    assert {event["source"] for event in place.events} == {"/iocflow/job"}
    assert place.closed == 1


@pytest.mark.parametrize("mode", ["leased", "transactional"])
def test_a_step_that_fails_publishes_nothing(house: House, place: Place, mode: str) -> None:
    """Attempts that fail leave no event; the one that succeeds leaves one."""
    attempts: list[str] = []

    class Flaky(Publish):
        def execute(self, context: Any) -> None:
            super().execute(context)
            attempts.append(context.step.idempotency_key)
            if len(attempts) < 3 or context.seed_data == 2:
                raise ValueError("no")

    flaky = activity(Flaky(place), mode=mode, on_error=[RetryingErrorHandler(attempts=3), CONTINUE])  # type: ignore[list-item]
    house.sequence(add, flaky, context=Work)
    house.submit(seed=1)
    house.work()
    house.submit(seed=2)
    house.work()
    relay(house).flush()
    assert [event["id"] for event in place.events] == [attempts[2]]
    assert attempts[0] == attempts[1] == attempts[2]


def test_events_of_branches_and_parts(house: House, place: Place) -> None:
    """Branches, nested processors and `finally` publish as steps of a plain sequence do."""

    def left(context: Work) -> None:
        context.left = 1

    split: Any = ParallelSplitProcessor(
        {"a": SequenceProcessor([left, Publish(place, "left")], context=Work, name="a"), "b": Publish(place, "right")},
        context=Work,
        name="split",
    )
    house.sequence(add, split, context=Work, finally_=[Publish(place)])
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"
    relay(house).flush()
    assert sorted(place.told) == [0, 1, 1]
    assert place.told[-1] == 1


def test_what_cannot_be_sent_is_tried_again(house: House, place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A place that cannot be reached is told of once, holds up its own events only, and loses none."""
    caplog.set_level(logging.INFO, "iocflow.durable")
    other = Place("place:b")
    house.sequence(add, Publish(place), Publish(other), context=Work)
    house.sequence(add, Publish(other), context=Work, name="calm")
    house.submit()
    house.submit("calm")
    house.work()
    place.fails = [PublishError] * 2
    running = relay(house)
    running.start()
    house.eventually(lambda: other.told == [1] and running.trouble() == "relay: not now")
    house.eventually(lambda: place.told == [1] and other.told == [1, 1] and not running.trouble())
    running.stop()
    assert running.finish(time.monotonic() + 20)
    assert [one.getMessage() for one in caplog.records if "not now" in one.getMessage()] == [
        "not now; it is tried again"
    ]
    assert "events reach place:a again" in caplog.text


def test_an_event_that_is_refused_holds_up_its_run_only(house: House, place: Place) -> None:
    """A refusal stands in the journal and in the relay's trouble; other runs' events go on to the same place."""
    house.sequence(add, Publish(place), context=Work)
    first, second = house.submit(), house.submit()
    house.work()
    place.fails = [PublishRefusedError]
    running = relay(house)
    running.start()
    house.eventually(lambda: len(place.events) == 1)
    assert f"of run {first} was refused: not now" in running.trouble()
    errors = [entry.error for entry in house.client.history(first) if entry.kind == "publish"]
    assert [error and error["message"] for error in errors] == ["not now"]
    house.eventually(lambda: len(place.events) == 2)
    running.stop()
    running.finish(time.monotonic() + 20)
    assert not running.trouble()
    assert [kind for kind in house.kinds(second) if "publish" in kind] == ["published"]


def test_an_event_for_nobody_waits_for_the_wiring(house: House, place: Place) -> None:
    """An event to a place that is wired no more is kept, and sent when it is wired again."""
    house.sequence(add, Publish(place), context=Work)
    house.submit()
    house.work()
    assert Relay(house.store, {"place:b": Place("place:b")}).flush() == 1
    assert relay(house).flush() == 0
    assert place.told == [1]


def test_two_relays_do_not_send_twice(house: House, place: Place) -> None:
    """While one relay works, another one of another process sends nothing, and takes over when it ends."""
    store = house.kit.open()
    house.sequence(add, Publish(place), context=Work)
    other = Relay(store, {place.name: place})
    assert store.outbox.hold()
    house.submit()
    house.work()
    assert relay(house).flush() == 1
    assert place.events == []
    sent = threading.Thread(target=other.flush)
    sent.start()
    sent.join()
    assert place.told == [1]
    assert house.store.outbox.hold()
