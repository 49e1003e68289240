"""A RabbitMQ of the test's own, which can be killed and started again on the same data."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS = 90.0


def server() -> str:
    """Return the program, empty when it is not installed; Debian's own wrapper in the path wants to be another user."""
    for place in ("/usr/lib/rabbitmq/bin/rabbitmq-server", shutil.which("rabbitmq-server") or ""):
        if place and os.access(place, os.X_OK):
            return place
    return ""


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Broker:
    """A broker on ports of its own, its files in a folder."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        """Take the folder, and settings of `rabbit` in Erlang's own words; `start` starts it."""
        folder.mkdir()
        (folder / "advanced.config").write_text(f"[{{rabbit, [{settings}]}}].\n", encoding="utf-8")
        (folder / "plugins").write_text("[].\n", encoding="utf-8")
        self._pid_file, self._log = folder / "pid", folder / "output"
        self._port = free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self._port}//"
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"iocflow{self._port}@localhost",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(self._pid_file),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self._pid_file.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [server()],
                env=self._environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        end = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 5):
                return
            assert time.monotonic() < end, self._log.read_text(encoding="utf-8")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill it, with no time to write anything."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        # The Erlang machine may be in a group of its own.
        if self._pid_file.exists():
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.kill(int(self._pid_file.read_text(encoding="utf-8")), signal.SIGKILL)


@contextlib.contextmanager
def own_broker(folder: Path, settings: str = "") -> Iterator[Broker]:
    """Lend a broker that is started."""
    broker = Broker(folder, settings)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
