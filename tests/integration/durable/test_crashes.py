"""What is left when a process was killed: the memo, steps in doubt, groups, and who is to blame."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from iocflow import SequenceProcessor, activity
from iocflow.activity import FunctionActivity
from tests.integration.durable.house import House, Ledger
from tests.integration.durable.program import LEASE, Mailing, count, processors


class Other:
    """A worker in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def until(self, word: str) -> list[str]:
        """Read what it says until it says `word`; return all of it."""
        assert self.process.stdout is not None
        said: list[str] = []
        while word not in said:
            line = self.process.stdout.readline()
            assert line, f"it ended before it said {word}: {said}"
            said.append(line.strip())
        return said

    def kill(self) -> None:
        """Kill it, with nothing it could do about it."""
        self.process.kill()
        self.process.wait(20)


@contextmanager
def another(house: House) -> Iterator[Other]:
    """Start a worker in another process, and see to it that it is gone."""
    program = [sys.executable, "-m", "tests.integration.durable.program", house.kit.url]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
        try:
            yield Other(process)
        finally:
            process.kill()


def took_over(house: House) -> None:
    """Let the lease of the process that was killed run out, and work here."""
    house.kit.advance(LEASE + 1)
    house.eventually(lambda: house.store.sweep(deliveries=5).workers)
    house.work()


def test_the_memo_survives_a_kill(house: House) -> None:
    """Each assignment to the memo is durable before it returns: after SIGKILL, another process knows who was served."""
    house.jobs.update(processors())
    run = house.submit("mailing", ["ann", "bob", "cyd"])
    with another(house) as other:
        said = other.until("sleepy")
        other.kill()
    assert [word for word in said if word.startswith("sent")] == ["sent ann", "sent bob"]
    ledger = Ledger()

    def mail(context: Mailing) -> None:
        memo = context.step.memo
        ledger.note(context, dict(memo))
        for name in context.seed_data:
            if name not in memo:
                memo[name] = "sent"
                ledger.note(context, name)
        context.sent = tuple(memo)

    mended = FunctionActivity(mail, name="mail-two")
    house.wire(SequenceProcessor([count, activity(mended, name="mail")], context=Mailing, name="mailing"))
    took_over(house)
    status = house.client.status(run)
    assert (status.state, status.deliveries) == ("completed", 1)
    assert ledger.whats == [{"ann": "sent", "bob": "sent"}, "cyd"]
    assert house.context(run).sent == ("ann", "bob", "cyd")
    assert house.context(run).n == 1
    assert ledger.effects == 1


def test_k6(house: House) -> None:
    """K6: a step with `on_lost: incident` whose worker was killed is not repeated: the run is suspended, in doubt."""
    house.jobs.update(processors())
    again, done = [house.submit("risky", []) for _ in range(2)]
    with another(house) as other:
        other.until("sleepy")
        other.until("sleepy")
        other.kill()
    ledger = Ledger()
    quick = FunctionActivity(ledger.note, name="sleep")
    risky = SequenceProcessor([count, activity(quick, on_lost="incident")], context=Mailing, name="risky")
    house.wire(risky)
    took_over(house)
    for run in (again, done):
        status = house.client.status(run)
        assert (status.state, status.activity) == ("suspended", "sleep")
        assert "in doubt" in status.reason
    assert ledger.calls == []
    (began,) = [entry for entry in house.client.history(again) if entry.kind == "begun"]
    assert began.name == "sleep"
    assert house.client.retry(again, who="ann", why="it did not arrive")
    assert house.client.retry(done, who="ann", why="it arrived", done=True)
    house.work()
    assert house.wait_all([again, done]) == ["completed"] * 2
    assert house.trail(again) == house.trail(done) == "count, sleep"
    assert len(ledger.calls) == 1
    before = ["submitted", "step", "begun", "lost", "suspended", "retry", "doubt"]
    assert house.kinds(again) == [*before, "begun", "step", "ended"]
    assert house.kinds(done) == [*before, "step", "ended"]


def test_a_memo_does_not_take_the_doubt_away(house: House) -> None:
    """A step with `on_lost: incident` that changed its memo before the kill is in doubt all the same."""
    house.jobs.update(processors())
    again, done = [house.submit("careful", ["ann", "bob", "cyd"]) for _ in range(2)]
    with another(house) as other:
        other.until("sleepy")
        other.until("sleepy")
        other.kill()
    ledger = Ledger()
    mended = FunctionActivity(lambda context: ledger.note(context, dict(context.step.memo)), name="mail-two")
    house.wire(SequenceProcessor([activity(mended, name="mail", on_lost="incident")], context=Mailing, name="careful"))
    took_over(house)
    for run in (again, done):
        status = house.client.status(run)
        assert (status.state, status.activity) == ("suspended", "mail")
        assert "in doubt" in status.reason
    assert ledger.calls == []
    assert house.client.retry(again, who="ann", why="bob got none")
    assert house.client.retry(done, who="ann", why="bob got it", done=True)
    house.work()
    assert house.wait_all([again, done]) == ["completed"] * 2
    assert ledger.whats == [{"ann": "sent", "bob": "sent"}]


def test_doubt_outlasts_workers_that_die(house: House) -> None:
    """A step that is in doubt again after a retry is told of by its last beginning, and each beginning once."""
    house.jobs.update(processors())
    run = house.submit("risky", [])
    for _ in range(2):
        with another(house) as other:
            other.until("sleepy")
            other.kill()
        house.kit.advance(LEASE + 1)
        house.eventually(lambda: house.store.sweep(deliveries=5).workers)
        house.work()
        status = house.client.status(run)
        assert (status.state, status.activity) == ("suspended", "sleep")
        began = [entry for entry in house.client.history(run) if entry.kind == "begun"]
        assert began[-1].began is not None
        assert datetime.fromtimestamp(began[-1].began, UTC).isoformat(timespec="seconds") in status.reason
        assert house.client.retry(run, who="ann", why="it did not arrive")
    assert house.kinds(run).count("begun") == 2


def test_a_killed_worker_is_blamed_on_the_run_under_way(house: House) -> None:
    """Of what a killed worker had in hand, only what it worked on counts a delivery; what waited behind it does not."""
    house.jobs.update(processors())
    first, second = [house.submit("slow", [], group="G") for _ in range(2)]
    with another(house) as other:
        other.until("sleepy")
        other.kill()
    quick = FunctionActivity(Ledger().note, name="sleep")
    house.wire(SequenceProcessor([count, quick, count], context=Mailing, name="slow"))
    took_over(house)
    assert house.wait_all([first, second]) == ["completed"] * 2
    assert [house.client.status(run).deliveries for run in (first, second)] == [1, 0]
    assert house.trail(first) == house.trail(second) == "count, sleep, count"
    assert house.context(first).n == 2
    assert house.kinds(first) == ["submitted", "step", "lost", "step", "step", "ended"]
