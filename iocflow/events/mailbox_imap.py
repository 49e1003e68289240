"""A mailbox read by IMAP (RFC 3501, 9051), by UIDVALIDITY and UID."""

from __future__ import annotations

import contextlib
import imaplib
import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

from iocflow.events.mailbox_address import MailboxOptions
from iocflow.events.mailbox_session import MailboxLostError, MailRefusedError, tls_context
from iocflow.launch.errors import ImpossibleSourceError
from iocflow.launch.texts import error_text, printable

__all__ = ["ImapSession"]

logger = logging.getLogger("iocflow.events")

_REFUSED = re.compile(r"\[(AUTHENTICATIONFAILED|AUTHORIZATIONFAILED)\]", re.IGNORECASE)
"""What a server says when it is the password (RFC 5530), and not that it is busy."""


class ImapSession:
    """A session with a folder selected. What is removed is at once: moved to the folder `done`, or deleted.

    It is deleted alone, by UID EXPUNGE; a server without UIDPLUS keeps the mail flagged as deleted, where it is out of
    the way, since a plain EXPUNGE would delete what others flagged.
    """

    def __init__(self, options: MailboxOptions) -> None:
        """Log in and select the folder.

        Raises:
            MailboxLostError: That cannot be now.
            ImpossibleSourceError: The server refuses the password.
        """
        self._name, self._done = options.name, options.done
        self._imap: imaplib.IMAP4 | None = None
        try:
            with self._talking():
                self._imap = imap = _connected(options)
                self._log_in(imap, options)
                self._abilities = set(self._words(imap.capability()))
                if self._done and imap.status(_quoted(self._done), "(UIDNEXT)")[0] != "OK":
                    self._require(imap.create(_quoted(self._done)))
                self._require(imap.select(_quoted(options.folder)))
                self._validity = self._words(imap.response("UIDVALIDITY"))[0]
        except BaseException:
            self.drop()
            raise

    def mails(self) -> Sequence[str]:
        """Return the keys of what is not flagged as deleted."""
        with self._talking() as imap:
            found = self._words(self._require(imap.uid("SEARCH", "UNDELETED")))
            return [f"{self._validity}.{uid}" for uid in sorted(map(int, found))]

    def fetch(self, key: str) -> bytes:
        """Fetch a mail; it stays unseen."""
        uid = self._uid(key)
        if uid is None:
            raise MailRefusedError("it is gone")
        with self._talking() as imap:
            status, parts = imap.uid("FETCH", uid, "(UID BODY.PEEK[])")
            if status != "OK":
                raise MailRefusedError(_text(parts))
            for part in parts:
                if isinstance(part, tuple) and re.search(rb"BODY\[\]", part[0], re.IGNORECASE):
                    return bytes(part[1])
        raise MailRefusedError("it is gone, or empty")

    def remove(self, key: str) -> None:
        """Move or delete a mail."""
        uid = self._uid(key)
        if uid is None:
            logger.warning("%s numbers its mails anew; mail %s may be brought again", self._name, printable(key))
            return
        with self._talking() as imap:
            if self._done and "MOVE" in self._abilities:
                self._require(imap.uid("MOVE", uid, _quoted(self._done)))
                return
            if self._done:
                self._require(imap.uid("COPY", uid, _quoted(self._done)))
            self._require(imap.uid("STORE", uid, "+FLAGS.SILENT", r"(\Deleted)"))
            if "UIDPLUS" in self._abilities:
                self._require(imap.uid("EXPUNGE", uid))

    def end(self) -> None:
        """Log out."""
        with self._talking() as imap:
            imap.logout()

    def drop(self) -> None:
        """Close the connection."""
        if self._imap is not None:
            with contextlib.suppress(OSError):
                self._imap.shutdown()
            self._imap = None

    def _uid(self, key: str) -> str | None:
        """Return the UID in a key; None when the server gave its mails other ones since."""
        validity, _, uid = key.partition(".")
        return uid if validity == self._validity else None

    def _log_in(self, imap: imaplib.IMAP4, options: MailboxOptions) -> None:
        plain = f"\0{options.user}\0{options.password}".encode()
        try:
            if "AUTH=PLAIN" in self._words(imap.capability()):
                imap.authenticate("PLAIN", lambda _: plain)
            else:
                imap.login(_quoted(options.user), options.password)
        except imaplib.IMAP4.abort:
            raise
        except imaplib.IMAP4.error as error:
            if _REFUSED.search(str(error)):
                raise ImpossibleSourceError(f"{self._name}: {error}") from error
            raise

    @staticmethod
    def _words(answer: tuple[str, Sequence[Any]]) -> list[str]:
        lines = [one.decode("ascii", "backslashreplace") for one in answer[1] if isinstance(one, bytes)]
        return " ".join(lines).upper().split()

    @staticmethod
    def _require(answer: tuple[str, Any]) -> tuple[str, Any]:
        if answer[0] != "OK":
            raise imaplib.IMAP4.error(_text(answer[1]))
        return answer

    @contextlib.contextmanager
    def _talking(self) -> Iterator[imaplib.IMAP4]:
        try:
            yield self._imap  # type: ignore[misc]  # a session is not used when it is over
        except (OSError, imaplib.IMAP4.error, ValueError, LookupError) as error:
            self.drop()
            raise MailboxLostError(f"{self._name}: {error_text(error)}") from error


def _connected(options: MailboxOptions) -> imaplib.IMAP4:
    timeout = options.timeout.total_seconds()
    if not options.tls:
        return imaplib.IMAP4_SSL(options.host, options.port, ssl_context=tls_context(options), timeout=timeout)
    imap = imaplib.IMAP4(options.host, options.port, timeout)
    if options.tls == "start":
        try:
            imap.starttls(tls_context(options))
        except BaseException:
            with contextlib.suppress(OSError):  # a socket that failed to turn to TLS is closed
                imap.shutdown()
            raise
    return imap


def _quoted(text: str) -> str:
    """Return a text as IMAP quotes it; imaplib quotes nothing but passwords."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(data: Any) -> str:
    said = data[0] if data else None
    return said.decode("utf-8", "backslashreplace") if isinstance(said, bytes) else "the server gives no reason"
