"""Dead letters of a folder: listed with their reasons, and brought again byte for byte."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from iocflow.events.folder import FolderSource
from iocflow.events.source import KeepsDeadLetters, Reason

REASON = Reason("ValueError: no", "x", "p", "act", "r1", "e1")


def fail(inbox: Any, name: str, raw: bytes) -> None:
    """Let an event fail."""
    inbox.write(name, raw=raw)
    (delivery,) = inbox.out_of_patience()
    inbox.source.dead_letter(delivery, REASON)


def test_they_are_listed_and_replayed(inbox: Any) -> None:
    """Each is told with what is beside it; replayed, it comes again with the same bytes, and its reason is gone."""
    fail(inbox, "a.json", b' {"a": 1}\n')
    fail(inbox, "b.json", b"\xff\x00")
    other = FolderSource(inbox.path)
    assert isinstance(other, KeepsDeadLetters)
    letters = {letter.id: letter for letter in other.dead_letters()}
    assert [(one.id, one.body, one.reason) for one in letters.values()] == [
        ("a.json", b' {"a": 1}\n', REASON),
        ("b.json", b"\xff\x00", REASON),
    ]
    assert letters["a.json"].at is not None
    assert list(other.replay(["a.json", "b.json", "c.json"])) == ["a.json", "b.json"]
    assert inbox.files() == {"": ["a.json", "b.json"], "working": [], "done": [], "failed": []}
    assert (inbox.path / "b.json").read_bytes() == b"\xff\x00"
    assert [one.event.data for one in inbox.out_of_patience() if one.event] == [{"a": 1}]


def test_no_name_in_the_inbox_is_taken_over(inbox: Any) -> None:
    """A file of that name that waits stays as it is; the replayed one gets another name."""
    fail(inbox, "a.json", b"1")
    inbox.write("a.json", 2)
    assert list(FolderSource(inbox.path).replay(["a.json"])) == ["a.json"]
    assert (inbox.path / "a.json").read_text() == "2"
    assert sorted(one.event.data for one in inbox.settle_down()) == [1, 2]


@pytest.mark.parametrize("beside", [None, b"", b"[1]", b'{"failed_at": "noon", "reason": 1}', b'{"file": "../x.json"}'])
def test_what_somebody_else_put_there(inbox: Any, beside: bytes | None) -> None:
    """A file without a record, or with one that was edited, is a dead letter too, and can be replayed."""
    failed = inbox.path / "failed"
    (failed / "a.json").write_bytes(b"1")
    if beside is not None:
        (failed / "a.json.reason.json").write_bytes(beside)
    source = FolderSource(inbox.path)
    (letter,) = source.dead_letters()
    assert (letter.id, letter.at, letter.reason, letter.body) == ("a.json", None, None, b"1")
    assert list(source.replay(["a.json"])) == ["a.json"]
    assert [one.event.data for one in inbox.settle_down()] == [1]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """There are no dead letters in it."""
    source = FolderSource(tmp_path / "nowhere")
    assert list(source.dead_letters()) == []
    assert list(source.replay(["a"])) == []


def test_two_replays_at_once(inbox: Any) -> None:
    """Each dead letter is brought again once, whoever asked first."""
    for i in range(20):
        fail(inbox, f"{i}.json", json.dumps(i).encode())
    source = FolderSource(inbox.path)
    ids = [letter.id for letter in source.dead_letters()]
    went: list[str] = []
    threads = [threading.Thread(target=lambda: went.extend(FolderSource(inbox.path).replay(ids))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(went) == sorted(ids)
    assert sorted(one.event.data for one in inbox.settle_down()) == list(range(20))
