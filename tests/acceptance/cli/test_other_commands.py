"""`graph`, `schedule`, `schema`, the version, and the help of every command."""

from __future__ import annotations

import json
import shlex
import shutil
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from iocflow.cli.main import COMMANDS
from iocflow.store.sqlite.store import SqliteStore

TIMERS = """
launchers:
  every-minute: {processor: greeting, every: 60s}
  on-weekdays: {processor: stopping, cron: "30 6 * * mon-fri", timezone: Europe/Berlin}
  when-dropped: {processor: greeting, source: "folder:inbox"}
"""


@pytest.fixture
def timed(shop: Path) -> Path:
    """Return the shop's file with two timers and an event source."""
    shop.write_text(shop.read_text(encoding="utf-8") + TIMERS, encoding="utf-8")
    return shop


def test_graph_of_one_and_of_all(iocflow: Any, shop: Path) -> None:
    """graph draws one processor or all of them, as Mermaid or as text."""
    one = iocflow("graph", "shop.yaml", "failing")
    assert one.returncode == 0, one.stderr
    assert one.stdout.startswith("flowchart TD\n")
    assert '["fail"]' in one.stdout
    assert '["wait"]' not in one.stdout
    assert '["wait"]' in iocflow("graph", "shop.yaml").stdout
    text = iocflow("graph", "shop.yaml", "failing", "--format", "text").stdout
    assert text == "failing: sequence\n  1. greet\n  2. fail\n  3. say\n"


def test_graph_refuses_what_is_not_there(iocflow: Any, shop: Path) -> None:
    """A misspelt processor or format is wrong use."""
    assert "did you mean `failing`?" in (done := iocflow("graph", "shop.yaml", "faling")).stderr
    assert done.returncode == 2
    assert iocflow("graph", "shop.yaml", "--format", "svg").returncode == 2


def test_schedule_lists_next_firings(iocflow: Any, timed: Path) -> None:
    """schedule prints so many firings of each timer, in the timer's zone, and none for an event source."""
    done = iocflow("schedule", "shop.yaml", "-n", "2")
    assert done.returncode == 0, done.stderr
    assert "every-minute: every 1m -> greeting" in done.stdout
    assert "when-dropped" not in done.stdout
    report = json.loads(iocflow("schedule", "shop.yaml", "-n", "2", "--json").stdout)
    assert {name: len(timer["next"]) for name, timer in report.items()} == {
        "every-minute": 2,
        "on-weekdays": 2,
        "when-dropped": 0,
    }
    for time in map(datetime.fromisoformat, report["on-weekdays"]["next"]):
        assert (time.hour, time.minute) == (6, 30)
        assert time.weekday() < 5


def test_schedule_without_timers(iocflow: Any, shop: Path) -> None:
    """A file without timers is no error."""
    done = iocflow("schedule", "shop.yaml")
    assert (done.returncode, done.stdout) == (0, "shop.yaml: no timer will fire\n")
    assert iocflow("schedule", "shop.yaml", "-n", "0").returncode == 2


def test_schema_describes_container_files(iocflow: Any, root: Path) -> None:
    """schema prints a JSON Schema that accepts the project's own files and refuses a misspelt section."""
    done = iocflow("schema")
    schema = json.loads(done.stdout)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        validator(schema).validate({"iocflow": 1, "processor": {}})
    tags = json.loads(iocflow("schema", "--vscode").stdout)
    assert any("!ref" in tag for tag in tags["yaml.customTags"])


def test_version(iocflow: Any) -> None:
    """The version is the installed one; one way to ask for it is enough."""
    done = iocflow("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"iocflow {version('iocflow')} (Python 3.")
    assert done.stdout.count("\n") == 1
    assert iocflow("version").returncode == 2


MEMBERS = {"dead": ("list", "show", "replay", "drop"), "events": ("list", "show", "replay")}
SINGLE = [(name, *member) for name in COMMANDS for member in ([(one,) for one in MEMBERS.get(name, ())] or [()])]
"""Every command, those of a group by their own names."""


@pytest.mark.parametrize("name", SINGLE, ids=" ".join)
def test_options_are_there_where_they_do_something(iocflow: Any, name: tuple[str, ...]) -> None:
    """Every command has the options about its output; those about a FILE are refused by a command that takes none."""
    text = iocflow(*name, "--help").stdout
    assert all(option in text for option in ("--log-format", "--log-level", "--traceback", "--no-color"))
    takes_file = "FILE" in text.partition("\n\n")[0]
    assert takes_file is (name != ("schema",))
    for option in ("--profile", "--set"):
        assert (option in text) is takes_file
    if not takes_file:
        assert iocflow(*name, "--profile", "loud").returncode == 2


ON_SUSPENDED = ("cancel", "dead", "retry", "signal")
ON_DONE = ("doctor", "history", "purge", "runs", "status")
ON_TIMERS = ("pause", "resume", "trigger")
FOR_EVER = ("serve", "worker")


@pytest.mark.parametrize("name", SINGLE, ids=" ".join)
def test_help_has_examples_that_work(iocflow: Any, root: Path, tmp_path: Path, name: tuple[str, ...]) -> None:
    """Every command's help ends in examples, and each of them does what it says in a copy of the project."""
    help_text = iocflow(*name, "--help").stdout
    examples = [line.strip() for line in help_text.partition("Examples:")[2].splitlines() if line.strip()]
    assert examples
    for folder in ("config", "samples"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for i, example in enumerate(examples):
        assert example.startswith("iocflow ")
        if name[0] in FOR_EVER and "--until-idle" not in example:
            continue
        if name[0] == "events":
            failed = tmp_path / "var" / "inbox" / "failed"
            failed.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / "samples" / "fare_drop" / "event.json", failed)
        elif i == 0 or name[0] in ON_SUSPENDED:
            shutil.rmtree(tmp_path / "var", ignore_errors=True)
            prepare_orders(iocflow, name[0])
            prepare_timers(tmp_path, name[0])
        arguments = shlex.split(example.partition(">")[0])[1:]
        done = iocflow(*arguments)
        assert done.returncode == 0, f"{example}\n{done.stdout}{done.stderr}"


def prepare_orders(iocflow: Any, name: str) -> None:
    """Leave the runs that the examples of a command are about: done ones, or such as failed and are suspended."""
    if name not in ON_SUSPENDED + ON_DONE:
        return
    assert iocflow("submit", "config/order.yaml", "order", "--seed", "@samples/order/po_17.json").returncode == 0
    assert iocflow("submit", "config/order.yaml", "order", "--seeds", "@samples/order/orders.jsonl").returncode == 0
    failing = ("--set", "takes=-1") if name in ON_SUSPENDED else ()
    assert iocflow("worker", "config/order.yaml", "--until-idle", *failing).returncode == 0


def prepare_timers(folder: Path, name: str) -> None:
    """Leave the timer that the examples of a command are about as a daemon does that serves it."""
    if name in ON_TIMERS:
        store = SqliteStore(folder / "var" / "fare_drop.db")
        store.launchers.serve({"poll-fares": "every 60s"}, "a daemon", 30.0)
        store.close()


def test_completion_knows_commands_and_processors(iocflow: Any, shop: Path) -> None:
    """The tab key offers commands, the processors of the file typed before, and nothing for a file that is broken."""

    def offered(line: str) -> list[str]:
        words = {"_IOCFLOW_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        done = iocflow(env=words)
        assert done.stderr == ""
        return done.stdout.split()

    assert offered("iocflow sch") == ["schedule", "schema"]
    assert offered("iocflow run shop.yaml fa") == ["failing"]
    assert offered("iocflow graph shop:app ") == ["greeting"]
    assert offered("iocflow run gone.yaml ") == []
    assert offered("iocflow run shop:gone ") == []
    assert offered("iocflow run gone:app ") == []
    shop.write_text("iocflow: [", encoding="utf-8")
    assert offered("iocflow run shop.yaml ") == []
