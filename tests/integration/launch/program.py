"""A program with a daemon, to be run, signalled and killed from outside: `program.py OPTIONS`, a JSON object.

Options: `source` and `every`, what launches; `grace`, `pool`, `heartbeat`, the daemon's settings; `journal`, the file
to which every run writes `began NAME` and `ended NAME`; `close`, seconds that closing takes; `chatter`, whether the
first run starts a thread that fills standard error.

An event is `{"name": …, "seconds": …}`, how long its run takes.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from datetime import timedelta
from typing import Any

from iocflow.container import App
from iocflow.context import ProcessContext
from iocflow.events import on_event
from iocflow.launch import DaemonSettings
from iocflow.launch.daemon import Daemon
from iocflow.schedule import every
from iocflow.sequence import SequenceProcessor

OPTIONS: dict[str, Any] = {"grace": 5.0, "pool": 4, "heartbeat": 0.2, "close": 0.0, **json.loads(sys.argv[1])}


class Seeded(ProcessContext):
    """A context whose seed is an event's data."""

    seed_data: dict[str, Any]


def note(line: str) -> None:
    """Write a line to the journal at once: one write, which a kill cannot tear."""
    descriptor = os.open(OPTIONS["journal"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def work(context: Seeded) -> None:
    """Take as long as the event says."""
    seed = vars(context).get("seed_data", {"name": "tick"})
    if OPTIONS.get("chatter"):
        threading.Thread(target=chatter, daemon=True).start()
    note(f"began {seed['name']}")
    time.sleep(seed.get("seconds", 0))
    note(f"ended {seed['name']}")


class Closing(App):
    """An application that takes its time to close."""

    def close(self) -> None:
        """Close late."""
        note("closing")
        time.sleep(OPTIONS["close"])
        super().close()
        note("closed")


def chatter() -> None:
    """Log without end, more than any pipe holds."""
    while True:
        logging.getLogger("chatter").info("x" * 1000)


def main() -> None:
    """Run the daemon."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    processor = SequenceProcessor([work], context=Seeded, name="p")
    launchers: list[object] = []
    if "source" in OPTIONS:
        launchers.append(on_event(OPTIONS["source"], processor))
    if "every" in OPTIONS:
        launchers.append(every(OPTIONS["every"], processor))
    settings = DaemonSettings(
        pool=OPTIONS["pool"],
        grace=timedelta(seconds=OPTIONS["grace"]),
        heartbeat=timedelta(seconds=OPTIONS["heartbeat"]),
    )
    Daemon(Closing(processor, launchers=launchers), settings=settings).run_and_exit()


if __name__ == "__main__":
    main()
