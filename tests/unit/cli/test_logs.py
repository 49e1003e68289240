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
from iocflow.launch import Launch
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.sequence import SequenceProcessor

FROM_RUN = {"run_id", "processor", "activity", "attempt", "launcher", "message_id"}
KEYS = {"time", "level", "logger", "message", "exception"} | FROM_RUN
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
    assert (plain["run_id"], plain["activity"], plain["attempt"]) == ("", "", 0)
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


def test_lines_of_a_launch_tell_its_origin(capsys: pytest.CaptureFixture[str]) -> None:
    """What an activity logs, in a branch or a coroutine too, carries the launcher and the id of the event."""

    def greet(context: ProcessContext) -> None:
        logger.info("hello")

    async def wave(context: ProcessContext) -> None:
        logger.info("hello")

    split: Any = ParallelSplitProcessor({"greet": greet, "wave": wave}, context=ProcessContext, name="hello")
    launch = Launch(split, "drops", message_id="m-1")
    with logging_to_stderr(LogFormat.JSON, LogLevel.INFO, traceback=False):
        launch.perform()
        logger.info("outside")
    *inside, outside = lines(capsys)
    origins = [(one["run_id"], one["launcher"], one["message_id"]) for one in (*inside, outside)]
    assert origins == [(launch.run_id, "drops", "m-1")] * 2 + [("", "", "")]


def test_text_lines_in_a_run_tell_which(capsys: pytest.CaptureFixture[str]) -> None:
    """A text line that belongs to a run shows the first characters of its id; other lines show none."""

    def greet(context: ProcessContext) -> None:
        logger.info("hello")

    processor = SequenceProcessor([greet], context=ProcessContext, name="hello")
    with logging_to_stderr(LogFormat.TEXT, LogLevel.INFO, traceback=False):
        run = processor.do_activities()
        logger.info("outside")
        logger.info("odd", extra={"run_id": 7})
    inside, outside, odd = capsys.readouterr().err.splitlines()
    assert inside.endswith(f" INFO [{run.id[:8]}] hello/greet: hello")
    assert outside.endswith(" INFO shop.orders: outside")
    assert odd.endswith(" INFO [7] shop.orders: odd")


@pytest.mark.parametrize("form", LogFormat)
@pytest.mark.parametrize("control", ["\n", "\r", "\r\n", "\x1b[2J", "\x9b2J", "\x85", "\u2028", "\x08"])
def test_messages_cannot_forge_lines(capsys: pytest.CaptureFixture[str], form: LogFormat, control: str) -> None:
    """Control characters in a message, a name or an error make no second line and reach no terminal."""
    data = f"a.json{control}12:00:00.000 INFO shop.orders: forged"
    with logging_to_stderr(form, LogLevel.INFO, traceback=False):
        logger.info("took %s", data)
        logger.info("took", extra={"processor": data, "run_id": data})
        try:
            raise ConnectionError(data)
        except ConnectionError:
            logger.exception("failed")
    written = capsys.readouterr().err
    assert len(written.splitlines()) == 3
    assert control not in written.replace("\n", "" if control == "\n" else "\n")


def test_tracebacks_cannot_forge_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback keeps its lines, set off from those of the log, and without terminal codes."""
    with logging_to_stderr(LogFormat.TEXT, LogLevel.INFO, traceback=True):
        try:
            raise ConnectionError("x\n12:00:00.000 INFO shop.orders: forged \x1b[2J")
        except ConnectionError:
            logger.exception("failed")
    written = capsys.readouterr().err
    first, *rest = written.splitlines()
    assert first.endswith("failed")
    assert rest[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in rest)
    assert "\x1b" not in written


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("sending failed", "sending failed: ConnectionError: no route"),
        ("x: ConnectionError: no route; next try in 1 s", "x: ConnectionError: no route; next try in 1 s"),
        ("sending failed: no route", "sending failed: no route (ConnectionError)"),
    ],
)
def test_an_error_is_told_once(capsys: pytest.CaptureFixture[str], message: str, shown: str) -> None:
    """Of a record's error a line adds only what the message does not say."""
    with logging_to_stderr(LogFormat.TEXT, LogLevel.INFO, traceback=False):
        logger.error(message, exc_info=ConnectionError("no route"))
        logger.error("left", exc_info=SystemExit())
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(f" ERROR shop.orders: {shown}")
    assert second.endswith("left: SystemExit")


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


@pytest.mark.parametrize("message", ["the daemon failed", "the daemon failed: ExceptionGroup: all (2 sub-exceptions)"])
def test_text_tells_every_error_of_a_group(capsys: pytest.CaptureFixture[str], message: str) -> None:
    """Each with its notes, nested ones too, on the one line, and with its secrets masked; of very many the first."""
    noted = ConnectionError("refused by hunter2secret\nnow")
    noted.add_note("while bean `smtp` was closed")
    with logging_to_stderr(LogFormat.TEXT, LogLevel.INFO, traceback=False) as formatter:
        formatter.mask = mask
        logger.error(message, exc_info=ExceptionGroup("all", [noted, ExceptionGroup("some", [KeyError("x")])]))
        logger.error("many", exc_info=ExceptionGroup("many", [ValueError(i) for i in range(1000)]))
    group, many = capsys.readouterr().err.splitlines()
    assert group.endswith(
        ": the daemon failed: ExceptionGroup: all (2 sub-exceptions); ConnectionError: refused by ***\\nnow;"
        " while bean `smtp` was closed; ExceptionGroup: some (1 sub-exception); KeyError: 'x'"
    )
    assert many.endswith("; ValueError: 19; and 980 more")
