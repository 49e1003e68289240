"""A mail server on this machine that delivers nothing: it writes each message to a file, to be looked at."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

from iocflow.activities import LibraryMissingError, MailError

__all__ = ["LocalMail"]

_HOST = "127.0.0.1"
_PATIENCE_S = 10.0  # for a thread to start or end; it takes milliseconds


class LocalMail:
    """Takes mail on a free port and puts each message into a folder, as an `.eml` file that mail programs open."""

    def __init__(self, folder: str | Path) -> None:
        """Take the folder; nothing is started yet."""
        self.folder = Path(folder)
        self.host = _HOST
        self.port = 0
        self._count = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="local-mail", daemon=True)
        self._server: asyncio.Server | None = None

    def start(self) -> None:
        """Make the folder and begin to listen; `port` tells where.

        Raises:
            LibraryMissingError: aiosmtpd is not installed.
        """
        try:
            from aiosmtpd.smtp import SMTP  # noqa: PLC0415  (the sample's own extra)
        except ImportError as error:
            remedy = "install iocflow[samples], or name a server: --set smtp.host=… --set smtp.port=…"
            raise LibraryMissingError(f"smtp.host is `local`, which needs aiosmtpd; {remedy}") from error

        def session() -> SMTP:
            return SMTP(self, hostname="localhost", enable_SMTPUTF8=True, loop=self._loop)

        # It tells every line of every conversation at INFO, where this sample tells who was notified.
        logging.getLogger("mail.log").setLevel(logging.WARNING)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        listening = self._loop.create_server(session, _HOST, 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(_PATIENCE_S)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Stop listening and end the thread."""
        asyncio.run_coroutine_threadsafe(self._wind_up(), self._loop).result(_PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            raise MailError("the local mail server did not end")
        self._loop.close()

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:  # noqa: N802, ARG002
        """Write a message to its file; aiosmtpd calls this once a message has come in whole."""
        self._count += 1
        address = re.sub(r"[^A-Za-z0-9.@+_-]", "_", envelope.rcpt_tos[0])[:80]
        began = datetime.now().strftime("%Y%m%dT%H%M%S.%f")
        file = self.folder / f"{began}-{self._count:04d}-{address}.eml"
        written = file.with_suffix(".part")
        written.write_bytes(envelope.original_content)
        written.rename(file)
        return "250 OK"

    async def _wind_up(self) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()
