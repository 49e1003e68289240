"""Durable runs from the command line: submitted, looked at and operated."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli.orders import CONTAINER, FILE

Submit = Callable[..., int]
Told = Callable[..., Any]


def test_a_run_from_its_submission_to_its_end(iocflow: Any, submit: Submit, told: Told) -> None:
    """A run is queued until a worker was there; people get tables, programs JSON, and both its journal."""
    id = submit("PO-1", "--priority", "7", "--deadline", "1h")
    queued = told("status", FILE, "ACME", "PO-1")
    assert (queued["id"], queued["state"], queued["priority"], queued["group"]) == (id, "queued", 7, "ACME")
    assert queued["deadline"] > queued["submitted"]
    done = iocflow("worker", FILE, "--until-idle")
    assert (done.returncode, done.stdout) == (0, "no run is ready\n"), done.stderr
    text = iocflow("status", "--store", "sqlite:///orders.db", str(id)).stdout
    assert text.startswith(f"run {id}: order of ACME, number PO-1\n  state      completed (ok)\n")
    assert "PO-1" in iocflow("runs", FILE).stdout
    steps = [(one["name"], one["outcome"]) for one in told("history", FILE, str(id)) if one["kind"] == "step"]
    assert steps == [("check", "DONE"), ("ship", "DONE")]
    assert [run["number"] for run in told("runs", FILE, "--state", "completed", "--submitter", "ACME")] == ["PO-1"]
    assert told("runs", FILE, "--state", "failed") == []
    assert told("doctor", FILE)["ok"] is True


def test_what_cannot_be_submitted(iocflow: Any, submit: Submit) -> None:
    """The same number for another seed, a seed that does not fit and a wrong processor say so in one sentence."""
    submit("PO-1")
    for processor, seed, code, why in (
        ("order", {"po": "PO-1", "customer": "ACME", "takes": 1}, 1, "ACME has submitted PO-1 before"),
        ("order", {"po": "PO-2"}, 2, "seed.customer is missing"),
        ("order", {"po": "", "customer": "ACME"}, 2, "write at least one character"),
        ("orde", {}, 2, "did you mean `order`?"),
        ("nothing", {}, 2, "known: asking, careful, order"),
    ):
        done = iocflow("submit", FILE, processor, "--seed", json.dumps(seed))
        assert (done.returncode, done.stdout) == (code, "")
        assert why in done.stderr
        assert done.stderr.count("\n") == 1
    done = iocflow("submit", FILE, "order")
    assert (done.returncode, done.stdout) == (2, "")
    assert "order needs a seed" in done.stderr
    for option in ("--submitter", "--number", "--group"):
        done = iocflow("submit", FILE, "asking", "--seed", '{"po": "P", "customer": "A"}', option, "n" * 3_000)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"{option[2:]} is 'nnn" in done.stderr
    done = iocflow("submit", FILE, "orde", "--seeds", f"@{FILE}")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    for option, value in (("--deadline", "soon"), ("--priority", "10"), ("--seeds", "many.jsonl")):
        assert iocflow("submit", FILE, "order", option, value).returncode == 2


def test_many_seeds_are_submitted_and_resumed(iocflow: Any, orders: Path, told: Told) -> None:
    """A file of JSON lines is submitted line by line; what is broken is told with its line, and again is known."""
    lines = [json.dumps({"po": f"PO-{n}", "customer": "ACME"}) for n in range(1200)]
    lines[2:2] = ["", "{broken", '{"customer": "ACME"}', '{"po": "PO-X", "customer": []}']
    (orders / "many.jsonl").write_text("\n".join(lines), encoding="utf-8")
    arguments = ("submit", FILE, "order", "--seeds", "@many.jsonl", "--number-field", "po")
    done = iocflow(*arguments)
    assert (done.returncode, done.stdout) == (1, "1,200 submitted\n")
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == [f"many.jsonl:{n}" for n in (4, 5, 6)]
    assert "its --number-field" in done.stderr
    again = iocflow(*arguments, "--json")
    report = json.loads(again.stdout)
    assert (report["new"], report["known"], [one["line"] for one in report["refused"]]) == (0, 1200, [4, 5, 6])
    assert len(told("runs", FILE, "--limit", "2000")) == 1200
    piped = iocflow("submit", FILE, "order", "--seeds", "@-", stdin='{"po": "PO-Y", "customer": "ACME"}\n')
    assert (piped.returncode, piped.stdout) == (0, "1 submitted\n")


@pytest.mark.parametrize("numbered", [True, False])
def test_many_seeds_that_are_broken_off(iocflow: Any, orders: Path, start: Any, told: Told, numbered: bool) -> None:
    """Who stops a long file is told up to which line it is submitted, and whether the whole may be sent again."""
    text = CONTAINER if numbered else CONTAINER.replace("number: po, ", "")
    (orders / FILE).write_text(text, encoding="utf-8")
    how = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = start("submit", FILE, "order", "--seeds", "@-", **how)
    for n in range(700):
        process.stdin.write(f"\n{json.dumps({'po': str(n), 'customer': 'ACME'})}\n")
    process.stdin.flush()
    deadline = time.monotonic() + 20
    while not (orders / "orders.db").exists() or not told("runs", FILE):
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGINT)
    why = process.stderr.read()
    assert process.wait(20) == 130
    assert why.startswith("iocflow: stopped behind line 1000 of standard input; ")
    assert ("send the whole file again" in why) is numbered
    assert ("iocflow runs" in why) is not numbered
    assert len(told("runs", FILE, "--limit", "1000")) == 500


def test_waiting_for_a_run(iocflow: Any, submit: Submit) -> None:
    """`status --wait` ends with 6 while the run is open, 0 when it was completed, 1 when it ended otherwise."""
    good, bad = submit("PO-1"), submit("PO-2", fails=True)
    assert iocflow("status", FILE, str(good), "--wait", "--timeout", "0.1").returncode == 6
    assert iocflow("worker", FILE, "--until-idle").returncode == 0
    assert iocflow("status", FILE, str(good), "--wait").returncode == 0
    done = iocflow("status", FILE, str(bad), "--wait")
    assert done.returncode == 1
    assert "ValueError: no money" in done.stdout


def test_which_run_and_which_store(iocflow: Any, submit: Submit) -> None:
    """A run that is not there is told with 1; wrong words, and a store that is not there, are wrong use."""
    assert iocflow("status", FILE, "1").returncode == 2  # nothing was submitted: there is no store
    submit("PO-1")
    for arguments, code, why in (
        ((FILE, "99"), 1, "there is no run 99"),
        ((FILE, "ACME", "PO-9"), 1, "ACME has submitted no run PO-9"),
        ((FILE, "ACME"), 2, "ACME is no id of a run"),
        ((FILE,), 2, "name one run"),
        ((), 2, "name the container file, or the store"),
        (("--store", "sqlite:///gone.db", "1"), 2, "there is no store gone.db"),
        (("--store", "orders.db", "1"), 2, "is no URL"),
        (("sqlite:///orders.db", "1"), 2, "write --store sqlite:///orders.db"),
        (("order.yaml", "1"), 2, "did you mean `orders.yaml`"),
    ):
        done = iocflow("status", *arguments)
        assert (done.returncode, done.stdout) == (code, ""), arguments
        assert why in done.stderr
    assert iocflow("runs", FILE, "--state", "faild").stderr == (
        "iocflow: there is no state faild; did you mean `failed`?\n"
    )


def test_looking_needs_nothing_of_the_application(iocflow: Any, orders: Path, submit: Submit, told: Told) -> None:
    """With the module gone, and a value that only beans need, the file still says where the runs are."""
    id = submit("PO-1")
    (orders / "orders.py").unlink()
    text = CONTAINER.replace("${secret:no-such-token:}", "${secret:no-such-token}")
    (orders / FILE).write_text(text, encoding="utf-8")
    assert told("status", FILE, str(id))["state"] == "queued"
    assert told("cancel", FILE, str(id), "--why", "not needed")["state"] == "cancelled"
    entry = next(one for one in told("history", FILE, str(id)) if one["kind"] == "cancel")
    assert (entry["why"], bool(entry["who"])) == ("not needed", True)
    assert iocflow("cancel", FILE, str(id)).returncode == 1
    assert iocflow("worker", FILE, "--until-idle").returncode == 3


def test_suspended_runs(iocflow: Any, submit: Submit, told: Told) -> None:
    """A run that waits for a person is listed with what waits behind it; it is replayed, or given up."""
    first, second = submit("PO-1", processor="careful", fails=True), submit("PO-2", processor="careful")
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready; 1 queued, 1 suspended\n"
    (listed,) = told("dead", "list", FILE)
    assert (listed["id"], listed["held"], listed["error"]["message"]) == (first, 1, "no money")
    assert "behind it" in iocflow("dead", "list", FILE).stdout
    assert "1 run of its group wait behind it" in iocflow("dead", "show", FILE, "ACME", "PO-1").stdout
    assert told("dead", "show", FILE, str(first))["history"][-1]["kind"] == "suspended"
    assert told("dead", "replay", FILE, str(first), "--who", "ann", "--why", "paid") == {
        "replayed": [first],
        "left": [],
    }
    assert iocflow("worker", FILE, "--until-idle").returncode == 0
    assert iocflow("dead", "drop", FILE).returncode == 2
    assert told("dead", "drop", FILE, "--all") == {"dropped": [first], "left": []}
    assert (done := iocflow("dead", "replay", FILE, str(second))).returncode == 1
    assert f"left as they are: {second} is queued: only one that is failed or suspended" in done.stderr
    assert (done := iocflow("dead", "show", FILE, str(second))).returncode == 1
    assert f"run {second} is queued, not suspended" in done.stderr
    assert (done := iocflow("retry", FILE, str(first), "--done")).returncode == 1
    assert f"run {first} is failed with no step in doubt: leave --done out" in done.stderr
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready\n"
    assert [run["state"] for run in told("runs", FILE)] == ["failed", "completed"]
    told("retry", FILE, str(first))
    assert told("status", FILE, str(first))["state"] == "queued"


@pytest.mark.parametrize(("verb", "answer"), [("replay", "replayed"), ("drop", "dropped")])
def test_suspended_runs_are_named_either_way(iocflow: Any, submit: Submit, told: Told, verb: str, answer: str) -> None:
    """`dead` takes ids, or SUBMITTER NUMBER as `status` does; what is neither is wrong use, and nothing is done."""
    ids = [submit(f"PO-{n}", customer=f"C{n}", processor="careful", fails=True) for n in range(3)]
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready; 3 suspended\n"
    for words, code in ((("C0",), 2), (("C0", "PO-0", "3"), 2), (("C0", "PO-0", "C1", "PO-1"), 2), (("C0", "PO-1"), 1)):
        done = iocflow("dead", verb, FILE, *words)
        assert (done.returncode, done.stdout) == (code, ""), words
    assert {run["state"] for run in told("runs", FILE)} == {"suspended"}
    assert told("dead", "show", FILE, "C0", "PO-0")["id"] == told("dead", "show", FILE, str(ids[0]))["id"] == ids[0]
    assert told("dead", verb, FILE, "C0", "PO-0")[answer] == ids[:1]
    assert told("dead", verb, FILE, str(ids[1]), str(ids[2]))[answer] == ids[1:]


@pytest.mark.service("postgres")
def test_on_postgresql(iocflow: Any, orders: Path, postgres_url: str, submit: Submit, told: Told) -> None:
    """Another URL is all that changes; the password in one is in no message."""
    text = CONTAINER.replace("store: sqlite:///${db}", f'store: "{postgres_url}"')
    (orders / FILE).write_text(text, encoding="utf-8")
    submit("PO-1", processor="careful", fails=True)
    submit("PO-2", processor="careful")
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready; 1 queued, 1 suspended\n"
    assert len(told("dead", "drop", FILE, "--all")["dropped"]) == 1
    assert iocflow("worker", FILE, "--until-idle").returncode == 0
    assert [run["state"] for run in told("runs", "--store", postgres_url)] == ["failed", "completed"]
    assert told("doctor", "--store", postgres_url)["ok"] is True
    wrong = "postgresql://app:geheim123@127.0.0.1:1/x?application_name=geheim123&bogus=1"
    done = iocflow("status", "--store", wrong, "1", "--traceback")
    assert done.returncode == 2
    assert "geheim123" not in done.stderr


def test_a_signal_lets_a_waiting_run_go_on(iocflow: Any, orders: Path, submit: Submit, told: Told) -> None:
    """A run waits for a signal in the store; with it the run goes on, and a later one is dead."""
    id = submit("PO-1", processor="asking")
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready; 1 waiting\n"
    assert told("signal", FILE, "ACME", "PO-1", "approved", "--data", '{"by": "ann"}')["id"] == id
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready\n"
    assert told("status", FILE, str(id))["state"] == "completed"
    assert "which is kept as dead" in (late := iocflow("signal", FILE, str(id), "approved")).stderr
    assert late.returncode == 1
    assert iocflow("signal", FILE, str(id)).returncode == 2
    (orders / "much.json").write_text(f'"{"x" * 2**24}"', encoding="utf-8")
    for arguments in (("signal", str(id), "n" * 256), ("signal", str(id), "approved", "--data", "@much.json")):
        assert iocflow(arguments[0], FILE, *arguments[1:]).returncode == 2
    assert iocflow("retry", FILE, str(id), "--why", b"\xff".decode(errors="surrogateescape")).returncode == 2


def test_purge_and_doctor(iocflow: Any, orders: Path, submit: Submit, told: Told) -> None:
    """Old runs lose their data and keep their trail; the doctor tells what does not hold, with 1."""
    id = submit("PO-1")
    iocflow("worker", FILE, "--until-idle")
    assert told("purge", FILE, "--older-than", "1h") == {"purged": 0}
    assert iocflow("purge", FILE, "--older-than", "0s").stdout == "1 run purged\n"
    assert iocflow("purge", FILE, "--older-than", "old").returncode == 2
    assert len([one for one in told("history", FILE, str(id)) if one["kind"] == "step"]) == 2
    assert iocflow("doctor", FILE).stdout == "all invariants hold, of 1 run\n"
    with closing(sqlite3.connect(orders / "orders.db")) as connection:
        connection.execute("insert into signal(run, name, data, at) values (99, 'x', x'', 0)")
        connection.commit()
    done = iocflow("doctor", FILE)
    assert done.returncode == 1
    assert "99" in done.stdout
    assert json.loads(iocflow("doctor", FILE, "--json").stdout)["violations"]


def test_run_works_until_the_run_is_done(iocflow: Any, orders: Path, told: Told) -> None:
    """`iocflow run` on a durable processor submits the run, does it here, and shows its trail as ever."""
    good = iocflow("run", FILE, "order", "--seed", '{"po": "PO-1", "customer": "ACME"}')
    assert good.returncode == 0, good.stderr
    assert "check  DONE" in good.stdout
    assert "order: COMPLETED" in good.stdout
    bad = iocflow("run", FILE, "order", "--seed", '{"po": "PO-2", "customer": "ACME", "fails": true}')
    assert bad.returncode == 1
    assert "check: ValueError: no money" in bad.stderr
    assert [run["state"] for run in told("runs", FILE)] == ["completed", "failed"]


def test_an_app_built_in_python(iocflow: Any, orders: Path, told: Told) -> None:
    """`module:app` stands wherever a container file does."""
    seed = '{"po": "PO-1", "customer": "ACME"}'
    assert iocflow("submit", "orders:app", "order", "--seed", seed, "--submitter", "ACME").returncode == 0
    assert iocflow("worker", "orders:app", "--until-idle").returncode == 0
    assert [run["state"] for run in told("runs", "orders:app")] == ["completed"]


def test_without_a_store(iocflow: Any, orders: Path) -> None:
    """A file without a store is told what to write, by every command."""
    (orders / FILE).write_text("iocflow: 1\npackage: orders\n", encoding="utf-8")
    for arguments in (("status", FILE, "1"), ("submit", FILE, "order"), ("worker", FILE), ("doctor", FILE)):
        done = iocflow(*arguments)
        assert done.returncode == 1
        assert "orders.yaml has no store; write `store: sqlite:///var/app.db`" in done.stderr


def test_without_the_extra(iocflow: Any, orders: Path) -> None:
    """Without msgspec the commands say what to install; the others do not miss it."""
    (orders / "msgspec.py").write_text("raise ModuleNotFoundError('gone', name='msgspec')", encoding="utf-8")
    env = {"PYTHONPATH": str(orders)}
    done = iocflow("status", FILE, "1", env=env)
    assert (done.returncode, done.stderr) == (
        1,
        'iocflow: status needs msgspec, which is not installed; pip install "iocflow[durable]"\n',
    )
    checked = iocflow("check", FILE, env=env)
    assert checked.returncode == 3
    assert 'pip install "iocflow[durable]"' in checked.stdout


def test_what_a_run_waits_for(iocflow: Any, submit: Submit, told: Told) -> None:
    """A waiting run is told with the signal that it waits for, and the activity that does, in tables and in JSON."""
    id = submit("PO-1", processor="asking")
    assert iocflow("worker", FILE, "--until-idle").returncode == 0
    status = told("status", FILE, str(id))
    assert (status["state"], status["activity"]) == ("waiting", "ask")
    assert status["waits"] == [{"signal": "approved", "until": None, "activity": "ask", "thread": ""}]
    assert "for the signal approved" in iocflow("status", FILE, str(id)).stdout
    assert "for the signal approved" in iocflow("runs", FILE).stdout


def test_a_command_says_what_it_waits_for(start: Any, orders: Path, submit: Submit, told: Told) -> None:
    """Behind another program that writes to the file, a command says so on standard error, and goes on after it."""
    id = submit("PO-1")
    with closing(sqlite3.connect(orders / "orders.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        process = start("cancel", FILE, str(id), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert "another program is writing to it" in process.stderr.readline()
        other.execute("rollback")
    assert process.wait(30) == 0
    assert told("status", FILE, str(id))["state"] == "cancelled"
