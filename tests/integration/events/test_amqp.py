"""RabbitMQ as a source: what a message becomes, and what is told to the broker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import amqp  # type: ignore[import-untyped]
import pytest

from iocflow.events.section import source_at
from iocflow.events.source import Event
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.pool import Task
from tests.broker import Proxy, Queue, eventually, proxied
from tests.integration.events.conftest import Bench, source

pytestmark = pytest.mark.service("amqp")

CLOUD = {
    "cloudEvents:specversion": "1.0",
    "cloudEvents_id": "e-1",
    "cloudEvents:source": "/fares",
    "cloudEvents:type": "fare.dropped",
    "cloudEvents:time": "2026-03-01T06:00:00Z",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "a=b",
}


def received(queue: Queue) -> Event:
    """Receive the only message, acknowledge it, and return the event."""
    found = source(queue.address)
    found.open()
    deliveries: list[Any] = []
    eventually(lambda: deliveries.extend(found.receive(1, 1)) or deliveries)
    event = deliveries[0].event
    assert event is not None, deliveries[0].refusal
    found.acknowledge(deliveries[0])
    found.close()
    return event


def test_each_message_is_a_run(bench: Bench, queue: Queue) -> None:
    """A message's JSON is the seed, its id and the queue's address without user and password make the key."""
    queue.send(b'{"a": 1}', message_id="m1")
    bench.start(source(queue.address))
    eventually(lambda: bench.seen == [{"a": 1}])
    host, _, rest = queue.url.partition("@")[2].partition("/")
    vhost = "%2F" if rest in ("", "/") else rest
    assert bench.keys[0].startswith(f"amqp://{host}/{vhost}?queue={queue.name}#m1")
    bench.finish()
    assert queue.ready() == 0


def test_a_cloud_event_in_binary_mode(queue: Queue) -> None:
    """Attributes stand in headers with either prefix, the body is the data whatever it is, the trace comes along."""
    body = {"specversion": "no envelope here", "data": 1}
    queue.send(json.dumps(body).encode(), content_type="application/json", application_headers=CLOUD)
    moment = datetime(2026, 3, 1, 6, tzinfo=UTC)
    trace = {"traceparent": CLOUD["traceparent"], "tracestate": "a=b"}
    assert received(queue) == Event("e-1", "/fares", body, "fare.dropped", "", moment, **trace)


def test_a_cloud_event_in_structured_mode(queue: Queue) -> None:
    """The body is an envelope; the property `message_id` goes before the envelope's id."""
    envelope = {
        "specversion": "1.0", "id": "e-1", "source": "/fares", "type": "t", "data": {"a": 1}, "traceparent": "00-1-2-3",
    }  # fmt: skip
    body = json.dumps(envelope).encode()
    queue.send(body, content_type="application/cloudevents+json; charset=utf-8")
    assert received(queue) == Event("e-1", "/fares", {"a": 1}, "t", traceparent="00-1-2-3")
    queue.send(body, message_id="m-1")
    assert received(queue).id == "m-1"


def test_short_prefixes_and_properties(queue: Queue) -> None:
    """`ce-id` is an id too; AMQP's own type and timestamp tell what the headers do not."""
    queue.send(b"[1]", application_headers={"ce-id": "c-1"}, type="order", timestamp=1772344800)
    event = received(queue)
    assert (event.id, event.data, event.type, event.time) == ("c-1", [1], "order", datetime(2026, 3, 1, 6, tzinfo=UTC))


def test_a_message_without_an_id_gets_one_each_time(queue: Queue) -> None:
    """Two equal messages without an id are two events."""
    queue.send(b"1", b"1")
    assert received(queue).id != received(queue).id


def test_a_failed_run_is_a_dead_letter(bench: Bench, queue: Queue) -> None:
    """Body, headers and properties are kept as they came, with a record of what happened."""
    headers = {"x": 1, "nested": {"a": ["b", 2.5, None, True]}, "bytes": b"\xff\xfe"}
    queue.send(
        b' "bad"\n', message_id="m1", content_type="application/json", application_headers=headers, app_id="shop"
    )
    bench.start(source(queue.address))
    eventually(lambda: bench.counts().get("failed"))
    bench.finish()
    assert queue.ready() == 0
    (letter,) = queue.letters()
    assert letter.body == b' "bad"\n'
    kept = dict(letter.properties["application_headers"])
    record = json.loads(kept.pop("x-iocflow-dead"))
    assert kept == headers
    assert {name: letter.properties[name] for name in ("message_id", "content_type", "app_id", "delivery_mode")} == {
        "message_id": "m1", "content_type": "application/json", "app_id": "shop", "delivery_mode": 2,
    }  # fmt: skip
    assert record["reason"] == "ValueError: bad it is"
    assert (record["launcher"], record["processor"], record["activity"]) == ("x", "p", "act")
    assert (record["event_id"], record["queue"]) == ("m1", queue.name)
    assert datetime.fromisoformat(record["arrived_at"]) <= datetime.fromisoformat(record["failed_at"])
    assert record["run_id"]


UNDECODABLE: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "no UTF-8": (b"\xff\x00", {}, "not UTF-8 at byte 0"),
    "no JSON": (b"<a/>", {"content_type": "application/xml"}, "(it calls itself application/xml)"),
    "pickle": (b"\x80\x04K\x01.", {"content_type": "application/x-python-serialize"}, "not UTF-8"),
    "empty": (b"", {}, "not JSON"),
    "null": (b"null", {}, "it has no data"),
    "compressed": (b"x", {"application_headers": {"compression": "application/x-gzip"}}, "its body is compressed"),
    "batch": (b"[]", {"content_type": "application/cloudevents-batch+json"}, "it is a batch"),
    "bad time": (b"1", {"application_headers": {"ce-specversion": "1.0", "ce-time": "noon"}}, "no date and time"),
    "encoding that is none": (b"\xe9", {"content_encoding": "latin-1"}, "not UTF-8"),
}


@pytest.mark.parametrize("kind", UNDECODABLE)
def test_what_cannot_be_decoded_is_a_dead_letter(bench: Bench, queue: Queue, kind: str) -> None:
    """It is put aside byte for byte, with the reason; the messages after it go on."""
    body, properties, reason = UNDECODABLE[kind]
    queue.send(body, message_id="m1", **properties)
    queue.send(b'"next"')
    launcher = bench.start(source(queue.address))
    eventually(lambda: bench.seen == ["next"] and bench.counts().get("refused") == 1)
    assert launcher.trouble == ""
    bench.finish()
    (letter,) = queue.letters()
    assert letter.body == body
    assert reason in json.loads(letter.properties["application_headers"]["x-iocflow-dead"])["reason"]


@pytest.mark.parametrize("body", [b"{}", b""])
def test_properties_that_the_library_cannot_decode(
    bench: Bench, queue: Queue, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message with an id in Latin-1, at which the client library raises, is a dead letter, and kills nothing."""
    serialize = amqp.Message._serialize_properties
    flags_and_id = b"\x00\x80" + b"\x02" + b"\xe9\xe8"
    monkeypatch.setattr(amqp.Message, "_serialize_properties", lambda _: flags_and_id)
    queue.send(body)
    monkeypatch.setattr(amqp.Message, "_serialize_properties", serialize)
    queue.send(b'"next"')
    bench.start(source(queue.address))
    eventually(lambda: bench.seen == ["next"] and bench.counts().get("refused") == 1)
    bench.finish()
    (letter,) = queue.letters()
    headers = letter.properties["application_headers"]
    assert letter.body == body
    assert headers["x-iocflow-unread-properties"] == flags_and_id
    assert "cannot be decoded" in json.loads(headers["x-iocflow-dead"])["reason"]


def test_what_would_harm_a_dead_letter_is_left_out(bench: Bench, queue: Queue) -> None:
    """An expiry, a foreign user, copies to other queues and headers of 120 KB do not stand in the letter's way."""
    other = f"{queue.name}.copies"
    queue.channel.queue_declare(other, durable=True, auto_delete=False)
    user = queue.url.partition("//")[2].partition(":")[0]
    headers = {"CC": [other], "long": "x" * 120_000, "short": "y"}
    queue.send(
        b'"bad"', user_id=user, expiration="60000", reply_to="amq.rabbitmq.reply-to.x", application_headers=headers
    )
    assert queue.ready(other) == 1
    bench.start(source(queue.address))
    eventually(lambda: bench.counts().get("failed"))
    bench.finish()
    (letter,) = queue.letters()
    assert {"user_id", "expiration", "reply_to"}.isdisjoint(letter.properties)
    kept = letter.properties["application_headers"]
    assert kept["short"] == "y"
    assert "long" not in kept
    withheld = json.loads(kept["x-iocflow-dead"])["withheld"]
    assert {"CC", "long", "user_id", "expiration", "reply_to"} <= withheld.keys()
    assert queue.ready(other) == 1
    queue.channel.queue_delete(other)


def test_no_more_is_taken_than_threads_are_free(benches: Callable[..., Bench], queue: Queue) -> None:
    """With two threads, two of many messages are in hand, and the others stay in the queue, for other daemons."""
    bench = benches(2)
    bench.go.clear()
    queue.send(*[str(i).encode() for i in range(20)])
    bench.start(source(queue.address))
    eventually(lambda: len(bench.begun) == 2)
    time.sleep(0.3)
    assert queue.ready() == 18
    bench.go.set()
    eventually(lambda: len(bench.seen) == 20)


def test_two_daemons_share_a_queue(benches: Callable[..., Bench], queue: Queue) -> None:
    """Each message goes to one of them, and both get some: neither takes more than it has threads for."""
    first, second = benches(2), benches(2)
    first.start(source(queue.address))
    second.start(source(queue.address))
    queue.send_many({f"m{n}": str(n).encode() for n in range(200)})
    eventually(lambda: len(first.seen) + len(second.seen) == 200)
    assert sorted([*first.seen, *second.seen]) == list(range(200))
    assert first.seen
    assert second.seen


def test_a_quorum_queue(benches: Callable[..., Bench], queue: Queue) -> None:
    """Queues that know no credit for a whole channel are read too, and no more is taken than there is room for."""
    bench = benches(2)
    for name in (queue.name, queue.dead):
        queue.channel.queue_declare(name, durable=True, auto_delete=False, arguments={"x-queue-type": "quorum"})
    for body in (b'"bad"', *[str(n).encode() for n in range(10)]):
        queue.channel.basic_publish_confirm(amqp.Message(body, delivery_mode=2), exchange="", routing_key=queue.name)
    bench.go.clear()
    bench.start(source(f"{queue.address}&declare=passive"))
    eventually(lambda: len(bench.begun) == 2)
    time.sleep(0.3)
    assert queue.ready() == 9
    bench.go.set()
    eventually(lambda: sorted(bench.seen) == list(range(10)) and queue.ready(queue.dead) == 1)


def test_the_address_bounds_what_is_in_hand(benches: Callable[..., Bench], queue: Queue) -> None:
    """With `prefetch=1`, messages go one at a time, in their order, however many threads are free."""
    bench = benches(8)
    queue.send(*[str(i).encode() for i in range(50)])
    bench.start(source(f"{queue.address}&prefetch=1"))
    eventually(lambda: bench.seen == list(range(50)))


def test_places_that_others_take_are_given_up(benches: Callable[..., Bench], queue: Queue) -> None:
    """When another launcher fills the pool, messages wait in the queue and not here; later they are taken."""
    bench = benches(3)
    busy, done = threading.Event(), threading.Event()
    queue.send(b'"first"')
    bench.start(source(queue.address))
    eventually(lambda: bench.seen == ["first"])
    for _ in range(3):
        bench.host.pool.submit(Task("y", "q", lambda _: busy.set() or done.wait(30), lambda: None))
    assert busy.wait(10)
    eventually(lambda: queue.consumers() == 0)  # what comes before that fits in the places that were free then
    queue.send(*[str(i).encode() for i in range(5)])
    eventually(lambda: queue.ready() == 5)
    done.set()
    eventually(lambda: sorted(bench.seen[1:]) == list(range(5)))


def test_what_is_not_begun_at_the_end_goes_back(benches: Callable[..., Bench], queue: Queue) -> None:
    """At the stop, runs in hand end and are acknowledged; everything else is in the queue again."""
    bench = benches(2)
    bench.go.clear()
    queue.send(*[str(i).encode() for i in range(10)])
    (launcher,) = [bench.start(source(queue.address))]
    eventually(lambda: len(bench.begun) == 2)
    launcher.stop()
    bench.finish()
    assert len(bench.seen) == 2
    eventually(lambda: queue.ready() == 8)


def test_a_queue_declared_otherwise_ends_the_daemon(bench: Bench, queue: Queue) -> None:
    """A queue with other properties is told apart at the start, with what to write; `declare=passive` takes it."""
    queue.channel.queue_declare(queue.name, durable=True, auto_delete=False, arguments={"x-max-length": 100})
    bench.start(source(queue.address))
    eventually(lambda: bench.given_up)
    code, why = bench.given_up[0]
    assert code is ExitCode.CONFIGURATION
    assert "x-max-length" in why
    assert "write declare=passive" in why
    queue.channel.queue_declare(queue.dead, durable=True, auto_delete=False)
    queue.channel.basic_publish(amqp.Message(b"1"), exchange="", routing_key=queue.name)
    bench.start(source(f"{queue.address}&declare=passive"))
    eventually(lambda: bench.seen == [1])


def test_a_queue_that_is_not_there_is_waited_for(bench: Bench, queue: Queue) -> None:
    """With `declare=passive` a missing queue is trouble that tells what to do, and no end."""
    launcher = bench.start(source(f"{queue.address}&declare=passive"))
    eventually(lambda: "no queue" in launcher.trouble)
    assert "leave out declare=passive" in launcher.trouble
    queue.channel.queue_declare(queue.dead, durable=True, auto_delete=False)
    queue.send(b"1")
    eventually(lambda: bench.seen == [1])


@pytest.mark.parametrize(
    ("change", "why"), [({"password": "hunter2hunter2"}, "Login was refused"), ({"vhost": "nowhere"}, "vhost nowhere")]
)
def test_what_the_broker_refuses_ends_the_daemon(
    bench: Bench, queue: Queue, change: dict[str, str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong password and a virtual host that is not there end the start with status 3; nobody reads the password."""
    options = replace(source(queue.address).options, **change)
    bench.start(type(source(queue.address))(options))
    eventually(lambda: bench.given_up)
    assert bench.given_up[0][0] is ExitCode.CONFIGURATION
    assert why in bench.given_up[0][1]
    assert "hunter2" not in caplog.text + bench.given_up[0][1] + repr(options)


def test_a_deleted_queue_is_made_again(bench: Bench, queue: Queue) -> None:
    """When somebody deletes the queue under a consumer, the source notices, and declares it anew."""
    bench.start(source(queue.address))
    queue.send(b"1")
    eventually(lambda: bench.seen == [1])
    queue.delete()
    eventually(lambda: bench.counts().get("errors"))
    queue.send(b"2")
    eventually(lambda: bench.seen == [1, 2])


def test_dead_letters_are_confirmed_before_the_message_goes(bench: Bench, queue: Queue) -> None:
    """While the queue of the dead letters takes nothing, the message stays; when it does, it is there once."""
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    queue.channel.queue_declare(queue.dead, durable=True, auto_delete=False, arguments=arguments)
    queue.send(b'"bad"', message_id="m1")
    launcher = bench.start(source(f"{queue.address}&declare=passive"))
    eventually(lambda: "MessageNacked" in launcher.trouble)
    queue.channel.queue_delete(queue.dead)
    queue.channel.queue_declare(queue.dead, durable=True, auto_delete=False)
    eventually(lambda: queue.ready(queue.dead) == 1)
    eventually(lambda: not bench.launchers[0].trouble)
    bench.finish()
    assert (queue.ready(), queue.ready(queue.dead), bench.times()["bad"]) == (0, 1, 1)


def test_tls_is_verified(bench: Bench, queue: Queue, root: Any) -> None:
    """`amqps:` encrypts and checks the certificate: refused without the authority, taken with `ca=`."""
    certificate = root / "tests" / "integration" / "mail" / "localhost.pem"
    with proxied(queue.url, certificate) as proxy:
        address = proxy.url.replace("amqp:", "amqps:").replace("127.0.0.1", "localhost") + f"?queue={queue.name}"
        launcher = bench.start(source(address), "y")
        eventually(lambda: "CERTIFICATE_VERIFY_FAILED" in launcher.trouble)
        launcher.stop()
        queue.send(b'{"big": "%s"}' % (b"x" * 300_000), b"2")
        bench.start(source(f"{address}&ca={certificate}"))
        eventually(lambda: len(bench.seen) == 2)
        bench.finish()


def test_a_missing_file_of_authorities_ends_the_daemon(bench: Bench) -> None:
    """A typo in `ca=` is told with the file's name, and no connection is tried without it."""
    bench.start(source("amqps://localhost/?queue=q&ca=nowhere.pem"))
    eventually(lambda: bench.given_up)
    assert bench.given_up[0][0] is ExitCode.CONFIGURATION
    assert "there is no file nowhere.pem" in bench.given_up[0][1]


def test_a_source_found_by_its_address(queue: Queue, proxy: Proxy) -> None:
    """The address of a file leads to the source; its name, which logs and pages show, has neither user nor password."""
    found = source_at(queue.address)
    assert found.name == found.identity
    assert "guest:" not in found.name
    assert "@" not in found.name
