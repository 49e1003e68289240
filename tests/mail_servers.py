"""Mailboxes of real servers: POP3 of our own, IMAP by pymap, and a gate that cuts what passes between."""

from __future__ import annotations

import contextlib
import imaplib
import select
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

CERTIFICATE = Path(__file__).parent / "integration" / "mail" / "localhost.pem"
"""For localhost, its own authority, with its key: for tests only."""

Trap = Callable[[], None]


class CutError(Exception):
    """What a trap raises to have the connection cut."""


def cut() -> None:
    """Have the connection cut."""
    raise CutError


class Pop3Server(socketserver.ThreadingTCPServer):
    """A server of one mailbox, strict about RFC 1939: a session locks it, and QUIT alone deletes.

    Attributes:
        mails: Each mail by its unique id.
        traps: What is called, once each, before a command is carried out (`DELE`), or in the middle of its answer
            (`RETR half`); `cut` cuts the connection.
        refused: The unique ids of mails that are listed and not given.
        logins: How many sessions there were.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *, tls: bool = False, starts_tls: bool = False, uidl: bool = True) -> None:
        """Listen."""
        self.mails: dict[str, bytes] = {}
        self.traps: dict[str, list[Trap]] = {}
        self.refused: set[str] = set()
        self.logins = 0
        self.said: list[str] = []
        self.starts_tls, self.uidl = starts_tls, uidl
        self.lock = threading.Lock()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(CERTIFICATE)
        self.tls = tls
        super().__init__(("127.0.0.1", 0), _Pop3Session)
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def spring(self, name: str) -> None:
        """Call the next trap of that name."""
        if self.traps.get(name):
            self.traps[name].pop(0)()

    def handle_error(self, request: object, client_address: object) -> None:
        """Leave a connection that broke without a word."""

    def stop(self) -> None:
        """Listen no more."""
        self.shutdown()
        self.server_close()


class _Pop3Session(socketserver.StreamRequestHandler):
    server: Pop3Server

    def handle(self) -> None:
        if self.server.tls:
            self._encrypt()
        self._user = ""
        self._numbered: list[tuple[str, bytes]] = []
        self._deleted: set[int] = set()
        self._locked = False
        try:
            self._say("+OK ready")
            while self._command():
                pass
        except CutError:
            self.connection.shutdown(socket.SHUT_RDWR)
        finally:
            if self._locked:
                self.server.lock.release()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.connection.close()

    def _encrypt(self) -> None:
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)

    def _say(self, line: str) -> None:
        self.wfile.write(line.encode() + b"\r\n")

    def _command(self) -> bool:
        line = self.rfile.readline(512)
        if not line.endswith(b"\r\n"):
            return False
        verb, _, argument = line[:-2].decode().partition(" ")
        verb = verb.upper()
        self.server.said.append(verb)
        self.server.spring(verb)
        anonymous = {"CAPA": self._capa, "STLS": self._stls, "USER": self._name, "PASS": self._pass, "QUIT": self._quit}
        known = {"UIDL": self._uidl, "RETR": self._retr, "DELE": self._dele, "QUIT": self._quit, "CAPA": self._capa}
        act = (known if self._locked else anonymous).get(verb)
        if act is None:
            self._say("-ERR not now")
            return True
        act(argument)
        return verb != "QUIT"

    def _capa(self, _: str) -> None:
        self._say("\r\n".join(["+OK", "USER", "UIDL", *(["STLS"] if self.server.starts_tls else []), "."]))

    def _stls(self, _: str) -> None:
        if not self.server.starts_tls:
            self._say("-ERR no TLS")
            return
        self._say("+OK begin")
        self._encrypt()

    def _name(self, user: str) -> None:
        self._user = user
        self._say("+OK")

    def _pass(self, password: str) -> None:
        if (self._user, password) != ("jo@example.com", "se:cret"):
            self._say("-ERR [AUTH] no such user or password")
        elif not self.server.lock.acquire(blocking=False):
            self._say("-ERR [IN-USE] the mailbox is locked")
        else:
            self._locked = True
            self.server.logins += 1
            self._numbered = list(self.server.mails.items())
            self._say("+OK")

    def _uidl(self, _: str) -> None:
        if not self.server.uidl:
            self._say("-ERR unknown")
            return
        lines = [f"{n} {key}" for n, (key, _) in enumerate(self._numbered, 1) if n not in self._deleted]
        self._say("\r\n".join(["+OK", *lines, "."]))

    def _mail(self, argument: str) -> tuple[int, str, bytes] | None:
        number = int(argument)
        if not 1 <= number <= len(self._numbered) or number in self._deleted:
            self._say("-ERR no such mail")
            return None
        return number, *self._numbered[number - 1]

    def _retr(self, argument: str) -> None:
        if (found := self._mail(argument)) is None:
            return
        _, key, raw = found
        if key in self.server.refused:
            self._say("-ERR it cannot be read from the disk")
            return
        self._say("+OK")
        lines = raw.split(b"\r\n")[:-1]
        sent = b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in lines) + b".\r\n"
        self.wfile.write(sent[: len(sent) // 2])
        self.server.spring("RETR half")
        self.wfile.write(sent[len(sent) // 2 :])

    def _dele(self, argument: str) -> None:
        if found := self._mail(argument):
            self._deleted.add(found[0])
            self._say("+OK")

    def _quit(self, _: str) -> None:
        for number in self._deleted:
            self.server.mails.pop(self._numbered[number - 1][0], None)
        if self._locked:
            self._locked = False
            self.server.lock.release()
        self.server.spring("QUIT done")
        self._say("+OK bye")


class ImapServer:
    """pymap in a process of its own, with one mailbox that it keeps in memory."""

    def __init__(self, *, starts_tls: bool = False) -> None:
        """Start it, and wait until it answers."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        tls = ["--cert", str(CERTIFICATE), "--key", str(CERTIFICATE)] if starts_tls else ["--no-tls"]
        where = ["--host", "127.0.0.1", "--port", str(self.port), *tls]
        who = ["dict", "--demo-user", "jo@example.com", "--demo-password", "se:cret"]
        program = str(Path(sys.executable).with_name("pymap"))
        self._process = subprocess.Popen([program, *where, *who], stderr=subprocess.DEVNULL)
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            assert self._process.poll() is None, "pymap does not start"
            time.sleep(0.05)
        raise AssertionError("pymap does not listen")

    @contextlib.contextmanager
    def _client(self) -> Iterator[imaplib.IMAP4]:
        with imaplib.IMAP4("127.0.0.1", self.port, timeout=30) as client:
            client.login('"jo@example.com"', "se:cret")
            yield client

    def make(self, folder: str) -> None:
        """Make a folder."""
        with self._client() as client:
            assert client.create(folder)[0] == "OK"

    def put(self, raw: bytes, folder: str) -> None:
        """Put a mail into a folder."""
        with self._client() as client:
            assert client.append(folder, "", "", raw)[0] == "OK"

    def mails(self, folder: str, which: str = "ALL") -> list[bytes]:
        """Return the mails in a folder, or, as `UNDELETED`, those that are not flagged as deleted."""
        with self._client() as client:
            client.select(folder, readonly=True)
            found = client.uid("SEARCH", which)[1][0].split()
            parts = [client.uid("FETCH", uid.decode(), "(BODY.PEEK[])")[1][0] for uid in found]
            return [bytes(part[1]) for part in parts if isinstance(part, tuple)]

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


class Gate:
    """Passes connections on to a server, until what passes holds the words of a trap.

    Attributes:
        traps: What is called, once each, before bytes go on that hold these; `cut` cuts the connection.
        changes: What the server's bytes are changed by, as another server would say them.
        connections: How many there were.
    """

    def __init__(self, port: int) -> None:
        """Listen."""
        self.traps: dict[bytes, list[Trap]] = {}
        self.changes: dict[bytes, bytes] = {}
        self.connections = 0
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            other = {client: server, server: client}
            with contextlib.suppress(OSError, CutError):
                while True:
                    for one in select.select(list(other), [], [])[0]:
                        data = one.recv(65536)
                        if not data:
                            return
                        self._spring(data)
                        for said, instead in self.changes.items() if one is server else ():
                            data = data.replace(said, instead)
                        other[one].sendall(data)

    def _spring(self, data: bytes) -> None:
        for words, traps in self.traps.items():
            if words in data and traps:
                traps.pop(0)()
