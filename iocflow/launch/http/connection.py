"""One connection: h11 says what the bytes mean, and this bounds how many there may be and how long they may take."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import urlsplit

import h11

from iocflow.launch.http.messages import Request, Response, Site, problem

__all__ = ["Connection"]

logger = logging.getLogger("iocflow.http")

IDLE_SECONDS = 30.0
"""How long a connection may be open without a request."""
HEAD_SECONDS = 10.0
"""How long the head of a request may take from its first byte on."""
WRITE_SECONDS = 10.0
"""How long a client may take to receive an answer."""
LINGER_SECONDS = 1.0
"""How long what a client still sends is thrown away after its request was refused: to close a connection with unread
bytes resets it, and the client might never see the answer."""
HEAD_BYTES = 16_384
CHUNK = 4_096
VERSIONS = (b"1.0", b"1.1")

Answering = Callable[[Site], AbstractContextManager[None]]
"""Notes, while its block runs, that a site is about to answer."""


class _RefusedError(Exception):
    """The request gets this answer, and the connection ends: its body was not read, or cannot be."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class Connection:
    """Serves the requests of one connection, one after the other."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        find: Callable[[str], Site | None],
        answering: Answering,
    ) -> None:
        """Take the two ends, and who says which site has a path."""
        self._reader, self._writer = reader, writer
        self._find, self._answering = find, answering
        self._protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._closing = False
        self.idle = True
        """Whether no request has begun to come."""

    async def serve(self) -> None:
        """Serve until the client or `close` ends it."""
        try:
            while await self._exchange() and not self._closing:
                self._protocol.start_next_cycle()
        except OSError as error:  # the client is gone, which is no matter; TimeoutError is one too
            logger.debug("a connection ended: %s", error)
        finally:
            self._writer.close()

    async def refuse(self, response: Response) -> None:
        """Give an answer to whatever the client wants, and end the connection."""
        try:
            await self._send(response, None)
            await self._linger()
        except OSError as error:
            logger.debug("a connection ended: %s", error)
        finally:
            self._writer.close()

    def close(self) -> None:
        """End the connection: at once when no request has begun, else after the answer."""
        self._closing = True
        if self.idle:
            self._writer.close()

    async def _exchange(self) -> bool:
        """Serve one request; return whether another one may come."""
        request = None
        try:
            request = await self._head()
            if request is None:
                return False
            if _bodiless(request):
                await self._event()  # its end, so that it does not end the connection if it is refused
            site = self._find(request.path)
            if site is None:
                raise _RefusedError(problem(404, f"nothing is offered at {request.path}"))
            with self._answering(site):
                body = await self._admitted(site, request)
                await self._send(await self._answer(site, request, body), request)
        except _RefusedError as refused:
            await self._send(refused.response, request)
        except h11.RemoteProtocolError as error:
            if self._protocol.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                return False
            await self._send(problem(error.error_status_hint, f"not HTTP: {error}"), request)
        if self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE:
            return True
        if self._protocol.their_state not in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED):
            await self._linger()
        return False

    async def _answer(self, site: Site, request: Request, body: bytes) -> Response:
        try:
            return await site.answer(request, body)
        except Exception:
            logger.exception("%s %s could not be answered", request.method, request.path)
            return problem(500, "something went wrong here; the log tells more")

    async def _admitted(self, site: Site, request: Request) -> bytes:
        """Return the body of a request that its site lets in."""
        sized = "content-length" in request.headers
        if sized and "transfer-encoding" in request.headers:
            raise _RefusedError(problem(400, "it has both Content-Length and Transfer-Encoding"))
        admission = site.admit(request)
        if isinstance(admission, Response):
            raise _RefusedError(admission)
        too_large = problem(413, f"the body is larger than {admission.limit} bytes")
        if sized and int(request.headers["content-length"]) > admission.limit:
            raise _RefusedError(too_large)
        if self._protocol.they_are_waiting_for_100_continue:
            await self._write(self._protocol.send(h11.InformationalResponse(status_code=100, headers=[])))
        if _bodiless(request):
            return b""
        body = bytearray()
        try:
            async with asyncio.timeout(admission.seconds):
                while isinstance(event := await self._event(), h11.Data):
                    body += event.data
                    if len(body) > admission.limit:
                        raise _RefusedError(too_large)
        except TimeoutError:
            raise _RefusedError(problem(408, f"the body did not come within {admission.seconds:g} s")) from None
        if not isinstance(event, h11.EndOfMessage):
            raise ConnectionResetError("the client went away in the middle of a request")
        return bytes(body)

    async def _head(self) -> Request | None:
        """Return the next request, None when there is none any more."""
        self.idle = not self._protocol.trailing_data[0]
        if self.idle:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._receive()
            except TimeoutError:
                return None
            self.idle = False
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                event = await self._event()
        except TimeoutError:
            raise _RefusedError(problem(408, f"the head did not come within {HEAD_SECONDS:g} s")) from None
        if not isinstance(event, h11.Request):
            return None
        if event.http_version not in VERSIONS:
            raise _RefusedError(problem(505, "use HTTP/1.1"))
        headers: dict[str, str] = {}
        for name, value in event.headers:
            key, text = name.decode("ascii"), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        return Request(event.method.decode("ascii"), _path(event.target.decode("latin-1")), headers)

    async def _event(self) -> object:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            await self._receive()
        return event

    async def _receive(self) -> None:
        self._protocol.receive_data(await self._reader.read(CHUNK))

    async def _send(self, response: Response, request: Request | None) -> None:
        """Send an answer; when the request's body is left unread, it says that the connection ends."""
        headers = [
            ("Date", formatdate(usegmt=True)),
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            ("Cache-Control", "no-store"),
            *response.headers.items(),
        ]
        if self._closing or self._protocol.their_state is not h11.DONE:
            headers.append(("Connection", "close"))
        what = f"{request.method} {request.path}" if request else "what is no request"
        logger.debug("%s is answered with %d", what, response.status)
        head = h11.Response(status_code=response.status, reason=HTTPStatus(response.status).phrase, headers=headers)
        sent = self._protocol.send(head) or b""
        if request is None or request.method != "HEAD":
            sent += self._protocol.send(h11.Data(data=response.body)) or b""
        await self._write(sent + (self._protocol.send(h11.EndOfMessage()) or b""))

    async def _write(self, data: bytes | None) -> None:
        self._writer.write(data or b"")
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._writer.drain()
        except TimeoutError:
            self._writer.transport.abort()
            raise

    async def _linger(self) -> None:
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while await self._reader.read(CHUNK):
                    continue


def _bodiless(request: Request) -> bool:
    """Return whether a request has no body."""
    return request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers


def _path(target: str) -> str:
    """Return the path of a request's target, which a proxy's client gives as a whole URL."""
    try:
        return urlsplit(target).path if not target.startswith("/") else target.partition("?")[0]
    except ValueError:
        return ""
