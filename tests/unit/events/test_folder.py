"""The folder source on real files: whatever lies in the inbox, events are neither lost nor run half, and it goes on."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from iocflow.events.source import Reason

REASON = Reason("ValueError: no", "x", "p", "act", "r1", "e1")
NOBODY = 65534


def test_an_event_from_inbox_to_done(inbox) -> None:
    """A file is taken once it is unchanged between two looks, is in `working` while it is in hand, and then done."""
    inbox.write("a.json", {"a": 1})
    assert inbox.look() == []
    (delivery,) = inbox.look()
    assert delivery.event is not None
    assert delivery.event.data == {"a": 1}
    assert inbox.files() == {"": [], "working": ["a.json"], "done": [], "failed": []}
    inbox.source.acknowledge(delivery)
    assert inbox.files() == {"": [], "working": [], "done": ["a.json"], "failed": []}
    assert inbox.look() == []


def test_a_failed_event_lies_beside_its_reason(inbox) -> None:
    """A failed event keeps its bytes, and the reason tells the run, the activity and the error."""
    inbox.write("a.json", raw=b'{"a":   1}')
    (delivery,) = inbox.settle_down()
    inbox.source.dead_letter(delivery, REASON)
    assert inbox.files()["failed"] == ["a.json", "a.json.reason.json"]
    assert (inbox.path / "failed" / "a.json").read_bytes() == b'{"a":   1}'
    reason = json.loads((inbox.path / "failed" / "a.json.reason.json").read_text())
    assert reason == {
        "file": "a.json",
        "failed_at": inbox.clock.now().isoformat(),
        "reason": "ValueError: no",
        "launcher": "x",
        "processor": "p",
        "activity": "act",
        "run_id": "r1",
        "event_id": "e1",
    }


def test_given_back(inbox) -> None:
    """An event that is given back is in the inbox again, and comes again with the same id."""
    inbox.write("a.json", 1)
    (first,) = inbox.settle_down()
    inbox.source.give_back(first)
    assert inbox.files()[""] == ["a.json"]
    (second,) = inbox.settle_down()
    assert second.event == first.event


def test_given_back_beside_a_newer_file_of_its_name(inbox) -> None:
    """A newer file of the name is not overwritten: both events come."""
    inbox.write("a.json", "old")
    (first,) = inbox.settle_down()
    inbox.write("a.json", "new")
    inbox.source.give_back(first)
    (again,) = inbox.settle_down()
    assert again.event.data == "old"
    inbox.source.acknowledge(again)
    (newer,) = inbox.settle_down()
    assert newer.event.data == "new"


def test_two_files_of_one_name_are_two_events(inbox) -> None:
    """A second file waits while the first of its name is in hand; done keeps both, under two names."""
    inbox.write("a.json", 1)
    (first,) = inbox.settle_down()
    inbox.write("a.json", 2)
    assert inbox.settle_down() == []
    inbox.source.acknowledge(first)
    (second,) = inbox.settle_down()
    assert second.event.id != first.event.id
    inbox.source.acknowledge(second)
    names = inbox.files()["done"]
    assert len(names) == 2
    assert names[1] == "a.json"
    assert names[0].startswith("a.20260301T")
    assert names[0].endswith(".json")


@pytest.mark.parametrize("settle", ["done", "failed"])
def test_many_files_of_one_name(inbox, settle: str) -> None:
    """However often a name comes, nothing in `done` or `failed` is overwritten."""
    for number in range(5):
        inbox.write("a.json", number)
        (delivery,) = inbox.settle_down()
        if settle == "done":
            inbox.source.acknowledge(delivery)
        else:
            inbox.source.dead_letter(delivery, REASON)
    files = [one for one in (inbox.path / settle).iterdir() if not one.name.endswith(".reason.json")]
    assert sorted(json.loads(one.read_text()) for one in files) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "name",
    [
        "with space.json",
        "Müller-王小明-🛫.json",
        "line\nbreak.json",
        "-rf.json",
        "no extension",
        "quo'te\".json",
        b"latin-\xe9.json",
        "x" * 250 + ".json",
        "é" * 120 + ".json",
        "a." + "x" * 250,
        "trailing ",
        "x.reason.json",
        "CON",
    ],
)
def test_names(inbox, name: str | bytes) -> None:
    """Any name that a file can have is good: done, failed and given back keep it, or shorten it where they must."""
    for data in ("done", "failed", "failed again"):
        inbox.write(name, data)
        (delivery,) = inbox.settle_down()
        assert delivery.event is not None
        assert "\n" not in delivery.name
        delivery.name.encode()
        if data == "done":
            inbox.source.acknowledge(delivery)
        else:
            inbox.source.dead_letter(delivery, REASON)
    assert (len(inbox.files()["done"]), len(inbox.files()["failed"])) == (1, 4)
    reasons = [one for one in inbox.files()["failed"] if one.endswith(".reason.json")]
    for one in reasons:
        if one != "x.reason.json":
            json.loads((inbox.path / "failed" / one).read_text(encoding="utf-8"))


def test_left_alone(inbox) -> None:
    """Hidden files, unfinished ones and folders are nobody's events."""
    for name in (".hidden.json", "a.json.tmp", "b.part", ".#lock"):
        inbox.write(name, 1)
    (inbox.path / "folder.json").mkdir()
    (inbox.path / "folder.json" / "inside.json").write_text("1")
    assert inbox.out_of_patience() == []
    assert inbox.files()[""] == [".#lock", ".hidden.json", "a.json.tmp", "b.part"]


def test_a_growing_file_is_waited_for(inbox) -> None:
    """A file that changes between two looks is not taken, however long that takes."""
    path = inbox.write("a.json", raw=b'{"a": [')
    for number in range(30):
        with path.open("ab") as file:
            file.write(f"{number},".encode())
        assert inbox.look() == []
    with path.open("ab") as file:
        file.write(b"30]}")
    (delivery,) = inbox.settle_down()
    assert delivery.event.data == {"a": list(range(31))}


def test_a_writer_that_pauses_is_given_time(inbox) -> None:
    """Half a file is waited for, and taken when the rest comes in time."""
    path = inbox.write("a.json", raw=b'{"a": ')
    for _ in range(8):
        assert inbox.look() == []
    path.write_bytes(b'{"a": 1}')
    (delivery,) = inbox.settle_down()
    assert delivery.event.data == {"a": 1}


@pytest.mark.parametrize("raw", [b"", b'{"a": ', b"not json", b"\xff\xfe", b"[" * 100_000])
def test_what_stays_unreadable_is_refused(inbox, raw: bytes) -> None:
    """What is no JSON after all patience is delivered with the reason instead of an event."""
    inbox.write("a.json", raw=raw)
    assert inbox.settle_down() == []
    (delivery,) = inbox.out_of_patience()
    assert delivery.event is None
    assert delivery.refusal.startswith("refused: not ")
    inbox.source.dead_letter(delivery, Reason(delivery.refusal, "x", "p"))
    assert (inbox.path / "failed" / "a.json").read_bytes() == raw


def test_one_bad_file_does_not_hold_up_the_others(inbox) -> None:
    """Good events overtake a bad one that is still given time."""
    inbox.write("0.json", raw=b'{"a": ')
    inbox.write("1.json", 1)
    assert [one.event.data for one in inbox.settle_down()] == [1]


def test_a_huge_file_is_refused_without_reading_it(inbox) -> None:
    """50 MB are refused by their size alone, at once."""
    path = inbox.path / "big.json"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    (delivery,) = inbox.settle_down()
    assert delivery.refusal == "refused: it has 50,000,000 bytes, more than the 10,000,000 that are allowed"
    inbox.source.dead_letter(delivery, Reason(delivery.refusal, "x", "p"))
    assert (inbox.path / "failed" / "big.json").stat().st_size == 50_000_000


def test_a_link_is_refused_and_not_followed(inbox, tmp_path: Path) -> None:
    """A link is kept aside as a link; what it points to is neither read nor moved."""
    secret = tmp_path / "secret.json"
    secret.write_text('"secret"')
    (inbox.path / "link.json").symlink_to(secret)
    (inbox.path / "dangling.json").symlink_to(tmp_path / "nothing")
    deliveries = inbox.settle_down()
    assert [one.refusal for one in deliveries] == ["refused: it is no regular file"] * 2
    for one in deliveries:
        inbox.source.dead_letter(one, REASON)
    assert (inbox.path / "failed" / "link.json").is_symlink()
    assert secret.read_text() == '"secret"'


def test_pipes_and_sockets_are_refused_without_waiting(inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a pipe would wait for a writer for ever."""
    os.mkfifo(inbox.path / "pipe.json")
    monkeypatch.chdir(inbox.path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.json")
        assert [one.refusal for one in inbox.settle_down()] == ["refused: it is no regular file"] * 2


def test_limit_of_one_receive(inbox) -> None:
    """No more are claimed than asked for, the oldest first; the others stay where other readers see them."""
    for number in (3, 1, 2):
        path = inbox.write(f"{number}.json", number)
        os.utime(path, (number, number))
    assert [one.event.data for one in inbox.settle_down(2)] == [1, 2]
    assert inbox.files()[""] == ["3.json"]
    assert [one.event.data for one in inbox.source.receive(2, 0.001)] == [3]


def test_a_file_that_vanishes(inbox) -> None:
    """A file that somebody takes back between looking and claiming is no event and no error."""
    path = inbox.write("a.json", 1)
    assert inbox.look() == []
    path.unlink()
    assert inbox.look() == []


@pytest.mark.parametrize("size", range(14))
def test_half_a_file_is_refused_with_the_remedy(inbox, size: int) -> None:
    """Wherever a writer paused for too long, the reason says how to write, or which option to raise."""
    whole = '{"name": "é"}'.encode()
    assert len(whole) == 14
    inbox.write("a.json", raw=whole[:size])
    (delivery,) = inbox.out_of_patience()
    assert delivery.refusal.startswith("refused: not ")
    for remedy in (".tmp or .part", "rename", "raise `patience` (now 2s)"):
        assert remedy in delivery.refusal


@pytest.mark.parametrize("content", [{"specversion": "1.0", "id": []}, {"data": 1, "time": "soon"}])
def test_a_broken_envelope_is_refused_without_that_remedy(inbox, content: object) -> None:
    """What is complete and wrong has nothing to do with how it was written."""
    inbox.write("a.json", content)
    (delivery,) = inbox.out_of_patience()
    assert "patience" not in delivery.refusal


def test_a_file_that_is_replaced_while_it_is_read(inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is claimed is what was read: a file that changed in between is looked at anew."""
    path = inbox.write("a.json", "old")
    claim = inbox.source._places.claim

    def replaced(name: str) -> Path | None:
        path.write_text('"new and longer"')
        monkeypatch.undo()
        return claim(name)

    monkeypatch.setattr(inbox.source._places, "claim", replaced)
    assert inbox.settle_down() == []
    (delivery,) = inbox.settle_down()
    assert delivery.event.data == "new and longer"
