"""The reference of the container file tells of everything that can stand in one."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from iocflow import activities
from iocflow.container.schema import json_schema
from iocflow.events.broker_options import OPTIONS
from iocflow.events.folder import FolderOptions
from iocflow.events.http_address import HttpOptions
from iocflow.events.mailbox_address import OPTIONS as MAILBOX_OPTIONS
from iocflow.events.postgres_options import OPTIONS as POSTGRES_OPTIONS

READY_MADE = (
    "ApplyXslt",
    "Database",
    "PollQuery",
    "PublishEvent",
    "RenderTemplate",
    "SendMail",
    "SmtpSender",
    "WriteAudit",
)


@pytest.fixture(scope="module")
def told(root: Path) -> frozenset[str]:
    """Return every word that the reference writes as code, outside of its examples."""
    text = re.sub(r"^```.*?^```$", "", (root / "config" / "README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    return frozenset(word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[\w@][\w-]*", code))


def keys(schema: Any) -> Iterator[str]:
    """Yield every key that a part of the schema has a description or choice for."""
    if isinstance(schema, list):
        for part in schema:
            yield from keys(part)
    elif isinstance(schema, dict):
        yield from schema.get("properties", ())
        yield from (one for one in schema.get("enum", ()) if isinstance(one, str))
        for part in schema.values():
            yield from keys(part)


def test_every_key_and_word_is_told(told: frozenset[str]) -> None:
    """Each key of the JSON Schema stands in the reference, and each word that a key may have as its value."""
    assert sorted(set(keys(json_schema())) - told) == []


def test_every_kind_of_source_is_told(told: frozenset[str]) -> None:
    """Each scheme of a source stands in the reference, and each option of folders, HTTP, brokers, tables, mailboxes."""
    schemes = {point.name for point in entry_points(group="iocflow.sources")}
    options = {field.name for kind in (FolderOptions, HttpOptions) for field in dataclasses.fields(kind)}
    several = (*OPTIONS.values(), *MAILBOX_OPTIONS.values(), POSTGRES_OPTIONS)
    options |= {option for known in several for option in known}
    assert sorted((schemes | options) - told) == []


@pytest.mark.parametrize("name", READY_MADE)
def test_every_argument_is_told(told: frozenset[str], name: str) -> None:
    """Each ready-made class stands in the reference, with each argument of its constructor."""
    assert sorted({name, *inspect.signature(getattr(activities, name)).parameters} - told) == []


def test_every_ready_made_class_is_known_here() -> None:
    """What can be wired as an activity, or checks its arguments, is in the list of this file."""
    classes = [getattr(activities, name) for name in activities.__all__]
    ready = {one.__name__ for one in classes if hasattr(one, "check_arguments") or hasattr(one, "execute")}
    assert sorted(ready) == list(READY_MADE)


def test_pages_link_to_what_is_there(root: Path) -> None:
    """Each relative link of a README leads to a file of the project, or to a heading of the page."""
    for page in (
        "README.md",
        "config/README.md",
        "iocflow/README.md",
        "samples/README.md",
        "samples/fare_drop/README.md",
    ):
        text = (root / page).read_text(encoding="utf-8")
        headings = {
            "#" + re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in re.findall(r"^#+ (.*)", text, re.M)
        }
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            assert link in headings or (not link.startswith("#") and (root / page).parent.joinpath(link).is_file()), (
                link
            )
