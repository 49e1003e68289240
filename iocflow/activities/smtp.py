"""Handing letters over to an SMTP server."""

from __future__ import annotations

import copy
import dataclasses
import logging
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from email.message import EmailMessage
from functools import partial
from typing import Any, Protocol, runtime_checkable

from iocflow.activities.arguments import Rule, chosen, complaints, demanded, keep
from iocflow.activities.errors import MailTimeoutError, SmtpConnectionError
from iocflow.activities.letter import Delivery, Letter, add_headers
from iocflow.activities.smtp_connection import Connection, HungUpError, Remaining, Server, Tls

__all__ = ["Remaining", "Sender", "SmtpSender"]

logger = logging.getLogger("iocflow.mail")

_DEFAULT_PORTS = {"implicit": 465, "starttls": 587}
_LAST_PORT = 65535


@runtime_checkable
class Sender(Protocol):
    """What `SendMail` hands its letters to: the collaborator that a test replaces by a fake."""

    def send(self, letters: Sequence[Letter], *, remaining: Remaining) -> Iterator[Delivery]:
        """Hand the letters over one after the other; yield what became of each before the next one is touched.

        Args:
            letters: All letters of the step, checked.
            remaining: Gives the seconds that are left, None without a limit; it bounds every wait.

        Raises:
            ConnectionError: The server cannot be reached; letters for which nothing was yielded were not sent.
        """


class SmtpSender:
    """Sends letters through an SMTP server, all those of one step over one connection.

    It keeps no connection from step to step, so that one object serves any number of threads and none goes stale.
    Within a step it opens a new one when the server has closed the last, as servers do after so many mails.
    """

    def __init__(
        self,
        host: str,
        port: int | None = None,
        tls: Tls = "if-offered",
        user: str = "",
        password: str = "",
        timeout: float = 30.0,
        headers: Mapping[str, str | Sequence[str]] | None = None,
        ca_file: str | None = None,
    ) -> None:
        """Take the settings; nothing is connected yet.

        Args:
            host: The server's name or address.
            port: Its port: 587 with `starttls`, 465 with `implicit`, else 25, unless given.
            tls: `starttls` demands encryption by STARTTLS, `implicit` encrypts from the first byte, `if-offered` takes
                STARTTLS when the server has it and logs a warning when not, `off` never encrypts. A certificate is
                always verified, and a password is never sent unencrypted.
            user: The name to log in with; without one there is no login.
            password: The password to log in with.
            timeout: Seconds that any one wait for the server may take, for a whole reply say; the step's time limit
                shortens it.
            headers: Headers that each message gets; a list makes the header stand several times.
            ca_file: The file with the certificate authorities to trust, instead of the system's.

        Raises:
            ValueError: A setting cannot be used, or they contradict each other.
            HeaderError: A header cannot stand in a mail.
        """
        self.headers = dict(headers or {})
        given = {"host": host, "port": port, "tls": tls, "user": user, "password": password, "timeout": timeout}
        keep(_rules({**given, "headers": self.headers}))
        context = _tls_context(ca_file)
        self.server = Server(host, port or _DEFAULT_PORTS.get(tls, 25), tls, user, password, timeout, context)

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the constructor would refuse."""
        if cls.__init__ is SmtpSender.__init__:
            yield from complaints(_rules({"user": "", "password": "", **arguments}))
            yield from complaints([("ca_file", partial(_tls_context, arguments.get("ca_file")))])

    def send(self, letters: Sequence[Letter], *, remaining: Remaining) -> Iterator[Delivery]:
        """Hand the letters over one after the other; yield what became of each before the next one is touched.

        Raises:
            SmtpConnectionError: The server cannot be reached, or hung up before it took over the first letter of a
                connection; letters for which nothing was yielded were not sent.
            MailError: It demands what the settings do not allow, or turned the connection away for good.
            MailTimeoutError: The step's time limit ended.
        """
        connection: Connection | None = None
        try:
            for letter in map(self._with_headers, letters):
                if remaining() == 0:
                    raise MailTimeoutError("the step's time limit ended before all mail was sent")
                delivery = self._deliver(connection, letter)
                if delivery is None:
                    connection = Connection(self.server, remaining)
                    delivery = self._deliver_first(connection, letter)
                yield delivery
        finally:
            if connection is not None:
                connection.close()

    def _deliver(self, connection: Connection | None, letter: Letter) -> Delivery | None:
        """Deliver over a connection that served before; None when there is none, or the server has closed it."""
        if connection is None or not connection.usable:
            return None
        try:
            return connection.deliver(letter)
        except HungUpError as error:
            logger.info("%s closed the connection (%s); connecting again", self.server.host, error)
            return None

    def _deliver_first(self, connection: Connection, letter: Letter) -> Delivery:
        try:
            return connection.deliver(letter)
        except HungUpError as error:
            raise SmtpConnectionError(f"{self.server.host}:{self.server.port} hung up: {error}") from error

    def _with_headers(self, letter: Letter) -> Letter:
        if not self.headers:
            return letter
        message = copy.deepcopy(letter.message)
        add_headers(message, self.headers)
        return dataclasses.replace(letter, message=message)


def _rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the settings that are `given`."""
    if "host" in given:
        yield demanded("host", given["host"], "a server has a name; write its host name or address")
    if given.get("port") is not None:
        yield demanded(
            "port", 1 <= given["port"] <= _LAST_PORT, f"there is no port {given['port']}; write 1 to {_LAST_PORT}"
        )
    yield from chosen(given, "tls", Tls)
    if "timeout" in given:
        fits = isinstance(given["timeout"], int | float) and given["timeout"] > 0
        yield demanded("timeout", fits, f"write more than 0 seconds, as a number, not {given['timeout']!r}")
    if {"user", "password"} <= given.keys():
        missing = "password" if given["user"] else "user"
        fits = bool(given["user"]) == bool(given["password"])
        yield demanded(missing, fits, "a login needs user and password, and this one is empty")
    if given.get("user"):
        why = "it is off, and a password is never sent unencrypted; write tls: starttls"
        yield demanded("tls", given.get("tls") != "off", why)
    for name in ("user", "password"):
        yield demanded(name, given.get(name, "").isascii(), "smtplib can log in with nothing but ASCII characters")
    yield "headers", partial(add_headers, EmailMessage(), given.get("headers") or {})


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ValueError(
            f"ca_file: {ca_file} holds no certificates that can be read: {error.strerror or error}"
        ) from error
