"""How a worker hears that there may be something to claim in PostgreSQL: by a notification, and now and then a look."""

from __future__ import annotations

import itertools
import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from iocflow.store.postgres.connections import Connection, Connections
from iocflow.store.postgres.sql import in_schema

LOOK_AFTER = (0.01, 0.1)
"""Seconds until the first looks: who was submitting when the listener came did not see it, and notifies nobody."""

LOOK_EVERY = 1.0
"""Seconds between later looks while no notification comes: the way to here may let none through."""

_LOOK = """select coalesce((select g.suspect = 0 from grp g where g.owner is null and g.gate = 0
  order by g.due, g.id limit 1), false)
 or exists (select 1 from run r where r.grp = 0 and r.state = 1)
 or exists (select 1 from run r where r.wake <= extract(epoch from clock_timestamp())::double precision + %(shift)s)"""


class Bell:
    """Waits for notifications on connections of its own.

    A claim that left nothing notes how often the bell was rung before it; whoever listens returns at once when it was
    rung since.
    """

    def __init__(self, connections: Connections, schema: str, channel: str) -> None:
        """Listen to nothing yet."""
        self._connections = connections
        come = in_schema("insert into idle(pid) values (pg_backend_pid()) on conflict do nothing", schema)
        self._come = f'set synchronous_commit = off; listen "{channel}"; {come}'
        self._go = in_schema("delete from idle where pid = pg_backend_pid(); unlisten *", schema)
        self._look = in_schema(_LOOK, schema)
        self._lock = threading.Lock()
        self._ropes: set[int] = set()
        self.rung = 1
        self._noted = 0

    def ring(self) -> None:
        """Let everybody who listens return, and the next one if nobody does."""
        with self._lock:
            self.rung += 1
            for rope in self._ropes:
                os.write(rope, b"!")

    def note(self, rung: int) -> None:
        """Note that a claim that began when the bell had been rung so often left nothing."""
        with self._lock:
            self._noted = rung

    def listen(self, timeout: float, shift: float) -> None:
        """Return when there may be something to claim, or after `timeout` seconds."""
        until = time.monotonic() + timeout
        with self._rope() as rope:
            if rope is None:
                return
            with self._connections.use() as connection:
                connection.execute(self._come)
                try:
                    self._wait(connection, rope, until, shift)
                finally:
                    if not connection.broken:
                        connection.execute(self._go)

    def _wait(self, connection: Connection, rope: int, until: float, shift: float) -> None:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        poll.register(rope, select.POLLIN)
        for most in itertools.chain(LOOK_AFTER, itertools.repeat(LOOK_EVERY)):
            row = connection.execute(self._look, {"shift": shift}).fetchone()
            pause = min(until - time.monotonic(), most)
            if row == (True,) or pause <= 0:
                return
            if poll.poll(pause * 1000):
                for _ in connection.notifies(timeout=0):
                    pass
                return

    @contextmanager
    def _rope(self) -> Iterator[int | None]:
        """Lend the end of a pipe that can be read when the bell is rung; None when it was rung since it was noted."""
        read, write = os.pipe()
        try:
            with self._lock:
                rung = self.rung != self._noted
                if not rung:
                    self._ropes.add(write)
            try:
                yield None if rung else read
            finally:
                with self._lock:
                    self._ropes.discard(write)
        finally:
            os.close(read)
            os.close(write)
