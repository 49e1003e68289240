"""One connection to an SMTP server, and what each of its replies means."""

from __future__ import annotations

import io
import ipaddress
import logging
import smtplib
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from iocflow.activities.errors import DeliveryError, MailError, SmtpConnectionError, SmtpLoginError, SmtpTlsError
from iocflow.activities.letter import Delivery, DeliveryOutcome, Letter

__all__ = ["Connection", "HungUpError", "Remaining", "Server", "Tls"]

logger = logging.getLogger("iocflow.mail")

Remaining = Callable[[], float | None]
"""Gives the seconds that are left of the step's time limit; None without a limit."""

Tls = Literal["starttls", "implicit", "if-offered", "off"]

_LEAST_WAIT_S = 0.01  # a socket with a time-out of 0 does not wait at all, which is another mode
_LONGEST_REPLY = 65_536  # bytes; the longest that servers give, to EHLO, have less than a thousand
_PIECE = 65_536  # of what is sent at once
_SERVICE_CLOSES = 421  # RFC 5321, 3.8: said by a server that closes the connection

T = TypeVar("T")


class HungUpError(Exception):
    """The server closed the connection before the text of a letter was handed over: it was not sent."""


@dataclass(frozen=True, slots=True)
class Server:
    """How a server is reached; `timeout` is in seconds and bounds every single wait, as for a whole reply."""

    host: str
    port: int
    tls: Tls
    user: str
    password: str
    timeout: float
    context: ssl.SSLContext

    def wait(self, remaining: Remaining) -> float:
        """Return the seconds that the next wait may take."""
        left = remaining()
        return self.timeout if left is None else max(_LEAST_WAIT_S, min(self.timeout, left))


class _Reply(io.RawIOBase):
    """Reads what the server says; one reply, of however many pieces and lines, has one deadline and one size."""

    def __init__(self, session: _Session) -> None:
        super().__init__()
        self._session = session
        self._deadline, self._bytes = 0.0, 0

    def begin(self, allowed: float) -> None:
        """Expect the next reply, complete within `allowed` seconds."""
        self._deadline, self._bytes = time.monotonic() + allowed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        sock = self._session.sock
        if sock is None:
            return 0
        if self._bytes > _LONGEST_REPLY:
            raise OSError(f"its reply goes on after {self._bytes:,} bytes")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        sock.settimeout(max(_LEAST_WAIT_S, left))
        found = sock.recv_into(buffer)
        self._bytes += found
        return found


class _Session(smtplib.SMTP):
    """Knows whether the text of a message has begun to go out, and bounds every wait by the step's time limit."""

    handed_over = False

    def __init__(self, wait: Callable[[], float], host: str, port: int, own_name: str, **options: Any) -> None:
        self._wait = wait  # first, as smtplib connects at once and reads the greeting
        self._reply = _Reply(self)
        super().__init__(host, port, own_name, timeout=wait(), **options)

    def data(self, msg: Any) -> tuple[int, bytes]:
        self.handed_over = False
        return super().data(msg)

    def send(self, s: Any) -> None:
        # smtplib sends its commands as str and the text of a message as bytes.
        self.handed_over = self.handed_over or isinstance(s, bytes)
        for begin in range(0, len(s), _PIECE):  # each piece waits anew, as an encrypted socket's does in any case
            self._bound()
            super().send(s[begin : begin + _PIECE])

    def getreply(self) -> tuple[int, bytes]:
        if self.sock is not None and self.file is None:  # a new connection, or one that is encrypted from now on
            self._reply = _Reply(self)
            self.file = io.BufferedReader(self._reply)
        self._reply.begin(self._wait())
        answer = super().getreply()
        self._bound()  # whatever smtplib does next with the socket, a TLS handshake say
        return answer

    def _bound(self) -> None:
        if self.sock is not None:
            self.sock.settimeout(self._wait())


class _EncryptedSession(_Session, smtplib.SMTP_SSL):
    """The same, encrypted from the first byte."""


class Connection:
    """A connection that is open, encrypted and logged in as the server's settings demand."""

    def __init__(self, server: Server, remaining: Remaining) -> None:
        """Connect.

        Raises:
            SmtpConnectionError: The server cannot be reached, or says that it closes; another attempt may succeed.
            SmtpTlsError: The connection cannot be encrypted as demanded.
            SmtpLoginError: The server refused the user and password.
            DeliveryError: The server turned the connection away for good.
        """
        self._server = server
        self._session = self._guarded(lambda: self._open(remaining))
        try:
            self._guarded(self._encrypt)
            self._guarded(self._log_in)
        except BaseException:
            self._session.close()
            raise

    @property
    def usable(self) -> bool:
        """Whether neither side has closed it, as far as is known."""
        return self._session.sock is not None

    def deliver(self, letter: Letter) -> Delivery:
        """Hand the letter over and return what became of it.

        Raises:
            HungUpError: The server hung up before the text was handed over.
        """
        if letter.international and not self._session.has_extn("smtputf8"):
            why = "the address needs SMTPUTF8, which the server does not offer"
            return Delivery(letter.address, DeliveryOutcome.REFUSED, why)
        self._session.handed_over = False
        try:
            self._session.send_message(letter.message, letter.sender, [letter.address])
        except smtplib.SMTPRecipientsRefused as error:
            return self._judged(letter, *error.recipients[letter.address])
        except smtplib.SMTPResponseException as error:
            return self._judged(letter, error.smtp_code, error.smtp_error)
        except (smtplib.SMTPException, OSError) as error:
            self._session.close()
            return self._lost(letter, str(error))
        return Delivery(letter.address, DeliveryOutcome.SENT)

    def close(self) -> None:
        """Take leave and close."""
        if not self.usable:
            return
        try:
            self._session.quit()
        except (smtplib.SMTPException, OSError) as error:
            # All letters are settled by now, so it changes nothing for anybody.
            logger.debug("%s:%d hung up at QUIT: %s", self._server.host, self._server.port, error)
            self._session.close()

    def _judged(self, letter: Letter, code: int, reply: bytes | str) -> Delivery:
        said = _one_line(code, reply)
        if code == _SERVICE_CLOSES and not self._session.handed_over:
            self._session.close()
            raise HungUpError(said)
        outcomes = {2: DeliveryOutcome.SENT, 4: DeliveryOutcome.DEFERRED, 5: DeliveryOutcome.REFUSED}
        outcome = outcomes.get(code // 100)
        if outcome is None or isinstance(reply, str):  # a server's own words are bytes
            self._session.close()
            return self._lost(letter, f"the reply was no SMTP: {said}")
        return Delivery(letter.address, outcome, said)

    def _lost(self, letter: Letter, why: str) -> Delivery:
        if self._session.handed_over:
            return Delivery(letter.address, DeliveryOutcome.UNCERTAIN, f"no reply to the text: {why}")
        raise HungUpError(why)

    def _open(self, remaining: Remaining) -> _Session:
        server = self._server
        wait = partial(server.wait, remaining)
        if server.tls == "implicit":
            return _EncryptedSession(wait, server.host, server.port, _own_name(), context=server.context)
        return _Session(wait, server.host, server.port, _own_name())

    def _encrypt(self) -> None:
        session, server = self._session, self._server
        session.ehlo_or_helo_if_needed()
        if server.tls == "implicit":
            return
        if server.tls != "off" and session.has_extn("starttls"):
            session.starttls(context=server.context)
            session.ehlo_or_helo_if_needed()
        elif server.tls == "starttls" or server.user:
            what = "the password would be readable" if server.user else "it is demanded"
            raise SmtpTlsError(f"{server.host}:{server.port} offers no STARTTLS, and {what}; nothing was sent")
        elif session.sock and not ipaddress.ip_address(session.sock.getpeername()[0].partition("%")[0]).is_loopback:
            logger.warning("mail to %s:%d goes out unencrypted: tls is %s", server.host, server.port, server.tls)

    def _log_in(self) -> None:
        if not self._server.user:
            return
        try:
            self._session.login(self._server.user, self._server.password)
        except smtplib.SMTPAuthenticationError as error:
            said = _one_line(error.smtp_code, error.smtp_error)
            if error.smtp_code // 100 == 4:  # noqa: PLR2004 (4yz: not now)
                raise SmtpConnectionError(f"{self._server.host}: the login was put off: {said}") from error
            raise SmtpLoginError(f"{self._server.host} refused the user and password: {said}") from error
        except smtplib.SMTPNotSupportedError as error:
            raise SmtpLoginError(f"{self._server.host} offers no login, but a user is given: {error}") from error

    def _guarded(self, act: Callable[[], T]) -> T:
        """Return what `act` returns, with the errors of smtplib, ssl and socket told apart by what can be done."""
        place = f"{self._server.host}:{self._server.port}"
        try:
            return act()
        except MailError:
            raise
        except smtplib.SMTPResponseException as error:
            said = f"{place} turned the connection away: {_one_line(error.smtp_code, error.smtp_error)}"
            raise (DeliveryError if error.smtp_code // 100 == 5 else SmtpConnectionError)(said) from error  # noqa: PLR2004
        except ssl.SSLError as error:
            remedy = "a private certificate authority goes into ca_file"
            raise SmtpTlsError(f"{place}: the connection cannot be encrypted: {error}; {remedy}") from error
        except (smtplib.SMTPException, OSError) as error:
            raise SmtpConnectionError(
                f"cannot reach the mail server {place}: {error or type(error).__name__}"
            ) from error


def _own_name() -> str:
    """Return the name for EHLO; smtplib's own way asks the DNS, which may take many seconds."""
    name = socket.gethostname()
    return name if "." in name and name.isascii() else "[127.0.0.1]"


def _one_line(code: int, reply: bytes | str) -> str:
    """Return a reply as one short line; it is somebody else's text."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    shown = "".join(char if char.isprintable() else " " for char in text)
    return f"{code} {' '.join(shown.split())}"[:300].rstrip()
