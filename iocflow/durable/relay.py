"""The relay: sends the events that durable runs left in the store, at least once, those of a run in their order."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from iocflow.durable.job import Job
from iocflow.durable.outgoing import Addressed, Publisher, PublishError, Publishing, PublishRefusedError
from iocflow.errors import record_of
from iocflow.store.contract import Store
from iocflow.store.errors import StoreError
from iocflow.store.outbox import Outgoing

__all__ = ["Relay", "publishers_of"]

_LOGGER = logging.getLogger("iocflow.durable")

LOOK_EVERY = 0.25
"""Seconds between two looks into an outbox that was empty."""
ELSEWHERE = 2.0
"""Seconds between two tries to become the relay while another process is."""
NOTE_EVERY = 0.05
"""Seconds between two notes of what was sent: what was sent since the last one is sent again after a crash."""
PAGE = 200
PAUSES = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds between tries to send while there is trouble; the last one from then on."""


def publishers_of(jobs: Iterable[Job]) -> dict[str, Publisher]:
    """Return the publishers of the activities of durable processors, by name."""
    found: dict[str, Publisher] = {}
    for job in jobs:
        for part in job.processor.parts.activities.values():
            if isinstance(part, Publishing):
                found.setdefault(part.publisher.name, part.publisher)
    return found


@dataclass(slots=True)
class _Trouble:
    """Why an event, or any for a place, cannot be sent; how often it was tried, and when it is again (monotonic)."""

    why: str = ""
    tries: int = 0
    due: float = 0.0


class Relay:
    """Sends what is in the outbox of a store, as long as no other process does; a companion of the daemon.

    An event that is refused holds up the later ones of its run, and a place that cannot be reached those for that
    place; nothing is given up. What is in trouble is told in the log, by `trouble`, and in the run's journal.
    """

    name = "relay"

    def __init__(self, store: Store, publishers: Mapping[str, Publisher]) -> None:
        """Take the store, and the publishers by name."""
        self._outbox, self._publishers = store.outbox, publishers
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="iocflow-relay", daemon=True)
        self._troubles: dict[object, _Trouble] = {}
        self._lost = ""

    # As `iocflow.launch.launcher.Companion` says.

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def heartbeat(self) -> None:
        """Do nothing: the relay has a thread of its own."""

    def trouble(self) -> str:
        """Return what cannot be sent, and why."""
        told = [*dict.fromkeys(filter(None, [self._lost, *(one.why for one in [*self._troubles.values()])]))]
        return f"relay: {'; '.join(told[:3])}" if told else ""

    def stop(self) -> None:
        """Send nothing more but what is under way."""
        self._ended.set()

    def finish(self, deadline: float) -> bool:
        """Wait for what is under way, and let go of the connections."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            return False
        self._leave()
        return True

    def flush(self) -> int:
        """Send in this thread all that can be sent; return how many events are left."""
        try:
            while self._outbox.hold() and self._round():
                pass
            return len(self._outbox.pending(0, PAGE))
        finally:
            self._leave()

    def _leave(self) -> None:
        self._outbox.release()
        for publisher in self._publishers.values():
            publisher.close()

    # The thread.

    def _work(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            try:
                pause = (0.0 if self._round() else LOOK_EVERY) if self._outbox.hold() else ELSEWHERE
                self._lost = ""
            except StoreError as error:
                if not self._lost:
                    _LOGGER.warning("the outbox cannot be read: %s", error)
                self._lost, pause = str(error), ELSEWHERE

    def _round(self) -> bool:
        """Send the first event of each run that has any; return whether any was sent."""
        after, moved = 0, False
        while page := self._outbox.pending(after, PAGE):
            moved, after = self._send_all(page) or moved, page[-1].run
            if self._ended.is_set() or len(page) < PAGE:
                break
        return moved

    def _send_all(self, page: Sequence[Outgoing]) -> bool:
        """Send what can be sent, and note it every now and then; return whether any was."""
        sent: list[tuple[int, int]] = []
        moved, noted = False, time.monotonic()
        try:
            for one in page:
                if self._ended.is_set():
                    break
                if self._send(one):
                    sent.append((one.run, one.n))
                    moved = True
                if time.monotonic() - noted > NOTE_EVERY:
                    self._outbox.sent(sent)
                    sent, noted = [], time.monotonic()
        finally:
            self._outbox.sent(sent)
        return moved

    def _send(self, one: Outgoing) -> bool:
        """Send an event unless there was trouble with it just now; return whether it has arrived."""
        event, addressed = (one.run, one.n), Addressed(**json.loads(one.text))
        now, place = time.monotonic(), addressed.to
        if any(now < self._troubles[key].due for key in (event, place) if key in self._troubles):
            return False
        try:
            if place not in self._publishers:
                raise PublishRefusedError(f"nothing in this wiring sends to {place}; wire a PublishEvent that does")
            self._publishers[place].publish(addressed.event["id"], addressed.document())
        except PublishRefusedError as error:
            self._note(event, f"the event of {one.activity} of run {one.run} was refused: {error}")
            if (record := json.dumps(record_of(type(error), str(error)))) != one.error:
                self._outbox.refused(*event, record)
            return False
        except PublishError as error:
            self._note(place, str(error))
            return False
        self._troubles.pop(event, None)
        if self._troubles.pop(place, None) is not None:
            _LOGGER.info("events reach %s again", place)
        return True

    def _note(self, key: object, why: str) -> None:
        """Tell of trouble with an event or a place, once, and put off the next try."""
        trouble = self._troubles.setdefault(key, _Trouble())
        if trouble.why != why:
            _LOGGER.warning("%s; it is tried again", why)
        trouble.why, trouble.due = why, time.monotonic() + PAUSES[min(trouble.tries, len(PAUSES) - 1)]
        trouble.tries += 1
