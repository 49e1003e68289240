"""One event loop in a thread of its own, on which a synchronous engine awaits."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
import weakref
from collections.abc import Awaitable, Coroutine, Iterable
from contextvars import Context
from typing import Any, Self, TypeVar

from iocflow.errors import IocflowError

T = TypeVar("T")


class AsyncRunner:
    """Runs awaitables for threads that wait for them.

    The loop's thread starts at first need, and ends with `close`, or when nobody holds the runner any more.
    """

    def __init__(self) -> None:
        """Make a runner without a thread yet."""
        self._lock = threading.Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._waits: dict[int, concurrent.futures.Future[Any]] = {}

    def run(self, awaitable: Awaitable[T], timeout: float | None = None) -> T:
        """Return what `awaitable` gives; log records on the loop carry the caller's run.

        Raises:
            TimeoutError: It took longer than `timeout` seconds, and was cancelled.
            IocflowError: The runner is closed, or was while this waited, or this is its own thread.
        """
        work = _awaited(awaitable, timeout)
        try:
            future = self._begun(work)
        except IocflowError:
            for unused in (work, awaitable):
                if inspect.iscoroutine(unused):
                    unused.close()
            raise
        self._waits[threading.get_ident()] = future
        try:
            result, interruption = future.result()
        except concurrent.futures.CancelledError as error:
            raise IocflowError("what was awaited was cancelled, by itself or because the runner was closed") from error
        except BaseException:
            future.cancel()
            raise
        finally:
            del self._waits[threading.get_ident()]
        if interruption is not None:
            raise interruption
        return result  # type: ignore[return-value]

    def cancel(self, threads: Iterable[int]) -> None:
        """Cancel what the threads with these idents wait for."""
        for future in filter(None, map(self._waits.get, threads)):
            future.cancel()

    def refuse_own_thread(self) -> None:
        """Raise when called on the loop, which would wait for itself for ever."""
        if threading.current_thread() is self._thread:
            raise IocflowError("a run cannot be waited for on the loop that runs it: await do_activities_async instead")

    def close(self) -> None:
        """Cancel what still runs, and end the thread, for good."""
        with self._lock:
            self._closed, loop, thread = True, self._loop, self._thread
        if loop is not None and thread is not None:
            _stop(loop)
            if threading.current_thread() is not thread:
                thread.join()

    def _begun(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Hand `work` to the loop; under the lock, so that `close` finds it there."""
        self.refuse_own_thread()
        with self._lock:
            if self._closed:
                raise IocflowError("the async runner is closed, and awaits nothing any more")
            # It ends before its time when a task that nobody waits for raises SystemExit.
            if self._loop is None or self._loop.is_closed():
                # A loop keeps the context that it was made in; the caller's would keep the caller's run.
                self._loop = Context().run(asyncio.new_event_loop)
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="iocflow-async", daemon=True)
                self._thread.start()
                weakref.finalize(self, _stop, self._loop)
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def __enter__(self) -> Self:
        """Return the runner."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


async def _awaited(awaitable: Awaitable[T], timeout: float | None) -> tuple[T | None, BaseException | None]:
    """Return what was awaited, or what would end the loop's thread if it were raised there."""
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await awaitable, None
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeoutError(f"not done within {timeout:.3g} s") from error
    except (KeyboardInterrupt, SystemExit) as interruption:
        return None, interruption


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
