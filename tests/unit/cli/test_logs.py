"""How log lines look."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime
from typing import Any

import pytest

from iocflow.cli.logs import LogFormat, LogLevel, logging_to_stderr
from iocflow.context import ProcessContext
from iocflow.sequence import SequenceProcessor

KEYS = {"time", "level", "logger", "message", "run_id", "processor", "activity", "attempt", "exception"}
logger = logging.getLogger("shop.orders")


def log_an_error(message: str, *arguments: object) -> None:
    """Log an exception."""
    try:
        raise ConnectionError("refused by hunter2secret")
    except ConnectionError:
        logger.exception(message, *arguments)


def mask(text: str) -> str:
    """Mask the only secret of these tests."""
    return text.replace("hunter2secret", "***")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return what was logged as JSON."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_json_lines_have_the_same_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """Every line is one object with all keys; the time has its offset, the traceback is in `exception`."""
    with logging_to_stderr(LogFormat.JSON, LogLevel.INFO, traceback=False):
        logger.info("took %d orders", 3)
        log_an_error("sending\nfailed")
    plain, failed = lines(capsys)
    assert set(plain) == set(failed) == KEYS
    assert (plain["message"], plain["level"], plain["logger"]) == ("took 3 orders", "INFO", "shop.orders")
    assert datetime.fromisoformat(plain["time"]).tzinfo is not None
    assert plain["exception"] == ""
    assert failed["message"] == "sending\nfailed"
    assert failed["exception"].startswith("Traceback")


def test_json_lines_keep_what_was_added(capsys: pytest.CaptureFixture[str]) -> None:
    """Fields given as `extra` are in the line; what JSON does not know becomes text; none hides a standard key."""
    with logging_to_stderr(LogFormat.JSON, LogLevel.INFO, traceback=False):
        logger.info("done", extra={"message_id": "m-1", "seconds": 0.5, "path": sys, "run_id": "r-1"})
    (line,) = lines(capsys)
    assert (line["message_id"], line["seconds"], line["run_id"]) == ("m-1", 0.5, "r-1")
    assert "module 'sys'" in line["path"]


def test_lines_in_a_run_tell_which(capsys: pytest.CaptureFixture[str]) -> None:
    """A record that an activity logs carries the run's id, the processor, the activity and the attempt."""

    def greet(context: ProcessContext) -> None:
        logger.info("hello")

    processor = SequenceProcessor([greet], context=ProcessContext, name="hello")
    with logging_to_stderr(LogFormat.JSON, LogLevel.INFO, traceback=False):
        run = processor.do_activities()
    (line,) = lines(capsys)
    assert (line["run_id"], line["processor"], line["activity"], line["attempt"]) == (run.id, "hello", "greet", 1)


@pytest.mark.parametrize("form", LogFormat)
def test_secrets_are_masked(capsys: pytest.CaptureFixture[str], form: LogFormat) -> None:
    """Secrets are masked in message, arguments, extra fields and tracebacks."""
    with logging_to_stderr(form, LogLevel.INFO, traceback=True) as formatter:
        formatter.mask = mask
        log_an_error("with %s", "hunter2secret")
        logger.info("more", extra={"token": "hunter2secret"})
    written = capsys.readouterr().err
    assert "hunter2secret" not in written
    assert "***" in written


def test_text_shows_tracebacks_to_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    """A text line names the error; its traceback follows with --traceback or at debug level only."""
    with logging_to_stderr(LogFormat.TEXT, LogLevel.INFO, traceback=False):
        log_an_error("sending failed")
    short = capsys.readouterr().err
    assert short.endswith("ERROR shop.orders: sending failed: ConnectionError: refused by hunter2secret\n")
    assert short.count("\n") == 1
    for level, traceback in ((LogLevel.INFO, True), (LogLevel.DEBUG, False)):
        with logging_to_stderr(LogFormat.TEXT, level, traceback=traceback):
            log_an_error("sending failed")
        assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_level_is_heeded_and_logging_left_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """Records below the level are not written; afterwards the root logger is as before."""
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with logging_to_stderr(LogFormat.TEXT, LogLevel.ERROR, traceback=False):
        logger.warning("not shown")
        logger.error("shown")
    assert "not shown" not in (written := capsys.readouterr().err)
    assert "shown" in written
    assert (root.level, list(root.handlers)) == before
