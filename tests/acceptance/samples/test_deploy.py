"""The unit file and the container file say what the program has, and the daemon runs as they start it."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iocflow.launch import DaemonSettings, ExitCode
from tests.web import PATIENT, ask, free_port

from .conftest import BIN, ended, environment, until

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "samples" / "deploy"
TOKEN = "a-token-that-is-long-enough"


class Unit:
    """The unit file, with its paths where the test has them."""

    def __init__(self, root: Path, state: Path) -> None:
        text = (DEPLOY / "iocflow.service").read_text(encoding="utf-8")
        self.text = text.replace("/opt/iocflow/.venv/bin", str(BIN)).replace("/opt/iocflow", str(root))
        self.text = self.text.replace("/var/lib/iocflow", str(state))
        read = configparser.RawConfigParser(strict=False)
        read.optionxform = str  # type: ignore[assignment,method-assign]
        read.read_string(self.text)
        self.service = dict(read["Service"])

    def seconds(self, key: str) -> float:
        """Return a time that is a number of seconds."""
        return float(self.service[key])


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a container file, each with its arguments."""
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [(one.split(None, 1)[0], one.split(None, 1)[1]) for one in joined.splitlines() if one]


@pytest.fixture
def container() -> list[tuple[str, str]]:
    """Return the instructions of the container file."""
    return instructions((DEPLOY / "Dockerfile").read_text(encoding="utf-8"))


@pytest.fixture
def notify(tmp_path: Path) -> Iterator[socket.socket]:
    """Return the socket of a systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(str(tmp_path / "notify"))
        one.settimeout(PATIENT)
        yield one


def started(command: list[str], folder: Path, **more: str) -> subprocess.Popen[str]:
    """Start the daemon."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**environment(), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


def test_the_daemon_as_the_unit_starts_it(clone: Path, tmp_path: Path, notify: socket.socket) -> None:
    """Started by ExecStart in its folder, the daemon gets ready, is watched, and stops with 0."""
    state = tmp_path / "state"
    state.mkdir()
    service = Unit(clone, state).service
    assert service["WorkingDirectory"] == str(state)
    ports = [free_port(), free_port()]
    command = [*shlex.split(service["ExecStart"]), "--set", f"http.port={ports[0]}", "--set", f"http.health={ports[1]}"]
    variables = dict([service["Environment"].split("=", 1)])
    watched = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": f"{service['WatchdogSec']}000000"}
    process = started(command, state, **variables, **watched)
    try:
        told = ""
        while "READY=1" not in told:
            told = notify.recv(4096).decode()
        assert ask(ports[1], "GET", "/ready").status == 200
        printed = ended(process)
    finally:
        process.kill()
        process.communicate()
    assert all(json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    assert (state / "var" / "inbox").is_dir()


def test_times_and_codes_of_the_unit() -> None:
    """The unit gives the daemon its grace time and two heartbeats, and does not repeat what cannot get better."""
    unit, settings = Unit(ROOT, Path("/tmp")), DaemonSettings()
    assert (unit.service["Type"], unit.service["KillMode"]) == ("notify", "mixed")
    assert unit.seconds("TimeoutStopSec") > settings.grace.total_seconds() + 5
    assert unit.seconds("WatchdogSec") >= 2 * settings.heartbeat.total_seconds()
    codes = {ExitCode(int(one)) for one in unit.service["RestartPreventExitStatus"].split()}
    assert codes == {ExitCode.USAGE, ExitCode.CONFIGURATION}


def test_systemd_takes_the_unit(clone: Path, tmp_path: Path) -> None:
    """What systemd itself says to the unit, where it is installed: nothing; each line is an assignment anyway."""
    unit = Unit(clone, tmp_path)
    lines = [line for line in unit.text.splitlines() if line and not line.startswith(("#", "["))]
    assert all(re.fullmatch(r"[A-Z]\w+=.*", line) for line in lines)
    if verify := shutil.which("systemd-analyze"):
        file = tmp_path / "iocflow.service"
        file.write_text(unit.text, encoding="utf-8")
        done = subprocess.run([verify, "verify", "--man=no", file], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_what_the_container_copies(container: list[tuple[str, str]]) -> None:
    """What is copied is there, the extras that are installed exist, and it does not run as root."""
    for what, arguments in container:
        if what == "COPY":
            assert all((ROOT / one).exists() for one in arguments.split()[:-1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = next(found[1] for _, arguments in container if (found := re.search(r"'\.\[(.*)\]'", arguments)))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert [arguments for what, arguments in container if what == "USER"] == ["iocflow"]
    assert ("STOPSIGNAL", "SIGTERM") in container


def test_the_daemon_as_the_container_starts_it(clone: Path, container: list[tuple[str, str]]) -> None:
    """Started by ENTRYPOINT and CMD the daemon is healthy by HEALTHCHECK, wants its token, and stops with 0."""
    said = dict(container)
    command = [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])]
    ports = {"8080": free_port(), "9100": free_port()}
    assert said["EXPOSE"].split() == list(ports)
    command += ["--set", f"http.port={ports['8080']}", "--set", f"http.health={ports['9100']}"]
    check = json.loads(said["HEALTHCHECK"].partition("CMD ")[2])
    assert check[0] == "python"
    check = [sys.executable, *(part.replace("9100", str(ports["9100"])) for part in check[1:])]

    def healthy() -> bool:
        return subprocess.run(check, capture_output=True, timeout=PATIENT, check=False).returncode == 0

    process = started([str(BIN / command[0]), *command[1:]], clone, FARES_TOKEN=TOKEN)
    try:
        until(healthy)
        event = json.loads((clone / "samples" / "fare_drop" / "event.json").read_text(encoding="utf-8"))
        assert _posted(ports["8080"], event) == 401
        assert _posted(ports["8080"], event, Authorization=f"Bearer {TOKEN}") == 200
        printed = ended(process)
    finally:
        process.kill()
        process.communicate()
    assert TOKEN not in printed
    assert not healthy()


def test_the_container_without_a_token(clone: Path, container: list[tuple[str, str]]) -> None:
    """What can be reached from outside is not started without a token."""
    said = dict(container)
    command = [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])]
    process = started([str(BIN / command[0]), *command[1:]], clone)
    printed, _ = process.communicate(timeout=PATIENT)
    assert process.returncode == ExitCode.CONFIGURATION
    assert "has no token; add ?token=" in printed


def _posted(port: int, event: Any, **headers: str) -> int:
    return ask(port, "POST", "/fares", event, **headers).status
