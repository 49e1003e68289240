"""SQL that both dialects share, as PostgreSQL reads it."""

from __future__ import annotations

import re
from functools import lru_cache

from iocflow.store.sql.schema import MIGRATIONS, VIEWS

_MADE = (name for texts in MIGRATIONS for text in texts for name in re.findall(r"^create table (\w+)", text))
_NAMES = "|".join([*_MADE, "idle", *VIEWS])
_TABLE = re.compile(rf"\b(from|join|into|update|table|view|exists) ({_NAMES})\b(?!\.)|\b(on) ({_NAMES})(?=\()")
_NOT_MEMBER = re.compile(r"\bnot in \[(\w+)\]")
_MEMBER = re.compile(r"\bin \[(\w+)\]")
_LOCKS = {"{lock}": " for update", "{skip}": " for no key update skip locked"}
_NAMED = re.compile(r"(?<!:):([a-z_]\w*)")

NOW = "(extract(epoch from clock_timestamp())::double precision + :shift::double precision)"
"""The store's time; `shift` is for tests."""


@lru_cache(maxsize=512)
def in_schema(text: str, schema: str) -> str:
    """Return `text` with the schema, quoted already, before the names of our tables and views.

    The search path stays the application's, whose own tables may be in the same database.
    """
    return _TABLE.sub(lambda found: f"{found[1] or found[3]} {schema}.{found[2] or found[4]}", text)


@lru_cache(maxsize=512)
def named(text: str, schema: str) -> str:
    """Return a shared text with its lists and locks as PostgreSQL knows them; its parameters are `:name` still."""
    text = in_schema(text, schema).replace("{schema}", schema)
    for mark, lock in _LOCKS.items():
        text = text.replace(mark, lock)
    return _MEMBER.sub(r"= any(:\1)", _NOT_MEMBER.sub(r"<> all(:\1)", text))


@lru_cache(maxsize=512)
def for_driver(text: str, schema: str) -> str:
    """Return a shared text with the driver's kind of parameters."""
    return _NAMED.sub(r"%(\1)s", named(text, schema).replace("%", "%%"))
