"""A daemon with an `http:` source in this process, and clients that talk to it over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from iocflow.container import App
from iocflow.context import ProcessContext
from iocflow.events import on_event
from iocflow.launch import DaemonSettings, ExitCode
from iocflow.launch.daemon import Daemon
from iocflow.sequence import SequenceProcessor
from tests.integration.launch.serving import Serving
from tests.web import PATIENT, Answer, ask, free_port

TOKEN = "0123456789abcdef-+/="


@dataclass
class Order:
    """The seed."""

    number: int
    what: str = ""


class Shop(ProcessContext):
    """A context whose seed is an order."""

    seed_data: Order


def raw(port: int, *parts: bytes, hang_up: bool = False) -> bytes:
    """Send bytes and return all that comes back until the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENT) as one:
        for part in parts:
            one.sendall(part)
        if hang_up:
            one.shutdown(socket.SHUT_WR)
        return read_all(one)


def read_all(one: socket.socket) -> bytes:
    """Return what comes from a socket until its other end is closed, or cut."""
    found = b""
    try:
        while data := one.recv(65_536):
            found += data
    except ConnectionResetError:
        return found
    return found


class Web:
    """A daemon in a thread; its processor `order` notes its orders, and can be held up."""

    def __init__(self, options: str = "", *, path: str = "/orders", pool: int = 4, store: str | None = None) -> None:
        self.port = free_port()
        self.path = path
        self.seen: list[Order] = []
        self.go = threading.Event()
        self.go.set()
        self.processor = SequenceProcessor([self.act], context=Shop, name="order")
        self.source = f"http:127.0.0.1:{self.port}{path}{options}"
        self.processors = [self.processor]
        self.launchers = [on_event(self.source, self.processor, name="orders")]
        self.settings = DaemonSettings(pool=pool, grace=timedelta(seconds=10), heartbeat=timedelta(milliseconds=50))
        self.store = store

    def act(self, context: Shop) -> None:
        """Note the order; some of them fail, stop, or end the thread."""
        self.seen.append(context.seed_data)
        assert self.go.wait(PATIENT)
        what = context.seed_data.what
        if what == "fail":
            raise ValueError("out of stock")
        if what == "leak":
            raise ValueError("password hunter2hunter2 refused")
        if what == "stop":
            context.stop_process("nobody wants it")
        if what == "exit":
            raise SystemExit(1)

    def start(self, *, ready: bool = True) -> Web:
        """Start the daemon and wait until it is ready, or is over."""
        more = {"store": self.store} if self.store else {}
        self.app = App(*self.processors, launchers=self.launchers, **more)
        self.daemon = Daemon(self.app, settings=self.settings)
        self.serving = Serving(self.daemon)
        self.wait_for = self.serving.wait_for
        self.wait_for(lambda: self.daemon.ready if ready else self.serving.code is not None)
        return self

    def stop(self) -> ExitCode | None:
        """Stop the daemon and return its exit code."""
        self.go.set()
        code = self.serving.stop()
        self.app.close()
        return code

    def post(self, body: object, **headers: str) -> Answer:
        """Post to the source."""
        return ask(self.port, "POST", self.path, body, **headers)

    def request(self, body: bytes, **headers: str) -> bytes:
        """Return the bytes of a request to the source."""
        lines = [f"POST {self.path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def counts(self) -> dict[str, int]:
        """Return what the launcher counted, without noughts."""
        return {name: number for name, number in self.daemon.snapshot().launchers[0].counts.items() if number}


class Background:
    """A call in a thread."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self._call = call
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.result = self._call()

    def wait(self) -> Any:
        """Return what the call returned."""
        self._thread.join(PATIENT)
        assert not self._thread.is_alive()
        return self.result
