"""The bounded pool of threads that all launchers share."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iocflow.launch.clock import Clock

__all__ = ["Pool", "Progress", "Task"]

logger = logging.getLogger("iocflow.launch")


class Progress:
    """What one task is doing now; the task tells, the daemon reports.

    Attributes:
        run_id: The run that goes on, empty while the task looks for work.
        since: When that began, in seconds of the monotonic clock.
    """

    def __init__(self, launcher: str, processor: str, clock: Clock) -> None:
        """Begin, without a run."""
        self.launcher = launcher
        self.processor = processor
        self._clock = clock
        self.at("")

    def at(self, run_id: str, message_id: str = "") -> None:
        """Note that the run `run_id` begins now; an empty one says that the task looks for more work."""
        self.run_id = run_id
        self.message_id = message_id
        self.since = self._clock.monotonic()


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Work for the pool.

    Attributes:
        launcher: The name of the launcher whose work it is.
        processor: The name of the processor whose `concurrency` counts.
        run: Called once, in a thread of the pool. It deals with its errors itself.
        release: Called instead when the pool closes before the task began; it must be quick.
    """

    launcher: str
    processor: str
    run: Callable[[Progress], None]
    release: Callable[[], None]


class Pool:
    """A fixed number of threads that run tasks in the order in which they came.

    A task whose processor has its full number of tasks running is passed over until one of them ends. The threads are
    daemon threads, so that one that hangs does not hold the interpreter.
    """

    def __init__(self, size: int, clock: Clock, limits: Mapping[str, int] | None = None) -> None:
        """Make a pool of `size` threads; `limits` bounds the tasks of a processor by its name."""
        self.size = size
        self._clock = clock
        self._limits = limits or {}
        self._changed = threading.Condition()
        self._queue: list[Task] = []
        self._running: dict[Task, Progress] = {}
        self._by_processor: Counter[str] = Counter()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._moved = clock.monotonic()

    def start(self) -> None:
        """Start the threads."""
        self._threads = [self._thread(number) for number in range(1, self.size + 1)]

    def submit(self, task: Task) -> None:
        """Queue a task; when the pool is closed it is released at once, in the calling thread."""
        with self._changed:
            if not self._closed:
                if not self._busy:
                    self._moved = self._clock.monotonic()
                self._queue.append(task)
                self._changed.notify_all()
                return
        task.release()

    def free(self, processor: str) -> int:
        """Return how many tasks of that processor could begin at once."""
        with self._changed:
            return self._free(processor)

    def wait_free(self, processor: str, timeout: float) -> int:
        """Wait until a task of that processor could begin, for `timeout` seconds at most; return how many could."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._free(processor) > 0, timeout)
            return self._free(processor)

    def close(self) -> None:
        """Take no more tasks and release those that have not begun."""
        with self._changed:
            self._closed = True
            waiting, self._queue = self._queue, []
            self._changed.notify_all()
        for task in waiting:
            task.release()

    def wait_idle(self, timeout: float) -> bool:
        """Wait until nothing runs, for `timeout` seconds at most; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, timeout)

    @property
    def queued(self) -> int:
        """How many tasks wait for a thread."""
        return len(self._queue)

    def in_hand(self) -> list[Progress]:
        """Return what is running, the oldest first."""
        with self._changed:
            return list(self._running.values())

    def heartbeat(self) -> None:
        """Replace threads that died, which no task of ours can bring about, but a debugger or a C extension can."""
        for at, thread in enumerate(self._threads):
            if not thread.is_alive() and not self._closed:
                logger.error("thread %s of the pool died and is replaced", thread.name)
                self._threads[at] = self._thread(at + 1)

    def stalled(self, seconds: float) -> bool:
        """Whether tasks wait, or none could begin, and no task began or ended for that long."""
        with self._changed:
            return self._busy and self._clock.monotonic() - self._moved > seconds

    @property
    def _busy(self) -> bool:
        return bool(self._queue) or len(self._running) >= self.size

    def _thread(self, number: int) -> threading.Thread:
        thread = threading.Thread(target=self._work, name=f"iocflow-pool-{number}", daemon=True)
        thread.start()
        return thread

    def _free(self, processor: str) -> int:
        if self._closed:
            return 0
        free = self.size - len(self._running) - len(self._queue)
        if processor in self._limits:
            waiting = sum(task.processor == processor for task in self._queue)
            free = min(free, self._limits[processor] - self._by_processor[processor] - waiting)
        return max(free, 0)

    def _work(self) -> None:
        while (task := self._take()) is not None:
            try:
                task.run(self._running[task])
            except BaseException:  # the thread has to live on, whatever a task lets through
                logger.exception("a task of launcher %s raised", task.launcher, extra={"launcher": task.launcher})
            finally:
                self._done(task)

    def _take(self) -> Task | None:
        with self._changed:
            while (task := self._startable()) is None:
                if self._closed:
                    return None
                self._changed.wait()
            self._queue.remove(task)
            self._running[task] = Progress(task.launcher, task.processor, self._clock)
            self._by_processor[task.processor] += 1
            self._moved = self._clock.monotonic()
            return task

    def _startable(self) -> Task | None:
        for task in self._queue:
            limit = self._limits.get(task.processor)
            if limit is None or self._by_processor[task.processor] < limit:
                return task
        return None

    def _done(self, task: Task) -> None:
        with self._changed:
            del self._running[task]
            self._by_processor[task.processor] -= 1
            self._moved = self._clock.monotonic()
            self._changed.notify_all()
