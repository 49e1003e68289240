"""The seeds that a polling bean yields, one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from iocflow.errors import SeedError
from iocflow.launch.contract import Poller
from iocflow.launch.ended import Ended

__all__ = ["NO_MORE", "following", "seed_error", "seeds_of"]

NO_MORE = object()
"""Stands for the seed after the last one."""


def seed_error(ended: Ended, processor: str) -> SeedError:
    """Return what its poller is told of a seed that no run could begin with, whatever it was that failed."""
    if isinstance(ended.error, SeedError):
        return ended.error
    told = SeedError(f"no run of {processor} could begin: {ended.reason}")
    told.__cause__ = ended.error
    return told


def seeds_of(poller: Poller) -> Iterator[Any]:
    """Return what a poller found.

    Raises:
        TypeError: It returned something else than seeds one after the other.
    """
    found: Any = poller.poll()
    if inspect.iscoroutine(found):
        found.close()
    if inspect.isawaitable(found) or hasattr(found, "__aiter__"):
        raise TypeError("poll() is async, and a tick does not await it; write `def poll`, and yield the seeds")
    if isinstance(found, (str, bytes, Mapping)) or not hasattr(found, "__iter__"):
        kind = type(found).__name__
        raise TypeError(f"poll() returned a value of type {kind}, not seeds; return a list of them, or yield each")
    return iter(found)


def following(seeds: Iterator[Any], refused: SeedError | None) -> Any:
    """Return the seed after the last one; a generator is told of one that no run could begin with."""
    throw = getattr(seeds, "throw", None)
    if refused is None or throw is None:
        return next(seeds, NO_MORE)
    try:
        return throw(refused)
    except StopIteration:
        return NO_MORE
