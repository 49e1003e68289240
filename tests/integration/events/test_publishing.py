"""Events published to real brokers: durable messages with the event's id, read again by a source of the same queue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from iocflow.activities import PublishEvent
from iocflow.durable.outgoing import PublishError
from iocflow.sequence import SequenceProcessor
from tests.broker import AMQP, Queue, eventually, proxied
from tests.integration.events.conftest import Bench, Seeded, source


def publish(address: str, *seeds: Any) -> list[Any]:
    """Publish each seed; return the runs."""
    activity = PublishEvent(address, "com.example.done")
    processor: Any = SequenceProcessor([activity], context=Seeded, name="p")
    try:
        return [processor.do_activities(seed) for seed in seeds]
    finally:
        activity.publisher.close()


@pytest.mark.service("amqp")
def test_rabbitmq_keeps_what_is_published(queue: Queue) -> None:
    """Each event is one durable message in structured mode; the queue of dead letters is none of its business."""
    runs = publish(queue.address, 1, {"a": [2]})
    assert [run.outcome.name for run in runs] == ["COMPLETED"] * 2
    messages = [queue.channel.basic_get(queue.name, no_ack=True) for _ in runs]
    assert [json.loads(message.body)["data"] for message in messages] == [1, {"a": [2]}]
    for message in messages:
        assert message.properties["message_id"] == json.loads(message.body)["id"]
        assert message.properties["delivery_mode"] == 2
        assert message.properties["content_type"] == "application/cloudevents+json"


@pytest.mark.service("amqp")
def test_a_source_reads_what_was_published(bench: Bench, queue: Queue) -> None:
    """Another processor runs on each event, with its data as the seed and its id as the key."""
    runs = publish(queue.address, "a", "b")
    bench.start(source(queue.address))
    eventually(lambda: sorted(bench.seen) == ["a", "b"])
    assert all(any(run.id in key for key in bench.keys) for run in runs)


@pytest.mark.service("redis")
def test_redis_too(bench: Bench, redis_address: str) -> None:
    """Redis takes events and a source reads them."""
    runs = publish(redis_address, "a", "b")
    assert [run.outcome.name for run in runs] == ["COMPLETED"] * 2
    bench.start(source(redis_address))
    eventually(lambda: sorted(bench.seen) == ["a", "b"])


@pytest.mark.service("amqp")
def test_a_connection_that_was_cut(queue: Queue) -> None:
    """A connection lost between two events is made anew without a word; a broker that is away is an error."""
    with proxied(AMQP) as proxy:
        activity = PublishEvent(f"{proxy.url}?queue={queue.name}", "t")
        processor: Any = SequenceProcessor([activity], context=Seeded, name="p")
        processor.do_activities(1).raise_for_error()
        proxy.cut()
        processor.do_activities(2).raise_for_error()
    with pytest.raises(PublishError) as lost:
        processor.do_activities(3)
    assert "guest" not in str(lost.value)
    activity.publisher.close()
    assert queue.ready() == 2
