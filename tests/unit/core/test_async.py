"""Awaitables in runs, and interruptions while they are awaited."""

from __future__ import annotations

import asyncio
import functools
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from behaviour.parts import Box, BrokenError, add, add_later, fail
from unit.core.conftest import Wire
from unit.core.kit import eventually, inner, value

from iocflow import (
    CONTINUE,
    PASS,
    STOP,
    Activity,
    AsyncRunner,
    GoTo,
    IocflowError,
    OnError,
    ParallelSplitProcessor,
    RetryingErrorHandler,
    SequenceProcessor,
    activity,
)


async def here() -> threading.Thread:
    return threading.current_thread()


class Later(Activity[Box]):
    """An activity whose `execute` is a coroutine function."""

    async def execute(self, context: Box) -> str:
        await asyncio.sleep(0)
        context.n += 1
        return "later"


def test_async_activities(wire: Wire) -> None:
    """`async def` is as good, in a class or a function; results count as from other activities."""
    run = wire(Later(), add, add_later, lambda context: value("lambda")).do_activities()
    assert run.context.n == 3
    assert [(step.activity, step.result) for step in run.steps] == [
        ("later", "later"),
        ("add", None),
        ("add-later", None),
        ("lambda", "lambda"),
    ]


def test_an_awaited_context_is_the_context_from_now_on(wire: Wire) -> None:
    """An awaitable may give a new context."""
    other = Box()
    other.n = 41
    assert wire(lambda context: value(other), add).do_activities().context.n == 42


@pytest.mark.parametrize("result", [7, value, object()])
def test_an_awaitable_may_not_give_anything_else(wire: Wire, result: object) -> None:
    """What is awaited is checked as what is returned."""
    error = wire(lambda context: value(result)).launch().error
    assert isinstance(error, TypeError)
    assert "lambda returned a " in str(error)


def test_generators_are_refused(wire: Wire) -> None:
    """An `execute` with a `yield` in it would silently do nothing: it is refused, when it is run at the latest."""

    def generator(context: Box) -> Iterator[None]:
        context.n += 1
        yield

    async def async_generator(context: Box) -> Any:
        context.n += 1
        yield

    for one, kind in ((generator, "generator"), (async_generator, "async_generator")):
        with pytest.raises(TypeError, match=rf"{one.__name__} yields, and nobody takes what it yields"):
            wire(one)
        run = wire(functools.partial(lambda one, context: one(context), one)).launch()
        assert str(run.error).startswith(f"lambda returned a {kind}: ")


def test_one_loop_for_a_processor() -> None:
    """Runs in many threads at once, and the branches of a split, await on one loop thread."""
    seen = set()

    async def look(context: Box) -> None:
        seen.add(threading.current_thread())
        await asyncio.sleep(0.005)

    split = ParallelSplitProcessor({str(i): look for i in range(5)}, context=Box)
    processor = SequenceProcessor([look, split, look], context=Box)
    threads = [threading.Thread(target=processor.do_activities) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    (loop,) = seen
    del processor, split, threads, thread
    gc.collect()
    assert eventually(lambda: not loop.is_alive())


def test_branches_await_at_the_same_time() -> None:
    """Async branches really overlap: each waits for the others."""
    barrier = []

    async def meet(context: Box) -> None:
        barrier.append(1)
        while len(barrier) < 3:
            await asyncio.sleep(0.001)

    run = ParallelSplitProcessor({"a": meet, "b": meet, "c": activity(meet, time_limit=5)}, context=Box).do_activities()
    assert run.outcome.name == "COMPLETED"


def test_a_given_runner_is_used(runner: AsyncRunner, wire: Wire) -> None:
    """A bare processor takes `async_runner=`, and leaves closing it to its owner."""
    seen = set()

    async def look(context: Box) -> None:
        seen.add(threading.current_thread())

    processor = wire(look, look, async_runner=runner)
    processor.do_activities()
    assert seen == {runner._thread}
    del processor
    gc.collect()
    assert runner.run(value(1)) == 1


def test_a_closed_runner_fails_the_activity(wire: Wire) -> None:
    """A run after the application was closed says so."""
    runner = AsyncRunner()
    runner.close()
    run = wire(add, add_later, async_runner=runner).launch()
    assert "the async runner is closed" in str(run.error)
    assert run.context.n == 1


def test_a_failing_coroutine_is_an_error_like_others(wire: Wire) -> None:
    """Handlers decide, retries run it again."""

    async def flaky(context: Box) -> None:
        context.n += 1
        await asyncio.sleep(0)
        if context.step.attempt < 3:
            raise BrokenError("not yet")

    run = wire(activity(flaky, on_error=RetryingErrorHandler(3)), activity(flaky, on_error=CONTINUE)).do_activities()
    assert [(step.outcome.name, step.attempts) for step in run.steps] == [("DONE", 3), ("HANDLED", 1)]


def test_a_coroutine_that_cancels_itself_fails(wire: Wire) -> None:
    """A CancelledError from inside is an error of the activity, and hangs nobody."""

    async def give_up(context: Box) -> None:
        raise asyncio.CancelledError

    run = wire(activity(give_up, on_error=CONTINUE), add).do_activities()
    assert [step.outcome.name for step in run.steps] == ["HANDLED", "DONE"]


@pytest.mark.parametrize(
    "steps", [[add], [add_later], [activity(fail, on_error=CONTINUE)], [activity(add, time_limit=5)]]
)
def test_waiting_on_the_loop_is_refused(wire: Wire, steps: list[Any], runner: AsyncRunner) -> None:
    """An async activity that calls the synchronous `do_activities` of its application gets an error, and no hang."""
    other = wire(*steps, async_runner=runner)

    async def call(context: Box) -> None:
        other.do_activities()

    run = wire(call, async_runner=runner).launch()
    assert isinstance(run.error, IocflowError)
    assert "await do_activities_async instead" in str(run.error)


def test_awaiting_on_the_loop_is_fine(wire: Wire, runner: AsyncRunner) -> None:
    """An async activity may await the run of another processor, which itself awaits on the same loop."""
    other = wire(add_later, add, async_runner=runner)

    async def call(context: Box) -> None:
        context.n = (await other.do_activities_async()).context.n

    assert wire(call, async_runner=runner).do_activities().context.n == 2


def test_runs_inside_of_a_loop_of_the_users(wire: Wire) -> None:
    """`do_activities` works in a running loop (which waits), `do_activities_async` beside it (which goes on)."""
    processor = wire(add_later, add, activity(fail, on_error=CONTINUE))

    async def main() -> list[int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        here = processor.do_activities()
        assert ticks == 0
        runs = await asyncio.gather(*(processor.do_activities_async() for _ in range(10)))
        assert ticks > 0
        ticking.cancel()
        return [run.context.n for run in (here, *runs)]

    assert asyncio.run(main()) == [2] * 11


def test_two_loops(wire: Wire) -> None:
    """An awaitable that belongs to another loop is an error of the activity."""
    foreign = asyncio.new_event_loop()
    future = foreign.create_future()
    run = wire(lambda context: future).launch()
    foreign.close()
    assert isinstance(run.error, RuntimeError)
    assert "different loop" in str(run.error)


@pytest.mark.parametrize("error", [BrokenError("x"), StopIteration("x"), StopAsyncIteration("x")])
def test_do_activities_async_raises_what_do_activities_raises(wire: Wire, error: Exception) -> None:
    """Also exceptions that mean something else to generators and futures: they may change, but they never hang."""

    def broken(context: Box) -> None:
        raise error

    async def broken_later(context: Box) -> None:
        raise error

    async def main(processor: Any) -> None:
        await asyncio.wait_for(processor.do_activities_async(), 5)

    with pytest.raises(type(error)):
        wire(broken).do_activities()
    for one in (broken, broken_later):
        with pytest.raises((type(error), RuntimeError)) as raised:
            asyncio.run(main(wire(one)))
        assert raised.value is error or "raised Stop" in str(raised.value)


INTERRUPTED = """
import asyncio, signal, threading, time
from iocflow import ProcessContext, SequenceProcessor, activity, CONTINUE, ParallelSplitProcessor

class Context(ProcessContext):
    pass

cancelled = threading.Event()
asked, after, events = [], [], []

async def endless(context):
    main = threading.main_thread().ident
    threading.Timer(0.05, signal.pthread_kill, [main, signal.SIGINT]).start()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled.set()
        raise

class Ask:
    def handle_error(self, context, error):
        asked.append(error)
        return CONTINUE

processor = SequenceProcessor([endless, after.append], context=Context, on_error=Ask(), finally_=[after.append],
    observers=[lambda event: events.append((type(event).__name__, getattr(event, "outcome", None)))])
began = time.monotonic()
try:
    processor.do_activities()
except KeyboardInterrupt:
    quick = time.monotonic() - began < 9
    print("interrupted", cancelled.wait(5), asked, after, events[-1][0], events[-1][1].name, quick)
"""


def test_keyboard_interrupt_while_waiting() -> None:
    """Ctrl-C ends the wait at once and cancels the awaitable; no handler, no `finally`, and INTERRUPTED."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "interrupted True [] [] RunFinished INTERRUPTED True\n"
    assert done.stderr == ""


def test_a_process_ends_without_closing_anything() -> None:
    """A script that never closes its processor ends at once, without a word on stderr, also with tasks left over."""
    script = """
import asyncio
from iocflow import ProcessContext, SequenceProcessor

class Context(ProcessContext):
    pass

async def leave_a_task(context):
    context.task = asyncio.get_running_loop().create_task(asyncio.sleep(60))

run = SequenceProcessor([leave_a_task], context=Context).do_activities()
print(run.outcome.name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=20)
    assert (done.stdout, done.stderr) == ("COMPLETED\n", "")


# Handlers.


def later(decision: Any) -> Any:
    """A handler that decides on the loop."""

    class Deciding:
        async def handle_error(self, context: Any, error: Exception) -> Any:
            await asyncio.sleep(0)
            if isinstance(decision, Exception):
                raise decision
            return decision

    return Deciding()


@pytest.mark.parametrize("wrapped", [later, lambda decision: OnError(BrokenError, later(decision))])
@pytest.mark.parametrize(
    ("decision", "outcome", "trail"),
    [
        (CONTINUE, "COMPLETED", [("fail", "HANDLED"), ("add", "DONE")]),
        (None, "COMPLETED", [("fail", "HANDLED"), ("add", "DONE")]),
        (STOP, "STOPPED", [("fail", "STOPPED")]),
        (PASS, "FAILED", [("fail", "FAILED")]),
        (GoTo("add"), "COMPLETED", [("fail", "HANDLED"), ("add", "DONE")]),
        (7, "FAILED", [("fail", "FAILED")]),
        (LookupError("the handler broke"), "FAILED", [("fail", "FAILED")]),
    ],
)
def test_handlers_may_be_coroutine_functions(
    wire: Wire, wrapped: Any, decision: Any, outcome: str, trail: list[tuple[str, str]]
) -> None:
    """What they decide, or raise, counts as that of other handlers, behind an error rule too."""
    run = wire(activity(fail, on_error=wrapped(decision)), add).launch()
    assert (run.outcome.name, [(step.activity, step.outcome.name) for step in run.steps]) == (outcome, trail)
    if decision == 7:
        assert str(run.error).endswith("returned 7: a Decision or None is wanted")
    run = wire(fail, on_error=wrapped(STOP)).launch()
    assert run.outcome.name == "STOPPED"


def test_a_handler_is_awaited_as_long_as_the_limit_around_it_lasts(wire: Wire) -> None:
    """The step's own limit may be over, for that is what it decides about; one around it cancels the handler."""

    class Slow:
        async def handle_error(self, context: Any, error: Exception) -> Any:
            await asyncio.sleep(0.02)
            return CONTINUE

    class Endless:
        async def handle_error(self, context: Any, error: Exception) -> Any:
            await asyncio.sleep(60)

    async def endless(context: Any) -> None:
        await asyncio.sleep(60)

    run = wire(activity(endless, time_limit=0.01, on_error=Slow())).do_activities()
    assert run.steps[0].outcome.name == "HANDLED"
    run = wire(activity(inner(fail, on_error=Endless()), time_limit=0.05)).launch()
    assert str(run.error).startswith("the time limit of inner is over: not done within")
