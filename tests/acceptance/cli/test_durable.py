"""Durable runs from the command line: submitted, worked on, looked at and operated, in processes of their own."""

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

MODULE = """
from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from iocflow import App, ProcessContext, SequenceProcessor


@dataclass
class Order:
    po: str
    customer: str
    takes: float = 0.0
    fails: bool = False


class Shop(ProcessContext):
    seed_data: Order
    answer: dict[str, str]


def check(context: Shop) -> None:
    print("checking", context.seed_data.po, file=sys.stderr, flush=True)
    time.sleep(context.seed_data.takes)
    if context.seed_data.fails:
        raise ValueError("no money")


def ask(context: Shop) -> None:
    context.answer = context.step.wait_for("approved")


def ship(context: Shop) -> None:
    pass


app = App(SequenceProcessor([check], context=Shop, name="order"), store="sqlite:///python.db")
"""

CONTAINER = """\
iocflow: 1
package: orders
store: sqlite:///${db}
values: {db: orders.db, token: "${secret:no-such-token:}"}
worker: {threads: 2, lease: 5s, tick: 200ms}
beans: {check: {call: .check}, ask: {call: .ask}, ship: {call: .ship}}
processors:
  order:
    context: .Shop
    sequence: [check, ship]
    durable: {submitter: customer, number: po, group: customer}
  careful:
    context: .Shop
    sequence: [check, ship]
    durable: {submitter: customer, number: po, group: customer}
    on-failure: incident
  asking: {context: .Shop, sequence: [ask], durable: {submitter: customer, number: po}}
launchers:
  dropped: {processor: order, source: "folder:inbox?interval=20ms"}
daemon: {grace: 10s}
"""
FILE = "orders.yaml"
SECONDS = 30.0


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Return the folder with a container file of durable processors, and their module."""
    (tmp_path / "orders.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / FILE).write_text(CONTAINER, encoding="utf-8")
    return tmp_path


@pytest.fixture
def submit(iocflow: Any, orders: Path) -> Callable[..., int]:
    """Return a function that submits an order and returns its run's id."""

    def submit(po: str, *options: str, processor: str = "order", **seed: Any) -> int:
        data = json.dumps({"po": po, "customer": "ACME", **seed})
        done = iocflow("submit", FILE, processor, "--seed", data, "--json", *options)
        assert done.returncode == 0, done.stderr
        return int(json.loads(done.stdout)["id"])

    return submit


@pytest.fixture
def told(iocflow: Any, orders: Path) -> Callable[..., Any]:
    """Return a function that runs a command with `--json` and returns what it printed."""

    def told(*arguments: str) -> Any:
        done = iocflow(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return told


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
    for seed, why in (
        ({"po": "PO-1", "customer": "ACME", "takes": 1}, "ACME has submitted PO-1 before"),
        ({"po": "PO-2"}, "seed.customer is missing"),
    ):
        done = iocflow("submit", FILE, "order", "--seed", json.dumps(seed))
        assert (done.returncode, done.stdout) == (1, "")
        assert why in done.stderr
        assert done.stderr.count("\n") == 1
    assert "known: asking, careful, order" in iocflow("submit", FILE, "orde", "--seed", "{}").stderr
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
    assert iocflow("dead", "replay", FILE, str(second)).returncode == 1
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready\n"
    assert [run["state"] for run in told("runs", FILE)] == ["failed", "completed"]
    told("retry", FILE, str(first))
    assert told("status", FILE, str(first))["state"] == "queued"


def test_a_signal_lets_a_waiting_run_go_on(iocflow: Any, submit: Submit, told: Told) -> None:
    """A run waits for a signal in the store; with it the run goes on, and a later one is dead."""
    id = submit("PO-1", processor="asking")
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready; 1 waiting\n"
    assert told("signal", FILE, "ACME", "PO-1", "approved", "--data", '{"by": "ann"}')["id"] == id
    assert iocflow("worker", FILE, "--until-idle").stdout == "no run is ready\n"
    assert told("status", FILE, str(id))["state"] == "completed"
    assert "which is kept as dead" in (late := iocflow("signal", FILE, str(id), "approved")).stderr
    assert late.returncode == 1
    assert iocflow("signal", FILE, str(id)).returncode == 2


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


class Working:
    """A worker or daemon in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log = ""

    def until(self, text: str) -> None:
        """Read the log until a line holds `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log += line
            if text in line:
                return
        raise AssertionError(self.log)

    def end(self) -> int:
        """Return the exit status."""
        self.log += self.process.communicate(timeout=SECONDS)[1]
        return self.process.returncode


@pytest.fixture
def working(start: Any, orders: Path) -> Callable[..., Working]:
    """Return a function that starts a command that goes on."""
    return lambda *arguments: Working(start(*arguments, stderr=subprocess.PIPE, text=True))


def test_a_worker_stops_in_good_order(working: Any, submit: Submit, told: Told) -> None:
    """A first SIGTERM lets the activity under way end and be recorded; the rest of the run is another worker's."""
    id = submit("PO-1", takes=1.0)
    worker = working("worker", FILE, "--threads", "1")
    worker.until("checking PO-1")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.end() == 0, worker.log
    assert "stopping: SIGTERM" in worker.log
    assert told("status", FILE, str(id))["activity"] == "check"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_worker_at_once(working: Any, submit: Submit, told: Told, number: int) -> None:
    """What it had in hand is still its own until its lease has run out."""
    id = submit("PO-1", takes=60.0)
    worker = working("worker", FILE)
    worker.until("checking PO-1")
    worker.process.send_signal(number)
    worker.until("stopping")
    time.sleep(0.2)  # an echo of the first one would be left alone
    began = time.monotonic()
    worker.process.send_signal(number)
    assert worker.end() == 5
    assert time.monotonic() - began < 10
    assert told("status", FILE, str(id))["state"] == "running"


def test_another_worker_takes_over(working: Any, submit: Submit, iocflow: Any, told: Told) -> None:
    """What a killed worker had in hand is done by the next one, when the lease has run out."""
    id = submit("PO-1", takes=0.5)
    worker = working("worker", FILE)
    worker.until("checking PO-1")
    worker.process.kill()
    worker.process.communicate()
    other = working("worker", FILE)
    assert iocflow("status", FILE, str(id), "--wait", "--timeout", "60", timeout=90).returncode == 0
    other.process.send_signal(signal.SIGTERM)
    assert other.end() == 0
    assert "lost" in [one["kind"] for one in told("history", FILE, str(id))]


def test_serve_has_a_worker_beside_the_launchers(working: Any, orders: Path, iocflow: Any, told: Told) -> None:
    """An event is submitted and settled at once; the worker of the same daemon does its run."""
    daemon = working("serve", FILE)
    daemon.until("worker: 2 threads work on runs of asking, careful, order")
    daemon.until("launcher dropped")
    draft = orders / ".one"
    draft.write_text('{"po": "PO-1", "customer": "ACME"}', encoding="utf-8")
    draft.rename(orders / "inbox" / "one.json")
    daemon.until("was submitted")
    assert iocflow("status", FILE, "1", "--wait", "--timeout", "30").returncode == 0
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.end() == 0
    assert (orders / "inbox" / "done" / "one.json").exists()
    assert told("status", FILE, "1")["state"] == "completed"
