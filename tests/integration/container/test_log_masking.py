"""iocflow's own loggers mask an application's secrets while it is open."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from iocflow.cli.logs import LogFormat, LogLevel, logging_to_stderr
from iocflow.container import load

Write = Callable[[str], Path]
TALKER = "beans: {a: {class: .Talker, args: {token: '${secret:token}'}}}"


@pytest.fixture
def login() -> Callable[[], None]:
    """Return a function that logs an error with the secret in it, as the engine does, with the logger `iocflow`."""

    mail = logging.getLogger("iocflow.mail")

    def login() -> None:
        password = "tiger-lily"
        try:
            try:
                raise ConnectionError(f"login with {password!r}")
            except ConnectionError as error:
                raise ExceptionGroup(f"all of {password}", [error, ValueError(password)]) from error
        except ExceptionGroup:
            logging.getLogger("iocflow").exception("step failed")
        mail.warning("sent as %s", password)

    return login


def test_open(
    write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, login: Callable[[], None]
) -> None:
    """A program's own handlers get records without secrets, from the loggers below `iocflow` too, until it closes."""
    monkeypatch.setenv("TOKEN", "tiger-lily")
    with load(write(TALKER)):
        caplog.clear()
        login()
        assert "tiger-lily" not in caplog.text
        assert "ConnectionError: login with '***'" in caplog.text
        assert caplog.messages[-1] == "sent as ***"
    login()
    assert caplog.messages[-1] == "sent as tiger-lily"


def test_without_secrets(write: Write) -> None:
    """An application without secrets puts no filter on."""
    before = list(logging.getLogger("iocflow").filters)
    with load(write("beans: {a: {class: .Talker, args: {token: x}}}")):
        assert logging.getLogger("iocflow").filters == before


@pytest.mark.parametrize("frames", [True, False])
def test_formatter_of_the_command_line(
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    login: Callable[[], None],
    frames: bool,
) -> None:
    """The command line's lines say the masked error, with or without its traceback, as they do without the filter."""
    monkeypatch.setenv("TOKEN", "tiger-lily")
    with logging_to_stderr(LogFormat.TEXT, LogLevel.INFO, traceback=frames), load(write(TALKER)):
        login()
    text = capsys.readouterr().err
    assert "tiger-lily" not in text.partition("step failed")[2]
    assert "all of ***" in text
    assert ("in login" in text) is frames


def test_causes_in_a_circle(write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """An exception whose causes go round in a circle is logged with all its texts masked, notes included."""
    monkeypatch.setenv("TOKEN", "tiger-lily")
    first, second = ValueError("tiger-lily"), KeyError("b")
    first.__cause__, second.__context__ = second, first
    first.add_note("of tiger-lily")
    with load(write(TALKER)):
        caplog.clear()
        logging.getLogger("iocflow").error("failed", exc_info=first)
    assert "ValueError: ***\nof ***" in caplog.text
    (record,) = caplog.records
    assert record.exc_info
    assert str(record.exc_info[1]) == "***"
    assert "KeyError: 'b'" in logging.Formatter().formatException(record.exc_info)
