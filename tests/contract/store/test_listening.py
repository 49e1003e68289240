"""Listening: an idle worker hears of what it can claim, from its own process and from others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from iocflow.store.contract import Store
from tests.contract.store.stores import Kit
from tests.contract.store.work import Work

SOON, LATE = 2.0, 20.0


def heard(store: Store, news: Callable[[], object]) -> float:
    """Listen, and cause news a little later; return how long after the news the listening ended."""
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(_listen, store)
        time.sleep(0.1)
        assert not listening.done()
        began = time.monotonic()
        news()
        return listening.result() - began


def _listen(store: Store) -> float:
    store.listen(LATE)
    return time.monotonic()


def test_silence_lasts_as_long_as_asked(store: Store, work: Work) -> None:
    """Where nothing happens, listening ends with its time."""
    work.commit(claim=1)
    began = time.monotonic()
    store.listen(0.2)
    assert 0.2 <= time.monotonic() - began < SOON


def test_a_submission_is_heard(kit: Kit, store: Store, work: Work) -> None:
    """A run that is submitted by this object or another is heard of at once, and can be claimed."""
    for submitter in (work, Work(kit.open())):
        work.commit(claim=1)
        assert heard(store, submitter.submit) < SOON
        assert len(work.ids()) == 1


def test_what_was_submitted_before_the_listening_is_heard(kit: Kit, store: Store, work: Work) -> None:
    """News between the claim and the listening are not missed."""
    for submitter in (work, Work(kit.open())):
        work.commit(claim=1)
        submitter.submit()
        began = time.monotonic()
        store.listen(LATE)
        assert time.monotonic() - began < SOON
        work.ids()


def test_signals_and_operators_are_heard(kit: Kit, store: Store, work: Work) -> None:
    """A signal, a retry and a released group of another worker end the listening, too."""
    run, behind = work.submit(), work.submit()
    first, second = work.claim(2)
    work.rest(first, waits=True)
    work.end(second, state="failed", outcome="error")
    other = kit.open()
    for news in (
        lambda: other.signal(run, "go", b"1"),
        lambda: other.retry(behind, who="me", why="again"),
    ):
        work.commit(claim=1)
        assert heard(store, news) < SOON
        assert len(work.ids()) == 1


@pytest.mark.parametrize("own", [True, False])
def test_a_group_that_another_worker_gives_back_is_heard(kit: Kit, store: Store, work: Work, own: bool) -> None:
    """What another worker lets go of can be claimed at once, be it at this object or another."""
    other = Work(store if own else kit.open())
    other.submit()
    (claimed,) = other.claim()
    work.commit(claim=1)
    assert heard(store, lambda: other.release(claimed)) < SOON
    assert work.ids() == [claimed.id]


def test_everybody_is_roused(store: Store, work: Work) -> None:
    """Rousing ends every listening of the object, also one that begins just after it."""
    work.commit(claim=1)
    ended = []

    def listen() -> None:
        store.listen(LATE)
        ended.append(time.monotonic())

    threads = [threading.Thread(target=listen) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    began = time.monotonic()
    store.rouse()
    for thread in threads:
        thread.join()
    store.listen(LATE)
    assert max(ended) - began < SOON
    assert time.monotonic() - began < SOON
