"""The launcher that events set off: receive, run, then tell the source what became of it."""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable

from iocflow.events.source import AnsweringSource, Delivery, EventSource, Reason, Tended
from iocflow.launch.contract import Acknowledgement, Launch, Launchable
from iocflow.launch.counters import Count
from iocflow.launch.ended import Ended
from iocflow.launch.errors import ImpossibleSourceError, LockedError
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.launcher import BaseLauncher, Host
from iocflow.launch.pool import Progress, Task
from iocflow.launch.snapshot import LauncherState
from iocflow.launch.texts import error_text, printable
from iocflow.store.errors import StoreError

__all__ = ["EventLauncher"]

logger = logging.getLogger("iocflow.events")

WAIT = 0.5
"""How long, in seconds, the consumer waits for an event or a free thread at a time."""
SOON = 0.05
"""How long, when the source wants to be looked after again."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""How long it waits, in seconds, before it tries a source in trouble again."""
SILENT = 60.0
"""After how many seconds without a turn of the consumer the launcher is in trouble."""
ABANDON = 1.0
"""How long, in seconds, giving back may take after the grace time."""

NO_DATA = "refused: it has no data; write the seed of its run into the event, `{}` if the run needs nothing"
"""Why an event without data is not run: to a run, None is no seed at all, and its activities would find none."""

_Settlement = tuple[Delivery, Ended | None]
"""A delivery and how its run ended, None when it was not run."""


class EventLauncher(BaseLauncher):
    """Runs a processor for each event of a source; a thread of its own, the consumer, talks to the source.

    The consumer receives while threads of the pool are free, and only then. What a run leaves is told to the source by
    the consumer too, since many sources want to hear it from the thread that received. It is told after the run: when
    the process dies in between, the event is brought again (at least once; the idempotency key is the same). While the
    source does not take an acknowledgement, nothing more is received.

    A source in trouble is tried again after growing pauses, for ever; so is a store that cannot take durable runs, the
    events being given back. Only a source that can never be opened as it is configured, or is another process's, ends
    the daemon, and that only when it was not open before.
    """

    def __init__(self, name: str, source: EventSource, processor: Launchable) -> None:
        """Take the parts."""
        super().__init__(name, "source", source.name, processor)
        self.source = source
        self._tended = source if isinstance(source, Tended) else None
        self._ended: queue.SimpleQueue[_Settlement] = queue.SimpleQueue()
        self._unsettled: deque[_Settlement] = deque()
        self._held: set[Delivery] = set()
        self._open = False
        self._ever_open = False
        self._failures = 0
        self._untried: BaseException | None = None
        self._store_lost = False
        self._stopping = False
        self._abandoning = False
        self._over = False
        self._paused = threading.Event()
        self._thread: threading.Thread | None = None
        self._turned = 0.0

    @property
    def trouble(self) -> str:
        """What is wrong with it, empty when nothing is."""
        return self.stalled or self._trouble

    @property
    def stalled(self) -> str:
        """Whether the consumer hangs, in its source as a rule."""
        silent = self._host.clock.monotonic() - self._turned if self._thread and not self._over else 0.0
        return f"no progress for {silent:.0f} s" if silent > SILENT + max(PAUSES) else ""

    def reserve(self, host: Host) -> None:
        """Keep other processes from the source."""
        super().reserve(host)
        if isinstance(self.source, AnsweringSource):
            self.source.serve(self.name, self.processor, host)
        self.source.reserve()

    def start(self, host: Host) -> None:
        """Start the consumer, which opens the source."""
        self._lent = host
        self._thread = self._consumer()

    def heartbeat(self) -> None:
        """Replace the consumer when it died."""
        if self._thread and not self._thread.is_alive() and not self._over:
            logger.error("the consumer of launcher %s died and is replaced", self.name, extra={"launcher": self.name})
            self._thread = self._consumer()

    def stop(self) -> None:
        """Receive nothing more."""
        self._stopping = True
        self._wake()

    def finish(self, deadline: float) -> bool:
        """Wait until every event in hand is settled; give back those that are not in time."""
        if self._thread is None:
            self.source.close()
            return True
        self._thread.join(max(deadline - self._host.clock.monotonic(), 0.0))
        in_time = not self._thread.is_alive()
        if not in_time:
            self._abandoning = True
            self._wake()
            self._thread.join(ABANDON)
        self._become(LauncherState.STOPPED, self._trouble)
        return in_time

    def _consumer(self) -> threading.Thread:
        self._turned = self._host.clock.monotonic()
        thread = threading.Thread(target=self._consume, name=f"iocflow-events-{self.name}", daemon=True)
        thread.start()
        return thread

    def _wake(self) -> None:
        self._paused.set()
        self.source.wake()

    def _consume(self) -> None:
        while not self._over:
            self._turned = self._host.clock.monotonic()
            try:
                self._turn()
            except (ImpossibleSourceError, LockedError) as error:
                if self._ever_open:
                    self._open = False
                    self._in_trouble(error)
                else:
                    self._give_up(error)
            except StoreError as error:
                self._in_trouble(error)
            except Exception as error:  # noqa: BLE001  # logged, counted, and shown as the launcher's trouble
                self._open = False
                self._in_trouble(error)
            else:
                self._failures = self._failures if self._store_lost else 0

    def _turn(self) -> None:
        """Do one round: open, settle what has ended, receive what there is room for."""
        if not self._open and not self._stopping:
            self.source.open()
            self._open = self._ever_open = True
        wait = WAIT
        if self._open and self._tended:
            ready = not (self._stopping or self._untried)
            well = self._tended.tend(self._host.pool.free(self.processor.name) if ready else 0)
            wait = WAIT if well else SOON
        self._settle()
        if self._untried and not self._held and not self._stopping:
            untried, self._untried = self._untried, None
            raise untried
        if self._untried and not self._stopping:
            self._pause(WAIT)
        elif not self._stopping:
            if not self._store_lost:
                self._become(LauncherState.RUNNING)
            self._receive(wait)
        elif self._abandoning or not self._held:
            self._leave()
        else:
            self._pause(WAIT)

    def _receive(self, wait: float) -> None:
        free = self._host.pool.wait_free(self.processor.name, wait)
        for delivery in self.source.receive(free, WAIT) if free else ():
            self._held.add(delivery)
            if _refusal(delivery) or self._stopping:
                self._unsettled.append((delivery, None))
            else:
                self._host.pool.submit(Task(self.name, self.processor.name, *self._work(delivery)))

    def _work(self, delivery: Delivery) -> tuple[Callable[[Progress], None], Callable[[], None]]:
        def run(progress: Progress) -> None:
            self._end(delivery, self._host.perform(self._launch(delivery), progress))

        return run, lambda: self._end(delivery, None)

    def _launch(self, delivery: Delivery) -> Launch:
        event = delivery.event
        if event is None:
            raise ValueError(f"{delivery.name} is neither an event nor refused")
        key = f"{event.source}#{event.id}"
        return Launch(
            self.processor, self.name, event.data, idempotency_key=key, message_id=event.id, event=delivery.name
        )

    def _end(self, delivery: Delivery, ended: Ended | None) -> None:
        self._ended.put((delivery, ended))
        self._wake()

    def _settle(self) -> None:
        """Tell the source of everything that has ended; what it does not take stays first in the line."""
        while not self._ended.empty():
            self._unsettled.append(self._ended.get())
        while self._unsettled:
            self._tell(*self._unsettled[0])
            delivery, ended = self._unsettled.popleft()
            self._held.discard(delivery)
            if ended:
                self._store_lost, self._untried = ended.untried, ended.error if ended.untried else None

    def _tell(self, delivery: Delivery, ended: Ended | None) -> None:
        if ended and isinstance(self.source, AnsweringSource):
            self.source.ended(delivery, ended)
        if refusal := _refusal(delivery):
            reason = Reason(self._host.mask(refusal), self.name, self.processor.name, event_id=_event_id(delivery))
            self._dead_letter(delivery, reason)
            self.counters.add(Count.REFUSED)
        elif ended is None or ended.acknowledgement is Acknowledgement.RETURNED:
            self.source.give_back(delivery)
            self.counters.add(Count.RETURNED)
        elif ended.acknowledgement is Acknowledgement.DONE:
            self.source.acknowledge(delivery)
        else:
            self._dead_letter(delivery, self._reason(delivery, ended))

    def _reason(self, delivery: Delivery, ended: Ended) -> Reason:
        return Reason(
            reason=self._host.mask(ended.reason or f"the run ended {ended.outcome.name}"),
            launcher=self.name,
            processor=self.processor.name,
            activity=ended.failing_activity,
            run_id=ended.run_id,
            event_id=_event_id(delivery),
        )

    def _dead_letter(self, delivery: Delivery, reason: Reason) -> None:
        self.source.dead_letter(delivery, reason)
        fields = {
            "launcher": self.name,
            "processor": self.processor.name,
            "run_id": reason.run_id,
            "message_id": reason.event_id,
        }
        what = printable(reason.reason.partition("\n")[0])
        what = what if _refusal(delivery) else f"failed: {what}"
        logger.warning("launcher %s: event %s %s", self.name, delivery.name, what, extra=fields)

    def _leave(self) -> None:
        """Give back what is still in hand and let go of the source; the consumer's last turn."""
        for delivery in list(self._held):
            self.source.give_back(delivery)
            self._held.discard(delivery)
            self.counters.add(Count.RETURNED)
        self.source.close()
        self._over = True

    def _give_up(self, error: ImpossibleSourceError | LockedError) -> None:
        code = ExitCode.LOCKED if isinstance(error, LockedError) else ExitCode.CONFIGURATION
        self._become(LauncherState.RETRYING, self._host.mask(str(error)))
        self._host.give_up(code, f"launcher {self.name}: {error}")
        self._over = True

    def _in_trouble(self, error: Exception) -> None:
        self.counters.add(Count.ERRORS)
        pause = PAUSES[min(self._failures, len(PAUSES) - 1)]
        self._failures += 1
        trouble = printable(self._host.mask(error_text(error)))
        logger.warning(
            "launcher %s: %s; next try in %.0f s",
            self.name, trouble, pause, extra={"launcher": self.name}, exc_info=self._failures == 1,
        )  # fmt: skip
        self._become(LauncherState.RETRYING, trouble)
        self._pause(pause)

    def _pause(self, seconds: float) -> None:
        self._paused.wait(seconds)
        self._paused.clear()


def _refusal(delivery: Delivery) -> str:
    """Return why a delivery goes to the dead letters without a run, empty when it is to be run."""
    without_data = delivery.event is not None and delivery.event.data is None
    return delivery.refusal or (NO_DATA if without_data else "")


def _event_id(delivery: Delivery) -> str:
    return delivery.event.id if delivery.event else ""
