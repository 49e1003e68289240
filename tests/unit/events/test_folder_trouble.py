"""The folder source in trouble: killed processes, other readers, folders and files that do not obey."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iocflow.events.folder import FolderOptions, FolderSource
from iocflow.events.folder_places import LockLostError
from iocflow.events.source import Reason
from iocflow.launch.errors import ImpossibleSourceError, LockedError

NOBODY = 65534


def test_left_over_by_a_killed_process(inbox, tmp_path: Path) -> None:
    """What was in hand when a process died is delivered first by the next one, with the same id."""
    inbox.write("a.json", {"a": 1})
    (killed,) = inbox.settle_down()
    inbox.write("b.json", 2)
    inbox.source.close()
    after = FolderSource(inbox.path, FolderOptions(), inbox.clock)
    after.open()
    (again,) = after.receive(1, 0.001)
    assert again.event == killed.event
    after.acknowledge(again)
    after.close()
    assert inbox.files()["done"] == ["a.json"]


def test_reopening_does_not_deliver_what_is_in_hand(inbox) -> None:
    """A source that is opened again after an error still knows what it delivered."""
    inbox.write("a.json", 1)
    (held,) = inbox.settle_down()
    inbox.source.open()
    assert inbox.settle_down() == []
    inbox.source.acknowledge(held)
    assert inbox.files()["done"] == ["a.json"]


def test_a_second_reader_is_kept_out(inbox) -> None:
    """Two daemons on one folder would take each other's files from `working`; the second one is told."""
    second = FolderSource(inbox.path)
    with pytest.raises(LockedError, match="another process reads"):
        second.open()
    inbox.source.close()
    second.open()
    second.close()


@pytest.mark.parametrize("at", ["inbox", "inbox/working", "inbox/done", "."])
def test_a_file_in_the_way(tmp_path: Path, at: str) -> None:
    """A path that is a file can never be an inbox; nothing is worth trying again."""
    where = tmp_path / "way" / at
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text("")
    with pytest.raises(ImpossibleSourceError, match="is no folder"):
        FolderSource(tmp_path / "way" / "inbox").open()


def removed(path: Path, what: str) -> None:
    """Remove a part of an inbox; with `replaced`, all of it is there again, and empty."""
    if what == "working/.lock":
        (path / what).unlink()
    else:
        shutil.rmtree(path / what.replace("replaced", ""))
    if what == "replaced":
        (path / "working").mkdir(parents=True)
        (path / "working" / ".lock").touch()


GONE = ["", "working", "working/.lock", "replaced"]


@pytest.mark.parametrize("what", GONE)
def test_a_folder_that_disappears_comes_back(inbox, what: str) -> None:
    """While the lock is lost, with its folder or alone, the source is in trouble; opening makes everything again."""
    removed(inbox.path, what)
    with pytest.raises(LockLostError, match=r"working/\.lock is gone or was replaced: .*; it is locked anew"):
        inbox.look()
    inbox.source.open()
    with pytest.raises(LockedError):
        FolderSource(inbox.path).open()
    inbox.write("a.json", 1)
    (delivery,) = inbox.settle_down()
    inbox.source.acknowledge(delivery)
    assert inbox.files()["done"] == ["a.json"]


@pytest.mark.parametrize("what", GONE)
def test_nothing_is_taken_from_the_process_that_has_the_folder_now(
    inbox, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once another process has locked it, this one neither receives nor moves what that one has in hand."""
    inbox.write("a.json", 1)
    (lost,) = inbox.settle_down()
    removed(inbox.path, what)
    second = FolderSource(inbox.path, FolderOptions(), inbox.clock)
    second.open()
    inbox.write("a.json", 2)
    inbox.write("b.json", 3)
    inbox.clock.seconds += 1
    second.receive(100, 0.001)
    inbox.clock.seconds += 1
    in_hand = {one.name: one for one in second.receive(100, 0.001)}
    for settle in (inbox.source.acknowledge, inbox.source.give_back):
        settle(lost)
    inbox.source.dead_letter(lost, Reason("no", "x", "p"))
    assert caplog.text.count("a.json is gone with its folder") == 3
    for _ in range(2):
        with pytest.raises(LockLostError):
            inbox.look()
        with pytest.raises(LockedError, match="another process reads"):
            inbox.source.open()
    assert inbox.files()["working"] == ["a.json", "b.json"]
    assert inbox.files()["done"] == inbox.files()["failed"] == []
    for one in in_hand.values():
        second.acknowledge(one)
    second.close()


@pytest.mark.parametrize("what", ["", "working", "replaced"])
def test_an_event_of_a_folder_that_is_gone_settles_no_other(inbox, what: str) -> None:
    """A file of the same name that is put in afterwards is an event of its own, whatever becomes of the first."""
    inbox.write("a.json", 1)
    (first,) = inbox.settle_down()
    removed(inbox.path, what)
    inbox.source.open()
    inbox.write("a.json", 2)
    (second,) = inbox.settle_down()
    assert second.event.data == 2
    inbox.source.acknowledge(first)
    assert inbox.files()["working"] == ["a.json"]
    inbox.source.acknowledge(second)
    assert inbox.files()["done"] == ["a.json"]


def test_what_is_in_hand_stays_so_when_only_the_lock_is_gone(inbox) -> None:
    """An event whose file is still in its place is not brought a second time while its run goes on."""
    inbox.write("a.json", 1)
    (held,) = inbox.settle_down()
    removed(inbox.path, "working/.lock")
    inbox.source.open()
    assert inbox.settle_down() == []
    inbox.source.acknowledge(held)
    assert inbox.files()["done"] == ["a.json"]


def test_somebody_else_moved_the_file(inbox, caplog: pytest.LogCaptureFixture) -> None:
    """An event whose file is gone from `working` is settled with a remark."""
    inbox.write("a.json", 1)
    (delivery,) = inbox.settle_down()
    (inbox.path / "working" / "a.json").unlink()
    inbox.source.acknowledge(delivery)
    assert "a.json is gone" in caplog.text


def test_a_place_that_is_gone_is_an_error(inbox) -> None:
    """Without `done` nothing can be acknowledged; that is trouble, and not taken for a file that is gone."""
    inbox.write("a.json", 1)
    (delivery,) = inbox.settle_down()
    shutil.rmtree(inbox.path / "done")
    with pytest.raises(FileNotFoundError):
        inbox.source.acknowledge(delivery)
    inbox.source.open()
    inbox.source.acknowledge(delivery)
    assert inbox.files()["done"] == ["a.json"]


def test_a_full_inbox(inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """An inbox with many files is looked through twice, not once for each handful of events."""
    for number in range(2_000):
        (inbox.path / f"{number}.json").write_text("1")
    looks: list[object] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looks.append(path) or scandir(path))
    received = len(inbox.settle_down(8))
    while more := inbox.source.receive(8, 0.001):
        received += len(more)
    assert received == 2_000
    assert len(looks) <= 3


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """Run the test as a user without privileges, in a folder that is this user's; root may read everything."""
    folder = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, -1)
        os.seteuid(NOBODY)
        yield folder
        os.seteuid(0)
    else:
        yield folder
    shutil.rmtree(folder)


def test_an_unreadable_file_is_refused(unprivileged: Path, make_inbox) -> None:
    """A file that may not be read is waited for, and then kept aside with the reason."""
    inbox = make_inbox(unprivileged / "in")
    inbox.write("a.json", 1).chmod(0)
    (delivery,) = inbox.out_of_patience()
    assert delivery.refusal == "cannot be read: Permission denied"


def test_a_folder_that_may_not_be_written(unprivileged: Path, make_inbox) -> None:
    """When nothing can be moved the source is in trouble, until it can."""
    inbox = make_inbox(unprivileged / "in")
    inbox.write("a.json", 1)
    inbox.path.chmod(0o500)
    with pytest.raises(PermissionError):
        inbox.settle_down()
    inbox.path.chmod(0o700)
    assert len(inbox.settle_down()) == 1


def test_a_file_that_cannot_be_moved(inbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """One file that the system does not let go is left alone, is told once, and holds up nobody."""
    inbox.write("stuck.json", 1)
    inbox.write("z.json", 2)
    rename = os.rename

    def guarded(source: Path, target: Path) -> None:
        if Path(source).name == "stuck.json":
            raise PermissionError(errno.EPERM, "Operation not permitted", str(source))
        rename(source, target)

    monkeypatch.setattr(os, "rename", guarded)
    assert [one.event.data for one in inbox.settle_down()] == [2]
    assert inbox.out_of_patience() == []
    assert caplog.text.count("stuck.json is left alone") == 1


def test_a_reason_never_overwrites_an_event(inbox) -> None:
    """An event whose name is that of another one's reason file stays what it is."""
    for name in ("a.json.reason.json", "a.json"):
        inbox.write(name, name)
        (delivery,) = inbox.settle_down()
        inbox.source.dead_letter(delivery, Reason("no", "x", "p"))
    assert (inbox.path / "failed" / "a.json.reason.json").read_text() == '"a.json.reason.json"'
    assert len(inbox.files()["failed"]) == 4


def test_a_dead_letter_that_is_tried_again(inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the move fails after the reason was written, the next try leaves one file and one reason."""
    inbox.write("a.json", 1)
    (delivery,) = inbox.settle_down()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output error"):
                inbox.source.dead_letter(delivery, Reason("no", "x", "p"))
    inbox.source.dead_letter(delivery, Reason("no", "x", "p"))
    assert inbox.files()["failed"] == ["a.json", "a.json.reason.json"]
    assert inbox.files()["working"] == []
