"""The notifier started by a message of RabbitMQ, by changing nothing but the file."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

from samples.fare_drop.publish import publish
from tests.broker import AMQP, Queue, reachable

from .conftest import ended, until

pytestmark = pytest.mark.service("amqp")

FILE = "config/fare_drop_rabbitmq.yaml"


def test_a_message_starts_a_run(
    clone: Path,
    serve: Callable[..., subprocess.Popen[str]],
    shell: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sample's event, sent to the queue, mails everybody; a broken one is a dead letter, and can be replayed."""
    if not reachable(AMQP):
        pytest.skip(f"no broker answers at {AMQP}")
    queue = Queue(AMQP, f"iocflow-test-{uuid.uuid4().hex[:12]}")
    parts = urlsplit(AMQP)
    monkeypatch.setenv("RABBITMQ_PASSWORD", quote(unquote(parts.password or ""), safe=""))
    where = {
        "user": parts.username, "host": f"{parts.hostname}:{parts.port}", "vhost": parts.path[1:].replace("/", "%2F"),
        "queue": queue.name,
    }  # fmt: skip
    options = [word for key, value in where.items() for word in ("--set", f"rabbitmq.{key}={value}")]
    try:
        shell("iocflow run config/fare_drop.yaml fare-drop-polled --profile test")  # there is nothing to be polled then
        daemon = serve(*options, file=FILE)
        publish(str(clone / "samples" / "fare_drop" / "event.json"), AMQP, queue.name)
        until(lambda: len(list((clone / "var" / "mail").glob("*.eml"))) == 32)
        queue.send(b'{"specversion": "1.0", "data": {"airline_id": 12}}')
        until(lambda: queue.ready(queue.dead) == 1)
        ended(daemon)
        done = shell(f"iocflow events list {FILE} fare-messages {' '.join(options)}")
        assert "1 dead letter\n" in done.stdout  # type: ignore[attr-defined]
        shell(f"iocflow events replay {FILE} fare-messages --all {' '.join(options)}")
        assert (queue.ready(), queue.ready(queue.dead)) == (1, 0)
    finally:
        queue.close()
