"""A worker of Celery or Dramatiq that does so many tasks, and prints tasks a second from the first to the last one.

python tests/benchmarks/events_peers.py celery MESSAGES THREADS URL QUEUE
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable


def counting(messages: int) -> Callable[[], None]:
    """Return what a task does: it counts; the last one prints the rate and ends the process."""
    lock = threading.Lock()
    state = {"count": 0, "began": 0.0}

    def count() -> None:
        with lock:
            state["began"] = state["began"] or time.perf_counter()
            state["count"] += 1
            if state["count"] == messages:
                print(f"\nrate {messages / (time.perf_counter() - state['began'])}", flush=True)
                threading.Timer(0.5, lambda: os._exit(0)).start()  # the last acknowledgements go out

    return count


def celery(messages: int, threads: int, url: str, queue: str) -> None:
    """Fill a queue for Celery and work on it with a pool of threads."""
    from celery import Celery  # type: ignore[import-not-found]

    app = Celery("bench", broker=url)
    app.conf.update(
        worker_redirect_stdouts=False,
        task_acks_late=True,
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        task_default_queue=queue,
    )
    count = counting(messages)

    @app.task(name="count")  # type: ignore[untyped-decorator]
    def task(n: int) -> None:
        count()

    for n in range(messages):
        task.delay(n)
    options = ["-P", "threads", "-c", str(threads), "--without-gossip", "--without-mingle", "-l", "ERROR"]
    app.worker_main(["worker", *options])


def dramatiq(messages: int, threads: int, url: str, queue: str) -> None:
    """Fill a queue for Dramatiq and work on it."""
    import dramatiq as library  # type: ignore[import-not-found]
    from dramatiq.brokers.rabbitmq import RabbitmqBroker  # type: ignore[import-not-found]

    broker = RabbitmqBroker(url=url.removesuffix("/") + "%2F" if url.endswith("//") else url)
    library.set_broker(broker)
    count = counting(messages)

    @library.actor(queue_name=queue)  # type: ignore[untyped-decorator]
    def task(n: int) -> None:
        count()

    for n in range(messages):
        task.send(n)
    library.Worker(broker, worker_threads=threads).start()
    threading.Event().wait()


if __name__ == "__main__":
    which, messages, threads, url, queue = sys.argv[1:]
    {"celery": celery, "dramatiq": dramatiq}[which](int(messages), int(threads), url, queue)
