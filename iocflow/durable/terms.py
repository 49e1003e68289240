"""What a submission may say beside its seed, and which texts a store keeps."""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict

from iocflow.durable.errors import SubmitError
from iocflow.wiring.duration import seconds_of

PRIORITIES = range(10)
"""9 is first."""

LONGEST_NAME = 255
"""The most characters of a name: a submitter's, a number, a group's, a signal's, an operator's."""

LONGEST_TEXT = 4000
"""The most characters of a reason."""

_CENTURY = 100 * 365.25 * 24 * 3600


class Terms(TypedDict, total=False):
    """What a submission may say beside its seed; a name has 1 to 255 characters.

    Attributes:
        submitter: Who sends it; without it, from the seed if the wiring says where, else the processor's id.
        number: The submitter's own number; generated when neither it nor the wiring gives one.
        group: Runs of one group go one at a time, in order of submission.
        priority: 0 to 9, 9 first; a minute of waiting is worth one level.
        deadline: The run is timed out then: a time, or from now on: seconds, a `timedelta`, or `1h`.
        not_before: It does not start earlier.
        start_by: It fails as expired when it was not started by then.
    """

    submitter: str | None
    number: str | None
    group: str | None
    priority: int
    deadline: str | float | timedelta | datetime | None
    not_before: str | float | timedelta | datetime | None
    start_by: str | float | timedelta | datetime | None


def name_in(term: str, given: str | None, seed: Any, path: str) -> str | None:
    """Return a term that names something: as it is given, else from the seed where the wiring says so.

    Raises:
        SubmitError: It cannot name anything; the message says where it is from.
    """
    value = given if given is not None else field_in(seed, path)
    return None if value is None else kept(term, value, where="" if given is not None else f"the seed's {path}")


def field_in(seed: Any, path: str) -> Any:
    """Return the seed's field at `path`; None without a path, or when what should have it is None.

    Raises:
        SubmitError: There is no such field.
    """
    if not path:
        return None
    value = seed
    for name in path.split("."):
        if value is None:
            break
        try:
            value = value[name] if isinstance(value, Mapping) else getattr(value, name)
        except (KeyError, AttributeError):
            raise SubmitError(f"the seed has no field {path!r}, which `durable` names") from None
    return value


def kept(what: str, value: Any, *, where: str = "", least: int = 1, most: int = LONGEST_NAME) -> str:
    """Return a value as the text that a store keeps of it.

    Args:
        what: What it is to be.
        value: It.
        where: Where it is from, if not from an argument of that name.
        least: The fewest characters.
        most: The most characters.

    Raises:
        SubmitError: No store keeps it.
    """
    text = str(value)
    if least <= len(text) <= most and storable(text):
        return text
    size = f" with {len(text):,} characters" if len(text) > most else ""
    raise SubmitError(
        f"{where or what} is {reprlib.repr(value)}{size}, which is no {what}: write at"
        f" {'least one character, and at ' if least else ''}most {most:,}, with no NUL and no half of a surrogate pair"
    )


def seconds_in(term: str, given: str | float | timedelta) -> float:
    """Return the seconds of a duration, given as such, as a `timedelta`, or as people write it.

    Raises:
        SubmitError: It is none of these, or is 100 years or longer.
    """
    seconds: object = given
    if isinstance(given, timedelta):
        seconds = given.total_seconds()
    elif isinstance(given, str):
        seconds = seconds_of(given)
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and abs(seconds) < _CENTURY:
        return seconds
    raise SubmitError(
        f"{term} is {reprlib.repr(given)}, no duration of less than 100 years; write seconds, or 30s, 5m, 2h or 1d"
    )


def number_of(key: str) -> str:
    """Return a launcher's key as a number: itself, or where no store keeps it, its beginning and a digest."""
    if 1 <= len(key) <= LONGEST_NAME and storable(key):
        return key
    digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
    beginning = key[: LONGEST_NAME - len(digest) - 1].replace("\0", "?").encode(errors="replace").decode()
    return f"{beginning}#{digest}"


def storable(text: str) -> bool:
    """Return whether both kinds of stores keep a text as it is: not with a NUL, or half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
