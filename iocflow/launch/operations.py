"""What a daemon offers at its port to those who run it: `/live`, `/ready` and `/metrics`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from iocflow.launch.clock import Clock
from iocflow.launch.durations import BOUNDS, Durations
from iocflow.launch.health import Health
from iocflow.launch.host import DaemonHost
from iocflow.launch.http.messages import Admission, Request, Response, json_response, problem
from iocflow.launch.http.service import HttpService
from iocflow.launch.snapshot import WELL, DaemonState, Snapshot
from iocflow.launch.texts import error_text

__all__ = ["Operations"]

logger = logging.getLogger("iocflow.launch")

PATHS = ("/live", "/ready", "/metrics")
COUNT_SECONDS = 15.0
"""How long a count of the runs in a store is good for at least; and for 20 times as long as it took, so that no scrape,
however often it comes, keeps a store busy for more than a twentieth of its time."""
COUNT_SHARE = 20
COUNT_WAIT = 2.0
"""How long a scrape waits for a new count, before it takes the one before."""


class Operations:
    """Answers at the daemon's port; a site of the daemon's HTTP server."""

    def __init__(self, health: Health, host: DaemonHost, run_counts: Callable[[], Mapping[str, int]] | None) -> None:
        """Take what is told of.

        Args:
            health: How the daemon is.
            host: Its settings, what hides secrets, and its server.
            run_counts: Returns how many durable runs are in each state, if there are any.
        """
        self._health, self._mask = health, host.mask
        self._durations = host.durations
        self._counts = None if run_counts is None else _RunCounts(run_counts, host.clock)
        self._service = host.service(HttpService)
        self._endpoint = host.settings.host, host.settings.port

    def open(self) -> None:
        """Begin to answer.

        Raises:
            LockedError: Somebody else listens there.
            ImpossibleSourceError: One cannot listen there.
        """
        for path in PATHS:
            self._service.reserve(self._endpoint, path, self)
        self._service.join(self._endpoint)

    def close(self) -> None:
        """Answer no more."""
        for path in PATHS:
            self._service.leave(self._endpoint, path)

    def admit(self, request: Request) -> Admission | Response:
        """Let everybody look who can reach the port."""
        if request.path not in PATHS:
            return problem(404, f"nothing is offered at {request.path}; there are {', '.join(PATHS)}")
        if request.method not in ("GET", "HEAD"):
            return problem(405, "use GET", headers={"Allow": "GET, HEAD"})
        return Admission(0, COUNT_WAIT)

    async def answer(self, request: Request, body: bytes) -> Response:  # noqa: ARG002  # nothing is sent here
        """Tell how the daemon is."""
        if request.path == "/live":
            return self._told("live", list(self._health.stalls()))
        if request.path == "/ready":
            snapshot = self._health.snapshot()
            troubles = snapshot.troubles if snapshot.state is DaemonState.RUNNING else (f"it is {snapshot.state}",)
            return self._told("ready", troubles)
        registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=registry)
        counts = await self._counts.latest() if self._counts else None
        registry.register(_Metrics(self._health.snapshot(), self._durations, counts))
        return Response(200, generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4)

    def stop(self) -> None:
        """Do nothing: while the daemon stops, it says so."""

    def _told(self, what: str, troubles: Iterable[str]) -> Response:
        """Return whether all is well, and if not, why."""
        told = [self._mask(one) for one in troubles]
        return json_response(503 if told else 200, {what: not told, "state": self._health.state, "troubles": told})


class _RunCounts:
    """Counts the runs in a store, not too often, and one count at a time; used in the loop's thread."""

    def __init__(self, count: Callable[[], Mapping[str, int]], clock: Clock) -> None:
        self._count, self._clock = count, clock
        self._due = float("-inf")
        self._found: Mapping[str, int] | None = None
        self._counting: asyncio.Task[None] | None = None

    async def latest(self) -> Mapping[str, int] | None:
        """Return the latest count, None when the store did not answer."""
        if self._counting is None and self._clock.monotonic() >= self._due:
            self._counting = asyncio.create_task(self._renew())
        if self._counting is not None:
            await asyncio.wait([self._counting], timeout=COUNT_WAIT)
        return self._found

    async def _renew(self) -> None:
        began = self._clock.monotonic()
        try:
            self._found = await asyncio.to_thread(self._count)
        except Exception as error:  # noqa: BLE001  # whatever it is, there is no count, and the metrics say so
            self._found = None
            logger.debug("the runs in the store could not be counted: %s", error_text(error))
        now = self._clock.monotonic()
        self._due = now + max(COUNT_SECONDS, COUNT_SHARE * (now - began))
        self._counting = None


class _Metrics(Collector):
    """What one scrape tells."""

    def __init__(self, snapshot: Snapshot, durations: Durations, counts: Mapping[str, int] | None) -> None:
        self._snapshot, self._durations, self._counts = snapshot, durations, counts

    def collect(self) -> Iterator[Metric]:
        """Yield everything, with its meaning."""
        now = self._snapshot
        overdue = sum(one.overdue for one in now.in_hand)
        yield GaugeMetricFamily("iocflow_ready", "Whether everything made progress, and nothing is overdue.", now.ready)
        yield GaugeMetricFamily("iocflow_uptime_seconds", "Time since the daemon started.", now.uptime)
        yield GaugeMetricFamily("iocflow_pool_threads", "How many runs and polls may go on at once.", now.pool_size)
        yield GaugeMetricFamily("iocflow_pool_queued", "Ticks and events that wait for a thread.", now.queued)
        yield GaugeMetricFamily("iocflow_overdue", "Runs and polls that take longer than they may.", overdue)
        yield from self._launchers()
        yield self._histogram()
        if self._counts is not None:
            runs = GaugeMetricFamily("iocflow_runs", "Durable runs in the store by state.", labels=["state"])
            for state, number in self._counts.items():
                runs.add_metric([state], number)
            yield runs

    def _launchers(self) -> Iterator[Metric]:
        named = ["launcher", "processor"]
        counted = CounterMetricFamily("iocflow_launches", "What each launcher did.", labels=[*named, "what"])
        well = GaugeMetricFamily("iocflow_launcher_up", "Whether a launcher works without trouble.", labels=named)
        held = GaugeMetricFamily("iocflow_in_hand", "Runs and polls of a launcher that go on now.", labels=named)
        for one in self._snapshot.launchers:
            labels = [one.name, one.processor]
            up = one.state in WELL and not one.trouble
            well.add_metric(labels, up)
            held.add_metric(labels, one.in_hand)
            for what, number in one.counts.items():
                counted.add_metric([*labels, what], number)
        yield from (counted, well, held)

    def _histogram(self) -> Metric:
        took = HistogramMetricFamily("iocflow_run_seconds", "How long runs in this process took.", labels=["processor"])
        bounds = [*(str(bound) for bound in BOUNDS), "+Inf"]
        for name, one in self._durations.histograms().items():
            took.add_metric([name], list(zip(bounds, accumulate(one.counts), strict=True)), one.total)
        return took
