"""The event launcher: one run an event, the source told what became of it, and trouble survived."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from iocflow.context import ProcessContext
from iocflow.events import launcher as launching
from iocflow.events.folder import FolderOptions, FolderSource
from iocflow.events.launcher import EventLauncher
from iocflow.events.memory import MemorySource
from iocflow.events.section import on_event
from iocflow.events.source import Delivery, Reason
from iocflow.launch.clock import SystemClock
from iocflow.launch.counters import Counters
from iocflow.launch.errors import ImpossibleSourceError, LauncherError, LockedError
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.host import DaemonHost
from iocflow.launch.settings import DaemonSettings
from iocflow.launch.snapshot import LauncherState
from iocflow.sequence import SequenceProcessor

Eventually = Callable[[Callable[[], bool]], None]
PATIENT = 10.0


class Seeded(ProcessContext):
    """A context that takes any seed."""

    seed_data: Any


class Bench:
    """A host, a processor that can be held up, and the launchers that were started."""

    def __init__(self, pool: int = 4) -> None:
        self.given_up: list[tuple[ExitCode, str]] = []
        self.host = DaemonHost(
            SystemClock(),
            DaemonSettings(pool=pool),
            {"x": Counters(), "y": Counters()},
            limits={},
            mask=lambda text: text.replace("hunter2", "***"),
            give_up=lambda code, why: self.given_up.append((code, why)),
            changed=lambda: None,
        )
        self.host.pool.start()
        self.seen: list[Any] = []
        self.keys: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self.processor = SequenceProcessor([self.act], context=Seeded, name="p")
        self.started: list[EventLauncher] = []

    def act(self, context: Seeded) -> None:
        self.seen.append(context.seed_data)
        self.keys.append(context.step.idempotency_key)
        assert self.go.wait(PATIENT)
        if context.seed_data == "bad":
            raise ValueError("password hunter2 refused")
        if context.seed_data == "stop":
            context.stop_process("enough")
        if context.seed_data == "exit":
            raise SystemExit(1)

    def start(self, source: Any, name: str = "x") -> EventLauncher:
        """Start a launcher on a source."""
        launcher = EventLauncher(name, source, self.processor)
        launcher.start(self.host)
        self.started.append(launcher)
        return launcher

    def finish(self, launcher: EventLauncher, seconds: float = PATIENT) -> bool:
        """Stop a launcher as the daemon does."""
        launcher.stop()
        self.host.pool.close()
        return launcher.finish(self.host.clock.monotonic() + seconds)

    def counts(self, name: str = "x") -> dict[str, int]:
        """Return what was counted, without noughts."""
        return {name: number for name, number in self.host.counters(name).as_dict().items() if number}


@pytest.fixture
def benches() -> Iterator[Callable[..., Bench]]:
    """Return a function that makes a bench; what it started is stopped at the end."""
    made: list[Bench] = []

    def make(pool: int = 4) -> Bench:
        made.append(Bench(pool))
        return made[-1]

    yield make
    for bench in made:
        bench.go.set()
        for launcher in bench.started:
            bench.finish(launcher)


@pytest.fixture
def bench(benches: Callable[..., Bench]) -> Bench:
    """Return a bench with a pool of four."""
    return benches()


class Troubled(MemorySource):
    """A memory source that raises what it is told to, as often as it is told."""

    def __init__(self) -> None:
        super().__init__("troubled")
        self.raises: dict[str, list[BaseException]] = {}
        self.opened = 0
        self.closed = 0

    def _maybe(self, what: str) -> None:
        if self.raises.get(what):
            raise self.raises[what].pop(0)

    def open(self) -> None:
        self._maybe("open")
        self.opened += 1

    def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:
        self._maybe("receive")
        return super().receive(limit, timeout)

    def acknowledge(self, delivery: Delivery) -> None:
        self._maybe("acknowledge")
        super().acknowledge(delivery)

    def give_back(self, delivery: Delivery) -> None:
        self._maybe("give_back")
        super().give_back(delivery)

    def close(self) -> None:
        self.closed += 1


def test_each_event_is_a_run(bench: Bench) -> None:
    """An event's data is the seed, and its source and id make the key."""
    source = MemorySource("orders")
    launcher = bench.start(source)
    source.put({"a": 1}, id="e1")
    assert source.join(PATIENT)
    assert (bench.seen, bench.keys) == ([{"a": 1}], ["memory:orders#e1/act#1"])
    assert bench.counts() == {"started": 1, "completed": 1}
    assert (launcher.state, launcher.trouble) == (LauncherState.RUNNING, "")
    assert bench.finish(launcher)
    assert launcher.state is LauncherState.STOPPED


@pytest.mark.parametrize(
    ("seed", "count", "reason"),
    [
        ("good", "completed", None),
        ("stop", "stopped", None),
        ("bad", "failed", "ValueError: password *** refused"),
        ("exit", "interrupted", "SystemExit: 1"),
    ],
)
def test_what_becomes_of_an_event(bench: Bench, seed: str, count: str, reason: str | None) -> None:
    """Completed and stopped runs are done with; failed and interrupted ones become dead letters, without secrets."""
    source = MemorySource("orders")
    bench.start(source)
    event = source.put(seed, id="e1")
    assert source.join(PATIENT)
    assert bench.counts() == {"started": 1, count: 1}
    if reason is None:
        assert not source.dead
    else:
        ((dead, why),) = source.dead
        assert dead == event
        activity = "act" if seed == "bad" else ""
        assert (why.reason, why.activity, why.launcher, why.processor) == (reason, activity, "x", "p")
        assert why.event_id == "e1"
        assert why.run_id


def test_an_event_without_data(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """An event whose data is None would run without a seed: it is dead-lettered with what to write, and not run."""
    source = MemorySource("orders")
    bench.start(source)
    event = source.put(None, id="e1")
    source.put(0, id="e2")
    assert source.join(PATIENT)
    assert bench.counts() == {"started": 1, "completed": 1, "refused": 1}
    assert bench.seen == [0]
    ((dead, why),) = source.dead
    assert (dead, why.event_id, why.run_id) == (event, "e1", "")
    assert why.reason == launching.NO_DATA
    assert f"launcher x: event e1 {launching.NO_DATA}" in caplog.messages


@pytest.mark.parametrize("text", ["null", '{"id": "e1", "data": null}', '{"specversion": "1.0", "id": "e1"}'])
def test_a_file_without_data(bench: Bench, tmp_path: Path, eventually: Eventually, text: str) -> None:
    """A file that holds null, or an envelope without data, lies in `failed` with the reason, and nothing ran."""
    (tmp_path / "a.json").write_text(text)
    bench.start(FolderSource(tmp_path, FolderOptions(interval=timedelta(milliseconds=20))))
    eventually(lambda: bench.counts() == {"refused": 1})
    assert bench.seen == []
    kept = [file.read_text() for file in (tmp_path / "failed").iterdir()]
    assert text in kept
    assert any(launching.NO_DATA in one for one in kept)


def test_an_event_that_could_not_be_read(bench: Bench, eventually: Eventually) -> None:
    """A delivery that was refused is dead-lettered without a run."""

    class Unreadable(MemorySource):
        told: list[Reason]

        def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:
            return [Delivery(one.name, refusal="refused: not JSON") for one in super().receive(limit, timeout)]

        def dead_letter(self, delivery: Delivery, reason: Reason) -> None:
            self.told = [reason]
            super().dead_letter(delivery, reason)

    source = Unreadable("orders")
    bench.start(source)
    source.put("?")
    assert source.join(PATIENT)
    assert [one.reason for one in source.told] == ["refused: not JSON"]
    eventually(lambda: bench.counts() == {"refused": 1})
    assert bench.seen == []


def test_no_more_is_received_than_there_are_threads(benches: Callable[..., Bench], eventually: Eventually) -> None:
    """While every thread is taken, events stay where they are."""
    bench = benches(2)
    source = MemorySource("orders")
    bench.go.clear()
    bench.start(source)
    for number in range(6):
        source.put(number)
    eventually(lambda: len(bench.seen) == 2)
    assert (len(source._waiting), bench.host.pool.queued) == (4, 0)
    bench.go.set()
    assert source.join(PATIENT)
    assert sorted(bench.seen) == [0, 1, 2, 3, 4, 5]


def test_stopping_finishes_what_is_in_hand(bench: Bench, eventually: Eventually) -> None:
    """After stop nothing more is received; the run in hand ends and is acknowledged before the source is closed."""
    source = Troubled()
    launcher = bench.start(source)
    bench.go.clear()
    source.put("a")
    eventually(lambda: bench.seen == ["a"])
    launcher.stop()
    source.put("b")
    threading.Timer(0.1, bench.go.set).start()
    assert bench.finish(launcher)
    assert bench.seen == ["a"]
    assert [one.data for one in source._waiting] == ["b"]
    assert (source._in_hand, source.closed) == (0, 1)


def test_the_grace_time_is_over(bench: Bench, eventually: Eventually) -> None:
    """What is not finished in time is given back, and a run that ends later changes nothing any more."""
    source = MemorySource("orders")
    launcher = bench.start(source)
    bench.go.clear()
    source.put("a")
    eventually(lambda: bench.seen == ["a"])
    assert not bench.finish(launcher, 0.05)
    assert [one.data for one in source._waiting] == ["a"]
    assert bench.counts() == {"started": 1, "returned": 1}
    bench.go.set()
    assert bench.host.pool.wait_idle(PATIENT)
    assert [one.data for one in source._waiting] == ["a"]


def test_what_waits_in_the_pool_is_given_back(benches: Callable[..., Bench], eventually: Eventually) -> None:
    """Of two launchers that wait for one thread, the one whose event has not begun gives it back at the stop."""
    bench = benches(1)
    first, second = MemorySource("first"), MemorySource("second")
    bench.go.clear()
    launchers = [bench.start(first), bench.start(second, "y")]
    eventually(lambda: all(one.state is LauncherState.RUNNING for one in launchers))
    first.put("a")
    eventually(lambda: bench.seen == ["a"])
    second.put("b")
    launchers[1].stop()
    bench.go.set()
    assert bench.finish(launchers[0])
    assert launchers[1].finish(bench.host.clock.monotonic() + PATIENT)
    assert [*bench.seen[1:], *(one.data for one in second._waiting)] == ["b"]


@pytest.mark.parametrize("where", ["open", "receive"])
def test_a_source_in_trouble_is_tried_again(
    bench: Bench, eventually: Eventually, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    """A source that raises is opened again after growing pauses; until then the launcher says what is wrong."""
    monkeypatch.setattr(launching, "PAUSES", (0.02, 0.04))
    troubles: list[str] = []
    source = Troubled()
    source.raises[where] = [OSError("no hunter2 route"), TimeoutError("still none"), OSError("nor now")]
    launcher = EventLauncher("x", source, bench.processor)
    become = launcher._become
    monkeypatch.setattr(
        launcher, "_become", lambda state, trouble="": (troubles.append(trouble), become(state, trouble))
    )
    bench.started.append(launcher)
    launcher.start(bench.host)
    source.put("a")
    assert source.join(PATIENT)
    assert [one for one in troubles if one] == ["OSError: no *** route", "TimeoutError: still none", "OSError: nor now"]
    assert bench.counts() == {"started": 1, "completed": 1, "errors": 3}
    assert launcher.trouble == ""
    assert "next try in" in caplog.text


def test_an_acknowledgement_that_fails_is_repeated(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """While a source does not take an acknowledgement nothing more is received; the run is not repeated."""
    monkeypatch.setattr(launching, "PAUSES", (0.02,))
    source = Troubled()
    source.raises["acknowledge"] = [OSError("disk full"), OSError("disk full")]
    bench.start(source)
    source.put("a")
    source.put("b")
    assert source.join(PATIENT)
    assert sorted(bench.seen) == ["a", "b"]
    assert bench.counts() == {"started": 2, "completed": 2, "errors": 2}


def test_a_source_that_takes_nothing_back_does_not_hold_up_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """When giving back fails until the grace time is over, the launcher is left; the next start finds the event."""
    monkeypatch.setattr(launching, "PAUSES", (0.02,))
    monkeypatch.setattr(launching, "ABANDON", 0.1)
    source = Troubled()
    launcher = bench.start(source)
    bench.go.clear()
    source.put("a")
    eventually(lambda: bench.seen == ["a"])
    source.raises["give_back"] = [OSError("gone")] * 1000
    assert not bench.finish(launcher, 0.05)
    source.raises.clear()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ImpossibleSourceError("in is in the way"), ExitCode.CONFIGURATION),
        (LockedError("another process reads in"), ExitCode.LOCKED),
    ],
)
def test_a_source_that_can_never_work(bench: Bench, eventually: Eventually, error: Exception, code: ExitCode) -> None:
    """What trying again cannot help stops the daemon, with its own exit code."""
    source = Troubled()
    source.raises["open"] = [error]
    launcher = bench.start(source)
    eventually(lambda: bench.given_up == [(code, f"launcher x: {error}")])
    assert launcher.trouble == str(error)
    assert bench.finish(launcher)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_consumer_is_replaced(bench: Bench, eventually: Eventually, caplog: pytest.LogCaptureFixture) -> None:
    """When a source ends the consumer's thread, the next heartbeat starts another one, and nothing is lost."""
    source = Troubled()
    source.raises["receive"] = [SystemExit(1)]
    launcher = bench.start(source)
    source.put("a")
    eventually(lambda: launcher._thread is not None and not launcher._thread.is_alive())
    assert bench.seen == []
    launcher.heartbeat()
    assert source.join(PATIENT)
    assert "died and is replaced" in caplog.text


def test_a_silent_consumer_is_trouble(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer that hangs in its source shows, whatever it claimed before."""
    launcher = bench.start(MemorySource("orders"))
    assert launcher.trouble == ""
    monkeypatch.setattr(launching, "SILENT", -1000.0)
    assert launcher.trouble.startswith("no progress for")


def test_on_event_takes_an_address_or_a_source(bench: Bench) -> None:
    """Programs write the address that files write, or bring a source of their own."""
    launcher = on_event("memory:orders?limit=5", bench.processor)
    assert (launcher.name, launcher.kind, launcher.trigger) == ("p-source", "source", "memory:orders")
    assert isinstance(launcher.source, MemorySource)
    assert launcher.source.limit == 5
    source = MemorySource("mine")
    assert on_event(source, bench.processor, name="n").source is source
    with pytest.raises(LauncherError, match="did you mean `memory`"):
        on_event("memry:orders", bench.processor)
