"""Loading and checking a container file of 200 beans.

    python tests/benchmarks/loading.py

The goal is at most 50 ms, once Python is up and the libraries are imported. The first figure is the process's first
load, which fills the caches of the libraries; the others are medians.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from measuring import arguments, measure

import iocflow
from iocflow.container import check

BEANS = 200
STEPS = 5

MODULE = """
from __future__ import annotations
from iocflow import Activity, ErrorHandler, PASS, ProcessContext

class Context(ProcessContext):
    n: int = 0

class Gateway:
    def __init__(self, host: str, port: int, timeout: float = 1.0, tags: dict[str, list[str]] | None = None) -> None:
        self.host, self.port = host, port

class Send(Activity[Context]):
    def __init__(self, gateway: Gateway, retries: int, label: str) -> None:
        self.gateway = gateway

    def execute(self, context: Context) -> None:
        context.n += 1

class Alert(ErrorHandler):
    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def handle_error(self, context: Context, error: Exception):
        return PASS
"""


def container_file(folder: Path) -> Path:
    """Write a module and a container file of `BEANS` beans, with the processors that use them; return the file."""
    (folder / "shop.py").write_text(MODULE, encoding="utf-8")
    lines = ["iocflow: 1", "package: shop", "values: {host: localhost, port: '2525'}", "beans:"]
    sends = []
    for number in range(0, BEANS, 4):
        lines += [
            f"  gateway-{number}:",
            "    class: .Gateway",
            "    args: {host: '${host}', port: '${port}', timeout: 2.5, tags: {area: [north, south]}}",
            f"  alert-{number}: {{class: .Alert, args: {{gateway: !ref gateway-{number}}}}}",
        ]
        for name in (f"send-{number}", f"send-again-{number}"):
            args = f"{{gateway: !ref gateway-{number}, retries: {number}, label: no-{number}}}"
            rules = f"[{{for: [ConnectionError], retry: {{attempts: 3, delay: 500ms}}}}, alert-{number}]"
            lines.append(f"  {name}: {{class: .Send, args: {args}, on-error: {rules}}}")
            sends.append(name)
    lines.append("processors:")
    for number in range(0, len(sends), STEPS):
        steps = ", ".join(sends[number : number + STEPS])
        lines.append(f"  process-{number}: {{context: .Context, sequence: [{steps}]}}")
    file = folder / "shop.yaml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def main() -> None:
    """Measure and print."""
    options = arguments("Loading and checking a container file of 200 beans.")
    with tempfile.TemporaryDirectory() as folder:
        file = container_file(Path(folder))
        sys.path.insert(0, folder)

        def load() -> None:
            with iocflow.load(file):
                pass

        began = time.perf_counter()
        load()
        print(f"{'first load in the process':44} {(time.perf_counter() - began) * 1e3:8.1f} ms")
        assert not check(file).mistakes
        contestants = {f"check {BEANS} beans": lambda: check(file), f"check, build and close {BEANS} beans": load}
        for name, seconds in measure(contestants, rounds=options.rounds, seconds=options.seconds).items():
            print(f"{name:44} {seconds * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
