"""`PublishEvent` outside of durable runs: what an event says, and what becomes of one that does not arrive."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from iocflow import ProcessContext, SequenceProcessor
from iocflow.activities import EventDataError, PublishEvent
from iocflow.durable.outgoing import PublisherAddressError, PublishError, PublishRefusedError
from iocflow.errors import IocflowError
from iocflow.events.folder import FolderSource
from iocflow.events.section import source_at


@dataclass
class Order:
    """A seed."""

    number: str
    total: Decimal


class Work(ProcessContext):
    """A context with an order."""

    seed_data: Order
    strange: Any = None


def run(publish: PublishEvent, strange: Any = None) -> Any:
    """Run a processor that publishes."""

    def prepare(context: Work) -> None:
        context.strange = strange

    return SequenceProcessor([prepare, publish], context=Work, name="order").do_activities(
        Order("PO-17", Decimal("9.90"))
    )


def failure(publish: PublishEvent, strange: Any = None) -> Exception:
    """Return the error that ends a processor that publishes."""
    with pytest.raises(IocflowError) as raised:
        run(publish, strange)
    return raised.value


def files(folder: Path) -> list[dict[str, Any]]:
    """Return the events in a folder."""
    return [json.loads(file.read_bytes()) for file in sorted(folder.iterdir())]


def test_an_event_says_what_happened(tmp_path: Path) -> None:
    """It has all attributes that CloudEvents demands, the seed as its data, and its subject."""
    made = run(PublishEvent(f"folder:{tmp_path}", "com.example.shipped", subject="seed_data.number"))
    made.raise_for_error()
    (event,) = files(tmp_path)
    age = datetime.now(UTC) - datetime.fromisoformat(event.pop("time"))
    assert age.total_seconds() < 60
    assert event.pop("id").startswith(made.id)
    assert event == {
        "specversion": "1.0",
        "source": "/iocflow/order",
        "type": "com.example.shipped",
        "subject": "PO-17",
        "datacontenttype": "application/json",
        "data": {"number": "PO-17", "total": "9.90"},
    }


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("seed_data.total", "9.90"),
        ({"no": "seed_data.number", "more": "strange"}, {"no": "PO-17", "more": [1, "2026-01-02"]}),
    ],
)
def test_what_an_event_tells(tmp_path: Path, data: Any, expected: Any) -> None:
    """Its data is one field, or several by the names that they have in it, as JSON."""
    strange = (1, datetime(2026, 1, 2, tzinfo=UTC).date())
    run(PublishEvent(f"folder:{tmp_path}", "t", data, source="//shop"), strange).raise_for_error()
    (event,) = files(tmp_path)
    assert (event["data"], event["source"]) == (expected, "//shop")


@pytest.mark.parametrize("strange", [object(), {1: {2}}.values, b"\xff"], ids=["object", "method", "bytes"])
def test_what_is_no_json(tmp_path: Path, strange: Any) -> None:
    """A field that cannot be written as JSON fails the step with its name; nothing is sent."""
    error = failure(PublishEvent(f"folder:{tmp_path}", "t", "strange"), strange)
    assert isinstance(error, EventDataError)
    assert "strange cannot be written as JSON" in str(error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"to": "nowhere:x"}, "events cannot be sent to `nowhere`"),
        ({"to": "x"}, "write its kind and its place"),
        ({"to": "folder:"}, "write folder:var/outbox"),
        ({"to": "folder:a?b=c"}, "no options"),
        ({"to": "http:///x"}, "write http://HOST/PATH"),
        ({"to": "https://u:p@host/x"}, "write https://HOST/PATH"),
        ({"to": "https://host/x?tokn=1"}, "has the option token"),
        ({"to": "amqp://host/x"}, "names no queue"),
        ({"to": "amqp://host/x?queue=a&prefetch=3"}, "prefetch"),
        ({"to": "amqp://host/x?queue=amq.a"}, "can be no queue"),
        ({"type": ""}, "write what happened"),
        ({"data": "a b"}, "'a b' is no path"),
        ({"data": {"a": "_b"}}, "'_b' is no path"),
        ({"subject": "a-b"}, "'a-b' is no path"),
    ],
)
def test_arguments_that_cannot_be(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    """Both the constructor and the check of a file refuse them, with what to write."""
    given = {"to": f"folder:{tmp_path}", "type": "t", **arguments}
    with pytest.raises((PublisherAddressError, ValueError), match=said):
        PublishEvent(**given)
    assert any(said in text for _, text in PublishEvent.check_arguments(given))


def test_a_source_reads_what_is_published(tmp_path: Path) -> None:
    """The folder source takes the event as it was sent; the same event is one file, however often it is sent."""
    publish = PublishEvent(f"folder:{tmp_path}/in", "t")
    for _ in range(2):
        publish.publisher.publish("id/1#2", b'{"specversion":"1.0","id":"id/1#2","source":"s","type":"t","data":5}')
    source = source_at(f"folder:{tmp_path}/in?interval=10ms")
    assert isinstance(source, FolderSource)
    source.reserve()
    source.open()
    taken = [one for _ in range(5) for one in source.receive(10, 0.1)]
    assert [(one.event.id, one.event.data) for one in taken if one.event] == [("id/1#2", 5)]
    source.close()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """The step fails, with the folder's name."""
    (tmp_path / "file").touch()
    error = failure(PublishEvent(f"folder:{tmp_path}/file/in", "t"))
    assert isinstance(error, PublishError)
    assert f"folder:{tmp_path}/file/in takes no event" in str(error)


# HTTP


class Server:
    """Takes events by POST and answers with a status."""

    def __init__(self) -> None:
        self.status, self.requests = 202, []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.requests.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(server.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    requests: list[tuple[str, dict[str, str], Any]]


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server."""
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        thread.join()
        server.http.server_close()


def test_an_event_is_posted() -> None:
    """The body is the event, the header its id; the token is sent and never shown."""
    with serving() as server:
        publish = PublishEvent(f"{server.url}/orders?token=verysecret", "t")
        made = run(publish)
        made.raise_for_error()
        assert publish.publisher.name == f"{server.url}/orders"
        ((path, headers, event),) = server.requests
    assert path == "/orders"
    assert headers["Content-Type"] == "application/cloudevents+json"
    assert headers["Authorization"] == "Bearer verysecret"
    assert headers["Idempotency-Key"] == event["id"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, PublishRefusedError),
        (404, PublishRefusedError),
        (429, PublishError),
        (503, PublishError),
        (302, PublishError),
    ],
)
def test_an_answer_that_is_no_yes(status: int, kind: type[PublishError]) -> None:
    """4xx is a refusal, unless it asks for another try; 5xx and redirections are trouble; the step fails."""
    with serving() as server:
        server.status = status
        error = failure(PublishEvent(f"{server.url}/orders", "t"))
        assert len(server.requests) == 1
    assert type(error) is kind
    assert f"answered {status}" in str(error)


def test_nobody_answers() -> None:
    """A server that is not there fails the step as trouble, not as a refusal."""
    with serving() as server:
        url = server.url
    error = failure(PublishEvent(f"{url}/orders", "t"))
    assert type(error) is PublishError
    assert "takes no event" in str(error)
