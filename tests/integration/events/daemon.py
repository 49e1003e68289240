"""A daemon in a process of its own, whose durable runs leave their effects, to be killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

MODULE = """
import os
import signal
from pathlib import Path

from iocflow import ProcessContext


class Number(ProcessContext):
    seed_data: dict[str, int]


def note(context: Number) -> None:
    if context.seed_data.get("kills"):
        os.kill(os.getpid(), signal.SIGKILL)
    descriptor = os.open("noted", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{context.seed_data['n']}\\n".encode())
    os.close(descriptor)


def effect(context: Number) -> None:
    transaction = context.step.transaction
    transaction.execute("create table if not exists effects (n integer)")
    transaction.execute("insert into effects values (?)", (context.seed_data["n"],))
"""
CONTAINER = """
iocflow: 1
package: numbers_app
store: sqlite:///runs.db
worker: {threads: 4, lease: 900ms, tick: 200ms, deliveries: 3}
processors:
  p:
    context: .Number
    sequence: STEPS
    durable: true
launchers:
  x: {processor: p, source: "${env:SOURCE}"}
"""
BOTH = "[.note, {do: .effect, mode: transactional, time-limit: 300ms}]"


class Daemon:
    """`iocflow serve` in a process of its own."""

    def __init__(self, folder: Path, address: str, steps: str = BOTH) -> None:
        self.folder = folder
        (folder / "numbers_app.py").write_text(MODULE, encoding="utf-8")
        (folder / "app.yaml").write_text(CONTAINER.replace("STEPS", steps), encoding="utf-8")
        self._environment = {**os.environ, "SOURCE": address}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        command = [str(Path(sys.executable).with_name("iocflow")), "serve", "app.yaml"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, env=self._environment, stderr=log)

    def died(self) -> bool:
        """Return whether it was killed."""
        return self.process is not None and self.process.poll() == -signal.SIGKILL

    def kill(self) -> None:
        """Kill it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask for its good end."""
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log()

    def log(self) -> str:
        """Return what it wrote."""
        return (self.folder / "log").read_text(encoding="utf-8")

    def known(self) -> bool:
        """Return whether its store is there."""
        return (self.folder / "runs.db").exists()

    def noted(self) -> list[int]:
        """Return the numbers that the first activity noted."""
        file = self.folder / "noted"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def effects(self) -> list[int]:
        """Return the numbers that the second one put into the store's database."""
        if "effects" not in self._query("select group_concat(name) from sqlite_master")[0][0]:
            return []
        return [n for (n,) in self._query("select n from effects order by n")]

    def states(self) -> dict[str, int]:
        """Return how many runs are in each state."""
        return dict(self._query("select state, count(*) from v_run_status group by state"))

    def _query(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.folder / "runs.db", timeout=10)) as connection:
            return connection.execute(sql).fetchall()
