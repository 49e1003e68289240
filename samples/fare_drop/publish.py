"""Sends an event to RabbitMQ: `python -m samples.fare_drop.publish FILE [URL [QUEUE]]`."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

import kombu

QUEUE = "fares"
"""The queue that config/fare_drop_rabbitmq.yaml reads."""
URL = "amqp://guest:guest@127.0.0.1:5672//"


def publish(file: str, url: str = URL, queue: str = QUEUE) -> None:
    """Send a file's content as a durable message, and wait until the broker has confirmed it."""
    library: Any = kombu  # its own types are not complete
    with library.Connection(url, transport_options={"confirm_publish": True}) as connection:
        producer = connection.Producer()
        producer.publish(
            Path(file).read_bytes(),
            routing_key=queue,
            declare=[library.Queue(queue, durable=True)],
            content_type="application/cloudevents+json",
            content_encoding="utf-8",
            message_id=str(uuid.uuid4()),
        )


if __name__ == "__main__":
    publish(*sys.argv[1:])
