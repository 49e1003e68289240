"""Durations that a program gives to a launcher."""

from __future__ import annotations

from datetime import timedelta

from iocflow.launch.errors import LauncherError
from iocflow.wiring.duration import seconds_of


def duration(written: str | timedelta, what: str) -> timedelta:
    """Return a duration that a program gives as a `timedelta` or as text.

    Args:
        written: The duration.
        what: Names it in the message.

    Raises:
        LauncherError: The text is no duration, or a longer one than there can be.
    """
    if isinstance(written, timedelta):
        return written
    seconds = seconds_of(str(written))  # a program that nobody type-checks may give a number
    if seconds is None:
        raise LauncherError(f"{what} is {written!r}, which is no duration; write 500ms, 30s, 5m, 2h or 1d")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise LauncherError(f"{what} is {written}, which is longer than any clock runs") from None
