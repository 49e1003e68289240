"""The lock of the relay: an advisory one, which a session keeps until it ends, however it ends."""

from __future__ import annotations

import threading

import psycopg

from iocflow.store.postgres.connections import Connection, Connections
from iocflow.store.postgres.errors import told

_TAKE = "select pg_try_advisory_lock(hashtextextended(%s, 7))"


class RelayLock:
    """A lock of all processes on one schema, on a connection of its own."""

    def __init__(self, connections: Connections, schema: str) -> None:
        """Take where connections come from, and the schema's quoted name."""
        self._connections, self._name = connections, f"iocflow relay {schema}"
        self._busy = threading.Lock()
        self._connection: Connection | None = None

    def hold(self) -> bool:
        """Take it, or see that it is still this object's; False when another one has it."""
        with self._busy, told():
            if self._connection is not None:
                try:
                    self._connection.execute("select 1")
                except psycopg.OperationalError:
                    self._leave()
                else:
                    return True
            connection = self._connections.open()
            row = connection.execute(_TAKE, (self._name,)).fetchone()
            if row == (True,):
                self._connection = connection
                return True
            connection.close()
            return False

    def release(self) -> None:
        """Let others have it."""
        with self._busy:
            self._leave()

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
