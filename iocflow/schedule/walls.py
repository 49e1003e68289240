"""Wall-clock times and the moments they mean, where clocks are set back in autumn and forward in spring.

APScheduler's triggers are asked for wall-clock times only, in UTC, where no day has a gap; what a time means in a real
zone is decided here. Terms: a *wall* is a naive datetime, what a clock on the wall shows; a *moment* is an aware one in
UTC; in autumn a span of walls comes twice, in spring one is left out (the gap).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

__all__ = ["gap_end", "is_gap", "is_repeated", "moment", "second_pass", "wall"]


def wall(at: datetime, zone: tzinfo) -> datetime:
    """Return what the wall clock shows at a moment; its `fold` tells a second pass."""
    return at.astimezone(zone).replace(tzinfo=None)


def moment(shown: datetime, zone: tzinfo, *, second: bool = False) -> datetime:
    """Return the moment at which the wall clock shows that, at its second pass if asked for."""
    return shown.replace(tzinfo=zone, fold=int(second)).astimezone(UTC)


def is_repeated(shown: datetime, zone: tzinfo) -> bool:
    """Whether the wall clock shows that twice."""
    return moment(shown, zone) < moment(shown, zone, second=True)


def is_gap(shown: datetime, zone: tzinfo) -> bool:
    """Whether the wall clock never shows that."""
    return moment(shown, zone) > moment(shown, zone, second=True)


def gap_end(shown: datetime, zone: tzinfo) -> datetime:
    """Return the moment at which the clock is set forward over `shown`, which lies in a gap."""
    return _change(moment(shown, zone, second=True), moment(shown, zone), zone)


def second_pass(shown: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the first of the repeated walls that `shown` is one of, and the first wall that is none any more."""
    change = _change(moment(shown, zone), moment(shown, zone, second=True), zone)
    begin = wall(change, zone).replace(fold=0)
    return begin, begin + (moment(shown, zone, second=True) - moment(shown, zone))


def _change(low: datetime, high: datetime, zone: tzinfo) -> datetime:
    """Return the moment in `(low, high]`, to the second, at which the zone's offset from UTC changes."""
    before = low.astimezone(zone).utcoffset()
    span = int((high - low) / timedelta(seconds=1))
    least, most = 0, span
    while most - least > 1:
        middle = (least + most) // 2
        if (low + timedelta(seconds=middle)).astimezone(zone).utcoffset() == before:
            least = middle
        else:
            most = middle
    return low + timedelta(seconds=most)
