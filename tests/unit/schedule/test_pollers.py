"""Polling beans: each find is a run, the cursor follows, and the poller hears of what no run could begin with."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from unit.schedule.kit import HostWith, Work, counts, eventually, started

from iocflow.activities import PollQuery
from iocflow.context import ProcessContext
from iocflow.errors import SeedError
from iocflow.launch.snapshot import LauncherState
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.schedule import every
from iocflow.sequence import SequenceProcessor


class Cursor:
    """A poller with three finds that notes what was done in which order."""

    def __init__(self, notes: list[object]) -> None:
        self.notes = notes
        self.done = 0

    def poll(self) -> Iterator[int]:
        self.notes.append("polled")
        try:
            while self.done < 3:
                yield self.done
                self.done += 1
                self.notes.append(f"moved to {self.done}")
        finally:
            self.notes.append("closed")


def test_each_find_is_a_run_and_the_cursor_follows(host_with: HostWith, work: Work) -> None:
    """The poller goes on when the run of what it yielded has ended, a failed one too."""
    notes: list[object] = []

    def note(context: ProcessContext) -> None:
        notes.append(f"ran {context.seed_data}")
        if context.seed_data == 1:
            raise ValueError("no such fare")

    work.behaviour = note
    host = host_with("x")
    started(host, every("60s", work.processor, name="x", poll=Cursor(notes))).turn()
    eventually(lambda: "closed" in notes)
    assert notes == ["polled", "ran 0", "moved to 1", "ran 1", "moved to 2", "ran 2", "moved to 3", "closed"]
    eventually(lambda: counts(host, "x") == {"started": 3, "completed": 2, "failed": 1})


def test_a_crash_between_run_and_cursor_repeats(host_with: HostWith, work: Work) -> None:
    """What ends a poll before its cursor moved, makes the next poll bring the same find: repeated, not lost."""
    host = host_with("x")
    cursor = Cursor([])
    launcher = every("60s", work.processor, name="x", poll=cursor)
    # A kill between run and cursor leaves what closing the generator at its yield leaves: a cursor that has not moved.
    polled = cursor.poll()
    assert next(polled) == 0
    polled.close()  # type: ignore[attr-defined]
    started(host, launcher).turn()
    eventually(lambda: cursor.done == 3)
    assert work.seeds == [0, 1, 2]


def test_stopping_ends_a_poll_behind_the_run_in_hand(host_with: HostWith, work: Work) -> None:
    """The find whose run has ended is committed, the next one is neither run nor committed."""
    notes: list[object] = []
    cursor = Cursor(notes)
    host = host_with("x")
    launcher = every("60s", work.processor, name="x", poll=cursor)
    work.go.clear()
    started(host, launcher).turn()
    assert work.entered.acquire(timeout=5)
    launcher.stop()
    work.go.set()
    assert launcher.finish(host.clock.monotonic() + 5)
    assert (work.seeds, cursor.done, notes[-1]) == ([0], 1, "closed")
    assert launcher.state is LauncherState.STOPPED


def test_a_poll_that_finds_nothing_is_counted(
    host_with: HostWith, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    """A poller that yields nothing leaves a counter only."""
    cursor = Cursor([])
    cursor.done = 3
    host = host_with("x")
    caplog.set_level("INFO")
    started(host, every("60s", work.processor, name="x", poll=cursor)).turn()
    eventually(lambda: counts(host, "x") == {"nothing_found": 1})
    assert caplog.records == []


class Numbered(ProcessContext):
    seed_data: int


@pytest.mark.parametrize("catches", [True, False])
def test_a_seed_that_does_not_fit_moves_no_cursor(host_with: HostWith, catches: bool) -> None:
    """The poller is told at its `yield`: if it catches the error it goes on with the next seed, else the poll ends."""
    moved: list[object] = []

    class Finds:
        def poll(self) -> Iterator[object]:
            for seed in (1, "two", 3):
                try:
                    yield seed
                except SeedError:
                    if not catches:
                        raise
                else:
                    moved.append(seed)

    processor = SequenceProcessor([lambda context: None], context=Numbered, name="numbers")
    host = host_with("x")
    launcher = every("60s", processor, name="x", poll=Finds())
    started(host, launcher).turn()
    eventually(
        lambda: (
            counts(host, "x")
            == {"started": 2 + catches, "completed": 1 + catches, "failed": 1} | ({} if catches else {"errors": 1})
        )
    )
    assert moved == ([1, 3] if catches else [1])


class Unmade(ProcessContext):
    def __init__(self) -> None:
        raise ConnectionError("the license server is down")


class Unseeded(ProcessContext):
    def set_seed_data(self, seed_data: object) -> None:
        raise ConnectionError("the license server is down")


def unmade() -> Unmade:
    return Unmade()


def nothing(context: ProcessContext) -> None:
    pass


CANNOT_BEGIN = {
    "no context": SequenceProcessor([nothing], context=Unmade, name="p"),
    "no context for a split": ParallelSplitProcessor({"a": nothing}, context=Unmade, name="p"),
    "no seed": SequenceProcessor([nothing], context=Unseeded, name="p"),
    "no seed, and a finally": SequenceProcessor([nothing], context=Unseeded, finally_=[nothing], name="p"),
    "no context from a function": SequenceProcessor([nothing], context=unmade, name="p"),
}


@pytest.mark.parametrize("processor", CANNOT_BEGIN.values(), ids=CANNOT_BEGIN)
def test_whatever_keeps_a_run_from_beginning_is_told_to_the_poller(host_with: HostWith, processor: Any) -> None:
    """When no activity ran, the poller hears of it at its `yield`, with the cause, and goes on with the next seed."""
    told: list[SeedError] = []
    moved: list[object] = []

    class Finds:
        def poll(self) -> Iterator[object]:
            for seed in ("a", "b"):
                try:
                    yield seed
                except SeedError as error:
                    told.append(error)
                else:
                    moved.append(seed)

    host = host_with("x")
    started(host, every("60s", processor, name="x", poll=Finds())).turn()
    eventually(lambda: len(told) == 2 and counts(host, "x") == {"started": 2, "failed": 2})
    assert moved == []
    assert str(told[0]) == "no run of p could begin: ConnectionError: the license server is down"
    assert isinstance(told[0].__cause__, ConnectionError)


def test_rows_wait_while_no_run_can_begin(host_with: HostWith, watch, tmp_path: Path) -> None:
    """`PollQuery` keeps none of the rows that no run could begin with as polled; when runs begin again, all are run."""
    database = tmp_path / "orders.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE orders (number INTEGER)")
        connection.executemany("INSERT INTO orders VALUES (?)", [(1,), (2,)])
    seen: list[object] = []

    class Fragile(ProcessContext):
        seed_data: dict[str, int]
        broken = True

        def __init__(self) -> None:
            if Fragile.broken:
                raise ConnectionError("the license server is down")

    processor = SequenceProcessor([lambda context: seen.append(context.seed_data["number"])], context=Fragile)
    host = host_with("x")
    poll = PollQuery(database, "SELECT number FROM orders", "number")
    timer = started(host, every("60s", processor, name="x", poll=poll))
    timer.turn()
    eventually(lambda: counts(host, "x") == {"started": 2, "failed": 2})
    Fragile.broken = False
    watch.pass_by(60)
    timer.turn()
    eventually(lambda: counts(host, "x") == {"started": 4, "failed": 2, "completed": 2})
    assert seen == [1, 2]


class Priced(ProcessContext):
    seed_data: dict[str, int]


@pytest.mark.parametrize(
    ("context", "why"),
    [(Priced, "seed.price: 'much' is not int"), (Unmade, "the license server is down"), (Unseeded, "is down")],
)
def test_a_failure_is_told_once(
    host_with: HostWith, tmp_path: Path, caplog: pytest.LogCaptureFixture, context: Any, why: str
) -> None:
    """One row that no run could begin with is one error in the log, and one line that names the row."""
    database = tmp_path / "orders.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE orders (number INTEGER, price TEXT)")
        connection.execute("INSERT INTO orders VALUES (1, 'much')")
    caplog.set_level("INFO")
    host = host_with("x")
    poll = PollQuery(database, "SELECT number, price FROM orders", "number", key_in_seed=False)
    processor = SequenceProcessor([nothing], context=context, name="order")
    started(host, every("60s", processor, name="x", poll=poll)).turn()
    eventually(lambda: counts(host, "x") == {"started": 1, "failed": 1} and len(caplog.records) > 1)
    error, left = caplog.records
    assert (error.levelname, left.levelname) == ("ERROR", "WARNING")
    assert error.exc_info is not None
    assert why in str(error.exc_info[1])
    assert left.getMessage().startswith("poll-query: the row with number '1' is left for later polls, no run could")


def test_a_poller_that_lets_the_failure_pass_tells_it_once(
    host_with: HostWith, caplog: pytest.LogCaptureFixture
) -> None:
    """A generator that does not catch what it is told ends the poll, which is a warning beside the run's error."""

    class Finds:
        def poll(self) -> Iterator[object]:
            yield "a"

    caplog.set_level("INFO")
    host = host_with("x")
    launcher = every("60s", CANNOT_BEGIN["no seed"], name="x", poll=Finds())
    started(host, launcher).turn()
    eventually(lambda: counts(host, "x") == {"started": 1, "failed": 1, "errors": 1} and len(caplog.records) > 1)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert caplog.messages[1] == "launcher x: the poll ended at a seed that no run could begin with"
    eventually(lambda: launcher.trouble == "the last poll failed: SeedError")


def test_none_is_no_seed(host_with: HostWith, work: Work) -> None:
    """A None that a poll yields starts no run without a seed: its generator is told, and a plain list goes on."""
    told: list[str] = []

    class Finds:
        def poll(self) -> Iterator[object]:
            for seed in (None, "a"):
                try:
                    yield seed
                except SeedError as error:
                    told.append(str(error))

    class Listed:
        def poll(self) -> list[object]:
            return [None, "b"]

    host = host_with("x", "y")
    expected = {"started": 1, "completed": 1, "refused": 1}
    started(host, every("60s", work.processor, name="x", poll=Finds())).turn()
    eventually(lambda: counts(host, "x") == expected)
    started(host, every("60s", work.processor, name="y", poll=Listed())).turn()
    eventually(lambda: counts(host, "y") == expected)
    assert work.seeds == ["a", "b"]
    assert told == ["poll() yielded None, which is no seed; yield a seed for each run, or nothing at all"]


def test_an_activity_s_own_seed_error_is_no_refusal(host_with: HostWith, work: Work) -> None:
    """A run that began and failed moves the cursor, whatever the error."""

    def refuse(context: ProcessContext) -> None:
        raise SeedError("of another processor")

    work.behaviour = refuse
    notes: list[str] = []
    host = host_with("x")
    started(host, every("60s", work.processor, name="x", poll=Cursor(notes))).turn()
    eventually(lambda: notes[-1:] == ["closed"])
    assert "moved to 3" in notes


async def awaited() -> list[str]:
    return ["a"]


async def yielded() -> AsyncIterator[str]:
    yield "a"


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        (awaited, "write `def poll`"),
        (yielded, "write `def poll`"),
        (lambda: {"id": 1}, "a value of type dict, not seeds; return a list"),
        (lambda: "ab", "a value of type str, not seeds; return a list"),
        (lambda: None, "a value of type NoneType, not seeds; return a list"),
    ],
)
def test_a_poll_that_returns_no_seeds_says_what_to_write(
    host_with: HostWith, work: Work, caplog: pytest.LogCaptureFixture, found: Callable[[], Any], remedy: str
) -> None:
    """A poll that is async, or returns one value in place of a list of them, starts no run and is told how to be."""

    class Wrong:
        def poll(self) -> Any:
            return found()

    host = host_with("x")
    launcher = every("60s", work.processor, name="x", poll=Wrong())
    started(host, launcher).turn()
    eventually(lambda: launcher.trouble == "the last poll failed: TypeError")
    assert remedy in caplog.text
    assert work.seeds == []


@pytest.mark.parametrize("kind", [ConnectionError, SystemExit])
def test_a_poll_that_raises_shows_and_is_repeated(
    host_with: HostWith, watch, work: Work, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    """What the poller raises, SystemExit too, ends the tick, is logged and shown, and the next tick polls again."""

    class Flaky:
        polls = 0

        def poll(self) -> Iterator[str]:
            Flaky.polls += 1
            yield "first"
            if Flaky.polls == 1:
                raise kind("database went away")
            yield "second"

    host = host_with("x")
    launcher = every("60s", work.processor, name="x", poll=Flaky())
    timer = started(host, launcher)
    timer.turn()
    eventually(lambda: launcher.trouble == f"the last poll failed: {kind.__name__}")
    assert "database went away" in caplog.text
    eventually(lambda: counts(host, "x") == {"started": 1, "completed": 1, "errors": 1})
    watch.pass_by(60)
    timer.turn()
    eventually(lambda: work.seeds == ["first", "first", "second"])
    eventually(lambda: launcher.trouble == "")


def test_an_activity_that_exits_does_not_end_the_poll(host_with: HostWith, work: Work) -> None:
    """SystemExit in an activity interrupts its run, not the daemon's thread nor the other finds."""

    def leave(context: ProcessContext) -> None:
        if context.seed_data == 0:
            raise SystemExit(1)

    work.behaviour = leave
    host = host_with("x")
    started(host, every("60s", work.processor, name="x", poll=Cursor([]))).turn()
    eventually(lambda: counts(host, "x") == {"started": 3, "completed": 2, "interrupted": 1})
