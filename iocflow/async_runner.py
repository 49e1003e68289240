"""One event loop in a thread of its own, on which a synchronous engine awaits."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable
from typing import Any, Self, TypeVar

from iocflow.errors import IocflowError

__all__ = ["AsyncRunner"]

T = TypeVar("T")


class AsyncRunner:
    """Runs awaitables for threads that wait for them; the loop's thread starts at first need and ends with `close`."""

    def __init__(self) -> None:
        """Make a runner without a thread yet."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, awaitable: Awaitable[T], timeout: float | None = None) -> T:
        """Return what `awaitable` gives; log records on the loop carry the caller's run.

        Raises:
            TimeoutError: It took longer than `timeout` seconds, and was cancelled.
        """
        self.refuse_own_thread()
        future = asyncio.run_coroutine_threadsafe(_awaited(awaitable, timeout), self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def refuse_own_thread(self) -> None:
        """Raise when called on the loop, which would wait for itself for ever."""
        if threading.current_thread() is self._thread:
            raise IocflowError("a run cannot be waited for on the loop that runs it: await do_activities_async instead")

    def close(self) -> None:
        """Cancel what still runs, and end the thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="iocflow-async", daemon=True)
                self._thread.start()
            return self._loop

    def __enter__(self) -> Self:
        """Return the runner."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


async def _awaited(awaitable: Awaitable[T], timeout: float | None) -> T:
    async with asyncio.timeout(timeout):
        return await awaitable


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    tasks: set[asyncio.Task[Any]] = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    with contextlib.closing(loop):
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
