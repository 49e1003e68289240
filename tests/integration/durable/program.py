"""A worker in a process of its own, to be killed: `program.py URL NAME`; it says on standard output what it does.

It has every processor of this file; `sleepy` steps say that they began, and then take for ever.
"""

from __future__ import annotations

import os
import sys
import threading

from iocflow import ProcessContext, SequenceProcessor, activity
from iocflow.durable.job import Job
from iocflow.durable.worker.worker import Worker, WorkerSettings
from iocflow.store import open_store

LEASE = 30.0
"""Tests move the clock on by more than that when the process is gone."""


class Mailing(ProcessContext):
    """What was sent to whom, by which worker."""

    seed_data: list[str]
    sent: tuple[str, ...] = ()
    n: int = 0


def say(word: str) -> None:
    """Tell the test, at once, and in one piece: two threads may say something."""
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


def for_ever() -> None:
    """Take so long that the process is killed meanwhile."""
    say("sleepy")
    threading.Event().wait(60)


def count(context: Mailing) -> None:
    """Do something quick."""
    context.n += 1


def mail_two(context: Mailing) -> None:
    """Send to two of them, each remembered at once, and never come to the third."""
    memo = context.step.memo
    for name in context.seed_data:
        if name not in memo:
            if len(memo) == 2:
                for_ever()
            memo[name] = "sent"
            say(f"sent {name}")


def sleep(context: Mailing) -> None:
    """Never end."""
    for_ever()


def processors() -> dict[str, Job]:
    """Return what this process can do."""
    made = {
        "mailing": SequenceProcessor([count, activity(mail_two, name="mail")], context=Mailing, name="mailing"),
        "risky": SequenceProcessor([count, activity(sleep, on_lost="incident")], context=Mailing, name="risky"),
        "careful": SequenceProcessor(
            [activity(mail_two, name="mail", on_lost="incident")], context=Mailing, name="careful"
        ),
        "slow": SequenceProcessor([count, sleep, count], context=Mailing, name="slow"),
    }
    return {name: Job(processor) for name, processor in made.items()}


def main(url: str) -> None:
    """Work until killed."""
    worker = Worker(open_store(url), processors(), WorkerSettings(threads=4, lease=LEASE, tick=1000.0))
    worker.start()
    say("ready")
    threading.Event().wait(120)


if __name__ == "__main__":
    main(sys.argv[1])
