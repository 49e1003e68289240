"""Loading and checking a container file of 200 beans.

    python tests/benchmarks/loading.py

The goal is at most 50 ms, once Python is up and the libraries are imported. All figures are medians. A first load is
that of a new process: it imports the user's module, too, and fills the caches of the libraries. Later loads of one
process pay for collecting what earlier ones left. Of two files, the beans of one have three classes between them, those
of the other 102, as each class must be asked what it takes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import arguments, measure

from iocflow.container import check, load

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

{sends}

class Alert(ErrorHandler):
    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def handle_error(self, context: Context, error: Exception):
        return PASS
"""


SEND = """
class {name}(Activity[Context]):
    def __init__(self, gateway: Gateway, retries: int, label: str) -> None:
        self.gateway = gateway

    def execute(self, context: Context) -> None:
        context.n += 1
"""


def container_file(folder: Path, package: str = "shop", classes: int = 1) -> Path:
    """Write a module and a container file of `BEANS` beans, with the processors that use them; return the file.

    Half of the beans are activities, which have so many `classes`.
    """
    written = "".join(SEND.format(name=f"Send{number}") for number in range(classes))
    (folder / f"{package}.py").write_text(MODULE.replace("{sends}", written), encoding="utf-8")
    lines = ["iocflow: 1", f"package: {package}", "values: {host: localhost, port: '2525'}", "beans:"]
    sends: list[str] = []
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
            cls = f".Send{len(sends) % classes}"
            lines.append(f"  {name}: {{class: {cls}, args: {args}, on-error: {rules}}}")
            sends.append(name)
    lines.append("processors:")
    for number in range(0, len(sends), STEPS):
        steps = ", ".join(sends[number : number + STEPS])
        lines.append(f"  process-{number}: {{context: .Context, sequence: [{steps}]}}")
    file = folder / f"{package}.yaml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


FIRST = """
import sys, time
from iocflow.container import load
sys.path.insert(0, sys.argv[1])
began = time.perf_counter()
load(sys.argv[2])
print(time.perf_counter() - began)
"""


def first_loads(file: Path, rounds: int) -> float:
    """Return the median seconds of a new process's first load."""
    command = [sys.executable, "-c", FIRST, str(file.parent), str(file)]
    return statistics.median(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(rounds)
    )


def main() -> None:
    """Measure and print."""
    options = arguments("Loading and checking a container file of 200 beans.")
    with tempfile.TemporaryDirectory() as folder:
        few = container_file(Path(folder))
        many = container_file(Path(folder), "mall", classes=BEANS // 2)
        sys.path.insert(0, folder)
        for name, file in (("first load", few), ("first load of many classes", many)):
            print(f"{name:44} {first_loads(file, options.rounds) * 1e3:8.1f} ms")
        assert not check(few).mistakes
        assert not check(many).mistakes
        contestants = {
            f"check {BEANS} beans": lambda: check(few),
            f"check, build and close {BEANS} beans": lambda: load(few).close(),
            f"check {BEANS} beans of many classes": lambda: check(many),
            f"check, build and close {BEANS} of many": lambda: load(many).close(),
        }
        for name, seconds in measure(contestants, rounds=options.rounds, seconds=options.seconds).items():
            print(f"{name:44} {seconds * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
