"""Several statements in one round trip and one transaction, on the driver's lowest floor.

The driver's own pipeline costs more than the statements in it. Statements are prepared on each connection when they are
first used, within the same round trip.
"""

from __future__ import annotations

import re
import select
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer

from iocflow.store.postgres.connections import Connection
from iocflow.store.postgres.values import ENCODERS, Encoder

_PARAMETER = re.compile(r"(?<!:):([a-z_]\w*)")
_GOOD = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)

Row = tuple[Any, ...]


class Statement:
    """A text with named parameters, as in `:run`, ready to be prepared.

    Attributes:
        id: Its name on a connection.
        text: What PostgreSQL reads.
        oids: The types of its parameters.
        encoders: The names of its parameters, in order, with what encodes each.
    """

    __slots__ = ("encoders", "formats", "id", "oids", "text")

    def __init__(self, id: str, text: str, types: Mapping[str, str]) -> None:
        """Read the parameters out of `text`; `types` gives the type of each."""
        names = list(dict.fromkeys(_PARAMETER.findall(text)))
        numbers = {name: f"${number}" for number, name in enumerate(names, 1)}
        self.id = id.encode()
        self.text = _PARAMETER.sub(lambda found: numbers[found[1]], text).encode()
        self.oids = [ENCODERS[types[name]][0] for name in names]
        self.encoders: dict[str, Encoder] = {name: ENCODERS[types[name]][1] for name in names}
        self.formats = [pq.Format.BINARY] * len(names)


class Call(NamedTuple):
    """One statement of a pipeline, with its parameters encoded and in order."""

    statement: Statement
    values: Sequence[bytes | None]


def call(statement: Statement, values: Mapping[str, Any]) -> Call:
    """Return the call of a statement with those of `values` that it names."""
    return Call(statement, [encode(values[name]) for name, encode in statement.encoders.items()])


@dataclass(slots=True)
class _Prepared:
    """Which statements are prepared on a connection, and in which era."""

    era: int
    ids: set[bytes] = field(default_factory=set)


class Pipelines:
    """Sends statements, and knows which are prepared on which connection.

    A prepared statement keeps its plan. What is best to find some rows among a hundred is not among a million: when
    there are four times as many runs as before, an era, statements are prepared anew.
    """

    def __init__(self) -> None:
        """Know none yet."""
        self._prepared: WeakKeyDictionary[Connection, _Prepared] = WeakKeyDictionary()
        self._era = 0

    def grown(self, runs: int) -> None:
        """Hear that there are so many runs."""
        self._era = max(self._era, runs.bit_length() // 2)

    def run(self, connection: Connection, calls: Sequence[Call]) -> list[list[Row]]:
        """Return the rows of each call; outside of a transaction all of them are one.

        Raises:
            psycopg.Error: One failed; nothing was done. In a transaction of the caller's, it is to be rolled back.
        """
        wire = connection.pgconn
        prepared = self._prepared.setdefault(connection, _Prepared(self._era))
        old = prepared.ids if prepared.era < self._era else set()
        ready = set() if old else prepared.ids
        expected: list[bytes | None] = [None] * len(old)
        wire.enter_pipeline_mode()
        for id in old:
            wire.send_query_params(b"deallocate " + id, None)
        for statement, values in calls:
            if statement.id not in ready and statement.id not in expected:
                wire.send_prepare(statement.id, statement.text, statement.oids)
                expected.append(statement.id)
            wire.send_query_prepared(
                statement.id, values, param_formats=statement.formats, result_format=pq.Format.BINARY
            )
            expected.append(None)
        wire.pipeline_sync()
        results = _results(wire)
        wire.exit_pipeline_mode()
        if results[0].status in _GOOD:  # else it is as it was
            prepared.era, prepared.ids = self._era, ready
        rows: list[list[Row]] = []
        for name, result in zip(expected, results, strict=True):
            if result.status not in _GOOD:
                error = errors.error_from_result(result)
                if isinstance(error, errors.InvalidSqlStatementName):
                    del self._prepared[connection]  # somebody else deallocated them
                raise error
            if name is None:
                rows.append(_rows(result, connection))
            else:
                ready.add(name)
        return rows[len(old) :]


def _results(wire: pq.abc.PGconn) -> list[pq.abc.PGresult]:
    """Send what is to be sent, and return the results up to the end of the pipeline."""
    poll = select.poll()
    poll.register(wire.socket, select.POLLIN | select.POLLOUT)
    while wire.flush():
        poll.poll()
        wire.consume_input()
    poll.modify(wire.socket, select.POLLIN)
    results: list[pq.abc.PGresult] = []
    while True:
        while wire.is_busy():
            poll.poll()
            wire.consume_input()
        result = wire.get_result()
        if result is None:
            if wire.status != pq.ConnStatus.OK:
                raise psycopg.OperationalError(wire.get_error_message())
            continue
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            return results
        results.append(result)


def _rows(result: pq.abc.PGresult, connection: Connection) -> list[Row]:
    """Return the rows of a result as Python values."""
    if not result.ntuples:
        return []
    transformer = Transformer(connection)
    transformer.set_pgresult(result, format=pq.Format.BINARY)
    return transformer.load_rows(0, result.ntuples, tuple)
