"""The sample's way to the mail server: a real one, or one that writes files."""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from iocflow import activities as ready_made
from iocflow.activities import Delivery, DeliveryOutcome, Letter, MailError, Remaining
from samples.fare_drop.local_mail import LocalMail

__all__ = ["SmtpSender"]

_LISTED = 50  # names in the summary at the end


class SmtpSender(ready_made.SmtpSender):
    """The ready-made sender, but the host `local` stands for a server of its own, and it says who was notified.

    `local` is there for looking at the mail. It is never fallen back on when a real server fails.
    """

    def __init__(
        self,
        host: str,
        port: int = 25,
        user: str = "",
        password: str = "",
        headers: Mapping[str, str | Sequence[str]] | None = None,
        folder: str = "var/mail",
    ) -> None:
        """Take the settings of the ready-made sender.

        Args:
            host: The server's name, or `local`.
            port: Its port; with `local`, any free one is taken instead.
            user: The name to log in with, if any.
            password: The password to log in with, if any.
            headers: Headers that each message gets.
            folder: Where `local` puts the messages.
        """
        self.local = LocalMail(folder) if host == "local" else None
        if self.local is None:
            super().__init__(host, port, user=user, password=password, headers=headers)
        else:
            super().__init__(self.local.host, headers=headers)
        self._lock = threading.Lock()
        self._mails: Counter[str] = Counter()

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the ready-made sender would refuse; to `local`, only the headers matter."""
        used = arguments.keys() & {"headers"} if arguments.get("host") == "local" else arguments
        return ready_made.SmtpSender.check_arguments({name: arguments[name] for name in used})

    def connect(self) -> None:
        """Start the server that `local` stands for."""
        if self.local is not None:
            self.local.start()
            self.server = replace(self.server, port=self.local.port)

    def disconnect(self) -> None:
        """Stop that server, and say who was notified and where the mail lies."""
        if self.local is not None:
            self.local.stop()
        if self._mails:
            _say("\n".join(self._told()))

    def _told(self) -> Iterator[str]:
        """Yield the lines that say who was notified, everybody once."""
        mails = self._mails.total()
        by = "" if mails == len(self._mails) else f" by {mails} mails"
        where = f"{self.server.host}:{self.server.port} took the mail"
        where = where if self.local is None else f"the messages lie in {self.local.folder}"
        yield f"{len(self._mails)} notified{by}; {where}:"
        yield from (f"  {person}" for person in itertools.islice(self._mails, _LISTED))
        if len(self._mails) > _LISTED:
            yield f"  … and {len(self._mails) - _LISTED} more"

    def send(self, letters: Sequence[Letter], *, remaining: Remaining) -> Iterator[Delivery]:
        """Send as the ready-made sender does, and remember who was sent their mail."""
        if self.local is not None and not self.local.port:
            raise MailError("the local server is not started; call connect() before, or wire it as init")
        for letter, delivery in zip(letters, super().send(letters, remaining=remaining), strict=False):
            if delivery.outcome is DeliveryOutcome.SENT:
                with self._lock:
                    self._mails[str(letter.message["To"].addresses[0])] += 1
            yield delivery


def _say(text: str) -> None:
    """Print, with `?` for what the terminal cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), flush=True)
