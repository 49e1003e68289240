"""Mail servers that listen on a free port of this machine: a real one, and one that misbehaves as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socketserver
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""A certificate for localhost, its own authority, with its key: for these tests only. Valid from 2020 to 2120."""


ENDLESS = {"DRIP": (b"2", 0.05), "LINES": (b"220-x\r\n", 0.05), "FLOOD": (b"220-x\r\n" * 1000, 0.0)}
"""Replies without an end: what is sent again and again, and the seconds in between."""


class MailServer:
    """A real SMTP server (aiosmtpd) that keeps what it takes.

    Attributes:
        mail: Each message it took: the recipients of its envelope, and its bytes.
        replies: What it answers to RCPT for an address, one after the other, before it accepts it.
        sessions: How many connections said EHLO.
    """

    def __init__(self, *, implicit_tls: bool = False, **options: Any) -> None:
        self.mail: list[tuple[list[str], bytes]] = []
        self.replies: dict[str, list[str]] = defaultdict(list)
        self.sessions = 0
        self.seen: list[str] = []
        self._options = {"enable_SMTPUTF8": True, "hostname": "localhost", **options}
        self._tls = server_context() if implicit_tls else None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = self._wait(self._loop.create_server(self._session, "127.0.0.1", 0, ssl=self._tls))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def _session(self) -> SMTP:
        return SMTP(self, loop=self._loop, **self._options)

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def handle_EHLO(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.sessions += 1
        session.host_name = hostname
        return responses

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.seen.append(address)
        if self.replies[address]:
            return self.replies[address].pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.original_content, bytes)
        self.mail.append((list(envelope.rcpt_tos), envelope.original_content))
        return "250 OK"

    def addresses(self) -> list[str]:
        """Return who was mailed, in order."""
        return [address for recipients, _ in self.mail for address in recipients]

    def stop(self) -> None:
        self._wait(self._wind_up())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _wind_up(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()


class RudeServer(socketserver.ThreadingTCPServer):
    """Speaks just enough SMTP to break off at a chosen point.

    Attributes:
        script: What it answers to a command (`GREETING`, `EHLO`, `MAIL`, `RCPT`, `DATA`, `TEXT`, `QUIT`), one after the
            other, before it goes on as a server should: a reply, `DROP` to close, `HANG` to say nothing any more, or a
            key of `ENDLESS` for a reply that never ends.
        texts: The messages that came in up to their end, whatever it answered.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *, implicit_tls: bool = False, **script: list[str]) -> None:
        self.script = script
        self._tls = server_context() if implicit_tls else None
        self.texts: list[bytes] = []
        self.connections = 0
        self.released = threading.Event()
        super().__init__(("127.0.0.1", 0), RudeSession)
        self.port: int = self.server_address[1]
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        return self._tls.wrap_socket(connection, server_side=True) if self._tls else connection, address

    def stop(self) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()
        self._thread.join(10)


class RudeSession(socketserver.StreamRequestHandler):
    """One connection to the rude server."""

    server: RudeServer

    def handle(self) -> None:
        self.server.connections += 1
        if not self.answer("GREETING", "220 rude"):
            return
        while line := self.rfile.readline():
            command = line.split()[0].decode().upper()
            usual = {"EHLO": "250 rude", "DATA": "354 go on", "QUIT": "221 bye"}.get(command, "250 OK")
            if not self.answer(command, usual) or command == "QUIT":
                return
            if command == "DATA" and not (self.take() and self.answer("TEXT", "250 taken")):
                return

    def take(self) -> bool:
        text = b""
        while line := self.rfile.readline():
            if line == b".\r\n":
                self.server.texts.append(text)
                return True
            text += line
        return False

    def answer(self, command: str, usual: str) -> bool:
        """Say what the script says, or the usual; tell whether the conversation goes on."""
        left = self.server.script.get(command)
        reply = left.pop(0) if left else usual
        if reply == "HANG":
            self.server.released.wait(10)
        if reply in ENDLESS:
            self.go_on_for_ever(*ENDLESS[reply])
        if reply in ("HANG", "DROP", *ENDLESS):
            return False
        self.wfile.write(reply.encode() + b"\r\n")
        return not (command == "DATA" and not reply.startswith("354"))

    def go_on_for_ever(self, piece: bytes, pause: float) -> None:
        with contextlib.suppress(OSError):
            while not self.server.released.wait(pause):
                self.wfile.write(piece)


def server_context() -> ssl.SSLContext:
    """Return the server's side of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def login(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    """Let the user `fares` in with the password `s3cret`."""
    return AuthResult(success=(data.login, data.password) == (b"fares", b"s3cret"), handled=False)


@pytest.fixture
def mail_server() -> Iterator[Callable[..., MailServer]]:
    """Return a function that starts a real server; options go to aiosmtpd. All are stopped after the test."""
    logging.getLogger("mail.log").setLevel(logging.WARNING)
    started: list[MailServer] = []

    def start(*, starttls: bool = False, auth: bool = False, **options: Any) -> MailServer:
        if starttls:
            options["tls_context"] = server_context()
        if auth:
            options |= {"authenticator": login, "auth_required": True}
        started.append(MailServer(**options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def rude_server() -> Iterator[Callable[..., RudeServer]]:
    """Return a function that starts a server which follows a script."""
    started: list[RudeServer] = []

    def start(**script: Any) -> RudeServer:
        started.append(RudeServer(**script))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def certificate() -> str:
    """Return the file with the authority that the servers' certificate comes from."""
    return str(CERTIFICATE)
