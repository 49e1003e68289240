"""The constructors of polling launchers: what they refuse, and the firings they foretell."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from iocflow.context import ProcessContext
from iocflow.launch.contract import Launchable, Overlap
from iocflow.launch.errors import LauncherError
from iocflow.schedule import at, cron, every, next_firings
from iocflow.schedule.polling import Late, PollingOptions
from iocflow.schedule.timing import Every
from iocflow.sequence import SequenceProcessor


@pytest.fixture
def processor() -> Launchable:
    """Return a processor that does nothing."""
    return SequenceProcessor([lambda context: None], context=ProcessContext, name="fares")


@pytest.mark.parametrize(
    "options",
    [
        PollingOptions(jitter=timedelta(seconds=-1)),
        PollingOptions(jitter=timedelta(seconds=60)),
        PollingOptions(overlap=Overlap.ALLOW),
        PollingOptions(Late.SKIP, Overlap.SKIP, timedelta(days=2)),
    ],
)
def test_options_that_cannot_be_meant(options: PollingOptions) -> None:
    """Jitters outside their bounds, and overlapping ticks, are refused."""
    with pytest.raises(LauncherError):
        options.check(Every(timedelta(seconds=60)))


@pytest.mark.parametrize(
    "make",
    [
        lambda p: every("0s", p),
        lambda p: every("-5s", p),
        lambda p: every("soon", p),
        lambda p: every("9999999999999d", p),
        lambda p: every("60s", p, late="never"),
        lambda p: every("60s", p, jitter="x"),
        lambda p: cron("61 * * * *", p),
        lambda p: cron("* * * * *", p, timezone="Mars/Olympus"),
        lambda p: cron("* * * * *", p, dst="thrice"),
        lambda p: at("tomorrow", p),
    ],
)
def test_constructors_refuse(make: Callable[[Launchable], object], processor: Launchable) -> None:
    """What cannot be meant is refused where it is written, as one kind of error."""
    with pytest.raises(LauncherError):
        make(processor)


def test_next_firings(watch, processor: Launchable) -> None:
    """The listing is in the launcher's own zone; what no schedule sets off has none."""
    launcher = cron("30 1 * * *", processor, timezone="America/New_York")
    assert [str(one) for one in next_firings(launcher, 2, watch.now())] == [
        "2026-03-03 01:30:00-05:00",
        "2026-03-04 01:30:00-05:00",
    ]
    assert [one.second for one in next_firings(every("7s", processor), 3, watch.now())] == [0, 7, 14]
    assert len(next_firings(at("2026-04-01", processor), 3, watch.now())) == 1
    assert next_firings(object(), 3, watch.now()) == []
