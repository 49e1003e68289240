"""The client: submits durable runs and tells of them; it needs the store, and the seeds' types, but no bean."""

from __future__ import annotations

import hashlib
import itertools
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, Self, Unpack, get_args

from iocflow.durable.codes import data_of
from iocflow.durable.errors import ConflictError, SubmitError, UnknownRunError
from iocflow.durable.intake import Durable
from iocflow.durable.terms import (
    LONGEST_TEXT,
    PRIORITIES,
    Terms,
    field_in,
    kept,
    name_in,
    number_of,
    seconds_in,
    storable,
)
from iocflow.store.contract import Accepted, Entry, RunStatus, State, Store, Submission
from iocflow.store.errors import StoreLostError
from iocflow.wiring import did_you_mean
from iocflow.wiring.duration import seconds_of

_BATCH, _MOST = 500, 2**63 - 1
_CLOSED = ("completed", "failed", "cancelled")


class Submittable(Protocol):
    """What is known of a processor to submit runs of it; an `Intake` is one."""

    durable: Durable
    needs_seed: bool

    def write_seed(self, seed: Any) -> bytes:
        """Return the seed as it is stored.

        Raises:
            IocflowError: It does not fit; the message names the field.
        """

    def read_seed(self, body: bytes) -> Any:
        """Return a stored seed, fitted to its type; None for none."""

    def seed_identity(self, body: bytes) -> bytes:
        """Return what of a stored seed tells it from others; a new version of the class does not change it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The answer to a submission.

    Attributes:
        id: The run's id in its store.
        new: Whether it was made now; the same submission again gives the same run.
    """

    id: int
    submitter: str
    number: str
    new: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """One seed of many that was not taken."""

    index: int
    number: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Report:
    """What became of many submissions: how many were made, were there before, or were refused."""

    new: int
    known: int
    refused: tuple[Refusal, ...]


class Client:
    """Submits runs, and tells and changes what becomes of them."""

    def __init__(self, store: Store, processors: Mapping[str, Submittable]) -> None:
        """Take the store and what is known of each durable processor, by id."""
        self.store, self._processors = store, processors

    # Submitting.

    def submit(self, processor: str, seed: Any = None, *, transaction: Any = None, **terms: Unpack[Terms]) -> Ticket:
        """Record a run, and return before any of its steps starts.

        Args:
            processor: The durable processor's id.
            seed: The data that starts the run; it is fitted to its type now.
            transaction: The caller's own connection to the store's database: the run exists when that commits.
            terms: See `Terms`.

        Raises:
            ConflictError: The submitter used this number for something else.
            SubmitError: What was given cannot be.
            IocflowError: The seed does not fit.
        """
        self._check_seed(processor, seed)
        one = self._submission(processor, seed, terms)
        (accepted,) = self.store.submit([one], transaction=transaction)
        return _ticket(one, accepted)

    def launch(self, processor: str, seed: Any, key: str | None) -> Ticket:
        """Record a run as a launcher does: when it gives no seed, an activity has to find one.

        The `key` is what the number is made of, however long an event's id is; None leaves it to the seed.

        Raises:
            ConflictError: The number was used for something else.
            SubmitError: The seed cannot be.
            IocflowError: The seed does not fit.
        """
        one = self._submission(processor, seed, {"number": None if key is None else number_of(key)})
        (accepted,) = self.store.submit([one])
        return _ticket(one, accepted)

    def submit_many(
        self,
        processor: str,
        seeds: Iterable[Any],
        *,
        number: Callable[[Any], str] | None = None,
        submitter: str | None = None,
        group: Callable[[Any], str | None] | None = None,
        priority: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> Report:
        """Record a run for each seed, each whole or not at all; done again with `number`, it goes on where it ended.

        Args:
            processor: The durable processor's id.
            seeds: The seeds; they are read as they are recorded, never all at once.
            number: Returns the submitter's number of a seed.
            submitter: Who sends them.
            group: Returns the group of a seed.
            priority: 0 to 9.
            progress: Is told now and then how many were dealt with.
        """
        self._known(processor)
        counts = {"new": 0, "known": 0}
        refused: list[Refusal] = []
        done = 0
        for chunk in _chunks(enumerate(seeds), _BATCH):
            ready: list[tuple[int, Submission]] = []
            for index, seed in chunk:
                own = str(number(seed)) if number else None
                try:
                    terms: Terms = {"submitter": submitter, "number": own, "priority": priority}
                    terms["group"] = group(seed) if group else None
                    self._check_seed(processor, seed)
                    ready.append((index, self._submission(processor, seed, terms)))
                except (SubmitError, ValueError) as error:
                    refused.append(Refusal(index, own or "", error))
            for (index, one), accepted in zip(ready, self.store.submit([one for _, one in ready]), strict=True):
                if accepted.what == "conflict":
                    refused.append(Refusal(index, one.number, _conflict(one, accepted)))
                else:
                    counts[accepted.what] += 1
            done += len(chunk)
            if progress:
                progress(done)
        return Report(counts["new"], counts["known"], tuple(sorted(refused, key=lambda one: one.index)))

    def numbers(self, processor: str) -> bool:
        """Return whether the seeds of a processor say their numbers, so that the same one again is the same run.

        Raises:
            SubmitError: There is no such processor.
        """
        return bool(self._known(processor).durable.number)

    def _known(self, processor: str) -> Submittable:
        known = self._processors.get(processor)
        if known is None:
            remedy = did_you_mean(processor, self._processors)
            raise SubmitError(f"{processor!r} is no durable processor here; {remedy}")
        return known

    def _check_seed(self, processor: str, seed: Any) -> None:
        """Refuse a run whose activities would find no seed."""
        if seed is None and self._known(processor).needs_seed:
            raise SubmitError(
                f"{processor} needs a seed: give one, or let its context have `seed_data` with None in its type, or"
                " with a default"
            )

    def _submission(self, processor: str, seed: Any, terms: Terms) -> Submission:
        known = self._known(processor)
        for name in terms.keys() - Terms.__annotations__.keys():
            raise SubmitError(f"there is no term {name!r}; {did_you_mean(name, Terms.__annotations__)}")
        priority = terms.get("priority", 0)
        if not isinstance(priority, int) or priority not in PRIORITIES:
            raise SubmitError(f"priority is 0 to 9, not {priority!r}")
        durable, body = known.durable, known.write_seed(seed)
        if isinstance(seed, Mapping):
            seed = known.read_seed(body)  # with the defaults of its type
        group = name_in("group", terms.get("group"), seed, durable.group)
        deadline = terms.get("deadline")
        if deadline is None and durable.deadline:
            fixed = seconds_of(durable.deadline) is not None
            deadline = durable.deadline if fixed else field_in(seed, durable.deadline)
        identity = b"\0".join([processor.encode(), (group or "").encode(), known.seed_identity(body)])
        times = {"deadline": deadline, "not_before": terms.get("not_before"), "start_by": terms.get("start_by")}
        return Submission(
            processor=processor,
            body=body,
            digest=hashlib.sha256(identity).hexdigest(),
            submitter=name_in("submitter", terms.get("submitter"), seed, durable.submitter)
            or kept("submitter", processor),
            number=name_in("number", terms.get("number"), seed, durable.number) or uuid.uuid4().hex,
            group=group,
            priority=priority,
            **self._times(times),
        )

    def _times(self, given: Mapping[str, Any]) -> dict[str, float | None]:
        """Return times on the store's clock, which leave the run a time to start."""
        times = {name: self._time(name, one) for name, one in given.items()}
        start = times["not_before"]
        for name in ("deadline", "start_by"):
            at = times[name]
            if start is not None and at is not None and start > at:
                raise SubmitError(
                    f"not_before is later than {name}, so that the run could never start; write an earlier not_before,"
                    f" or a later {name}"
                )
        return times

    def _time(self, name: str, given: str | float | timedelta | datetime | None) -> float | None:
        """Return a time on the store's clock."""
        if given is None:
            return None
        if isinstance(given, datetime):
            if given.tzinfo is None:
                raise SubmitError(f"{name} has no time zone: {given}; write datetime(…, tzinfo=UTC)")
            return given.timestamp()
        return self.store.now() + seconds_in(name, given)

    # Looking.

    def status(self, *which: str | int) -> RunStatus:
        """Return the status of a run, by its id, or by submitter and number.

        Raises:
            UnknownRunError: There is no such run.
        """
        id = self.id_of(*which)
        status = self.store.status(id)
        if status is None:
            raise UnknownRunError(f"there is no run {id} in {self.store.url}")
        return status

    def id_of(self, *which: str | int) -> int:
        """Return the id of a run, given by that id, or by submitter and number.

        Raises:
            UnknownRunError: There is no such run.
        """
        match which:
            case (one,) if re.fullmatch("[0-9]{1,18}", str(one)):
                return int(one)
            case (submitter, number):
                id = self.store.find(*names) if all(map(storable, names := (str(submitter), str(number)))) else None
                if id is None:
                    raise UnknownRunError(f"{submitter} has submitted no run {number}")
                return id
        raise UnknownRunError(f"a run is named by its id, or by submitter and number, not by {which}")

    def wait(self, *which: str | int, timeout: float | None = None) -> RunStatus:
        """Return the status of a run once it is closed or suspended.

        Raises:
            TimeoutError: That took longer than `timeout` seconds.
            StoreLostError: The store does not answer, twice in a row.
        """
        id, lost = self.id_of(*which), False
        end = None if timeout is None else time.monotonic() + timeout
        for pause in itertools.chain((0.001, 0.002, 0.005, 0.01, 0.02), itertools.repeat(0.05)):
            try:
                status = self.status(id)
            except StoreLostError:  # a connection that was cut is no reason to give up, a server that is gone is
                if lost:
                    raise
                lost = True
                continue
            lost = False
            if status.state in (*_CLOSED, "suspended"):
                return status
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"run {id} is still {status.state} after {timeout} s")
            time.sleep(pause)
        raise AssertionError("the pauses never end")

    def history(self, *which: str | int) -> list[Entry]:
        """Return a run's journal; signals that it had not asked for when it ended are `unheard` there."""
        return self.store.history(self.status(*which).id)

    def runs(
        self,
        *,
        states: Iterable[State] = (),
        processor: str | None = None,
        submitter: str | None = None,
        group: str | None = None,
        after: int = 0,
        limit: int = 100,
        newest: bool = False,
    ) -> list[RunStatus]:
        """Return the first so many runs with an id above `after`, or the `newest` of them, in order of submission.

        Raises:
            ValueError: There is no such state, or `limit` is negative.
        """
        known, states = get_args(State), tuple(states)
        if unknown := [one for one in states if one not in known]:
            raise ValueError(f"{unknown[0]!r} is no state of a run; the states are {', '.join(known)}")
        if limit < 0:
            raise ValueError(f"limit is {limit}; write how many runs at most, 0 or more")
        only = {"processor": processor, "submitter": submitter, "group": group}
        if after > _MOST or not all(storable(one or "") for one in only.values()):
            return []
        after, limit = max(after, 0), min(limit, _MOST)
        return self.store.runs(states=states, **only, after=after, limit=limit, newest=newest)

    # Changing.

    def signal(self, run: int, name: str, data: Any = None) -> bool:
        """Send a signal to a run; early ones wait in order. False when the run is closed: it is kept as dead."""
        name = kept("name of a signal", name, where="the signal's name")
        return self.store.signal(self.status(run).id, name, data_of(data, f"signal {name!r}"))

    def cancel(self, *which: str | int, who: str = "", why: str = "") -> bool:
        """Ask for the end of a run: at once if it was not begun, else after its `finally`; False if it is closed."""
        return self.store.cancel(self.status(*which).id, **_by(who, why))

    def retry(self, *which: str | int, who: str = "", why: str = "", done: bool = False) -> bool:
        """Let a failed or suspended run go on from the step that failed; False when it is neither.

        `done` takes a step in doubt as done; False when none is.
        """
        return self.store.retry(self.status(*which).id, **_by(who, why), done=done)

    def drop(self, *which: str | int, who: str = "", why: str = "") -> bool:
        """Give a suspended run up as failed, and let its group go on."""
        return self.store.drop(self.status(*which).id, **_by(who, why))

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the store."""
        self.close()


def _ticket(one: Submission, accepted: Accepted) -> Ticket:
    if accepted.what == "conflict":
        raise _conflict(one, accepted)
    return Ticket(accepted.id, one.submitter, one.number, accepted.what == "new")


def _conflict(one: Submission, accepted: Accepted) -> ConflictError:
    return ConflictError(
        f"{one.submitter} has submitted {one.number} before, with another body, processor or group: run {accepted.id}",
        accepted.id,
    )


def _by(who: str, why: str) -> dict[str, str]:
    """Return who did something and why, as a journal keeps it."""
    return {
        "who": kept("name of an operator", who, where="who", least=0),
        "why": kept("reason", why, where="why", least=0, most=LONGEST_TEXT),
    }


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk
