"""The runner of awaitables by itself: one loop in one thread, from first need to `close`."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from behaviour.parts import BrokenError
from unit.core.kit import eventually, value

from iocflow import (
    AsyncRunner,
    IocflowError,
)


async def here() -> threading.Thread:
    return threading.current_thread()


def test_the_thread_starts_at_first_need_and_ends_with_close() -> None:
    """A runner that nobody uses costs no thread; all awaitables share one."""
    runner = AsyncRunner()
    assert runner._thread is None
    (thread,) = {runner.run(here()) for _ in range(5)}
    assert thread.name == "iocflow-async"
    runner.close()
    assert not thread.is_alive()
    runner.close()


def test_the_thread_ends_when_nobody_holds_the_runner() -> None:
    """A runner that is dropped without being closed leaves no thread."""
    thread = AsyncRunner().run(here())
    gc.collect()
    assert eventually(lambda: not thread.is_alive())


def test_a_closed_runner_refuses() -> None:
    """Nothing is awaited after `close`, and no new thread starts; the coroutine is closed without a warning."""
    runner = AsyncRunner()
    runner.close()
    with pytest.raises(IocflowError, match="the async runner is closed"):
        runner.run(value(1))
    gc.collect()


def test_close_cancels_what_runs() -> None:
    """Whoever waits when the runner is closed is told, and does not wait for ever."""
    runner, began, errors = AsyncRunner(), threading.Event(), []

    async def endless() -> None:
        began.set()
        await asyncio.sleep(60)

    def wait() -> None:
        try:
            runner.run(endless())
        except IocflowError as error:
            errors.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert began.wait(5)
    runner.close()
    waiting.join(5)
    assert errors == ["what was awaited was cancelled, by itself or because the runner was closed"]


def test_closing_from_its_own_thread_does_not_wait_for_itself(runner: AsyncRunner) -> None:
    """A coroutine may close the runner that runs it; it is then cancelled."""

    async def close() -> None:
        runner.close()
        await asyncio.sleep(60)

    with pytest.raises(IocflowError, match="cancelled"):
        runner.run(close())


def test_what_it_gives(runner: AsyncRunner) -> None:
    """The result or the exception of the awaitable, which need not be a coroutine."""

    class Awaitable:
        def __await__(self) -> Any:
            return value(7).__await__()

    async def broken() -> None:
        raise BrokenError("inside")

    assert runner.run(value(3)) == 3
    assert runner.run(Awaitable(), timeout=5) == 7
    with pytest.raises(BrokenError, match="inside"):
        runner.run(broken())


def test_a_timeout_cancels(runner: AsyncRunner) -> None:
    """What takes too long is cancelled, and its clean-up is awaited."""
    cleaned = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(TimeoutError, match=r"not done within 0\.01 s"):
        runner.run(slow(), timeout=0.01)
    assert cleaned == [True]


def test_its_own_thread_is_refused(runner: AsyncRunner) -> None:
    """Waiting on the loop for the loop is an error at once."""

    async def inside() -> None:
        runner.run(value(1))

    with pytest.raises(IocflowError, match="await do_activities_async instead"):
        runner.run(inside())
    gc.collect()


@pytest.mark.parametrize("interruption", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_interruption_does_not_end_the_loop(runner: AsyncRunner, interruption: type[BaseException]) -> None:
    """A coroutine that raises SystemExit interrupts its caller, and the loop goes on for the others."""

    async def leave() -> None:
        raise interruption("bye")

    with pytest.raises(interruption):
        runner.run(leave())
    assert runner.run(value(1)) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_task_that_nobody_waits_for_cannot_hang_the_others(runner: AsyncRunner) -> None:
    """It ends the loop with its SystemExit: who waits is told, and the next awaitable gets a new loop."""

    async def leave() -> None:
        raise SystemExit(3)

    async def start() -> None:
        task = asyncio.get_running_loop().create_task(leave())
        await asyncio.sleep(60)
        await task

    with pytest.raises(IocflowError, match="cancelled"):
        runner.run(start())
    assert eventually(lambda: not runner._thread or not runner._thread.is_alive())
    assert runner.run(value(1)) == 1


def test_many_threads_share_the_loop(runner: AsyncRunner) -> None:
    """Threads that wait at the same time all get their own result, from one loop thread."""
    results: list[int] = []
    threads = [threading.Thread(target=lambda i=i: results.append(runner.run(value(i)))) for i in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(results) == list(range(50))
