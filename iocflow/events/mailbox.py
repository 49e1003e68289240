"""A mailbox as a source, by POP3 or IMAP: every mail in it is an event."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from iocflow.events.address import Address
from iocflow.events.envelope import UnreadableEventError
from iocflow.events.mail import read_mail
from iocflow.events.mailbox_address import MailboxOptions
from iocflow.events.mailbox_dead import MailAside
from iocflow.events.mailbox_imap import ImapSession
from iocflow.events.mailbox_pop3 import Pop3Session
from iocflow.events.mailbox_session import MailboxLostError, MailboxSession, MailRefusedError
from iocflow.events.source import DeadLetter, Delivery, Event, Reason
from iocflow.launch.clock import Clock, SystemClock
from iocflow.launch.texts import printable

__all__ = ["MailboxSource"]

logger = logging.getLogger("iocflow.events")

UNUSED = 2.0
"""After how many seconds without use a session ends: POP3 locks the mailbox until then, and deletes only then."""
LONGEST = 20.0
"""How many seconds of deletions a session may owe at most while more mails are fetched."""


@dataclass(slots=True, eq=False)
class _Held:
    """A mail in hand: its key in the mailbox, or the name of the file that brought it again."""

    raw: bytes
    key: str = ""
    file: str = ""


class MailboxSource:
    """`imaps://user:password@host/INBOX`, `pop3s://user:password@host`: every mail is an event.

    The mailbox is looked at in short sessions. A mail is deleted, or moved, when it is settled and never before: one
    that was settled while the server did not hear of it is remembered, and removed without another run as soon as it
    is seen again. After a crash it is brought again, with the same id. Dead letters are files on this machine, on the
    disk before the mail is deleted. A mail that the server lists but does not give is left where it is.
    """

    def __init__(
        self,
        options: MailboxOptions,
        connect: Callable[[MailboxOptions], MailboxSession] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Take the address in its parts, and what logs in; nothing is touched yet."""
        self.options = options
        self._connect = connect or (ImapSession if options.imap else Pop3Session)
        self._clock = clock or SystemClock()
        self._aside = MailAside(options.dead)
        self._session: MailboxSession | None = None
        self._began = self._used = self._looked = float("-inf")
        self._waiting: deque[str] = deque()
        self._held: dict[Delivery, _Held] = {}
        self._settled: set[str] = set()
        self._owed: set[str] = set()
        self._told: set[str] = set()
        self._woken = threading.Event()

    @classmethod
    def at(cls, address: Address) -> MailboxSource:
        """Return the source at an address, as `pop3s://user:password@host?every=60s`."""
        return cls(MailboxOptions.of(address))

    @property
    def name(self) -> str:
        """The address without password and options."""
        return self.options.name

    @property
    def identity(self) -> str:
        """The same, whether or not it is read over TLS."""
        return self.options.identity

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return (self.options.password,)

    def reserve(self) -> None:
        """Keep other processes of this machine out, as far as that can be done now; `open` does the rest."""
        with contextlib.suppress(OSError):
            self._aside.prepare()

    def open(self) -> None:
        """Make the folder for dead letters, and look at the mailbox."""
        self._drop()
        self._aside.prepare()
        self._look()

    def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:  # noqa: ARG002  # one is within any
        """Return one event at most: what came in with it would be lost to the launcher if the next one failed."""
        self._aside.require()
        found = self._replayed() or self._next()
        if found is not None:
            return [found]
        if self._session and not self._held:
            self._end()
        due = self._looked + self.options.every.total_seconds() - self._clock.monotonic()
        self._woken.wait(max(min(due, timeout), 0.001))
        self._woken.clear()
        return ()

    def tend(self, room: int) -> bool:  # noqa: ARG002  # nothing that was received is given back
        """End a session that nobody uses, or that owes deletions for long; that takes as long as a log-out does."""
        now = self._clock.monotonic()
        if self._session and (now - self._used > UNUSED or (self._owed and now - self._began > LONGEST)):
            self._end()
        return True

    def acknowledge(self, delivery: Delivery) -> None:
        """Delete the mail, or move it."""
        held = self._held.get(delivery)
        if held is None:
            return
        if held.file:
            self._aside.forget(held.file)
        else:
            self._remove(held.key)
        del self._held[delivery]

    def give_back(self, delivery: Delivery) -> None:
        """Leave the mail where it is, to be brought again."""
        held = self._held.pop(delivery, None)
        if held and held.key:
            self._waiting.appendleft(held.key)

    def dead_letter(self, delivery: Delivery, reason: Reason) -> None:
        """Keep the mail on this machine, byte for byte, and delete or move it in the mailbox."""
        held = self._held.get(delivery)
        if held is None:
            return
        if held.file:
            self._aside.keep_again(held.file, held.raw, reason, self._clock.now())
        elif held.key not in self._settled:
            self._aside.keep(held.key, held.raw, reason, self._clock.now())
        self.acknowledge(delivery)

    def wake(self) -> None:
        """Let a `receive` that waits return now."""
        self._woken.set()

    def close(self) -> None:
        """Log out, and let other processes have the mailbox."""
        try:
            if self._session:
                self._end()
        except MailboxLostError as error:
            logger.warning("%s was left without a good-bye: %s; what it owes may be brought again", self.name, error)
        finally:
            self._drop()
            self._aside.release()

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yield the dead letters, the oldest first."""
        return self._aside.letters()

    def replay(self, ids: Collection[str]) -> Sequence[str]:
        """Have dead letters brought again, from the folder that keeps them."""
        return self._aside.replay(ids)

    def _replayed(self) -> Delivery | None:
        """Return a dead letter that is brought again."""
        held = {one.file for one in self._held.values()}
        for name in self._aside.replayed():
            if name not in held:
                return self._delivery(_Held(self._aside.read(name), file=name))
        return None

    def _next(self) -> Delivery | None:
        """Return the next mail; None when there is none, or it is not time to look."""
        if not self._session and (self._waiting or self._due()):
            self._look()
        elif not self._waiting and self._due():
            self._end()
            self._look()
        while self._waiting:
            key = self._waiting.popleft()
            try:
                return self._delivery(_Held(self._using().fetch(key), key))
            except MailRefusedError as error:
                if key not in self._told:
                    logger.warning("mail %s of %s is left there: %s", printable(key), self.name, error)
                    self._told.add(key)
            except Exception:
                self._waiting.appendleft(key)
                self._drop()
                raise
        return None

    def _due(self) -> bool:
        return self._clock.monotonic() - self._looked >= self.options.every.total_seconds()

    def _look(self) -> None:
        """Log in and list what is there; what was settled before is removed."""
        session = self._using()
        try:
            keys = session.mails()
            self._settled.intersection_update(keys)
            for key in self._settled:
                session.remove(key)
        except Exception:
            self._drop()
            raise
        self._owed = set(self._settled)
        self._told.intersection_update(keys)
        held = {one.key for one in self._held.values()}
        self._waiting = deque(key for key in keys if key not in self._settled and key not in held)
        self._looked = self._clock.monotonic()

    def _remove(self, key: str) -> None:
        self._settled.add(key)
        try:
            self._using().remove(key)
        except Exception:
            self._drop()
            raise
        self._owed.add(key)

    def _using(self) -> MailboxSession:
        """Return the session, a new one if there is none."""
        now = self._clock.monotonic()
        if self._session is None:
            self._session, self._began = self._connect(self.options), now
        self._used = now
        return self._session

    def _end(self) -> None:
        """Log out; what was removed is then known to be."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            session.end()
        except Exception:
            session.drop()
            self._looked = float("-inf")
            raise
        self._settled -= self._owed
        self._owed.clear()

    def _drop(self) -> None:
        """Break off; what was removed has to be removed again, if it is still there."""
        if self._session:
            self._session.drop()
        self._session = None
        self._owed.clear()

    def _delivery(self, held: _Held) -> Delivery:
        name = held.file or held.key
        event: Event | None = None
        refusal = f"refused: it has {len(held.raw):,} bytes, more than the {self.options.limit:,} that are allowed"
        if len(held.raw) <= self.options.limit:
            try:
                event, refusal = read_mail(held.raw, source=self.name, id=name, seed=self.options.seed), ""
            except UnreadableEventError as error:
                refusal = f"refused: {error}"
        delivery = Delivery(printable(name), event, refusal)
        self._held[delivery] = held
        return delivery
