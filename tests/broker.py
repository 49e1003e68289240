"""Brokers for the tests, as another program sees them; and a proxy in front of one."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import amqp  # type: ignore[import-untyped]

AMQP = os.environ.get("IOCFLOW_TEST_AMQP", "amqp://guest:guest@127.0.0.1:5672//")
REDIS = os.environ.get("IOCFLOW_TEST_REDIS", "redis://127.0.0.1:6379/0")


def reachable(url: str) -> bool:
    """Return whether something listens there."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname, parts.port), 5).close()
    except OSError:
        return False
    return True


class Queue:
    """A queue of RabbitMQ and the one of its dead letters, which are the test's own."""

    def __init__(self, url: str, name: str) -> None:
        """Connect; a queue is made when something is sent to it."""
        self.url, self.name, self.dead = url, name, f"{name}.dead"
        self._connection = self._connected()
        self.channel = self._channel()

    @property
    def address(self) -> str:
        """The address of a source that reads it."""
        return f"{self.url}?queue={self.name}"

    def send(self, *bodies: bytes, **properties: Any) -> None:
        """Send messages, each with these properties, and wait until they are there."""
        self.channel.queue_declare(self.name, durable=True, auto_delete=False)
        for body in bodies:
            message = amqp.Message(body, **{"delivery_mode": 2, **properties})
            self.channel.basic_publish_confirm(message, exchange="", routing_key=self.name)

    def send_many(self, bodies: dict[str, bytes]) -> None:
        """Send messages by their ids, in one go."""
        self.channel.queue_declare(self.name, durable=True, auto_delete=False)
        sender = self._connection.channel()
        sender.tx_select()
        for id, body in bodies.items():
            message = amqp.Message(body, delivery_mode=2, message_id=id)
            sender.basic_publish(message, exchange="", routing_key=self.name)
        sender.tx_commit()
        sender.close()

    def ready(self, queue: str = "") -> int:
        """Return how many messages wait in the queue; those in somebody's hand are not counted."""
        return int(self.channel.queue_declare(queue or self.name, passive=True).message_count)

    def consumers(self) -> int:
        """Return how many consumers it has."""
        return int(self.channel.queue_declare(self.name, passive=True).consumer_count)

    def letters(self) -> list[Any]:
        """Take all dead letters."""
        self.channel.queue_declare(self.dead, durable=True, auto_delete=False)
        found = []
        while (message := self.channel.basic_get(self.dead, no_ack=True)) is not None:
            message.body = message.body or b""  # the library has a text for no bytes
            found.append(message)
        return found

    def delete(self) -> None:
        """Delete both queues."""
        for queue in (self.name, self.dead):
            self.channel.queue_delete(queue)

    def close(self) -> None:
        """Delete both queues and leave."""
        with contextlib.suppress(OSError, amqp.AMQPError):
            self._connection.close()
        self.reconnect()
        self.delete()
        self._connection.close()

    def reconnect(self) -> None:
        """Connect anew, after the broker was restarted."""
        with contextlib.suppress(OSError, amqp.AMQPError, AttributeError):
            self._connection.collect()
        self._connection = self._connected()
        self.channel = self._channel()

    def _connected(self) -> Any:
        parts = urlsplit(self.url)
        vhost = parts.path[1:] or "/"
        connection = amqp.Connection(
            f"{parts.hostname}:{parts.port}", parts.username, parts.password, virtual_host=vhost, read_timeout=30
        )
        connection.connect()
        return connection

    def _channel(self) -> Any:
        channel = self._connection.channel()
        channel.auto_decode = False
        return channel


class Proxy:
    """Passes connections on; `cut` ends them, `stalled` lets nothing through, `refusing` takes no new one."""

    def __init__(self, url: str, certificate: Path | None = None) -> None:
        """Listen; with a certificate, speak TLS to clients."""
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = url.replace(f"{parts.hostname}:{parts.port}", f"127.0.0.1:{self.port}")
        self._context = None
        if certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate)
        self.stalled = self.refusing = False
        self.connections = 0
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """End all connections at once, as a reset; return how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for one in pair:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def close(self) -> None:
        """Listen no more, and end all connections."""
        self.refusing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refusing:
                client.close()
                continue
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        try:
            if self._context:
                client = self._context.wrap_socket(client, server_side=True)
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        pair = (client, server)
        with self._lock:
            self._pairs.add(pair)
            self.connections += 1
        with client, server:
            self._copy(client, server)
        with self._lock:
            self._pairs.discard(pair)

    def _copy(self, client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        while True:
            pending = [one for one in other if isinstance(one, ssl.SSLSocket) and one.pending()]
            ready = pending or select.select(list(other), [], [], 1)[0]
            while self.stalled:
                time.sleep(0.01)
            for one in ready:
                try:
                    data = one.recv(65536)
                    if not data:
                        return
                    other[one].sendall(data)
                except OSError:
                    return


def eventually(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.005)


@contextlib.contextmanager
def proxied(url: str, certificate: Path | None = None) -> Iterator[Proxy]:
    """Lend a proxy in front of a server."""
    proxy = Proxy(url, certificate)
    try:
        yield proxy
    finally:
        proxy.close()
