"""The three tests of the article by their meaning: a simple sequence, the rate drop, and polling."""

from __future__ import annotations

import email
import email.policy
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

import iocflow
from iocflow.run import Outcome
from samples.fare_drop import FareDropContext, PollFares
from samples.fare_drop.fakes import FakeSender

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config" / "fare_drop.yaml"
SEED = json.loads((ROOT / "samples" / "fare_drop" / "seed.json").read_text(encoding="utf-8"))
NAMES = ["build-recipients", "construct-document", "apply-xslt", "write-audit", "send-message"]
NOBODY = {**SEED, "origin": "ZZZ"}

Load = Callable[..., iocflow.App]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return where the database will be."""
    return tmp_path / "var" / "fares.db"


@pytest.fixture
def load(database: Path) -> Iterator[Load]:
    """Return a function that loads the container file with a database of this test's own."""
    apps: list[iocflow.App] = []

    def loaded(sender: FakeSender | None = None, **options: Any) -> iocflow.App:
        override = {"smtp-sender": sender or FakeSender()}
        values = {"db": str(database), "smtp.retry-after": "1ms"}
        apps.append(iocflow.load(CONFIG, override=override, values=values, **options))
        return apps[-1]

    yield loaded
    for app in apps:
        app.close()


def query(database: Path, statement: str) -> list[tuple[Any, ...]]:
    """Return what a statement finds or changes in the sample's database."""
    with closing(sqlite3.connect(database)) as connection, connection:
        return connection.execute(statement).fetchall()


def trail(run: iocflow.Run[Any]) -> list[str]:
    """Return the names of the activities that were executed."""
    return [step.activity for step in run.steps]


def test_simple_sequence() -> None:
    """Activities in a fixed order, wired by the file alone: the smallest sample runs."""
    with iocflow.load(ROOT / "config" / "first_sequence.yaml") as app:
        run = app["order"].do_activities([9.9, 12.5]).raise_for_error()
    assert trail(run) == ["add-up", "show"]
    assert f"{run.context.total:.2f}" == "22.40"


def test_rate_drop(load: Load, database: Path) -> None:
    """The fare that fell is told to everybody who asked, and the audit has a row for each of them."""
    sender = FakeSender()
    run = load(sender).processor("fare-drop", FareDropContext).do_activities(SEED).raise_for_error()
    assert (run.outcome, trail(run)) == (Outcome.COMPLETED, NAMES)
    assert len(sender.sent) == len(run.context.recipients) > 15
    assert query(database, "SELECT count(*) FROM audit WHERE status = 'sent'") == [(len(sender.sent),)]
    assert query(database, "SELECT count(*) FROM subscribers")[0][0] >= 1000
    html = sender.sent[0].message.get_body(("html",))
    assert isinstance(html, EmailMessage)
    for word in ("X-Jet", "BWI", "LGA", "30.28"):
        assert word in html.get_content()


def test_nobody_asked(load: Load) -> None:
    """When nobody asked to hear of the route the run is stopped after its first activity, and nobody is mailed."""
    sender = FakeSender()
    run = load(sender)["fare-drop"].do_activities(NOBODY).raise_for_error()
    assert (run.outcome, trail(run), sender.sent) == (Outcome.STOPPED, NAMES[:1], [])
    assert run.stop_reason == "nobody asked to hear of fares from ZZZ to LGA"


def test_a_choice_instead_of_a_stop(load: Load) -> None:
    """The exclusive choice goes on to another activity when nobody asked, and mails when somebody did."""
    choice = load()["fare-drop-choice"]
    assert trail(choice.do_activities(NOBODY).raise_for_error()) == ["build-recipients", "no-takers"]
    assert trail(choice.do_activities(SEED).raise_for_error()) == NAMES


def test_the_send_is_tried_again(load: Load) -> None:
    """A server that does not answer twice is asked a third time, and the run completes."""
    sender = FakeSender(failures=2)
    run = load(sender)["fare-drop"].do_activities(SEED).raise_for_error()
    assert run.steps[-1].attempts == 3
    assert len(sender.sent) == len(run.context.recipients)


def test_a_server_that_never_answers(load: Load, caplog: pytest.LogCaptureFixture) -> None:
    """When every attempt fails the operators are paged and the run is FAILED; the audit still says prepared."""
    run = load(FakeSender(failures=99))["fare-drop"].do_activities(SEED)
    assert (run.outcome, run.steps[-1].attempts) == (Outcome.FAILED, 5)
    assert isinstance(run.error, ConnectionError)
    assert "paging the team fares: 0 of 32 were notified of the fare of X-Jet from BWI to LGA: " in caplog.text


def test_polling(load: Load, database: Path) -> None:
    """A poll finds the fare that fell, once; one that finds nothing is idle; the next fare that falls is found too."""
    sender = FakeSender()
    polled = load(sender)["fare-drop-polled"]
    run = polled.do_activities().raise_for_error()
    assert run.outcome is Outcome.COMPLETED
    assert trail(run) == ["poll-fares", *(f"fare-drop/{name}" for name in NAMES), "fare-drop"]
    assert run.context.seed_data.rate_drop.as_tuple().digits == (3, 0, 2, 8)
    idle = polled.do_activities().raise_for_error()
    assert (idle.outcome, idle.idle, trail(idle)) == (Outcome.STOPPED, True, ["poll-fares"])
    query(
        database,
        "INSERT INTO fares (airline_id, airline_name, route_id, origin, destination, cents)"
        " VALUES (12, 'X-Jet', 117, 'BWI', 'LGA', 13000), (12, 'X-Jet', 117, 'BWI', 'LGA', 9999)",
    )
    again = polled.do_activities().raise_for_error()
    assert str(again.context.seed_data.rate_drop) == "30.01"
    assert polled.do_activities().idle


def test_the_polling_bean_yields_each_fare(load: Load, database: Path) -> None:
    """As a bean outside any run the poll yields seeds, which start runs of fare-drop."""
    app = load(profiles=["poll-many"])
    seeds = list(app.get("poll-fares", PollFares).poll())
    assert seeds == [{**SEED, "rate_drop": "30.28"}]
    assert app["fare-drop"].do_activities(seeds[0]).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate_drop": "much"}, "seed.rate_drop"),
        ({"route_id": None}, "seed.route_id"),
        ({"rate_drop": -1}, "rate_drop"),
    ],
)
def test_a_seed_of_the_wrong_shape(load: Load, change: dict[str, Any], said: str) -> None:
    """A seed that does not fit fails the run before its first activity, and the field is named."""
    run = load()["fare-drop"].launch({**SEED, **change})
    assert (run.outcome, trail(run)) == (Outcome.FAILED, [])
    assert said in f"{run.error} {getattr(run.error, '__cause__', '')}"


def test_local_mail_lies_in_files(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With smtp.host: local each message becomes an .eml file for mail programs, and the summary says where."""
    monkeypatch.chdir(tmp_path)
    with iocflow.load(CONFIG) as app:
        run = app["fare-drop"].do_activities(SEED).raise_for_error()
    files = sorted((tmp_path / "var" / "mail").iterdir())
    messages = [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]
    shown = [message["To"].addresses for message in messages]
    assert {len(to) for to in shown} == {1}
    assert [to[0].display_name for to in shown if to[0].display_name == "Müller, Jörg"] == ["Müller, Jörg"]
    assert len({to[0].addr_spec for to in shown}) == len(run.context.recipients)
    assert {message["Cc"] or message["Bcc"] for message in messages} == {None}
    printed = capsys.readouterr().out
    assert f"{len(files)} notified; the messages lie in var/mail:" in printed
    assert "王小明 <wang.xiaoming@example.com>" in printed
