"""Activities in processes of their own: what comes back, and what becomes of those that hang or crash."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iocflow import RetryingErrorHandler, SequenceProcessor, activity
from iocflow.durable.engine import DurableEngine
from iocflow.durable.job import Job
from iocflow.durable.settings import WorkerSettings
from iocflow.errors import RecordedError
from iocflow.isolation import IsolatedActivity, IsolatedProcessError, IsolationError
from iocflow.run import Run
from iocflow.store import open_store
from tests.integration.isolation.parts import Do, PlainError, Work

Isolate = Callable[[str], IsolatedActivity]

PATIENCE = 20.0


@pytest.fixture
def isolate() -> Iterator[Isolate]:
    """Return a function that makes an isolated activity; its processes end with the test."""
    with contextlib.ExitStack() as stack:

        def made(word: str) -> IsolatedActivity:
            one = IsolatedActivity(functools.partial(Do, word), word)
            stack.callback(one.close)
            return one

        yield made


def run(one: IsolatedActivity, **options: Any) -> Run[Work]:
    """Run it alone, here and now."""
    return SequenceProcessor([activity(one, **options)], context=Work).launch(None)


def gone(pid: int) -> bool:
    """Return whether a process has ended; one that nobody has waited for has, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def eventually(look: Callable[[], Any]) -> None:
    """Wait until `look` returns something."""
    end = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("word", "code", "told"),
    [("leave", 3, "exit code 3"), ("exit-politely", 4, "exit code 4"), ("crash", -signal.SIGSEGV, "signal SIGSEGV")],
)
def test_a_crash_fails_the_attempt(isolate: Isolate, word: str, code: int, told: str) -> None:
    """The interpreter of the activity is gone, this one goes on, and the error says how it ended."""
    done = run(isolate(word))
    assert (done.outcome.name, done.context.n) == ("FAILED", 0)
    assert isinstance(done.error, IsolatedProcessError)
    assert done.error.code == code
    assert str(done.error) == f"the process of {word} ended with {told}"


@pytest.mark.parametrize("word", ["hold-the-lock", "sleep"])
def test_what_hangs_is_killed(isolate: Isolate, word: str) -> None:
    """A time limit ends code that no thread can be ended in, and the processes that it started."""
    memo: dict[str, Any] = {}

    def keep(step: Any, context: Work, proceed: Callable[[], Any]) -> Any:
        try:
            return proceed()
        finally:
            memo.update(step.memo)

    hook = type("Keep", (), {"around_step": staticmethod(keep)})()
    step = activity(isolate(word), time_limit=1.0)
    done: Run[Work] = SequenceProcessor([step], context=Work, interceptors=[hook]).launch(None)
    assert isinstance(done.error, TimeoutError)
    assert "took longer than its time limit" in str(done.error)
    if word == "sleep":
        eventually(lambda: gone(memo["child"]))


def test_an_enclosing_limit_kills_too(isolate: Isolate) -> None:
    """It need not be the activity's own limit."""
    inner = SequenceProcessor([isolate("hold-the-lock")], context=Work, name="inner")
    done: Run[Work] = SequenceProcessor([activity(inner, time_limit=1.0)], context=Work).launch(None)
    assert isinstance(done.error, TimeoutError)


@pytest.mark.parametrize(
    ("word", "outcome", "fields"),
    [
        ("nothing", "COMPLETED", {"n": 1}),
        ("stop", "STOPPED", {"n": 1, "stop_reason": "enough"}),
        ("find-nothing", "STOPPED", {"stop_reason": "nothing to do"}),
        ("replace", "COMPLETED", {"n": 100, "heard": "other"}),
        ("forget", "COMPLETED", {"heard": {"a": [1, 2]}, "lost": "there"}),
        ("wait-a-little", "COMPLETED", {"heard": "awaited"}),
    ],
)
def test_what_it_does_to_the_context_comes_back(
    isolate: Isolate, word: str, outcome: str, fields: dict[str, Any]
) -> None:
    """Changed, new and deleted fields, a stop, another context: as if it had run here."""
    steps = [lambda context: setattr(context, "lost", "set"), isolate(word)]
    done: Run[Work] = SequenceProcessor(steps, context=Work).launch(None)
    assert done.outcome.name == outcome
    assert {name: getattr(done.context, name) for name in fields} == fields
    assert done.idle == (word == "find-nothing")


def test_unchanged_fields_are_the_same_objects(isolate: Isolate) -> None:
    """Only what it changed is set: a join of branches, which looks for new objects, finds no others."""
    mark: list[int] = []
    process = SequenceProcessor([lambda context: setattr(context, "heard", mark), isolate("nothing")], context=Work)
    assert process.launch(None).context.heard is mark


def test_errors_come_back(isolate: Isolate) -> None:
    """As themselves with the place where they were raised, or, if their class does not allow it, as what they were."""
    done = run(isolate("fail"))
    assert isinstance(done.error, PlainError)
    assert "in the process of fail" in "".join(done.error.__notes__)
    assert "in fail\n" in "".join(done.error.__notes__)
    assert done.context.n == 1
    stubborn = run(isolate("fail-stubbornly")).error
    assert isinstance(stubborn, RecordedError)
    assert (str(stubborn), stubborn.names[1]) == ("no: never", "ValueError")


def test_what_is_no_data_is_named(isolate: Isolate) -> None:
    """A field that cannot pass fails the attempt, on the way there and back, and the message names it."""
    for word, prepare in (("nothing", threading.Lock), ("keep-a-lock", lambda: None)):
        steps = [lambda context, made=prepare: setattr(context, "thing", made()), isolate(word)]
        error = SequenceProcessor(steps, context=Work).launch(None).error
        assert isinstance(error, IsolationError)
        assert re.match(rf"Work.thing cannot pass between the processes of {word} .*lock", str(error))


def test_a_process_serves_one_attempt_after_another(isolate: Isolate) -> None:
    """It is used again, another one takes the place of one that is gone, and closing ends it."""
    one = isolate("nothing")
    first, again = run(one).context.pid, run(one).context.pid
    assert first == again != os.getpid()
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not one._idle[0].alive)
    another = run(one)
    assert another.outcome.name == "COMPLETED"
    one.close()
    assert gone(another.context.pid)


def test_the_memo_and_the_log_come_at_once(isolate: Isolate, caplog: pytest.LogCaptureFixture) -> None:
    """What an attempt that crashed had noted is there for the next one, and its log records are this process's."""
    caplog.set_level(logging.INFO)
    done = run(isolate("remember"), on_error=RetryingErrorHandler(2))
    assert done.context.heard == {"seen": [1, 2]}
    assert [one.getMessage() for one in caplog.records if one.name == "parts"] == [
        "attempt 1 of remember",
        "attempt 2 of remember",
    ]


def test_the_time_that_is_left_is_known_there(isolate: Isolate) -> None:
    """`remaining` counts down to the limit that holds here."""
    done = run(isolate("left"), time_limit=30.0)
    assert 20 < done.context.heard <= 30


def test_what_cannot_be_sent_is_refused_when_it_is_wired() -> None:
    """A lambda cannot be pickled."""
    with pytest.raises(IsolationError, match="what makes work cannot go to its process"):
        IsolatedActivity(lambda: Do("nothing"), "work")


def test_it_ends_with_the_process_that_started_it() -> None:
    """Also when that is killed, and the activity holds the interpreter's lock."""
    code = (
        "import functools; from iocflow import SequenceProcessor; from iocflow.isolation import IsolatedActivity;"
        "from tests.integration.isolation.parts import *;"
        "works = [IsolatedActivity(functools.partial(Do, word), word) for word in ('nothing', 'hold-the-lock')];"
        "print(SequenceProcessor(works[:1], context=Work).launch(None).context.pid, flush=True);"
        "SequenceProcessor(works[1:], context=Work).launch(None)"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root) as parent:
        assert parent.stdout is not None
        idle = int(parent.stdout.readline())
        children: set[int] = set()
        eventually(lambda: children.update(_children(parent.pid)) or len(children - {idle}) == 1)
        time.sleep(0.5)  # until it is in the middle of it
        parent.kill()
    for child in children:
        eventually(lambda child=child: gone(child))


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text(encoding="utf-8").split()]


def test_in_a_durable_run(isolate: Isolate, tmp_path: Path) -> None:
    """It waits for signals, keeps its memo over a crash, and leaves the group a state, as any activity does."""
    steps = [activity(isolate("remember"), on_error=RetryingErrorHandler(2)), isolate("listen")]
    process = SequenceProcessor(steps, context=Durable, name="job")
    with contextlib.closing(open_store(f"sqlite:///{tmp_path}/store.db")) as store:
        engine = DurableEngine(store, {"job": Job(process)}, WorkerSettings(tick=0.05))
        runs = [engine.client.submit("job", None, group="g").id for _ in range(2)]
        for id in runs:
            engine.client.signal(id, "go", {"by": "ann"})
            engine.run_until_closed(id)
            done = engine.run_of(id)
            assert (done.outcome.name, done.context.heard) == ("COMPLETED", {"by": "ann"})
        assert store.status(runs[1]) is not None
        assert [step.attempts for step in done.steps] == [2, 1]


class Durable(Work):
    """The same, of fields that can be stored."""

    seed_data: None
    heard: dict[str, str | list[int]] | None = None
    thing: None = None
