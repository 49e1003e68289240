"""Connections to one SQLite file: one that writes, some that read, and the queue of writers from all processes."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iocflow.store.errors import StoreLostError
from iocflow.store.sqlite.bell import Bell
from iocflow.store.sqlite.errors import store_error, translated
from iocflow.store.sqlite.intake import Intake
from iocflow.store.sqlite.tables import SqliteTables
from iocflow.store.sqlite.waiting import PATIENCE, SLICE, Turn, leave


class Process:
    """What one process has open."""

    def __init__(self) -> None:
        """Start with nothing open."""
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.bell = Bell()
        self.intake = Intake()
        self.writer: sqlite3.Connection | None = None
        self.stepper: sqlite3.Connection | None = None
        self.readers: list[sqlite3.Connection] = []
        self.reading: set[object] = set()
        self.closed = False

    def close(self) -> None:
        """Close all that no thread has in hand."""
        self.closed = True
        for connection in (self.writer, self.stepper, *self.readers):
            if connection is not None:
                connection.close()

    def child(self) -> Process:
        """Return what a child has open that was forked when this process had this open: nothing.

        SQLite knows the locks of its process by the file. What the child has a copy of is therefore closed before it
        opens its own, which does no harm to the parent; but only when no thread was at work on it at the fork.

        Raises:
            StoreLostError: One was, and what the child has a copy of can be neither used nor closed.
        """
        if self.lock.locked() or self.reading:
            raise StoreLostError(
                "this process was forked in the middle of a transaction of the store: it has to be spawned"
            )
        child = Process()
        child.closed = self.closed
        self.close()
        return child


class Connections:
    """The connections of one store object.

    SQLite has one writer at a time, and its own waiting is a sleep that starves some: so writers of all processes queue
    at a lock on a file beside, and those of this process at a lock of their own before that.
    """

    def __init__(self, path: Path, *, synchronous: str, clock: Callable[[], float]) -> None:
        """Take the path; nothing is opened yet."""
        self._path = path
        self._lock_path = path.with_name(path.name + "-lock")
        self._synchronous = synchronous
        self._process = Process()
        self.clock = clock

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def here(self) -> Process:
        """What this process has open.

        Raises:
            StoreLostError: The store is closed.
        """
        process = self._process
        if process.pid != os.getpid():
            process = self._process = process.child()
        if process.closed:
            raise StoreLostError(f"the store {self._path} is closed")
        return process

    def connect(self, factory: type[sqlite3.Connection] = sqlite3.Connection) -> sqlite3.Connection:
        """Return a new connection that commits each statement by itself."""
        return sqlite3.connect(
            self._path,
            isolation_level=None,
            check_same_thread=False,
            timeout=PATIENCE,
            cached_statements=256,
            factory=factory,
        )

    def connect_writer(self, factory: type[sqlite3.Connection] = sqlite3.Connection) -> sqlite3.Connection:
        """Return a new connection that writes; only for whose turn it is: a new file gets its mode here."""
        connection = self.connect(factory)
        try:
            connection.execute(f"pragma busy_timeout = {round(1000 * SLICE)}")
            connection.execute("pragma journal_mode = wal")
            connection.execute(f"pragma synchronous = {self._synchronous}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def turn(self) -> Iterator[tuple[Process, Turn]]:
        """Wait for the turn to write, among the threads of all processes, and have it."""
        process, turn = self.here, Turn(self._path)
        with process.lock:
            with translated(self._path):
                file = self._queue(process, turn)
            try:
                yield process, turn
            finally:
                leave(file)

    @contextmanager
    def write(self) -> Iterator[SqliteTables]:
        """Open a transaction that writes: committed at the end, rolled back when something is raised."""
        process, turn = self.here, Turn(self._path)
        with process.lock:
            try:
                file = self._queue(process, turn)
                try:
                    connection = turn.at_file(lambda: self._begun(process))
                    try:
                        yield SqliteTables(connection, self.clock())
                        connection.execute("commit")
                    except BaseException:
                        rollback(connection)
                        raise
                finally:
                    leave(file)
            except (sqlite3.Error, OSError) as error:
                raise store_error(error, self._path) from error

    def _begun(self, process: Process) -> sqlite3.Connection:
        """Return the connection that writes, on which a transaction was begun."""
        if process.writer is None:
            process.writer = self.connect_writer()
        process.writer.execute("begin immediate")
        return process.writer

    def _queue(self, process: Process, turn: Turn) -> int:
        """Wait at the lock that all processes share; return its open file.

        It is opened each time: a child that is forked while it is open has it open, too, and would keep a lock that its
        parent died with.
        """
        if process.closed:
            raise StoreLostError(f"the store {self._path} is closed")
        file = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        turn.at_lock(file)
        return file

    @contextmanager
    def news(self) -> Iterator[SqliteTables]:
        """Open a transaction that writes what workers may want to hear of."""
        with self.write() as tables:
            yield tables
        self.here.bell.ring()

    @contextmanager
    def read(self) -> Iterator[SqliteTables]:
        """Open a transaction that reads, on a connection of its own: it neither waits for writers nor blocks them."""
        process, mark = self.here, object()
        process.reading.add(mark)
        try:
            with translated(self._path):
                connection = self._reader(process)
                try:
                    connection.execute("begin")
                    yield SqliteTables(connection, self.clock())
                finally:
                    rollback(connection)
                    process.readers.append(connection)
                    if process.closed:
                        connection.close()
        finally:
            process.reading.discard(mark)

    def _reader(self, process: Process) -> sqlite3.Connection:
        try:
            return process.readers.pop()
        except IndexError:
            return self.connect()

    def version(self) -> int | None:
        """Return a number that changes when others wrote to the file; None when this process is writing itself."""
        process = self.here
        if not process.lock.acquire(blocking=False):
            return None
        try:
            with translated(self._path):
                return None if process.writer is None else SqliteTables(process.writer, 0.0).version()
        finally:
            process.lock.release()

    def close(self) -> None:
        """Close what this process has open, when a transaction that is under way has ended."""
        process = self._process
        if process.pid != os.getpid():
            return
        with process.lock:
            process.close()
        process.bell.ring()


def rollback(connection: sqlite3.Connection) -> None:
    """Give up what is open; a connection that is broken, too, has nothing open any more."""
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("rollback")
