"""The daemon inside a program: readiness, snapshots, overdue runs, backpressure, and launchers of a program's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from iocflow.container import App, load
from iocflow.context import ProcessContext
from iocflow.events import MemorySource, on_event
from iocflow.events import launcher as launching
from iocflow.events.folder import FolderSource
from iocflow.events.folder_places import Places
from iocflow.launch import DaemonSettings, ExitCode
from iocflow.launch.daemon import Daemon
from iocflow.launch.errors import LauncherError
from iocflow.launch.launcher import BaseLauncher, Host
from iocflow.launch.snapshot import DaemonState, LauncherState
from iocflow.schedule import at, every
from iocflow.sequence import SequenceProcessor
from tests.integration.launch.serving import Serving

QUICK = DaemonSettings(pool=2, grace=timedelta(seconds=5), heartbeat=timedelta(milliseconds=50))


class Seeded(ProcessContext):
    """A context that takes any seed."""

    seed_data: Any


class Work:
    """A processor that a test can hold up."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.go = threading.Event()
        self.go.set()
        self.processor = SequenceProcessor([self.act], context=Seeded, name="p")

    def act(self, context: Seeded) -> None:
        self.seen.append(vars(context).get("seed_data"))
        assert self.go.wait(20)


@pytest.fixture
def work() -> Iterator[Work]:
    """Return a processor that can be held up; it is let go at the end."""
    made = Work()
    yield made
    made.go.set()


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    """Return a function that runs a daemon with the given launchers, in a thread."""
    started: list[Serving] = []

    def start(*launchers: Any, settings: DaemonSettings = QUICK) -> Serving:
        started.append(Serving(Daemon(App(launchers=launchers), settings=settings)))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def test_a_daemons_life(serve: Callable[..., Serving], work: Work) -> None:
    """It starts, gets ready once its sources are connected, runs, and ends with code 0."""
    source = MemorySource("orders")
    serving = serve(on_event(source, work.processor, name="orders"), every("1h", work.processor, name="poll"))
    serving.wait_for(lambda: serving.daemon.ready)
    source.put({"a": 1})
    assert source.join(20)
    serving.wait_for(lambda: len(work.seen) == 2)
    snapshot = serving.daemon.snapshot()
    assert (snapshot.state, snapshot.ready, snapshot.troubles, snapshot.pool_size) == (DaemonState.RUNNING, True, (), 2)
    orders, poll = snapshot.launchers
    assert (orders.name, orders.kind, orders.trigger, orders.processor) == ("orders", "source", "memory:orders", "p")
    assert (orders.state, orders.counts["completed"], orders.next_firing) == (LauncherState.RUNNING, 1, None)
    assert poll.next_firing is not None
    assert timedelta(minutes=59) < poll.next_firing - datetime.now(UTC) <= timedelta(hours=1)
    json.dumps(snapshot.as_dict(), default=str)
    assert serving.stop() is ExitCode.OK
    assert serving.daemon.snapshot().state is DaemonState.STOPPED
    assert not serving.daemon.ready


def test_before_it_runs(work: Work) -> None:
    """A daemon that was not started can be looked at: a live view starts first."""
    daemon = Daemon(App(launchers=[every("1h", work.processor), on_event("memory:x", work.processor)]))
    snapshot = daemon.snapshot()
    assert (snapshot.state, snapshot.ready) == (DaemonState.STARTING, False)
    assert [one.state for one in snapshot.launchers] == [LauncherState.STARTING] * 2


def test_an_overdue_run_shows(serve: Callable[..., Serving], work: Work, caplog: pytest.LogCaptureFixture) -> None:
    """A run that takes too long makes the daemon not ready, is told once in the log, and all is well when it ends."""
    settings = DaemonSettings(heartbeat=timedelta(milliseconds=20), overdue=timedelta(seconds=0.1))
    source = MemorySource("orders")
    work.go.clear()
    serving = serve(on_event(source, work.processor, name="orders"), settings=settings)
    serving.wait_for(lambda: serving.daemon.ready)
    source.put("a", id="e1")
    serving.wait_for(lambda: "overdue: launcher orders, run " in caplog.text)
    snapshot = serving.daemon.snapshot()
    assert not snapshot.ready
    (held,) = snapshot.in_hand
    assert (held.launcher, held.processor, held.message_id, held.overdue) == ("orders", "p", "e1", True)
    assert held.run_id
    serving.wait_for(lambda: "not ready: overdue: " in caplog.text)
    threading.Event().wait(0.1)
    assert caplog.text.count("WARNING  iocflow.launch:daemon.py") == 2
    work.go.set()
    serving.wait_for(lambda: serving.daemon.ready)


def test_concurrency_of_a_processor(serve: Callable[..., Serving], work: Work) -> None:
    """A processor's `concurrency` bounds its runs, whichever launcher starts them, and leaves threads for others."""
    other = Work()
    work.processor.concurrency = 1  # type: ignore[attr-defined]
    other.processor.name = "q"
    first, second, third = MemorySource("1"), MemorySource("2"), MemorySource("3")
    work.go.clear()
    serving = serve(
        on_event(first, work.processor, name="1"),
        on_event(second, work.processor, name="2"),
        on_event(third, other.processor, name="3"),
    )
    for number in range(3):
        first.put(number)
        second.put(number)
    serving.wait_for(lambda: len(work.seen) == 1)
    third.put("other")
    assert third.join(20)
    assert len(work.seen) == 1
    work.go.set()
    assert first.join(20)
    assert second.join(20)


def test_a_launcher_of_ones_own(serve: Callable[..., Serving], work: Work) -> None:
    """Anything with the launcher's methods is a launcher; what it raises at its start ends the daemon in good order."""

    class Failing(BaseLauncher):
        error: Exception

        def start(self, host: Host) -> None:
            self._lent = host
            raise self.error

        def heartbeat(self) -> None: ...

        def stop(self) -> None: ...

        def finish(self, deadline: float) -> bool:
            return True

    for error, code in ((LauncherError("no"), ExitCode.CONFIGURATION), (OSError("no"), ExitCode.FAILED)):
        failing = Failing("x", "own", "by hand", work.processor)
        failing.error = error
        serving = serve(every("1h", work.processor, name="poll"), failing)
        serving.wait_for(lambda one=serving: one.code is not None)  # type: ignore[misc]
        assert serving.code is code


class Companion:
    """Notes that it was started."""

    name = "beside"

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes

    def start(self) -> None:
        self.notes.append("started")

    def stop(self) -> None: ...

    def heartbeat(self) -> None: ...

    def trouble(self) -> str:
        return ""

    def finish(self, deadline: float) -> bool:
        return True


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("obstacle", ["locked", "a file"])
def test_nothing_is_run_before_all_sources_are_ours(
    tmp_path: Path, work: Work, caplog: pytest.LogCaptureFixture, at: int, obstacle: str
) -> None:
    """A source that this daemon cannot have ends it before anything runs, wherever it stands; the others are free."""
    inboxes = [tmp_path / "free", tmp_path / "other", tmp_path / "taken"]
    (inboxes[0] / "working").mkdir(parents=True)
    (inboxes[0] / "working" / "a.json").write_text("{}")
    owner = FolderSource(inboxes[2])
    if obstacle == "locked":
        owner.open()
    else:
        inboxes[2].write_text("")
    events = [on_event(f"folder:{inbox}", work.processor, name=inbox.name) for inbox in inboxes]
    launchers: list[Any] = [every("1h", work.processor, name="poll"), *events[:2]]
    launchers.insert(at, events[2])
    companion = Companion([])
    code = Daemon(App(launchers=launchers), settings=QUICK, companions=[companion]).run()
    assert code is (ExitCode.LOCKED if obstacle == "locked" else ExitCode.CONFIGURATION)
    assert (work.seen, companion.notes) == ([], [])
    assert f"stopping: launcher taken: {'another process reads' if obstacle == 'locked' else ''}" in caplog.text
    assert "Traceback" not in caplog.text
    owner.close()
    for inbox in inboxes[:2]:
        free = FolderSource(inbox)
        free.open()
        free.close()


def test_a_source_that_is_not_there_yet_holds_up_nothing(
    serve: Callable[..., Serving], tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trouble that may pass keeps neither the daemon from starting nor the other launchers from working."""
    monkeypatch.setattr(launching, "PAUSES", (0.01,))
    gone = [True]
    prepare = Places.prepare

    def failing(places: Places) -> None:
        if gone[0]:
            raise PermissionError("not mounted")
        prepare(places)

    monkeypatch.setattr(Places, "prepare", failing)
    source = on_event(f"folder:{tmp_path / 'inbox'}", work.processor, name="late")
    serving = serve(source, every("1h", work.processor, name="poll"))
    serving.wait_for(lambda: len(work.seen) == 1 and source.state is LauncherState.RETRYING)
    gone[0] = False
    serving.wait_for(lambda: serving.daemon.ready)


def test_nothing_will_ever_fire(serve: Callable[..., Serving], work: Work, caplog: pytest.LogCaptureFixture) -> None:
    """A daemon all of whose moments have passed says so and ends, instead of idling; one that can still fire runs."""
    past = [at(f"202{year}-01-01T06:00", work.processor, name=f"in-{year}") for year in (0, 1)]
    serving = serve(*past)
    serving.wait_for(lambda: serving.code is not None)
    assert serving.code is ExitCode.CONFIGURATION
    assert "stopping: nothing will ever start a run, the moments of all launchers have passed" in caplog.text
    other = serve(*past, every("1h", work.processor, name="poll"))
    other.wait_for(lambda: other.daemon.ready)
    assert other.stop() is ExitCode.OK


def test_a_moment_that_comes_soon(serve: Callable[..., Serving], work: Work) -> None:
    """A launcher that fires once, after the start, has something to wait for; then the daemon waits to be stopped."""
    serving = serve(at(datetime.now(UTC) + timedelta(seconds=0.5), work.processor))
    serving.wait_for(lambda: serving.daemon.snapshot().launchers[0].state is LauncherState.FINISHED)
    serving.wait_for(lambda: len(work.seen) == 1)
    assert serving.code is None
    assert serving.stop() is ExitCode.OK


def test_two_launchers_of_one_name(work: Work) -> None:
    """Names tell launchers apart in logs and counters, so each is there once."""
    with pytest.raises(LauncherError, match="two launchers are named p-every"):
        Daemon(App(launchers=[every("1h", work.processor), every("2h", work.processor)]))


def test_from_a_file(tmp_path: Path) -> None:
    """A container file's launchers and settings are what the daemon runs."""
    path = tmp_path / "app.yaml"
    path.write_text(
        f"""\
iocflow: 1
package: tests.integration.launch.parts
beans: {{act: {{call: .act}}, finder: {{class: .Finder}}}}
processors: {{p: {{context: .Ctx, sequence: [act], concurrency: 2}}}}
launchers:
  polled: {{processor: p, every: 1h, poll: finder}}
  dropped: {{processor: p, source: "folder:{tmp_path}/in?interval=20ms&patience=50ms"}}
daemon: {{pool: 3, heartbeat: 50ms}}
""",
        encoding="utf-8",
    )
    inbox = tmp_path / "in"
    inbox.mkdir()
    (inbox / "good.json").write_text('{"a": 1}')
    (inbox / "wrong.json").write_text("[1]")
    (inbox / "half.json").write_text('{"a": ')
    with load(path, allow=["tests"]) as app:
        serving = Serving(Daemon(app))
        serving.wait_for(lambda: len(list((inbox / "failed").glob("*.reason.json"))) == 2)
        serving.wait_for((inbox / "done" / "good.json").exists)
        assert serving.daemon.snapshot().pool_size == 3
        assert serving.daemon._host.pool.free("p") == 2
        assert serving.stop() is ExitCode.OK
        counts = {one.name: one.counts for one in serving.daemon.snapshot().launchers}
    assert (counts["polled"]["completed"], counts["dropped"]["completed"]) == (1, 1)
    assert (counts["dropped"]["failed"], counts["dropped"]["refused"]) == (1, 1)
    wrong = json.loads((inbox / "failed" / "wrong.json.reason.json").read_text())
    assert wrong["reason"].startswith("SeedError: ")
    assert wrong["processor"] == "p"


def test_a_disk_that_fails_for_a_while(
    serve: Callable[..., Serving], work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While done files cannot be moved nothing more is taken; when they can, all goes on and nothing runs twice."""
    monkeypatch.setattr(launching, "PAUSES", (0.05,))
    inbox = tmp_path / "in"
    work.go.clear()
    serving = serve(on_event(f"folder:{inbox}?interval=20ms", work.processor, name="x"))
    serving.wait_for(lambda: serving.daemon.ready)
    (inbox / "a.json").write_text("1")
    serving.wait_for(lambda: work.seen == [1])
    (inbox / "done").rename(tmp_path / "elsewhere")
    (inbox / "done").write_text("in the way")
    work.go.set()
    serving.wait_for(lambda: serving.daemon.snapshot().launchers[0].counts["errors"] >= 3)
    assert not serving.daemon.ready
    (inbox / "b.json").write_text("2")
    (inbox / "done").unlink()
    (tmp_path / "elsewhere").rename(inbox / "done")
    serving.wait_for(lambda: sorted(one.name for one in (inbox / "done").iterdir()) == ["a.json", "b.json"])
    assert work.seen == [1, 2]
