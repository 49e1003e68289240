"""A client of HTTP for tests, over real sockets."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any

JSON = {"Content-Type": "application/json"}
PATIENT = 20.0


@dataclass
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return its body."""
        return json.loads(self.body)


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def ask(port: int, method: str, path: str, body: object = None, **headers: str) -> Answer:
    """Send one request and return the answer; underscores in the names of headers become hyphens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, data, {**(JSON if data is not None else {}), **named})
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


def listens(port: int) -> bool:
    """Return whether somebody takes connections at a port."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
