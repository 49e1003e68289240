"""Whether a firing may begin, and what became of it: known to a store, or, where there is none, to nobody else."""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from iocflow.launch.launcher import Host
from iocflow.launch.texts import error_text
from iocflow.store.errors import StoreError
from iocflow.store.launchers import End, Firing, Standing, Told

__all__ = ["Ledger", "Served"]

logger = logging.getLogger("iocflow.schedule")

LEASE = 30.0
"""Seconds after which a daemon that is not heard of is dead, and its firings are begun by others."""
NEWS = 1.0
"""How often, in seconds, operators' requests are looked for."""
PAUSE = 5.0
"""The same while the store does not answer."""
SKEW = timedelta(seconds=10)
"""How far the machine's clock may be off the store's; schedules go by the machine's."""


class Served(Protocol):
    """A launcher whose firings are in the ledger."""

    @property
    def name(self) -> str:
        """Its id."""

    @property
    def trigger(self) -> str:
        """When it fires, as a person would write it."""

    def hear(self, standing: Standing) -> None:
        """Take note of how it stands; called about once a second, in a thread of the ledger, and must be quick."""


@dataclass(eq=False, slots=True)
class _Entry:
    """Something to be written: a firing that is to begin, or one that ended; and what came of it."""

    what: Firing | End
    told: Told | None = None
    error: StoreError | None = None


class Ledger:
    """The firings of a daemon's launchers; a service of its host.

    Without a store every firing may begin. With one, a thread shows that the daemon lives, so that its firings stay its
    own, writes what could not be written when it happened, and tells the launchers what operators ask of them.
    """

    def __init__(self, host: Host) -> None:
        """Take the host, which knows the store."""
        self._clock = host.clock
        self._mask = host.mask
        self._book = host.book
        self._daemon = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self._served: dict[str, Served] = {}
        self._begun: set[str] = set()
        self._waiting: list[_Entry] = []
        self._known: dict[str, Standing] | None = None
        self._new: dict[str, str] = {}
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._shown = self._progress = self._clock.monotonic()
        self._failure = ""
        self._told_skew = False
        self._disputed: set[str] = set()

    def start(self) -> None:
        """Start the thread, if there is a store."""
        if self._book is not None:
            self._thread = threading.Thread(target=self._main, name="iocflow-ledger", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Tell no more news; firings in hand stay the daemon's own until they have ended."""
        self._stopped = True
        self._woken.set()

    def heartbeat(self) -> None:
        """Replace the thread when it died."""
        if self._thread is not None and not self._thread.is_alive() and not self._stopped:
            logger.error("the ledger's thread died and is replaced")
            self.start()

    def trouble(self) -> str:
        """Return what is wrong, empty when the store answered recently."""
        silent = self._clock.monotonic() - self._progress if self._thread is not None else 0.0
        return self._failure or (
            f"the store of schedules has not answered for {silent:.0f} s" if silent > LEASE else ""
        )

    def enter(self, launcher: Served) -> Standing | None:
        """Note that a launcher is served; return how it stood at the daemon's start, None when nobody knows.

        Raises:
            StoreError: The store does not answer.
        """
        if self._book is None:
            return None
        if self._known is None:
            self._known = {one.name: one for one in self._book.standings()}
        with self._lock:
            self._new[launcher.name] = launcher.trigger
        self._woken.set()
        return self._known.get(launcher.name)

    def follow(self, launcher: Served) -> None:
        """Tell a launcher the news from now on."""
        with self._lock:
            self._served[launcher.name] = launcher

    def begin(self, firing: Firing) -> Told:
        """Ask for a firing; one that is given has to be settled or given back.

        Raises:
            StoreError: The store does not answer; it may be asked again.
        """
        if self._book is None:
            return Told("yours", None)
        entry = _Entry(firing)
        self._put(entry)
        if entry.told is None:
            raise entry.error or StoreError("the store of schedules gave no answer")
        return entry.told

    def settle(self, firing: Firing, outcome: str, run: str) -> None:
        """Note that a firing has ended; when the store does not answer, that is written later."""
        if self._book is not None:
            self._put(_Entry(End(firing, self._mask(outcome), run)))

    def give_back(self, name: str) -> None:
        """Leave a firing as if it had never begun; without the store's answer others have it when the lease is over."""
        self._begun.discard(name)
        if self._book is not None:
            self._book.give_back(name, self._daemon)

    def skip(self, name: str, moment: float, missed: int) -> None:
        """Note that firings up to a moment will not begin."""
        if self._book is not None:
            self._book.skip(name, moment, missed)

    def flush(self) -> None:
        """Write what could not be written before."""
        with self._turn:
            self._write()

    def _put(self, entry: _Entry) -> None:
        """Have an entry written, by whichever thread comes first together with all that wait by then."""
        with self._lock:
            self._waiting.append(entry)
        with self._turn:
            if entry in self._waiting:
                self._write()

    def _write(self) -> None:
        """Write all entries that wait; ends that cannot be written wait on, and who wanted to begin hears of it."""
        with self._lock:
            entries, self._waiting = self._waiting, []
            new, self._new = self._new, {}
        if self._book is None or not (entries or new):
            return
        ends = [one for one in entries if isinstance(one.what, End)]
        begins = [one for one in entries if isinstance(one.what, Firing)]
        what = [one.what for one in ends if isinstance(one.what, End)]
        wanted = [one.what for one in begins if isinstance(one.what, Firing)]
        try:
            if new:
                self._book.serve(new, self._daemon, LEASE)
            ended, told = self._book.write(what, wanted, self._daemon, LEASE)
        except StoreError as error:
            self._fail(error)
            with self._lock:
                self._waiting, self._new = [*ends, *self._waiting], {**new, **self._new}
            for one in begins:
                one.error = error
            return
        for end, fine in zip(what, ended, strict=True):
            self._begun.discard(end.firing.name)
            if not fine:
                text = "another daemon took over a tick that ended here, too"
                logger.warning(f"launcher %s: {text}", end.firing.name, extra={"launcher": end.firing.name})
        for one, firing, answer in zip(begins, wanted, told, strict=True):
            one.told = answer
            if answer.answer == "yours":
                self._begun.add(firing.name)

    def _main(self) -> None:
        while not self._stopped or self._begun:
            pause = NEWS
            try:
                self.turn()
                if self._failure:
                    logger.info("the store of schedules answers again")
                self._failure = ""
            except StoreError as error:
                self._fail(error)
                pause = PAUSE
            except Exception:
                logger.exception("a turn of the ledger failed and is repeated")
            else:
                self._progress = self._clock.monotonic()
            self._woken.wait(pause)
            self._woken.clear()

    def turn(self) -> None:
        """Write what is left, show life when it is time, and tell the news. The thread does nothing else.

        Raises:
            StoreError: The store does not answer.
        """
        if self._book is None:
            return
        self.flush()
        with self._lock:
            served = dict(self._served)
        if self._clock.monotonic() - self._shown > LEASE / 3:
            shown = self._clock.monotonic()
            timings = {name: one.trigger for name, one in served.items()}
            standings: Mapping[str, Standing] = self._book.serve(timings, self._daemon, LEASE)
            self._shown = shown
            self._look_at_clocks(self._book.now())
        else:
            standings = {one.name: one for one in self._book.standings(list(served))}
        for name, standing in standings.items():
            if not self._stopped:
                self._tell_other(served[name], standing)
                served[name].hear(standing)

    def _look_at_clocks(self, now: float) -> None:
        off = timedelta(seconds=self._clock.now().timestamp() - now)
        if abs(off) > SKEW and not self._told_skew:
            way = "ahead of" if off > timedelta() else "behind"
            logger.warning("the clock of this machine is %s %s the store's: launchers fire by this one", abs(off), way)
        self._told_skew = abs(off) > SKEW

    def _tell_other(self, launcher: Served, standing: Standing) -> None:
        """Tell once of another daemon that serves a launcher of this name by another schedule."""
        if standing.timing != launcher.trigger and launcher.name not in self._disputed:
            self._disputed.add(launcher.name)
            text = (
                "another daemon of this store serves a launcher of the same name by `%s`, this one by `%s`: rename one"
            )
            logger.error(
                f"launcher %s: {text}", launcher.name, standing.timing, launcher.trigger,
                extra={"launcher": launcher.name},
            )  # fmt: skip

    def _fail(self, error: StoreError) -> None:
        trouble = self._mask(f"the store of schedules: {error_text(error)}")
        if not self._failure:
            logger.warning("%s; firings wait until it answers", trouble)
        self._failure = trouble
