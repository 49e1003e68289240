"""The wire between a process and PostgreSQL, with the places before each send and between it and the reply.

A thread of the process passes the bytes on, so that a kill at a place stops both ends of the wire at once. When the
place before a reply is reached, the server has done what was asked; when the one before the send is reached, it knows
nothing of it.
"""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from psycopg import conninfo

from tests.crash.points import Points

_ENDS = (b"Q", b"S")
"""A simple query, and the end of a pipeline: the server answers each of them with `Z`."""

_IDLE = b"I"
"""The end of a reply after which no transaction is open; one that leaves it open is no place: nothing is done yet."""

_PORT = "5432"


class Wire:
    """Listens on a Unix socket in a folder, and connects to the real server for each connection there."""

    def __init__(self, url: str, folder: Path, points: Points) -> None:
        """Take the server's URL and an empty folder, whose path is short."""
        self._server = conninfo.conninfo_to_dict(_plain(url))
        self._url = url
        self._folder = folder
        self._points = points
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / f".s.PGSQL.{_PORT}"))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """What a store is opened by so that it goes over this wire."""
        parts = urlsplit(self._url)
        options = dict(parse_qsl(parts.query))
        plain = {"host": str(self._folder), "port": _PORT, "sslmode": "disable", "gssencmode": "disable"}
        user = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{user}@" if user else "", query=urlencode({**options, **plain})))

    def _accept(self) -> None:
        while True:
            client, _ = self._socket.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = str(self._server.get("host") or "localhost"), str(self._server.get("port") or _PORT)
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, int(port)))

    def _serve(self, client: socket.socket) -> None:
        """Pass on one connection until an end of it is gone."""
        with client, self._connect() as server:
            try:
                server.sendall(_message(client, typed=False)[1])
                while not self._greeted(client, server):
                    server.sendall(_message(client)[1])
                while True:
                    request, text = _request(client)
                    self._points.reach(f"before the send of {text}")
                    server.sendall(request)
                    reply = _reply(server)
                    if reply.endswith(_IDLE):
                        self._points.reach(f"before the reply to {text}")
                    client.sendall(reply)
            except ConnectionError:
                return

    @staticmethod
    def _greeted(client: socket.socket, server: socket.socket) -> bool:
        """Pass on what the server says until it is ready, or asks for more of an authentication."""
        while True:
            kind, message = _message(server)
            client.sendall(message)
            if kind == b"Z" or (kind == b"R" and struct.unpack("!i", message[5:9])[0] not in (0, 12)):
                return kind == b"Z"


def _plain(url: str) -> str:
    """Return a URL of a store as one that libpq knows."""
    parts = urlsplit(url)
    options = [(name, value) for name, value in parse_qsl(parts.query) if name != "schema"]
    return urlunsplit(parts._replace(query=urlencode(options)))


def _exactly(end: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = end.recv(size - len(data))
        if not more:
            raise ConnectionError("the other end is gone")
        data += more
    return data


def _message(end: socket.socket, *, typed: bool = True) -> tuple[bytes, bytes]:
    """Return the kind of the next message, and all of it."""
    kind = _exactly(end, 1) if typed else b""
    size = _exactly(end, 4)
    return kind, kind + size + _exactly(end, struct.unpack("!i", size)[0] - 4)


def _request(client: socket.socket) -> tuple[bytes, str]:
    """Return messages up to one that is answered, and a word about them."""
    messages, about = [], ""
    while True:
        kind, message = _message(client)
        messages.append(message)
        if kind == b"X":
            raise ConnectionError("the client says good-bye")
        if kind in b"QPB" and not about:
            about = " ".join(message[5:].replace(b"\0", b" ").decode(errors="replace").split())[:40]
        if kind in _ENDS:
            return b"".join(messages), about


def _reply(server: socket.socket) -> bytes:
    """Return messages up to the one that says that the server is ready for more."""
    messages = []
    while True:
        kind, message = _message(server)
        messages.append(message)
        if kind == b"Z":
            return b"".join(messages)
