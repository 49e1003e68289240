"""The desk of an `http:` source: takes requests in the server's thread, and hands events to the launcher's."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from iocflow.durable.errors import UnknownRunError
from iocflow.events.envelope import UnreadableEventError
from iocflow.events.http_address import HttpOptions, HttpPlace
from iocflow.events.http_answers import STOPPING, STORE_AWAY, answer_of, masked
from iocflow.events.http_reading import media_fault, posted_event
from iocflow.events.source import Event
from iocflow.launch.contract import Launchable
from iocflow.launch.ended import Ended
from iocflow.launch.http.messages import Admission, Request, Response, json_response, problem
from iocflow.store.contract import RunStatus
from iocflow.store.errors import StoreError
from iocflow.store.plain import run_data

__all__ = ["Desk", "Posted"]

STATUS_SECONDS = 10.0
"""How long a store may take to tell of a run."""
_LOCAL = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?", re.IGNORECASE)


@runtime_checkable
class _Recorder(Protocol):
    """What records the runs of a processor, and tells of them."""

    def status(self, *which: str | int) -> RunStatus:
        """Return the status of a run."""


@dataclass(slots=True, eq=False)
class Posted:
    """An event that came in, and the answer that its senders wait for; who sends it again meanwhile waits with them."""

    event: Event
    answer: asyncio.Future[Response]


class Desk:
    """Takes requests for one launcher.

    Its methods are called in the loop of the server, but for `take`, `settle` and `ended`, which the launcher's thread
    calls.
    """

    def __init__(
        self, place: HttpPlace, options: HttpOptions, processor: Launchable, mask: Callable[[str], str]
    ) -> None:
        """Take what it lets in, and whose events they become."""
        self._place, self._options, self._processor, self._mask = place, options, processor, mask
        self._status_path = f"{place.path}/runs/"
        self._token = hashlib.sha256(options.token.encode()).digest()
        self._changed = threading.Condition()
        self._line: deque[Posted] = deque()
        self._woken = False
        self._in_hand: dict[tuple[str, str], Posted] = {}
        self._stopping = False
        self.refused: Callable[[], None] = lambda: None
        """Is called for each request that is no event, or one without data."""

    def admit(self, request: Request) -> Admission | Response:
        """Say how large a body may be; or that there is nothing here, or not for this client, or not in this form."""
        asks = request.path.startswith(self._status_path)
        allowed = ("GET", "HEAD") if asks else ("POST",)
        if not asks and request.path != self._place.path:
            return problem(404, f"nothing is offered at {request.path}; post events to {self._place.path}")
        if request.method not in allowed:
            return problem(405, f"use {allowed[0]}", headers={"Allow": ", ".join(allowed)})
        if refusal := self._stranger(request):
            return refusal
        if asks:
            return Admission(0, self._options.timeout.total_seconds())
        if self._stopping:
            return STOPPING
        if fault := media_fault(request.headers):
            return problem(415, fault)
        return Admission(self._options.limit, self._options.timeout.total_seconds())

    async def answer(self, request: Request, body: bytes) -> Response:
        """Answer a request that was let in."""
        if request.path != self._place.path:
            return await self._status(request.path.removeprefix(self._status_path))
        try:
            event = posted_event(request.headers, body, self._place.path)
            if event.data is None:
                raise UnreadableEventError("it has no data; send the seed of a run, {} if the run needs nothing")
        except UnreadableEventError as error:
            self.refused()
            return problem(400, str(error))
        return await self._deliver(event)

    def stop(self) -> None:
        """Let everybody who waits for a turn try again later; those whose runs go on are still answered."""
        self._stopping = True
        with self._changed:
            waiting, self._line = list(self._line), deque()
        for posted in waiting:
            _resolve(posted, STOPPING)

    def wake(self) -> None:
        """Let a `take` that waits return now."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def take(self, limit: int, timeout: float) -> list[Posted]:
        """Return up to so many events, or none when nothing comes for `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._line or self._woken, timeout)
            self._woken = False
            return [self._line.popleft() for _ in range(min(limit, len(self._line)))]

    def settle(self, posted: Posted, response: Response) -> None:
        """Answer who waits for an event."""
        posted.answer.get_loop().call_soon_threadsafe(_resolve, posted, response)

    def ended(self, ended: Ended) -> Response:
        """Return the answer to the senders of an event whose run ended so."""
        return answer_of(ended, self._status_path if self._recorder else None, self._mask)

    @property
    def _recorder(self) -> _Recorder | None:
        engine = getattr(self._processor, "engine", None)
        return engine if isinstance(engine, _Recorder) else None

    def _stranger(self, request: Request) -> Response | None:
        """Return the answer to a client that may not come in.

        Without a token, whoever runs on this machine may; but not a page in its browser, which gets here by a name that
        its author had resolved to this machine.
        """
        if not self._options.token:
            host = request.headers.get("host", "localhost")
            return None if _LOCAL.fullmatch(host) else problem(421, f"{host} is not the name of this server")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(hashlib.sha256(given.strip().encode()).digest(), self._token)
        if right and scheme.lower() == "bearer":
            return None
        return problem(401, "send Authorization: Bearer TOKEN", headers={"WWW-Authenticate": "Bearer"})

    async def _deliver(self, event: Event) -> Response:
        """Put an event in the line, unless it is in hand already, and wait until it is settled."""
        key = event.source, event.id
        posted = self._in_hand.get(key)
        if posted is None:
            if self._stopping:
                return STOPPING
            if len(self._line) >= self._options.waiting:
                return problem(429, f"{self._options.waiting} requests wait already", retry_after=1)
            posted = self._put(key, event)
        elif posted.event.data != event.data:
            return problem(409, "this key is that of another event, which is in hand")
        await asyncio.wait([posted.answer], timeout=self._options.wait.total_seconds())
        if not posted.answer.done() and self._withdraw(posted):
            _resolve(posted, problem(503, "no thread came free in time; nothing was done", retry_after=1))
        await asyncio.wait([posted.answer])
        return posted.answer.result()

    def _put(self, key: tuple[str, str], event: Event) -> Posted:
        posted = self._in_hand[key] = Posted(event, asyncio.get_running_loop().create_future())
        posted.answer.add_done_callback(lambda _: self._in_hand.pop(key))
        with self._changed:
            self._line.append(posted)
            self._changed.notify_all()
        return posted

    def _withdraw(self, posted: Posted) -> bool:
        """Take an event out of the line; return whether it was still there."""
        with self._changed:
            if posted not in self._line:
                return False
            self._line.remove(posted)
            return True

    async def _status(self, run: str) -> Response:
        recorder = self._recorder
        if recorder is None:
            return problem(404, f"the runs of {self._processor.name} are not recorded")
        try:
            async with asyncio.timeout(STATUS_SECONDS):
                found = await asyncio.to_thread(recorder.status, run)
        except UnknownRunError:
            return problem(404, f"there is no run {run}")
        except (StoreError, TimeoutError):
            return STORE_AWAY
        if found.processor != self._processor.name:
            return problem(404, f"there is no run {run} of {self._processor.name}")
        return json_response(200, masked(run_data(found), self._mask))


def _resolve(posted: Posted, response: Response) -> None:
    if not posted.answer.done():
        posted.answer.set_result(response)
