"""Redis as a source, through kombu: one run a message, dead letters, and what lies in the list besides."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from kombu import Connection, Exchange
from kombu import Queue as KombuQueue

from iocflow.launch.exit_codes import ExitCode
from tests.broker import REDIS, eventually, proxied
from tests.integration.events.conftest import Bench, source

pytestmark = pytest.mark.service("redis")


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    """Return a client of Redis."""
    with redis.Redis.from_url(REDIS) as client:
        yield client


def send(address: str, *bodies: bytes, exchange: str = "", **options: Any) -> None:
    """Send messages as kombu does, to the queue or to a topic exchange that leads there."""
    url, _, queue = address.partition("?queue=")
    with Connection(url) as connection, connection.channel() as channel:
        producer = connection.Producer(channel)
        where: dict[str, Any] = {"routing_key": queue}
        if exchange:
            topic = Exchange(exchange, type="topic")
            bound = KombuQueue(queue, topic, routing_key="orders.#")
            where = {"routing_key": "orders.new", "exchange": topic, "declare": [bound]}
        for body in bodies:
            producer.publish(body, content_type="application/json", content_encoding="utf-8", **where, **options)


def letters(client: redis.Redis, address: str) -> list[Any]:
    """Return the dead letters as they lie in the list."""
    name = address.partition("?queue=")[2].partition("&")[0] + ".dead"
    return [json.loads(item) for item in client.lrange(name, 0, -1)]


def left(client: redis.Redis, address: str) -> int:
    """Return how many messages wait."""
    return int(client.llen(address.partition("?queue=")[2].partition("&")[0]))


def test_each_message_is_a_run(bench: Bench, redis_address: str, client: redis.Redis) -> None:
    """Messages are runs, by their own ids or by the transport's; none is left in any list."""
    send(redis_address, b'{"a": 1}', message_id="m1")
    send(redis_address, b'{"a": 2}', b'{"a": 2}')
    bench.start(source(redis_address))
    eventually(lambda: len(bench.seen) == 3)
    assert sum("#m1/" in key for key in bench.keys) == 1
    assert len(set(bench.keys)) == 3
    bench.finish()
    assert left(client, redis_address) == 0


def test_dead_letters(bench: Bench, redis_address: str, client: redis.Redis) -> None:
    """A failed run and an undecodable body are put aside with the reason, byte for byte."""
    send(redis_address, b'"bad"', b"\xff\x00", headers={"x": "y"})
    bench.start(source(redis_address))
    eventually(lambda: len(letters(client, redis_address)) == 2)
    bench.finish()
    reasons = [json.loads(one["headers"]["x-iocflow-dead"])["reason"] for one in letters(client, redis_address)]
    assert sorted(reasons) == ["ValueError: bad it is", "refused: not UTF-8 at byte 0"]
    assert all(one["headers"]["x"] == "y" for one in letters(client, redis_address))
    assert {one["body"] for one in letters(client, redis_address)} == {"ImJhZCI=", "/wA="}
    assert left(client, redis_address) == 0


@pytest.mark.parametrize("item", [b'{"a": 1}', b'"text"', b"[1]", b'{"body": 1, "properties": {}}'])
def test_items_that_are_no_messages(bench: Bench, redis_address: str, client: redis.Redis, item: bytes) -> None:
    """What another program pushed onto the list is an event too; kombu alone would lose it."""
    client.lpush(redis_address.partition("?queue=")[2], item)
    bench.start(source(redis_address))
    eventually(lambda: bench.seen == [json.loads(item)])


def test_an_item_that_is_nothing(bench: Bench, redis_address: str, client: redis.Redis) -> None:
    """Bytes that are no JSON are a dead letter."""
    client.lpush(redis_address.partition("?queue=")[2], b"\xff\xfe")
    bench.start(source(redis_address))
    eventually(lambda: [one["body"] for one in letters(client, redis_address)] == ["//4="])


def test_no_more_is_taken_than_threads_are_free(
    benches: Callable[..., Bench], redis_address: str, client: redis.Redis
) -> None:
    """With two threads, two messages are in hand; at the stop they end, and the others are where they were."""
    bench = benches(2)
    bench.go.clear()
    send(redis_address, *[str(i).encode() for i in range(10)])
    bench.start(source(redis_address))
    eventually(lambda: len(bench.begun) == 2)
    time.sleep(0.3)
    assert left(client, redis_address) == 8
    bench.go.set()
    eventually(lambda: sorted(bench.seen) == list(range(10)))


def test_connections_that_are_cut(benches: Callable[..., Bench], redis_address: str) -> None:
    """Idle or with a run in hand: it is connected anew, each message is run once, and acknowledged."""
    bench = benches(2)
    with proxied(REDIS) as proxy:
        bench.start(source(f"{proxy.url}?queue={redis_address.partition('?queue=')[2]}"))
        for i in range(3):
            send(redis_address, str(i).encode())
            eventually(lambda i=i: bench.seen == list(range(i + 1)))
            assert proxy.cut() >= 1
        bench.go.clear()
        send(redis_address, b'"long"')
        eventually(lambda: bench.begun[-1] == "long")
        proxy.cut()
        time.sleep(0.5)
        bench.go.set()
        eventually(lambda: bench.seen[-1] == "long")
        send(redis_address, b'"next"')
        eventually(lambda: bench.seen[-1] == "next")
        bench.finish()
    assert bench.times()["long"] == 1


def test_a_long_run_is_not_run_twice_beside_itself(bench: Bench, redis_address: str, client: redis.Redis) -> None:
    """A message that outlasts `visibility` is brought again by Redis; it is known again while it is in hand."""
    bench.go.clear()
    bench.start(source(redis_address, visibility=timedelta(seconds=1)))
    send(redis_address, b'"long"', message_id="m1")
    eventually(lambda: bench.begun == ["long"])
    time.sleep(6)
    bench.go.set()
    eventually(lambda: bench.seen == ["long"])
    send(redis_address, b'"next"')
    eventually(lambda: bench.seen == ["long", "next"])
    bench.finish()
    assert bench.begun == ["long", "next"]
    assert left(client, redis_address) == 0


def test_what_came_by_an_unknown_exchange_goes_back(redis_address: str, client: redis.Redis) -> None:
    """A message that was published to a topic exchange is in the queue again when it is given back."""
    send(redis_address, b'"routed"', exchange=f"topic-{redis_address[-12:]}")
    found = source(redis_address)
    found.open()
    deliveries: list[Any] = []
    eventually(lambda: deliveries.extend(found.receive(1, 1)) or deliveries)
    with pytest.warns(UserWarning, match="could not be delivered"):
        found.give_back(deliveries[0])
    found.close()
    assert left(client, redis_address) == 1


def test_tls_is_verified(bench: Bench, redis_address: str, root: Path) -> None:
    """`rediss:` encrypts and checks the certificate: refused without the authority, taken with `ca=`."""
    certificate = root / "tests" / "integration" / "mail" / "localhost.pem"
    with proxied(REDIS, certificate) as proxy:
        url = proxy.url.replace("redis:", "rediss:").replace("127.0.0.1", "localhost")
        address = f"{url}?queue={redis_address.partition('?queue=')[2]}"
        launcher = bench.start(source(address), "y")
        eventually(lambda: "CERTIFICATE_VERIFY_FAILED" in launcher.trouble)
        launcher.stop()
        send(redis_address, b"1")
        bench.start(source(f"{address}&ca={certificate}&declare=passive"))
        eventually(lambda: bench.seen == [1])
        bench.finish()


def test_a_wrong_password_ends_the_daemon(bench: Bench, redis_address: str) -> None:
    """It is refused at the start, with status 3, and not told."""
    address = redis_address.replace("redis://", "redis://nobody:hunter2hunter2@")
    bench.start(source(address))
    eventually(lambda: bench.given_up)
    assert bench.given_up[0][0] is ExitCode.CONFIGURATION
    assert "hunter2" not in bench.given_up[0][1]
