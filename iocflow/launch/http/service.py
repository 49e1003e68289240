"""The server: one thread with an event loop, and a port for every address that something is offered at."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from iocflow.launch.errors import ImpossibleSourceError, LockedError
from iocflow.launch.http.connection import Connection
from iocflow.launch.http.messages import Site, problem
from iocflow.launch.launcher import Host

__all__ = ["Endpoint", "HttpService"]

logger = logging.getLogger("iocflow.http")

T = TypeVar("T")

CONNECTIONS = 500
"""How many connections a port serves at once: half of the file descriptors that a process usually may have."""
REFUSED = 50
"""How many more are told at once that these are too many; others are cut off."""
BACKLOG = 128
LAST_SECONDS = 2.0
"""How long answers that are ready may take to be written when a site leaves."""
REPLY_SECONDS = 10.0
"""How long another thread waits for the loop, before it takes it for dead."""
SILENT = 30.0
"""After how many seconds without an answer of the loop the server is in trouble."""

Endpoint = tuple[str, int]
"""An IP address and a port."""


class _Port:
    """One address that is listened to: its sites by path, and its connections; used in the loop's thread only.

    A site that left stays among them until the last one has left, and says that it takes nothing: who is told that
    there is no such place may think that it never was.
    """

    def __init__(self, listening: socket.socket) -> None:
        self.sites: dict[str, Site] = {}
        self.left: set[str] = set()
        self._socket = listening
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[Any], Connection] = {}
        self._answers: dict[asyncio.Future[None], Site] = {}

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, sock=self._socket)

    async def finish(self, site: Site) -> None:
        """Wait until the answers of a site are written."""
        if pending := [done for done, whose in self._answers.items() if whose is site]:
            await asyncio.wait(pending, timeout=LAST_SECONDS)

    async def close(self) -> None:
        if self._server is None:
            self._socket.close()
            return
        self._server.close()
        for connection in self._connections.values():
            connection.close()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=LAST_SECONDS)
            for task in late:
                task.cancel()

    def _find(self, path: str) -> Site | None:
        """Return the site at a path, else the nearest one above it."""
        while path and path not in self.sites:
            path = path.rpartition("/")[0]
        return self.sites.get(path)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, self._find, self._answering)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection is served by a task")
        full = len(self._connections) >= CONNECTIONS
        if len(self._connections) >= CONNECTIONS + REFUSED:
            writer.transport.abort()
            return
        self._connections[task] = connection
        try:
            if full:
                why = f"{CONNECTIONS} connections are open already"
                await connection.refuse(problem(503, why, retry_after=1))
            else:
                await connection.serve()
        finally:
            del self._connections[task]

    @contextmanager
    def _answering(self, site: Site) -> Iterator[None]:
        done = asyncio.get_running_loop().create_future()
        self._answers[done] = site
        try:
            yield
        finally:
            del self._answers[done]
            done.set_result(None)


class HttpService:
    """Serves HTTP for all of a daemon that wants to; several sites may share an address, each with its own paths.

    A service of the daemon's host: it starts with the first site. An address is listened to from `reserve` on, and
    answered from `join` on, until its last site has left.
    """

    def __init__(self, host: Host) -> None:
        """Take the host's clock."""
        self._clock = host.clock
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="iocflow-http", daemon=True)
        self._ports: dict[Endpoint, _Port] = {}
        self._stopping = False
        self._asked = self._heard = self._clock.monotonic()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Let every site take nothing new; what is in hand is still answered, and who comes is told so."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop)

    def heartbeat(self) -> None:
        """Ask the loop for a sign of life."""
        if self._thread.is_alive() and self._heard >= self._asked:
            self._asked = self._clock.monotonic()
            self._loop.call_soon_threadsafe(self._hear)

    def trouble(self) -> str:
        """Return what is wrong, empty when the loop has answered recently."""
        if not self._thread.is_alive():
            return "" if self._stopping else "the HTTP server's thread died"
        silent = self._clock.monotonic() - self._asked if self._heard < self._asked else 0.0
        return f"the HTTP server made no progress for {silent:.0f} s" if silent > SILENT else ""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop in which sites are called."""
        return self._loop

    def reserve(self, endpoint: Endpoint, path: str, site: Site) -> None:
        """Listen at an address, so that no other process can; connections wait until the site joins.

        Raises:
            LockedError: Somebody listens there.
            ImpossibleSourceError: One cannot listen there.
        """
        self._call(self._reserve(endpoint, path, site))

    def join(self, endpoint: Endpoint) -> None:
        """Begin to answer at an address; again is no harm."""
        self._call(self._ports[endpoint].open())

    def leave(self, endpoint: Endpoint, path: str) -> None:
        """Let what a site has answered be written; it takes no more. The last one that leaves ends the listening."""
        if endpoint in self._ports and self._thread.is_alive():
            self._call(self._leave(endpoint, path))

    def _call(self, doing: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(REPLY_SECONDS)

    def _main(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()

    def _stop(self) -> None:
        self._stopping = True
        for port in self._ports.values():
            for site in port.sites.values():
                site.stop()
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._stopping and not self._ports:
            self._loop.stop()

    def _hear(self) -> None:
        self._heard = self._clock.monotonic()

    async def _reserve(self, endpoint: Endpoint, path: str, site: Site) -> None:
        if endpoint not in self._ports:
            self._ports[endpoint] = _Port(_listening(endpoint))
        self._ports[endpoint].sites[path] = site
        self._ports[endpoint].left.discard(path)

    async def _leave(self, endpoint: Endpoint, path: str) -> None:
        port = self._ports[endpoint]
        if (site := port.sites.get(path)) is not None:
            site.stop()
            await port.finish(site)
            port.left.add(path)
        if port.left >= port.sites.keys():
            await port.close()
            del self._ports[endpoint]
        self._end_if_done()


def _listening(endpoint: Endpoint) -> socket.socket:
    """Return a socket that listens."""
    host, port = endpoint
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(endpoint)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        where = f"{host}:{port}"
        if error.errno == errno.EADDRINUSE:
            raise LockedError(f"another process listens at {where}") from error
        raise ImpossibleSourceError(f"cannot listen at {where}: {error.strerror}") from error
    return made
