"""Scheduled launchers in the tables of a store, for both dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from iocflow.store.launchers import GIVEN_UP_AFTER, Answer, End, Firing, Standing, Told
from iocflow.store.sql.tables import Tables

T = TypeVar("T")

_STANDING = """select name, timing, since, upto, paused, asked, answered,
 case when busy > :now then 1 else 0 end, case when served > :now then 1 else 0 end,
 began, ended, outcome, run, fired, missed, at, who, why from launcher"""

_SERVE = """insert into launcher(name, timing, since, served) values (:name, :timing, :now, :until)
 on conflict (name) do update set timing = excluded.timing, served = excluded.served"""

_LOCKED = "select upto, paused, answered, busy, daemon, doing, tries from launcher where name = :name {lock}"

_BEGIN = """update launcher set daemon = :daemon, busy = :until, doing = :doing, tries = :tries, began = :now,
 ended = null where name = :name"""

_FREE = "daemon = null, busy = null"

_DEALT = f"""{_FREE}, tries = 0, doing = '', missed = missed + :missed,
 upto = case when :asked > 0 then upto else :moment end,
 answered = case when :asked > 0 then :asked else answered end"""
"""Deals with one firing; a request is none of the schedule's moments."""

_SETTLE = f"""update launcher set {_DEALT}, fired = fired + 1, ended = :now, outcome = :outcome, run = :run
 where name = :name and daemon = :daemon"""


class Lock(Protocol):
    """Keeps other processes out."""

    def take(self) -> None:
        """Take it, unless it is taken already by this object.

        Raises:
            StoreLockedError: Another process has it.
        """

    def release(self) -> None:
        """Let others have it."""


class SqlLaunchers:
    """The table of launchers. Every method is what the contract says."""

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[Tables]],
        write: Callable[[Callable[[Tables], Any]], Any],
        lock: Lock | None,
    ) -> None:
        """Take what lends tables, and the lock of a store that has its launchers served by one daemon at a time."""
        self._read, self._transact, self._lock = read, write, lock

    def reserve(self) -> None:
        """Keep other daemons from the launchers, where only one may serve them."""
        if self._lock is not None:
            self._lock.take()
            self._write(lambda tables: tables.write(f"update launcher set {_FREE} where daemon is not null"))

    def release(self) -> None:
        """Let others have them."""
        if self._lock is not None:
            self._lock.release()

    def _write(self, work: Callable[[Tables], T]) -> T:
        found: T = self._transact(work)
        return found

    def now(self) -> float:
        """Return the store's time."""
        with self._read() as tables:
            return tables.now

    def serve(self, timings: Mapping[str, str], daemon: str, lease: float) -> dict[str, Standing]:
        """Note that a daemon serves these launchers and lives; return how they stand."""

        def work(tables: Tables) -> dict[str, Standing]:
            until = tables.now + lease
            for name in sorted(timings):
                tables.write(_SERVE, name=name, timing=timings[name], now=tables.now, until=until)
            tables.write("update launcher set busy = :until where daemon = :daemon", until=until, daemon=daemon)
            found = _standings(tables, sorted(timings))
            return {one.name: one for one in found}

        return self._write(work)

    def standings(self, names: Sequence[str] = ()) -> list[Standing]:
        """Return how launchers stand, by name."""
        with self._read() as tables:
            return _standings(tables, names)

    def write(
        self, ends: Sequence[End], begins: Sequence[Firing], daemon: str, lease: float
    ) -> tuple[list[bool], list[Told]]:
        """Deal with firings that have ended, then give others to a daemon; answer each, in order."""

        def work(tables: Tables) -> tuple[list[bool], list[Told]]:
            names = sorted({one.firing.name for one in ends} | {one.name for one in begins})
            rows = {name: tables.row(_LOCKED, name=name) for name in names}  # in one order for all daemons
            ended = [_end(tables, one, daemon) for one in ends]
            rows |= {one.firing.name: tables.row(_LOCKED, name=one.firing.name) for one in ends}
            return ended, [_begin(tables, rows[one.name], one, daemon, lease) for one in begins]

        return self._write(work)

    def give_back(self, name: str, daemon: str) -> None:
        """Leave the firing that a daemon has in hand as if it had never begun it."""
        sql = f"update launcher set {_FREE}, tries = tries - 1 where name = :name and daemon = :daemon"
        self._write(lambda tables: tables.write(sql, name=name, daemon=daemon))

    def skip(self, name: str, moment: float, missed: int) -> None:
        """Deal with firings up to a moment that never ran."""
        sql = """update launcher set missed = missed + :missed, upto = :moment
         where name = :name and coalesce(upto, 0) < :moment"""
        self._write(lambda tables: tables.write(sql, name=name, moment=moment, missed=missed))

    def pause(self, name: str, *, who: str, why: str) -> bool:
        """Let a launcher fire no more."""
        return self._operate("paused = 1", name, who, why)

    def resume(self, name: str, *, who: str, why: str) -> bool:
        """Let it fire again, from now on."""
        upto = "case when paused = 1 and coalesce(upto, 0) < :now then :now else upto end"
        return self._operate(f"upto = {upto}, paused = 0", name, who, why)

    def trigger(self, name: str, *, who: str, why: str) -> bool:
        """Ask for one firing as soon as may be."""
        return self._operate("asked = asked + 1", name, who, why)

    def _operate(self, change: str, name: str, who: str, why: str) -> bool:
        sql = f"update launcher set {change}, at = :now, who = :who, why = :why where name = :name"
        return self._write(lambda tables: tables.write(sql, name=name, now=tables.now, who=who, why=why) > 0)


def _standings(tables: Tables, names: Sequence[str]) -> list[Standing]:
    rows = tables.rows(f"{_STANDING} order by name", now=tables.now)
    found = [Standing(*row)._replace(paused=row[4] == 1, busy=row[7] == 1, served=row[8] == 1) for row in rows]
    return [one for one in found if not names or one.name in names]


def _values(firing: Firing) -> dict[str, Any]:
    return {"name": firing.name, "moment": firing.moment, "asked": firing.asked, "missed": firing.missed}


def _end(tables: Tables, end: End, daemon: str) -> bool:
    values = _values(end.firing) | {"daemon": daemon, "outcome": end.outcome, "run": end.run}
    return tables.write(_SETTLE, now=tables.now, **values) > 0


def _begin(tables: Tables, row: Sequence[Any] | None, firing: Firing, daemon: str, lease: float) -> Told:
    if row is None:  # somebody deleted it; it is made again when the daemon shows life
        return Told("busy", None, lease)
    upto, paused, answered, busy, holder, doing, tries = row
    wanted = f"asked {firing.asked}" if firing.asked else repr(firing.moment)
    if holder not in (None, daemon) and busy > tables.now:
        return Told("busy", upto, busy - tables.now)
    if firing.asked <= answered if firing.asked else _early(firing, upto, tables.now):
        return Told("done", upto)
    if paused and not firing.asked:
        return _dealt(tables, firing, "paused")
    tries = tries + 1 if doing == wanted else 1
    if tries > GIVEN_UP_AFTER:
        return _dealt(tables, firing, "given up")
    until = tables.now + lease
    tables.write(_BEGIN, name=firing.name, daemon=daemon, until=until, doing=wanted, tries=tries, now=tables.now)
    return Told("yours", upto)


def _early(firing: Firing, upto: float | None, now: float) -> bool:
    """Return whether a firing was dealt with, or comes too soon after one that was."""
    if upto is None or upto > now + firing.rest:
        return False
    return firing.moment <= upto or firing.moment < upto + firing.gap


def _dealt(tables: Tables, firing: Firing, answer: Answer) -> Told:
    tables.write(f"update launcher set {_DEALT} where name = :name", **_values(firing))
    return Told(answer, firing.moment)
