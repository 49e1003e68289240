"""RabbitMQ and connections that end: idle, with a run in hand, and at the worst moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from amqp import spec  # type: ignore[import-untyped]

from iocflow.events.broker import BrokerLostError
from tests import rabbitmq_server
from tests.broker import Proxy, Queue, eventually
from tests.integration.events.conftest import PATIENT, Bench, source

pytestmark = pytest.mark.service("amqp")


def address(proxy: Proxy, queue: Queue, options: str = "") -> str:
    """Return the address of the queue behind the proxy."""
    return f"{proxy.url}?queue={queue.name}{options}"


def close_connection(found: Any) -> None:
    """Have RabbitMQ itself close a source's connection: it does so for what no client may say on channel 0."""
    found._wire._amqp.send_method(spec.Basic.Ack, "Lb", (1, False))


def close_channel(found: Any) -> None:
    """Have RabbitMQ close a source's channel, as it does after 30 minutes without an acknowledgement."""
    found._wire._channel.basic_ack(10**9)


def test_an_idle_connection_is_made_anew(bench: Bench, queue: Queue, proxy: Proxy) -> None:
    """After a cut, and another one, messages arrive again, and the launcher is in no trouble."""
    launcher = bench.start(source(address(proxy, queue)))
    for i in range(3):
        queue.send_many({f"m{i}": str(i).encode()})  # by its id one is known again that the cut left unacknowledged
        eventually(lambda i=i: bench.seen == list(range(i + 1)))
        assert proxy.cut() == 1
        eventually(lambda i=i: bench.counts().get("errors") == i + 1)
    queue.send(b"3")
    eventually(lambda: bench.seen == [0, 1, 2, 3])
    assert launcher.trouble == ""


@pytest.mark.parametrize("ending", [close_connection, close_channel])
@pytest.mark.parametrize("properties", [{"message_id": "m1"}, {}], ids=["id", "no id"])
def test_what_rabbitmq_closes_is_made_anew(
    bench: Bench, queue: Queue, ending: Callable[[Any], None], properties: dict[str, str]
) -> None:
    """With a run in hand, the message that is brought again is known again: one run, acknowledged by its new tag."""
    found = source(queue.address)
    bench.go.clear()
    bench.start(found)
    queue.send(b'"long"', **properties)
    eventually(lambda: bench.begun == ["long"])
    for i in range(2):
        ending(found)
        eventually(lambda i=i: bench.counts().get("errors") == i + 1)
        eventually(lambda: queue.consumers() == 1 and queue.ready() == 0)
    time.sleep(0.2)
    bench.go.set()
    queue.send(b'"next"')
    eventually(lambda: sorted(bench.seen) == ["long", "next"])
    bench.finish()
    assert (queue.ready(), bench.times()["long"]) == (0, 1)


@pytest.mark.service("rabbitmq-server")
@pytest.mark.parametrize("properties", [{"message_id": "m1"}, {}], ids=["id", "no id"])
def test_a_run_that_is_longer_than_rabbitmq_waits(
    bench: Bench, tmp_path: Path, properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """RabbitMQ's time-out for acknowledgements, here 2 s, closes the channel twice: one run, no message left."""
    if not rabbitmq_server.server():
        pytest.skip("rabbitmq-server is not installed")
    settings = "{consumer_timeout, 2000}, {channel_tick_interval, 500}"
    with rabbitmq_server.own_broker(tmp_path / "rabbitmq", settings) as broker:
        queue = Queue(broker.url, "long")
        bench.go.clear()
        launcher = bench.start(source(queue.address))
        queue.send(b'"long"', **properties)
        eventually(lambda: bench.counts().get("errors") == 2)
        assert "delivery acknowledgement on channel 1 timed out" in caplog.text
        eventually(lambda: not launcher.trouble)
        time.sleep(0.3)
        bench.go.set()
        queue.send(b'"next"')
        eventually(lambda: sorted(bench.seen) == ["long", "next"])
        bench.finish()
        assert (queue.ready(), bench.times()["long"]) == (0, 1)
        queue.close()


@pytest.mark.parametrize("properties", [{"message_id": "m1"}, {}], ids=["id", "no id"])
def test_two_messages_in_hand_are_both_known_again(
    benches: Callable[..., Bench], queue: Queue, proxy: Proxy, properties: dict[str, str]
) -> None:
    """Two equal messages stay two: each is run once, though the connection is cut with both in hand."""
    bench = benches(2)
    bench.go.clear()
    bench.start(source(address(proxy, queue)))
    queue.send(b"1", b"1", **properties)
    eventually(lambda: bench.begun == [1, 1])
    proxy.cut()
    eventually(lambda: proxy.connections == 2 and queue.consumers() == 1 and queue.ready() == 0)
    time.sleep(0.2)
    queue.send(b"2")
    eventually(lambda: queue.ready() == 1)
    time.sleep(0.2)
    bench.go.set()
    eventually(lambda: sorted(bench.seen) == [1, 1, 2])
    bench.finish()
    assert (queue.ready(), len(bench.begun)) == (0, 3)


def test_a_run_that_ends_while_there_is_no_connection(bench: Bench, queue: Queue, proxy: Proxy) -> None:
    """Its message comes again, is known by its id, and acknowledged without another run."""
    bench.go.clear()
    launcher = bench.start(source(address(proxy, queue)))
    queue.send(b'"long"', message_id="m1")
    eventually(lambda: bench.begun == ["long"])
    proxy.refusing = True
    proxy.cut()
    eventually(lambda: "cannot be reached" in launcher.trouble)
    bench.go.set()
    eventually(lambda: bench.seen == ["long"])
    eventually(lambda: bench.counts().get("errors", 0) >= 3)
    proxy.refusing = False
    queue.send(b'"next"')
    eventually(lambda: bench.seen == ["long", "next"], 60)
    bench.finish()
    assert (queue.ready(), bench.times()["long"]) == (0, 1)


def test_an_acknowledgement_that_is_lost_on_the_way(bench: Bench, queue: Queue, proxy: Proxy) -> None:
    """When the connection ends before the broker read it, the message is not run again."""
    bench.go.clear()
    bench.start(source(address(proxy, queue)))
    queue.send(b'"long"', message_id="m1")
    eventually(lambda: bench.begun == ["long"])
    proxy.stalled = True
    bench.go.set()
    eventually(lambda: bench.seen == ["long"])
    time.sleep(0.3)
    proxy.cut()
    proxy.stalled = False
    eventually(lambda: bench.counts().get("errors"))
    queue.send(b'"next"')
    eventually(lambda: bench.seen == ["long", "next"])
    bench.finish()
    assert (queue.ready(), bench.times()["long"]) == (0, 1)


def test_a_failed_run_whose_connection_was_lost(bench: Bench, queue: Queue, proxy: Proxy) -> None:
    """It is one dead letter and one run, though its message is brought again."""
    bench.go.clear()
    bench.start(source(address(proxy, queue)))
    queue.send(b'"bad"', message_id="m1")
    eventually(lambda: bench.begun == ["bad"])
    proxy.cut()
    bench.go.set()
    eventually(lambda: bench.counts().get("errors"))
    queue.send(b'"next"')
    eventually(lambda: bench.seen == ["next"])
    eventually(lambda: queue.ready(queue.dead) == 1)
    bench.finish()
    assert (queue.ready(), queue.ready(queue.dead), bench.times()["bad"]) == (0, 1, 1)


def test_a_silent_connection_is_noticed_by_heartbeats(bench: Bench, queue: Queue, proxy: Proxy) -> None:
    """When nothing comes through any more, though nobody closed anything, the source connects anew."""
    bench.start(source(address(proxy, queue), heartbeat=timedelta(seconds=1)))
    queue.send(b"1", message_id="m1")
    eventually(lambda: bench.seen == [1])
    proxy.stalled = True
    eventually(lambda: bench.counts().get("errors"))
    proxy.cut()
    proxy.stalled = False
    queue.send(b"2", message_id="m2")
    eventually(lambda: bench.seen == [1, 2], 60)


def test_a_stop_while_the_broker_is_away(bench: Bench, queue: Queue, proxy: Proxy) -> None:
    """What ended meanwhile cannot be acknowledged, and will come again; nobody waits for that all the grace."""
    bench.go.clear()
    launcher = bench.start(source(address(proxy, queue)))
    queue.send(b'"long"', message_id="m1")
    eventually(lambda: bench.begun == ["long"])
    proxy.refusing = True
    proxy.cut()
    eventually(lambda: "cannot be reached" in launcher.trouble)
    began = time.monotonic()
    bench.finish()
    assert time.monotonic() - began < PATIENT / 2
    assert bench.seen == ["long"]
    eventually(lambda: queue.ready() == 1)


def test_heartbeats_go_on_while_the_pool_is_full(benches: Callable[..., Bench], queue: Queue, proxy: Proxy) -> None:
    """With all threads at work for many heartbeats, the connection is kept, and the messages are acknowledged on it."""
    bench = benches(1)
    bench.go.clear()
    bench.start(source(address(proxy, queue), heartbeat=timedelta(seconds=1)))
    queue.send(b"1", b"2")
    eventually(lambda: bench.begun == [1])
    time.sleep(5)
    bench.go.set()
    eventually(lambda: bench.seen == [1, 2])
    bench.finish()
    assert (queue.ready(), proxy.connections, bench.counts().get("errors")) == (0, 1, None)


def test_a_broker_that_is_not_there_yet(bench: Bench, queue: Queue, proxy: Proxy) -> None:
    """A source that cannot connect at the start goes on trying, and tells which broker it is, without the password."""
    proxy.refusing = True
    launcher = bench.start(source(address(proxy, queue)))
    eventually(lambda: "cannot be reached" in launcher.trouble)
    assert f":{proxy.port}/" in launcher.trouble
    assert "guest" not in launcher.trouble
    proxy.refusing = False
    queue.send(b"1")
    eventually(lambda: bench.seen == [1])
    assert bench.given_up == []


def test_a_broker_that_answers_nothing(
    bench: Bench, queue: Queue, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that takes the connection and stays silent holds the source up for a time only."""
    monkeypatch.setattr("iocflow.events.broker_wire.CONNECT", 1.0)
    proxy.stalled = True
    launcher = bench.start(source(address(proxy, queue)))
    eventually(lambda: "cannot be reached" in launcher.trouble)
    proxy.cut()
    proxy.stalled = False
    queue.send(b"1")
    eventually(lambda: bench.seen == [1])


def test_a_tag_of_the_past_settles_nothing(queue: Queue, proxy: Proxy) -> None:
    """What was to be acknowledged when the connection ended is not, by its old tag, on the next one."""
    found = source(address(proxy, queue))

    def received(many: int) -> list[Any]:
        taken: list[Any] = []
        eventually(lambda: taken.extend(found.receive(many, 1)) or len(taken) == many)
        return taken

    found.open()
    queue.send(b"0", message_id="m0")
    queue.send(b"1", message_id="m1")
    first = received(2)
    proxy.cut()
    with pytest.raises(BrokerLostError):
        found.receive(1, 5)
    found.acknowledge(first[1])
    found.give_back(first[0])
    found.open()
    wire: Any = found._wire
    wire.acknowledge = lambda tag: proxy.cut() and wire._amqp.blocking_read(5)
    with pytest.raises(BrokerLostError):  # m1 is known again, as the second, and the broker is not told any more
        eventually(lambda: found.receive(2, 1) and None)
    eventually(lambda: queue.ready() == 2)
    assert queue.channel.basic_get(queue.name, no_ack=True).body in (b"0", "0")
    queue.send(b"2", message_id="m2")
    found.open()
    (second,) = received(1)
    found.give_back(second)
    found.close()
    eventually(lambda: queue.ready() == 1)
    assert second.event.id == "m2"


def test_a_message_that_could_not_be_given_back_comes_again(queue: Queue) -> None:
    """One that there was no room for, and whose connection ends just then, is not taken for one that is in hand."""
    found = source(queue.address)
    found.open()
    queue.send(b"1", message_id="m1")
    wire: Any = found._wire
    eventually(lambda: found.tend(1) and wire._waiting())
    wire.requeue = lambda tag: close_connection(found) or wire._amqp.blocking_read(5)
    with pytest.raises(BrokerLostError):
        found.tend(0)
    found.open()
    again: list[Any] = []
    eventually(lambda: again.extend(found.receive(1, 1)) or again)
    assert again[0].event.id == "m1"
    found.acknowledge(again[0])
    found.close()
    assert queue.ready() == 0


def test_messages_go_on_through_many_cuts(benches: Callable[..., Bench], queue: Queue, proxy: Proxy) -> None:
    """Without a store, every one of 500 messages is run, though the connection is cut again and again."""
    bench = benches(8)
    bench.start(source(address(proxy, queue)))
    for round in range(5):
        queue.send_many({f"{round}-{i}": str(round * 100 + i).encode() for i in range(100)})
        eventually(lambda round=round: len(set(bench.seen)) > 20 * round)
        proxy.cut()
    eventually(lambda: set(bench.seen) == set(range(500)), 90)
    eventually(lambda: queue.ready() == 0)
    bench.finish()
    assert queue.ready() == 0
