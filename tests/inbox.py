"""Tables of PostgreSQL for the tests of sources, and daemons that share one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

MODULE = """
import os
import time
from pathlib import Path

from iocflow import ProcessContext


class Number(ProcessContext):
    seed_data: int


def note(context: Number) -> None:
    descriptor = os.open("noted", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{os.getpid()} {context.seed_data}\\n".encode())
    os.close(descriptor)
    while Path("hold").exists():
        time.sleep(0.01)
"""
CONTAINER = """
iocflow: 1
package: inbox_app
processors:
  p: {context: .Number, sequence: [.note]}
launchers:
  x: {processor: p, source: "${env:SOURCE}"}
daemon: {pool: 2}
"""


class Inbox:
    """A schema of the test's own with a table `inbox`, which notifies as the reference shows."""

    def __init__(self, server: str, columns: str = "id bigserial primary key, data jsonb") -> None:
        """Make it."""
        self.schema = f"test_{uuid.uuid4().hex[:12]}"
        self._server = server
        self._connection = psycopg.connect(server, autocommit=True, application_name="the test")
        self.execute(f"create schema {self.schema}; set search_path to {self.schema}; create table inbox ({columns})")
        self.execute(
            f"create function ring() returns trigger language plpgsql as $$ begin"
            f" perform pg_notify('{self.schema}', ''); return null; end $$;"
            " create trigger ring after insert on inbox for each statement execute function ring()"
        )

    def address(self, options: str = "") -> str:
        """Return the address of a source that reads it; its connections are known by the schema's name."""
        server = self._server
        return (
            f"{server}{'&' if '?' in server else '?'}table=inbox&channel={self.schema}"
            f"&application_name={self.schema}&options={quote(f'-csearch_path={self.schema}')}{options}"
        )

    def execute(self, statement: str, *arguments: Any) -> list[Any]:
        """Return the rows of a statement."""
        done = self._connection.execute(statement, arguments or None)  # type: ignore[arg-type]
        return done.fetchall() if done.description else []

    def put(self, *data: str) -> None:
        """Insert rows, in one statement."""
        self.execute(
            "insert into inbox (data) select x::jsonb from unnest(%s::text[]) with ordinality u(x, n)", [*data]
        )

    def left(self) -> int:
        """Return how many rows there are."""
        return int(self.execute("select count(*) from inbox")[0][0])

    def free(self) -> int:
        """Return how many rows nobody has locked."""
        return len(self.execute("select id from inbox for update skip locked"))

    def dead(self) -> list[Any]:
        """Return id, body and reason of the dead letters; none while there is no table of them."""
        if self.execute("select to_regclass('inbox_dead')") == [(None,)]:
            return []
        return self.execute("select id, body, reason->>'reason' from inbox_dead order by number")

    def holders(self) -> set[int]:
        """Return the processes of the server whose transactions hold a row for a source."""
        found = self.execute(
            "select pid from pg_stat_activity where application_name = %s and state = 'idle in transaction'",
            self.schema,
        )
        return {pid for (pid,) in found}

    def listens(self) -> bool:
        """Return whether a source listens."""
        statement = "select 1 from pg_stat_activity where application_name = %s and query like 'listen%%'"
        return bool(self.execute(statement, self.schema))

    def terminate(self, state: str = "") -> int:
        """End the source's connections that are in such a state, as `idle in transaction`; return how many."""
        found = self.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s and state like %s",
            self.schema, f"{state}%",
        )  # fmt: skip
        return len(found)

    def close(self) -> None:
        """Drop the schema, after all of its connections were ended."""
        self.terminate()
        self.execute(f"set client_min_messages = warning; drop schema {self.schema} cascade")
        self._connection.close()


@contextlib.contextmanager
def inboxes(server: str, *columns: str) -> Iterator[Inbox]:
    """Lend a table."""
    made = Inbox(server, *columns)
    try:
        yield made
    finally:
        made.close()


class Daemons:
    """`iocflow serve` in processes of their own, in one folder."""

    def __init__(self, folder: Path, address: str) -> None:
        """Write the application."""
        self.folder = folder
        (folder / "inbox_app.py").write_text(MODULE, encoding="utf-8")
        (folder / "app.yaml").write_text(CONTAINER, encoding="utf-8")
        self._environment = {**os.environ, "SOURCE": address}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> int:
        """Start one; return its process id."""
        command = [str(Path(sys.executable).with_name("iocflow")), "serve", "app.yaml"]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self.folder, env=self._environment, stderr=log)
        self.processes[process.pid] = process
        return process.pid

    def kill(self, pid: int) -> None:
        """Kill one, with SIGKILL."""
        process = self.processes.pop(pid)
        process.kill()
        process.wait()

    def hold(self, on: bool) -> None:
        """Let runs wait, or go on."""
        if on:
            (self.folder / "hold").touch()
        else:
            (self.folder / "hold").unlink(missing_ok=True)

    def noted(self) -> list[tuple[int, int]]:
        """Return process and number of each run that began."""
        file = self.folder / "noted"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(int(pid), int(number)) for pid, number in map(str.split, lines)]

    def stop(self) -> None:
        """Ask for the good end of all."""
        self.hold(False)
        for process in self.processes.values():
            process.terminate()
        log = self.folder / "log"
        for process in self.processes.values():
            assert process.wait(60) == 0, log.read_text()
        self.processes.clear()
