"""Container files as text: every way in which a file can be unreadable becomes a sentence."""

from __future__ import annotations

import codecs
import os
import re
import stat
from dataclasses import dataclass

from iocflow.container.nodes import clipped

__all__ = ["MAX_BYTES", "Refusal", "lines_of", "read_text"]

MAX_BYTES = 5_000_000
"""The largest file that is read, in bytes: a hundred times a container file of 1,000 beans."""

_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
# what YAML 1.2 allows in a stream, section 5.1 of its specification
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OTHER_ENCODINGS = ((codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF32_BE, "UTF-32"), (codecs.BOM_UTF16_LE, "UTF-16"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file is not read.

    Attributes:
        what: The reason; a predicate of the file (`is a folder`) when `line` is 0.
        text: What can be shown of the file.
    """

    what: str
    remedy: str = ""
    line: int = 0
    column: int = 0
    text: str = ""


def lines_of(text: str) -> list[str]:
    """Return the lines as YAML counts them, without their ends."""
    usual = not any(odd in text for odd in "\r\x85\u2028\u2029")
    return text.split("\n") if usual else _LINE_BREAK.split(text)


def read_text(path: str) -> str | Refusal:
    """Return the text of the file, or why it is refused."""
    data = _read_bytes(path)
    if isinstance(data, Refusal):
        return data
    for mark, encoding in (*_OTHER_ENCODINGS, (codecs.BOM_UTF16_BE, "UTF-16")):
        if data.startswith(mark):
            return Refusal(f"is {encoding}", "save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = lines_of(data[: error.start].decode("utf-8-sig"))
        what = f"not UTF-8: the byte 0x{data[error.start]:02x}"
        shown = data.decode("utf-8-sig", errors="replace")
        return Refusal(what, "save it as UTF-8", len(before), len(before[-1]) + 1, shown)
    odd = _UNPRINTABLE.search(text)
    if odd:
        before = lines_of(text[: odd.start()])
        what = f"the control character U+{ord(odd[0]):04X} is no text"
        remedy = "remove it, or write it as an escape in double quotes"
        return Refusal(what, remedy, len(before), len(before[-1]) + 1, text)
    return text


def _read_bytes(path: str) -> bytes | Refusal:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return Refusal("is a folder", "name a file in it")
        if not stat.S_ISREG(mode):  # reading a pipe or device may never end
            return Refusal("is a device or pipe", "name a file")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            what = f"is a link that leads nowhere, to `{clipped(os.readlink(path))}`"
            return Refusal(what, "let it lead to a container file, or name another one")
        return Refusal("does not exist")
    except OSError as error:
        return Refusal(f"cannot be read: {error.strerror or error}", "check its permissions")
    except ValueError as error:  # a null byte in the path
        return Refusal(f"cannot be read: {error}", "name a file")
    if len(data) > MAX_BYTES:
        return Refusal(f"is larger than {MAX_BYTES // 1_000_000} MB", "keep data in files of their own")
    return data
