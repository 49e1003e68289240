"""One connection to a broker through kombu; the only module that knows kombu's ways."""

from __future__ import annotations

import contextlib
import os
import select
import ssl
import time
from collections.abc import Callable
from typing import Any

from amqp import Message as AmqpMessage  # type: ignore[import-untyped]
from amqp.exceptions import (  # type: ignore[import-untyped]
    AccessRefused,
    AMQPError,
    NotAllowed,
    NotFound,
    PreconditionFailed,
)
from kombu.connection import Connection

from iocflow.events.broker_frames import tolerant_frame_handler
from iocflow.events.broker_message import Message
from iocflow.events.broker_options import BrokerOptions
from iocflow.events.broker_redis import foreign_items
from iocflow.events.waker import Waker
from iocflow.launch.errors import ImpossibleSourceError

__all__ = ["Wire"]

CONNECT = 10.0
"""Seconds that connecting may take."""
ANSWER = 30.0
"""Seconds that the broker may take to answer, and to confirm a message."""
FRAME = 5.0
"""Seconds within which the rest of a frame should be there; if it is not, it is waited for later."""
BEAT = 1.0
"""Seconds between looks at the heartbeats, and the longest single wait."""
UNEVEN = 0.1
"""Seconds after which the broker is told that more or less room is left than it knows of."""
POLL = 0.001
"""Seconds that a transport of kombu without a connection of its own is asked for at a time."""
PERSISTENT = 2


class Wire:
    """A connection with a consumer on the queue; it is used until something goes wrong with it, and never again.

    All is done in one thread. What arrives is told to `arrived` while `pump` runs, and not more than there was room for
    when the broker was told: the broker is given credit for free places only. Another amount of credit means another
    consumer (AMQP can change it in no other way that all kinds of queues know), so a difference that lasts no longer
    than a moment is left alone.

    Attributes:
        lasting: Whether a message can be settled on another connection than the one that brought it (Redis).
    """

    def __init__(
        self, options: BrokerOptions, arrived: Callable[[Message], None], waiting: Callable[[], int], waker: Waker
    ) -> None:
        """Connect, and declare both queues or look whether they are there.

        Args:
            options: Where and how.
            arrived: Takes each message that comes.
            waiting: Returns how many of them have not been taken from there.
            waker: Ends the waiting in `pump`.

        Raises:
            ImpossibleSourceError: The broker refuses it, and always will.
            Exception: It cannot be reached now.
        """
        self._options, self._arrived, self._waiting, self._waker = options, arrived, waiting, waker
        self._native = options.scheme.startswith("amqp")
        self.lasting = options.scheme.startswith("redis")
        self._consumer, self._consumers, self._credit, self._most = "", 0, 0, 0
        self._unsettled: set[Any] = set()
        self._uneven_since = 0.0
        self._beaten = 0.0
        connect: Any = Connection
        self._connection: Any = connect(**_parameters(options))
        self._amqp: Any = None
        try:
            self._connect()
        except BaseException:
            self.drop()
            raise

    def _connect(self) -> None:
        try:
            # kombu's own attribute would connect anew, and silently, when the connection is lost.
            self._amqp = self._connection.connect()
            self._channel: Any = self._connection.channel()
            self._channel.auto_decode = False
            self._sender: Any = self._connection.channel() if self._native else self._channel
            if self.lasting:
                foreign_items(self._channel)
            for queue in filter(None, (self._options.queue, self._options.dead)):
                self._declare(queue)
        except (AccessRefused, NotAllowed) as error:
            raise ImpossibleSourceError(f"{self._options.name}: {_said(error)}") from error
        except PreconditionFailed as error:
            remedy = "write declare=passive to take both queues as they are"
            raise ImpossibleSourceError(f"{self._options.name}: {_said(error)}; {remedy}") from error
        except NotFound as error:
            remedy = "make it, or leave out declare=passive"
            raise ConnectionError(f"{_said(error)}; {remedy}") from error
        except Exception as error:
            if type(error).__name__ == "AuthenticationError":  # of redis, which need not be installed
                raise ImpossibleSourceError(f"{self._options.name}: {error}") from error
            raise

    def _declare(self, queue: str) -> None:
        if self._options.passive and not self._native:
            return  # an empty queue may be none at all there, as a list of Redis
        self._channel.queue_declare(queue=queue, passive=self._options.passive, durable=True, auto_delete=False)

    def grant(self, room: int) -> bool:
        """See that the broker may send `room` messages, and no more; return whether that is so now."""
        if not self._native:
            self._grant_virtual(len(self._unsettled) - self._waiting() + room)
            return True
        if self._credit - len(self._unsettled) == room - self._waiting():
            self._uneven_since = 0.0
            return True
        now = time.monotonic()
        if self._consumer and (not self._uneven_since or now - self._uneven_since < UNEVEN):
            self._uneven_since = self._uneven_since or now
            return False
        if self._consumer:
            self._channel.basic_cancel(self._consumer)  # what is under way arrives before the answer
        self._consume(max(room - self._waiting(), 0))
        return True

    def _grant_virtual(self, most: int) -> None:
        """Let so many messages be unsettled; kombu counts them itself, and takes 0 for any number."""
        self._channel.basic_qos(0, most, False)
        self._most = most
        if most and not self._consumer:
            self._start(self._take_virtual)
        elif self._consumer and not most:
            self._channel.basic_cancel(self._consumer)
            self._consumer = ""

    def _consume(self, credit: int) -> None:
        self._unsettled, self._credit, self._consumer, self._uneven_since = set(), credit, "", 0.0
        if credit:
            self._channel.basic_qos(0, credit, False)
            self._start(self._take_native)

    def _start(self, take: Callable[[Any], None]) -> None:
        self._consumers += 1
        self._consumer = f"iocflow-{self._consumers}"
        self._channel.basic_consume(self._options.queue, no_ack=False, callback=take, consumer_tag=self._consumer)

    def pump(self, seconds: float) -> None:
        """Take in what has come; when that is nothing, wait for something, for a call of the waker, or for the time."""
        if not seconds and not self._native:
            return  # there is nothing to be kept alive
        until = time.monotonic() + seconds
        while True:
            self._take_in()
            self._beat()
            left = until - time.monotonic()
            if self._waiting() or left <= 0 or self._waker.woken:
                return
            self._waker.wait(self._files(), min(left, BEAT))

    def _take_in(self) -> None:
        try:
            if self._native:
                while _readable(self._amqp.sock):
                    self._amqp.blocking_read(FRAME)
            else:
                while self._consumer and len(self._unsettled) < self._most:
                    self._connection.drain_events(timeout=POLL)
        except TimeoutError:
            return

    def _beat(self) -> None:
        if self._native and time.monotonic() - self._beaten >= BEAT:
            self._amqp.heartbeat_tick(rate=2)
            self._beaten = time.monotonic()

    def _files(self) -> list[int]:
        """Return the sockets that become readable when something comes."""
        if self._native:
            return [self._amqp.sock.fileno()]
        return list(getattr(self._connection.transport.cycle, "fds", ()))

    def _take_native(self, raw: Any) -> None:
        self._unsettled.add(raw.delivery_info["delivery_tag"])
        self._arrived(_of_amqp(raw))

    def _take_virtual(self, message: Any) -> None:
        self._unsettled.add(message.delivery_tag)
        self._arrived(_of_kombu(message))

    def acknowledge(self, tag: Any) -> None:
        """Let the broker forget a message."""
        self._channel.basic_ack(tag)
        self._unsettled.discard(tag)

    def requeue(self, tag: Any) -> None:
        """Let the broker bring a message again."""
        self._channel.basic_reject(tag, requeue=True)
        self._unsettled.discard(tag)

    def send(self, queue: str, message: Message) -> None:
        """Put a message into a queue, durably; it is there when this returns."""
        properties = {**message.properties, "delivery_mode": PERSISTENT}
        if self._native:
            outgoing = AmqpMessage(message.body, application_headers=message.headers, **properties)
            self._sender.basic_publish_confirm(
                outgoing, exchange="", routing_key=queue, mandatory=True, timeout=ANSWER, confirm_timeout=ANSWER
            )
            return
        kind, encoding = properties.pop("content_type", None), properties.pop("content_encoding", None)
        prepared = self._channel.prepare_message(
            message.body, content_type=kind, content_encoding=encoding, headers=message.headers, properties=properties
        )
        self._channel.basic_publish(prepared, exchange="", routing_key=queue)

    def look(self, queue: str) -> Message | None:
        """Take the next message of a queue into hand, None when there is none."""
        found = self._channel.basic_get(queue, no_ack=False)
        if found is None:
            return None
        return _of_amqp(found) if self._native else _of_kombu(found)

    def close(self) -> None:
        """Close the connection; what is not settled comes again."""
        self._connection.close()

    def drop(self) -> None:
        """Let go of a connection that is lost, without a word to the broker."""
        if self._native:
            if self._amqp is not None:
                self._amqp.collect()
            return
        for channel in self._connection.transport.channels:
            # What is in hand can still be settled, and must not be brought again meanwhile.
            channel.do_restore = not self.lasting
        with contextlib.suppress(Exception):
            self._connection.close()


def _parameters(options: BrokerOptions) -> dict[str, Any]:
    return {
        "transport": "pyamqp" if options.scheme == "amqps" else options.scheme,
        "hostname": options.host,
        "port": options.port or None,
        "userid": options.user or None,
        "password": options.password or None,
        "virtual_host": options.vhost or None,
        "connect_timeout": CONNECT,
        "heartbeat": options.heartbeat.total_seconds(),
        "ssl": _tls(options) if options.tls else False,
        "transport_options": _transport_options(options),
    }


def _transport_options(options: BrokerOptions) -> dict[str, Any]:
    if options.scheme.startswith("amqp"):
        return {"frame_handler": tolerant_frame_handler, "read_timeout": ANSWER, "write_timeout": ANSWER}
    return {
        "visibility_timeout": options.visibility.total_seconds(),
        "socket_connect_timeout": CONNECT,
        "socket_timeout": ANSWER,
        "deadletter_queue": options.queue,  # where a message that is brought again goes if its exchange is unknown here
    }


def _tls(options: BrokerOptions) -> dict[str, Any]:
    """Return how certificates are verified; both libraries verify less unless they are told.

    Raises:
        ImpossibleSourceError: The file of the authorities is not there.
    """
    ca = options.ca or None
    if ca and not os.path.isfile(ca):
        raise ImpossibleSourceError(f"{options.name}: there is no file {ca} with certificate authorities")
    if options.scheme == "amqps":
        context = {"cafile": ca, "check_hostname": True}
        return {"context": context, "server_hostname": options.host}
    return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, "ssl_ca_certs": ca}


def _readable(sock: Any) -> bool:
    """Return whether there is something to read at once."""
    if isinstance(sock, ssl.SSLSocket) and sock.pending():
        return True
    waiting = select.poll()
    waiting.register(sock, select.POLLIN)
    return bool(waiting.poll(0))


def _of_amqp(raw: Any) -> Message:
    properties = dict(raw.properties)
    headers = properties.pop("application_headers", None) or {}
    body = raw.body or b""  # the library has a text without characters for no bytes
    return Message(body, headers, properties, raw.delivery_info["delivery_tag"], raw.delivery_info["redelivered"])


def _of_kombu(message: Any) -> Message:
    raw = message._raw  # what the message itself offers was decompressed
    properties = {key: value for key, value in raw["properties"].items() if key not in _TRANSPORT}
    for name in ("content-type", "content-encoding"):
        if raw.get(name):
            properties[name.replace("-", "_")] = raw[name]
    body = message.channel.decode_body(raw["body"], raw["properties"].get("body_encoding"))
    headers = dict(raw.get("headers") or {})
    again = bool(headers.pop("redelivered", False))
    return Message(
        body.encode() if isinstance(body, str) else body, headers, properties, message.delivery_tag, again,
        stamp=str(message.delivery_tag),
    )  # fmt: skip


_TRANSPORT = ("body_encoding", "delivery_info", "delivery_tag", "delivery_mode")


def _said(error: AMQPError) -> str:
    return str(getattr(error, "reply_text", "") or error)
