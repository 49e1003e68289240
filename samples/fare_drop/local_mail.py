"""A mail server on this machine that delivers nothing: it writes each message to a file, to be looked at."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from iocflow.activities import LibraryMissingError

__all__ = ["LocalMail"]

_HOST = "127.0.0.1"
_PATIENCE_S = 10.0  # for a thread to start or end; it takes milliseconds


@dataclass(frozen=True)
class _Running:
    """What a server that was started consists of."""

    loop: asyncio.AbstractEventLoop
    thread: threading.Thread
    server: asyncio.Server


class LocalMail:
    """Takes mail on a free port and puts each message into a folder, as an `.eml` file that mail programs open."""

    def __init__(self, folder: str | Path) -> None:
        """Take the folder; nothing is started yet."""
        self.folder = Path(folder)
        self.host = _HOST
        self.port = 0
        self._count = 0
        self._running: _Running | None = None

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

        # It tells every line of every conversation at INFO, where this sample tells who was notified.
        logging.getLogger("mail.log").setLevel(logging.WARNING)
        self.folder.mkdir(parents=True, exist_ok=True)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="local-mail", daemon=True)
        thread.start()

        def session() -> SMTP:
            return SMTP(self, hostname="localhost", enable_SMTPUTF8=True, loop=loop)

        listening = asyncio.run_coroutine_threadsafe(loop.create_server(session, _HOST, 0), loop)
        self._running = _Running(loop, thread, listening.result(_PATIENCE_S))
        self.port = self._running.server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Stop listening and end the thread; nothing happens when it was not started."""
        if self._running is None:
            return
        running, self._running, self.port = self._running, None, 0
        asyncio.run_coroutine_threadsafe(_wind_up(running.server), running.loop).result(_PATIENCE_S)
        running.loop.call_soon_threadsafe(running.loop.stop)
        running.thread.join(_PATIENCE_S)
        running.loop.close()

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


async def _wind_up(server: asyncio.Server) -> None:
    """Stop listening, and end the conversations that are left."""
    server.close()
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await server.wait_closed()
