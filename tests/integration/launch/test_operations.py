"""The daemon's port: `/live`, `/ready` and `/metrics`, asked over real sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from iocflow.container import App
from iocflow.context import ProcessContext
from iocflow.events import MemorySource, on_event
from iocflow.events import launcher as launching
from iocflow.launch import DaemonSettings, ExitCode
from iocflow.launch import health as healths
from iocflow.launch import operations as operating
from iocflow.launch.daemon import Daemon
from iocflow.launch.launcher import BaseLauncher, Host
from iocflow.sequence import SequenceProcessor
from iocflow.store.errors import StoreLostError
from tests.integration.launch.serving import Serving
from tests.web import PATIENT, Answer, ask, free_port, listens

Serve = Callable[..., "Served"]


class Seeded(ProcessContext):
    """A context that takes any seed."""

    seed_data: Any


class Served(Serving):
    """A daemon with a port, in a thread; its processor can be held up."""

    def __init__(self, *launchers: Any, **options: Any) -> None:
        self.port = free_port()
        self.source = MemorySource("orders")
        self.go = threading.Event()
        self.go.set()
        self.processor = SequenceProcessor([self.act], context=Seeded, name="p")
        settings = DaemonSettings(pool=2, grace=timedelta(seconds=10), heartbeat=timedelta(milliseconds=50))
        settings = replace(settings, **{"port": self.port, **options.pop("settings", {})})
        app = App(self.processor, launchers=[on_event(self.source, self.processor, name="orders"), *launchers])
        super().__init__(Daemon(app, settings=settings, **options))

    def act(self, context: Seeded) -> None:
        """Wait as long as the test wants, and fail when the seed says so."""
        assert self.go.wait(PATIENT)
        if vars(context).get("seed_data") == "bad":
            raise ValueError("no")

    def get(self, path: str) -> Answer:
        """Ask."""
        return ask(self.port, "GET", path)

    def metrics(self) -> Mapping[tuple[Any, ...], float]:
        """Return the metrics by name and labels' values, in the order of the labels' names."""
        answer = self.get("/metrics")
        assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, "text/plain")
        families = text_string_to_metric_families(answer.body.decode())
        return {
            (one.name, *map(one.labels.get, sorted(one.labels))): one.value
            for family in families
            for one in family.samples
        }

    def answers(self, path: str, status: int) -> Callable[[], bool]:
        """Return a function that tells whether that is what it says."""
        return lambda: listens(self.port) and self.get(path).status == status

    def stop(self) -> ExitCode | None:
        """Let what goes on end, and stop the daemon."""
        self.go.set()
        return super().stop()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a daemon with a port."""
    started: list[Served] = []

    def start(*launchers: Any, **options: Any) -> Served:
        started.append(Served(*launchers, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def ready(one: Served) -> Served:
    """Wait until the daemon says so."""
    one.wait_for(one.answers("/ready", 200))
    return one


def test_live_and_ready(serve: Serve) -> None:
    """A daemon whose parts all made progress is live and ready, and says nothing else."""
    serving = ready(serve())
    assert serving.get("/ready").json == {"ready": True, "state": "running", "troubles": []}
    assert serving.get("/live").json == {"live": True, "state": "running", "troubles": []}
    assert ask(serving.port, "HEAD", "/live").body == b""
    assert ask(serving.port, "POST", "/live", {}).status == 405
    assert serving.get("/").status == serving.get("/live/x").status == serving.get("/metric").status == 404


def test_an_overdue_run(serve: Serve) -> None:
    """A run that takes too long makes the daemon not ready, with the reason; it is still live, and ready after it."""
    serving = ready(serve(settings={"overdue": timedelta(milliseconds=100)}))
    serving.go.clear()
    serving.source.put(1)
    serving.wait_for(serving.answers("/ready", 503))
    (trouble,) = serving.get("/ready").json["troubles"]
    assert trouble.startswith("overdue: launcher orders, run ")
    assert serving.get("/live").status == 200
    assert serving.metrics()[("iocflow_overdue",)] == 1
    serving.go.set()
    serving.wait_for(serving.answers("/ready", 200))


def test_a_pool_that_hangs(serve: Serve) -> None:
    """When all threads hang, and not before, the daemon is not live either: only a new process helps."""
    serving = ready(serve(settings={"overdue": timedelta(milliseconds=200)}))
    serving.go.clear()
    serving.source.put(1)
    serving.wait_for(serving.answers("/ready", 503))
    assert serving.get("/live").status == 200
    serving.source.put(2)
    serving.wait_for(serving.answers("/live", 503))
    assert serving.get("/live").json["troubles"][0].startswith("none of 2 threads came free for 0:00:00.2")
    assert serving.metrics()[("iocflow_ready",)] == 0
    serving.go.set()
    serving.wait_for(serving.answers("/live", 200))


@pytest.mark.parametrize("what", ["consumer", "main"])
def test_a_thread_that_hangs(serve: Serve, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A consumer that hangs in its source, or a main thread that does, shows as neither live nor ready."""
    serving = ready(serve())
    if what == "consumer":
        monkeypatch.setattr(launching, "SILENT", -1000.0)
    else:
        monkeypatch.setattr(healths, "MAIN_THREAD_SECONDS", -1000.0)
    for path in ("/live", "/ready"):
        answer = serving.get(path)
        assert (answer.status, len(answer.json["troubles"])) == (503, 1)
        assert "no progress for" in answer.json["troubles"][0]


def test_a_source_that_is_away(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a source cannot be opened the daemon is not ready, with the reason, and live: a restart would not help."""
    monkeypatch.setattr(launching, "PAUSES", (0.05,))
    away = threading.Event()
    away.set()

    class Away(MemorySource):
        def open(self) -> None:
            if away.is_set():
                raise ConnectionError("no route")

    processor = SequenceProcessor([lambda context: None], context=Seeded, name="q")
    serving = serve(on_event(Away("away"), processor, name="far"))
    serving.wait_for(lambda: listens(serving.port) and "ConnectionError: no route" in str(serving.get("/ready").json))
    assert serving.get("/live").status == 200
    assert serving.metrics()[("iocflow_launcher_up", "far", "q")] == 0
    away.clear()
    serving.wait_for(serving.answers("/ready", 200))
    assert serving.metrics()[("iocflow_launcher_up", "far", "q")] == 1


def test_starting_and_stopping(serve: Serve) -> None:
    """The port answers while the daemon starts and stops, as not ready; when it has stopped, nobody listens."""
    begin = threading.Event()

    class Slow(BaseLauncher):
        def start(self, host: Host) -> None:
            assert begin.wait(PATIENT)

        def heartbeat(self) -> None:
            return

        def stop(self) -> None:
            return

        def finish(self, deadline: float) -> bool:
            return True

    other = SequenceProcessor([lambda context: None], context=Seeded, name="q")
    slow = Slow("slow", "x", "x", other)
    serving = serve(slow)
    serving.wait_for(serving.answers("/live", 200))
    assert serving.get("/ready").json == {"ready": False, "state": "starting", "troubles": ["it is starting"]}
    begin.set()
    serving.wait_for(lambda: serving.daemon.snapshot().state == "running")
    serving.go.clear()
    serving.source.put(1)
    serving.wait_for(lambda: len(serving.daemon.snapshot().in_hand) == 1)
    serving.daemon.stop()
    serving.wait_for(lambda: serving.get("/ready").json["troubles"] == ["it is stopping"])
    assert serving.get("/live").status == 200
    serving.stop()
    with pytest.raises(ConnectionRefusedError):
        serving.get("/live")


def test_metrics(serve: Serve) -> None:
    """What launchers did, what is in hand, how long runs took and how the daemon is, each under its name."""
    serving = ready(serve())
    for seed in ("good", "good", "bad"):
        serving.source.put(seed)
    assert serving.source.join(PATIENT)
    found = serving.metrics()
    launched = {key[-1]: value for key, value in found.items() if key[0] == "iocflow_launches_total" and value}
    assert launched == {"started": 3, "completed": 2, "failed": 1}
    assert ("iocflow_launches_total", "orders", "p", "skipped_overlap") in found
    assert found[("iocflow_run_seconds_count", "p")] == found[("iocflow_run_seconds_bucket", "+Inf", "p")] == 3
    assert found[("iocflow_ready",)] == 1
    assert found[("iocflow_pool_threads",)] == 2
    assert found[("iocflow_in_hand", "orders", "p")] == found[("iocflow_pool_queued",)] == 0
    assert found[("process_resident_memory_bytes",)] > 0
    assert ("iocflow_runs", "queued") not in found


def test_runs_in_the_store(serve: Serve, tmp_path: Path) -> None:
    """Durable runs are counted by their state."""
    processor = SequenceProcessor([lambda context: None], context=Number, name="durable")
    with App(processor, store=f"sqlite:///{tmp_path}/app.db") as app:
        app.submit("durable", 1)
        app.submit("durable", 2)
        serving = ready(serve(run_counts=app.run_counts))
        assert serving.metrics()[("iocflow_runs", "queued")] == 2
        assert serving.metrics()[("iocflow_runs", "completed")] == 0


class Number(ProcessContext):
    """A context that can be stored."""

    seed_data: int


def test_counting_costs_little(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often metrics are asked for, runs are counted once in a while, and a slow store holds up no scrape."""
    monkeypatch.setattr(operating, "COUNT_WAIT", 0.05)
    counted: list[int] = []
    answers = threading.Event()

    def count() -> Mapping[str, int]:
        counted.append(1)
        assert answers.wait(PATIENT)
        return {"queued": len(counted)}

    serving = ready(serve(run_counts=count))
    for _ in range(5):
        assert ("iocflow_runs", "queued") not in serving.metrics()
    answers.set()
    serving.wait_for(lambda: serving.metrics().get(("iocflow_runs", "queued")) == 1)
    for _ in range(5):
        serving.metrics()
    assert len(counted) == 1


def test_a_store_that_is_away(serve: Serve) -> None:
    """Without a count all other metrics are there."""

    def lost() -> Mapping[str, int]:
        raise StoreLostError("the server is gone")

    serving = ready(serve(run_counts=lost))
    found = serving.metrics()
    assert found[("iocflow_ready",)] == 1
    assert not any(key[0] == "iocflow_runs" for key in found)


def test_a_port_that_is_taken(serve: Serve) -> None:
    """A port where somebody listens ends the daemon as locked, before anything of it starts."""
    first = ready(serve())
    second = serve(settings={"port": first.port})
    second.wait_for(lambda: second.code is not None)
    assert second.code is ExitCode.LOCKED
    assert all(not any(one.counts.values()) for one in second.daemon.snapshot().launchers)
    assert first.get("/ready").status == 200
