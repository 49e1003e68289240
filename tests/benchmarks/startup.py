"""How long the command line takes to answer, as a person waits for it: whole processes.

    python tests/benchmarks/startup.py

The goal is at most 250 ms for `--help`. The empty program tells how much of it is Python's own start.
"""

from __future__ import annotations

import subprocess
import sys

from measuring import arguments, measure

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "iocflow --help": ["-m", "iocflow.cli", "--help"],
    "iocflow --version": ["-m", "iocflow.cli", "--version"],
    "iocflow run --help": ["-m", "iocflow.cli", "run", "--help"],
}


def main() -> None:
    """Measure and print."""
    options = arguments("How long the command line takes to answer.")

    def process(command: list[str]) -> None:
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)

    contestants = {name: lambda command=command: process(command) for name, command in COMMANDS.items()}
    for name, seconds in measure(contestants, rounds=options.rounds, seconds=options.seconds).items():
        print(f"{name:44} {seconds * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
