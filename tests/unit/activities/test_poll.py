"""`PollQuery`: each row once, as a first activity and as a polling bean."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from iocflow.activities import Database, DatabaseBusyError, DatabaseError, PollQuery
from iocflow.context import ProcessContext
from iocflow.errors import SeedError

QUERY = "SELECT id, name, price FROM orders ORDER BY placed, id"


@dataclass
class Order:
    name: str
    price: Decimal
    id: int = 0


class Shop(ProcessContext):
    seed_data: Order


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a database with three orders."""
    path = tmp_path / "shop.db"
    run(path, "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT, price TEXT, placed INTEGER)")
    for name in ("ink", "paper", "glue"):
        place(path, name)
    return path


def run(path: Path, statement: str, *parameters: Any) -> list[Any]:
    """Run a statement on a connection of its own."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, parameters).fetchall()


def place(path: Path, name: str | None, price: str = "1.50", id: int | None = None, placed: int = 0) -> None:
    """Place an order."""
    run(path, "INSERT INTO orders VALUES (?, ?, ?, ?)", id, name, price, placed)


def loaded(poll: PollQuery) -> str:
    """Let the activity work on a new context; return the name of what it loaded, or `idle`."""
    context = Shop()
    poll.execute(context)
    return "idle" if context.stopped else context.seed_data.name


def test_as_an_activity_it_loads_one_row_a_run(path: Path) -> None:
    """Each run gets the next row as a seed of the right type, and after the last one there is nothing to do."""
    poll = PollQuery(path, QUERY, "id")
    context = Shop()
    poll.execute(context)
    assert context.seed_data == Order("ink", Decimal("1.50"), 1)
    assert not context.stopped
    assert [loaded(poll) for _ in range(4)] == ["paper", "glue", "idle", "idle"]
    place(path, "tape")
    assert [loaded(poll), loaded(poll)] == ["tape", "idle"]


def test_as_a_bean_it_yields_every_row(path: Path) -> None:
    """A poll yields a mapping of all columns for each new row, and the next poll only what came since."""
    poll = PollQuery(path, QUERY, "id")
    assert [*poll.poll()][:1] == [{"id": 1, "name": "ink", "price": "1.50"}]
    assert list(poll.poll()) == []
    place(path, "tape")
    assert [seed["name"] for seed in poll.poll()] == ["tape"]  # type: ignore[index]


def test_a_bean_that_is_abandoned_repeats_the_row(path: Path) -> None:
    """A row whose run did not end, because the process did, is yielded again; those before it are not."""
    poll = PollQuery(path, QUERY, "id")
    seeds = poll.poll()
    assert [next(seeds)["name"], next(seeds)["name"]] == ["ink", "paper"]  # type: ignore[index]
    del seeds
    assert [seed["name"] for seed in PollQuery(path, QUERY, "id").poll()] == ["paper", "glue"]  # type: ignore[index]


def test_the_database_is_not_locked_while_a_run_lasts(path: Path) -> None:
    """Between two seeds the run may write into the same database."""
    poll = PollQuery(Database(path, busy_timeout=0.1), QUERY, "id")
    for number, _ in enumerate(poll.poll()):
        place(path, f"from run {number}")
    assert len(list(poll.poll())) == 3


def test_rows_that_are_committed_late_are_found(path: Path) -> None:
    """A row with a lower key or an older date than those handed over is found all the same."""
    poll = PollQuery(path, QUERY, "id")
    assert len(list(poll.poll())) == 3
    place(path, "late", id=-5, placed=-100)
    assert [seed["name"] for seed in poll.poll()] == ["late"]  # type: ignore[index]


def test_a_batch_bounds_one_poll(path: Path) -> None:
    """At most `batch` rows come in a poll, in the query's order; the rest comes with the next ones."""
    for number in range(250):
        place(path, f"n{number}", placed=1)
    poll = PollQuery(path, QUERY, "id", batch=120)
    found = [[seed["name"] for seed in poll.poll()] for _ in range(4)]  # type: ignore[index]
    assert [len(names) for names in found] == [120, 120, 13, 0]
    assert [*chain(*found)] == ["ink", "paper", "glue", *(f"n{number}" for number in range(250))]


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("place_of_bad", [0, 1])
def test_rows_that_make_no_seed_fill_no_batch(
    path: Path, batch: int, place_of_bad: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows behind ever so many that make no seed have their turn, in both uses; those are told, and stay."""
    for _ in range(5):
        place(path, "bad", price="much", placed=place_of_bad)
    place(path, "tape", placed=2)

    class Checked(PollQuery):
        def seed_of(self, row: Mapping[str, Any]) -> object:
            if row["price"] == "much":
                raise SeedError("seed.price: too much")
            return super().seed_of(row)

    activity = PollQuery(path, QUERY, "id", batch=batch)
    assert [loaded(activity) for _ in range(4)] == ["ink", "paper", "glue", "tape"]
    with pytest.raises(SeedError, match="makes no seed"):
        loaded(activity)
    caplog.clear()
    bean = Checked(path, QUERY, "id", batch=batch, cursor="bean")
    polls = [[seed["name"] for seed in bean.poll()] for _ in range(6)]  # type: ignore[index]
    assert [*chain(*polls)] == ["ink", "paper", "glue", "tape"]
    assert max(map(len, polls)) == min(batch, 4)
    assert "makes no seed" in caplog.text
    assert "more rows make no seed" in caplog.text


def test_rows_with_which_no_run_can_begin_fill_no_batch(path: Path) -> None:
    """A poller that hears of one row after the other that no run could begin with goes on to those behind them."""
    seeds = PollQuery(path, QUERY, "id", batch=1).poll()
    assert next(seeds)["name"] == "ink"  # type: ignore[index]
    assert seeds.throw(SeedError("ink"))["name"] == "paper"  # type: ignore[attr-defined]
    assert seeds.throw(SeedError("paper"))["name"] == "glue"  # type: ignore[attr-defined]
    assert next(seeds, None) is None
    assert [seed["name"] for seed in PollQuery(path, QUERY, "id").poll()] == ["ink", "paper"]  # type: ignore[index]


def test_words_of_sql_are_names(path: Path) -> None:
    """The key and the table of the keys can be called by words of SQL."""
    poll = PollQuery(path, 'SELECT id AS "order", name, price FROM orders', "order", table="table", key_in_seed=False)
    assert [loaded(poll) for _ in range(4)] == ["ink", "paper", "glue", "idle"]


def test_two_pollers_share_no_row(path: Path) -> None:
    """Eight threads that poll at once through objects of their own load every row exactly once."""
    for number in range(37):
        place(path, f"n{number}")

    def work(_: int) -> list[str]:
        poll, got = PollQuery(path, QUERY, "id"), []
        while (name := loaded(poll)) != "idle":
            got.append(name)
        return got

    with ThreadPoolExecutor(8) as pool:
        names = [*chain(*pool.map(work, range(8)))]
    assert sorted(names) == sorted(["ink", "paper", "glue", *(f"n{number}" for number in range(37))])


def test_a_key_that_is_no_part_of_the_seed(path: Path) -> None:
    """The key is left out of the seed on demand; one too many or too few is told with the option's name."""
    seeds = PollQuery(path, QUERY, "id", key_in_seed=False, cursor="a").poll()
    assert next(seeds) == {"name": "ink", "price": "1.50"}
    with pytest.raises(SeedError, match=r"seed\.name is missing.*; key_in_seed: true puts it in"):
        PollQuery(path, QUERY, "name", key_in_seed=False).execute(Shop())
    with pytest.raises(SeedError, match=r"seed\.number is unknown.*; key_in_seed: false takes it out"):
        PollQuery(path, "SELECT id AS number, name, price FROM orders", "number").execute(Shop())


def test_a_row_that_makes_no_seed_is_neither_lost_nor_in_the_way(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The good rows behind it are loaded; then it fails the run by its key, until it is mended, and is loaded."""
    run(path, "DELETE FROM orders")
    place(path, "bad", price="much")
    place(path, "good")
    poll = PollQuery(path, QUERY, "id")
    left = r"poll-query: the row with id '1' makes no seed and is left for later polls: seed\.price: 'much' is not"
    assert loaded(poll) == "good"
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert re.match(left, record.message)
    caplog.clear()
    for _ in range(2):
        with pytest.raises(SeedError, match=left):
            loaded(poll)
    assert not caplog.records
    run(path, "UPDATE orders SET price = '2' WHERE name = 'bad'")
    assert [loaded(poll), loaded(poll)] == ["bad", "idle"]


def test_another_attempt_of_the_step_loads_the_same_row(path: Path) -> None:
    """What a step's first attempt loaded, its second one loads again, and no other row."""
    poll, context = PollQuery(path, QUERY, "id"), Shop()
    for _ in range(2):
        poll.execute(context)
        assert context.seed_data.name == "ink"
    assert loaded(poll) == "paper"


def test_a_bean_is_told_of_a_refused_seed(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A `SeedError` that the launcher throws in leaves the row for the next poll; the others are yielded."""
    poll = PollQuery(path, QUERY, "id")
    seeds = poll.poll()
    assert next(seeds)["name"] == "ink"  # type: ignore[index]
    assert seeds.throw(SeedError("seed.price: too much"))["name"] == "paper"  # type: ignore[attr-defined]
    assert [seed["name"] for seed in seeds] == ["glue"]  # type: ignore[index]
    [record] = caplog.records
    assert record.message == ("poll-query: the row with id '1' is left for later polls, no run could begin with it")
    assert record.levelname == "WARNING"  # the launcher's error says why
    assert [seed["name"] for seed in poll.poll()] == ["ink"]  # type: ignore[index]


@pytest.mark.parametrize("database", [Database, lambda path: Database(lambda: sqlite3.connect(path))])
def test_a_query_changes_nothing(path: Path, database: Any) -> None:
    """What begins like a query and writes is refused; nothing is changed, and the connection serves no other end."""
    query = "WITH old AS (SELECT id FROM orders) DELETE FROM orders WHERE id IN (SELECT id FROM old)"
    with pytest.raises(DatabaseError, match="the query writes, and a poll only reads; write a SELECT"):
        PollQuery(database(path), query, "id").execute(Shop())
    assert len(run(path, "SELECT * FROM orders")) == 3


class NoGuard:
    """A connection to another database than SQLite, as far as can be told: it knows no `PRAGMA query_only`."""

    def __init__(self, path: Path) -> None:
        real = sqlite3.connect(path, isolation_level=None)
        real.execute("BEGIN")  # as other drivers do before any statement; sqlite3 does not before WITH
        self.cursor, self.commit, self.rollback, self.close = real.cursor, real.commit, real.rollback, real.close


def test_what_another_database_wrote_is_undone(path: Path) -> None:
    """On a connection that cannot be kept from writing, a query's changes are rolled back, and told when it can be."""
    writing = "WITH old AS (SELECT 1) DELETE FROM orders"
    with pytest.raises(DatabaseError, match="returns no rows"):
        PollQuery(lambda: NoGuard(path), writing, "id").execute(Shop())
    assert PollQuery(lambda: NoGuard(path), f"{writing} RETURNING id, name, price", "id").execute(Shop()) is None
    assert len(run(path, "SELECT * FROM orders")) == 3


@pytest.mark.parametrize("query", ["DELETE FROM orders", "", "UPDATE orders SET price = 0", "-- SELECT\nDROP TABLE x"])
def test_what_is_no_query_is_refused(query: str) -> None:
    """A statement that is plainly no query is refused when it is wired."""
    with pytest.raises(ValueError, match="query: a poll only reads"):
        PollQuery("a.db", query, "id")


@pytest.mark.parametrize(
    "query", ["select 1", " /* all */ -- of them\n(SELECT 1)", "WITH x AS (SELECT 1) SELECT 1", "VALUES (1)"]
)
def test_queries_begin_in_many_ways(query: str) -> None:
    """Comments, brackets and small letters may come before a query, and names before its SELECT."""
    assert PollQuery("a.db", query, "id").query == query


def test_cursors_are_kept_apart(path: Path) -> None:
    """Two polls of one database see every row each: the cursor goes by the activity's name, or the one given."""
    first, second, third = (PollQuery(path, QUERY, "id", cursor=name) for name in ("", "b", "b"))
    first.name = "first"
    assert [len(list(poll.poll())) for poll in (first, second, third)] == [3, 3, 0]


def test_parameters_are_never_sql(path: Path) -> None:
    """The query's parameters go to the driver as values."""
    query = "SELECT id, name, price FROM orders WHERE name = :name"
    assert list(PollQuery(path, query, "id", params={"name": "ink' OR 1=1 --"}, cursor="a").poll()) == []
    assert len(list(PollQuery(path, query, "id", params={"name": "ink"}, cursor="a").poll())) == 1


def test_keys_are_never_sql(path: Path) -> None:
    """A key with quotes is kept as it is."""
    poll = PollQuery(path, "SELECT name || '''); DROP TABLE orders; --' AS key, name, price FROM orders", "key")
    assert [len(list(poll.poll())) for _ in range(2)] == [3, 0]
    assert len(run(path, "SELECT * FROM orders")) == 3


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT name FROM orders", "the key column id is none of name"),
        ("SELECT NULL AS id FROM orders", "the key column id is NULL"),
        ("SELECT nope FROM orders", "no such column: nope"),
        ("SELECT id FROM nope", "no such table: nope"),
        ("SELECT FROM", "syntax error"),
        ("SELECT 1 AS id; DROP TABLE orders", "one statement at a time"),
    ],
)
def test_wrong_queries_are_told(path: Path, query: str, said: str) -> None:
    """A missing or empty key column, a missing table and a query that is none are errors that say so."""
    with pytest.raises(DatabaseError, match=said):
        list(PollQuery(path, query, "id").poll())


def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    """Polling a database that is not there is an error, and no empty database is left behind."""
    with pytest.raises(DatabaseError, match="no such database file"):
        PollQuery(tmp_path / "none.db", QUERY, "id").execute(Shop())
    assert not list(tmp_path.iterdir())


def test_a_locked_database_is_told(path: Path) -> None:
    """When others keep the file locked, the poll fails as busy and hands nothing over."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseBusyError):
            PollQuery(Database(path, busy_timeout=0.05), QUERY, "id").execute(Shop())
    assert loaded(PollQuery(path, QUERY, "id")) == "ink"


def test_a_batch_of_none_is_refused() -> None:
    """A batch has at least one row."""
    with pytest.raises(ValueError, match="batch: it must be at least 1"):
        PollQuery("a.db", QUERY, "id", batch=0)
