"""A mailbox read by POP3 (RFC 1939), by UIDL."""

from __future__ import annotations

import contextlib
import poplib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from iocflow.events.mailbox_address import MailboxOptions
from iocflow.events.mailbox_session import MailboxLostError, MailRefusedError, tls_context
from iocflow.launch.errors import ImpossibleSourceError
from iocflow.launch.texts import error_text

__all__ = ["Pop3Session"]

LINE = 10_000_000
"""The longest line, in bytes. poplib's own bound of 2,048 makes mails unreadable that servers do hand out."""


class Pop3Session:
    """A session, which locks the mailbox until it ends; what was removed is deleted by the server at its end."""

    def __init__(self, options: MailboxOptions) -> None:
        """Log in and list the mails.

        Raises:
            MailboxLostError: That cannot be now.
            ImpossibleSourceError: The server refuses the password, or has no UIDL.
        """
        self._name = options.name
        self._pop: poplib.POP3 | None = None
        try:
            with self._talking():
                self._pop = pop = _connected(options)
                self._log_in(pop, options)
            self._numbers = self._listed(pop)
        except BaseException:
            self.drop()
            raise

    def mails(self) -> Sequence[str]:
        """Return the unique ids."""
        return list(self._numbers)

    def fetch(self, key: str) -> bytes:
        """Retrieve a mail, byte for byte but for bare line feeds."""
        with self._talking() as pop:
            try:
                lines = pop.retr(self._number(key))[1]
            except poplib.error_proto as error:
                if (said := _said(error)) is None:
                    raise
                raise MailRefusedError(said) from error
        return b"".join(line + b"\r\n" for line in lines)

    def remove(self, key: str) -> None:
        """Mark a mail as deleted."""
        if key in self._numbers:
            with self._talking() as pop:
                pop.dele(self._number(key))
            del self._numbers[key]

    def end(self) -> None:
        """Quit: the server deletes what was marked."""
        with self._talking() as pop:
            pop.quit()

    def drop(self) -> None:
        """Close the connection; the server deletes nothing."""
        if self._pop is not None:
            with contextlib.suppress(OSError):
                self._pop.close()
            self._pop = None

    def _number(self, key: str) -> int:
        if key not in self._numbers:
            raise MailRefusedError("it is gone")
        return self._numbers[key]

    def _log_in(self, pop: poplib.POP3, options: MailboxOptions) -> None:
        try:
            pop.user(options.user)
            pop.pass_(options.password)
        except poplib.error_proto as error:
            said = _said(error)
            if said and "[AUTH]" in said:  # RFC 3206: it is the password, and not a locked mailbox or a full server
                raise ImpossibleSourceError(f"{self._name}: {said}") from error
            raise

    def _listed(self, pop: poplib.POP3) -> dict[str, int]:
        """Return the number of each mail by its unique id; of mails with the same content a server may say the same."""
        with self._talking():
            try:
                lines = pop.uidl()[1]
            except poplib.error_proto as error:
                if (said := _said(error)) is None:
                    raise
                what = f"{self._name}: the server tells mails apart by no UIDL ({said})"
                raise ImpossibleSourceError(f"{what}; read it by imap:, if that can be") from error
            numbers: dict[str, int] = {}
            for line in lines:
                number, _, key = line.decode("ascii", "backslashreplace").partition(" ")
                numbers.setdefault(key, int(number))
            return numbers

    @contextlib.contextmanager
    def _talking(self) -> Iterator[poplib.POP3]:
        try:
            yield self._pop  # type: ignore[misc]  # a session is not used when it is over
        except (OSError, poplib.error_proto, ValueError) as error:
            self.drop()
            raise MailboxLostError(f"{self._name}: {_said(error) or error_text(error)}") from error


class _Plain(poplib.POP3):
    def _getline(self) -> tuple[bytes, int]:
        return _line(self.file)


class _Encrypted(poplib.POP3_SSL):
    def _getline(self) -> tuple[bytes, int]:
        return _line(self.file)


def _line(file: BinaryIO) -> tuple[bytes, int]:
    """Return a line without its end, and its length: poplib's own refuses long ones, and takes half a one for whole."""
    line = file.readline(LINE + 1)
    if len(line) > LINE:
        raise poplib.error_proto(f"a line of more than {LINE:,} bytes")
    if not line.endswith(b"\n"):
        raise poplib.error_proto("the server broke off")
    return line[:-1].removesuffix(b"\r"), len(line)


def _connected(options: MailboxOptions) -> poplib.POP3:
    timeout = options.timeout.total_seconds()
    if not options.tls:
        return _Encrypted(options.host, options.port, timeout=timeout, context=tls_context(options))
    pop = _Plain(options.host, options.port, timeout)
    if options.tls == "start":
        try:
            pop.stls(tls_context(options))
        except BaseException:
            with contextlib.suppress(OSError):  # a socket that failed to turn to TLS is closed
                pop.close()
            raise
    return pop


def _said(error: Exception) -> str | None:
    """Return what the server answered; None when it is not an answer that failed, but the connection."""
    said = error.args[0] if isinstance(error, poplib.error_proto) and error.args else None
    return said.decode("utf-8", "backslashreplace") if isinstance(said, bytes) else None
