"""`graph`, `schedule` and a `run` that cannot begin construct nothing of the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MODULE = """
from __future__ import annotations

from collections.abc import Iterator, Mapping

from iocflow import CONTINUE, Activity, App, Decision, ErrorHandler, LoggingErrorHandler, ProcessContext
from iocflow import RetryingErrorHandler, SequenceProcessor, activity

print("imported")


class Order(ProcessContext):
    lines: list[str]
    line: str
    def __init__(self) -> None:
        print("MADE Order")


class Down:
    '''A server that is down.'''

    def __init__(self, *_: object, **__: object) -> None:
        raise ConnectionError(f"{type(self).__name__} was constructed")


class Fetch(Down, Activity[Order]):
    def execute(self, context: Order) -> None: ...


class Alert(Down, ErrorHandler):
    def handle_error(self, context: Order, error: Exception) -> Decision: ...


class Watch(Down):
    def __call__(self, event: object) -> None: ...


class Inbox(Down):
    def poll(self) -> Iterator[object]: ...


class Join(Down):
    def __call__(self, context: Order, branches: Mapping[str, Order]) -> None: ...


class Chatty(Activity[Order]):
    def connect(self) -> None:
        print("MADE a connection")

    def execute(self, context: Order) -> None: ...


def make_client() -> Down:
    return Down()


def say(context: Order, client: object = None) -> None: ...


steps = [activity(say, on_error=[CONTINUE, RetryingErrorHandler(4)]), activity(Chatty(), on_error=CONTINUE)]
app = App(SequenceProcessor(steps, context=Order, name="built", on_error=LoggingErrorHandler()))
"""

CONTAINER = """\
iocflow: 1
package: far
defaults: {on-error: [log-it]}
observers: [watch]
beans:
  watch: {class: .Watch}
  order: {class: .Order, scope: prototype}
  client: {factory: .make_client}
  log-it: {class: iocflow.LoggingErrorHandler}
  alert: {class: .Alert}
  chatty: {class: .Chatty, init: connect, on-error: [{for: OSError, retry: {attempts: 5}}, {then: continue}]}
  fetch: {class: .Fetch, args: {client: !ref client}, on-error: [{then: continue}]}
  say: {call: .say, args: {client: !ref client}, time-limit: 2s}
  inbox: {class: .Inbox}
  join: {class: .Join}
processors:
  inner: {context: .Order, sequence: [.Fetch, say], on-error: alert}
  outer:
    context: order
    sequence:
      - chatty
      - fetch
      - {parallel-split: {a: fetch, b: [chatty, say]}, join: join}
      - exclusive-choice: {fetch: {found: chatty, else: end}, chatty: end}
      - {for-each: lines, as: line, do: !ref say}
      - {do: inner, on-error: [{for: [OSError, ValueError], then: stop}, !new {class: .Alert}]}
    finally: [say]
launchers:
  often: {processor: outer, every: 60s, poll: inbox}
  dropped: {processor: inner, source: "folder:inbox"}
"""

OUTLINE = """\
outer: sequence
  1. chatty
     on error: OSError -> 5 attempts, continue
  2. fetch
     on error: continue
  3. parallel-split
     - a: sequence
        1. fetch
           on error: continue
     - b: sequence
        1. chatty
           on error: OSError -> 5 attempts, continue
        2. say (at most 2 s)
     join: join
  4. exclusive-choice
     - fetch  => found -> chatty, else -> end
       on error: continue
     - chatty  => end
       on error: OSError -> 5 attempts, continue
  5. for-each: for each of lines as line
     - say (at most 2 s)
  6. inner: sequence
     on error: OSError, ValueError -> stop, Alert
     1. fetch
     2. say (at most 2 s)
     on error: alert
  on error: log-it
  finally:
    - say (at most 2 s)
"""


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """Return the container file `far.yaml`, most of whose beans cannot be constructed."""
    (tmp_path / "far.py").write_text(MODULE, encoding="utf-8")
    file = tmp_path / "far.yaml"
    file.write_text(CONTAINER.replace("do: !ref say", "do: say"), encoding="utf-8")
    return file


def test_a_graph_is_drawn_of_the_description(iocflow: Any, far: Path) -> None:
    """A graph shows what the file says, in the file's words, and only the graph, though its servers are down."""
    done = iocflow("graph", "far.yaml", "outer", "--format", "text")
    assert (done.returncode, done.stderr) == (0, "imported\n")
    assert [line.strip() for line in done.stdout.splitlines()] == [line.strip() for line in OUTLINE.splitlines()]
    mermaid = iocflow("graph", "far.yaml")
    assert mermaid.returncode == 0, mermaid.stderr
    assert mermaid.stdout.startswith("flowchart TD\n")
    assert mermaid.stdout.count('{{"continue"}}') == 3
    assert '{{"log-it"}}' in mermaid.stdout


def test_a_graph_of_a_module_has_the_same_words(iocflow: Any, far: Path) -> None:
    """The handlers of an application that is built in Python are named as those of a file are."""
    done = iocflow("graph", "far:app", "--format", "text")
    assert done.returncode == 0, done.stderr
    wanted = "built: sequence 1. say on error: continue, 4 attempts 2. chatty on error: continue"
    assert " ".join(done.stdout.split()) == f"{wanted} on error: logging-error-handler"


def test_a_schedule_is_listed_of_the_description(iocflow: Any, far: Path) -> None:
    """A schedule is listed, as JSON and nothing else, though the pollers and processors cannot be constructed."""
    done = iocflow("schedule", "far.yaml", "--json", "-n", "1")
    assert (done.returncode, done.stderr) == (0, "imported\n")
    report = json.loads(done.stdout)
    assert report["often"]["processor"] == "outer"
    assert len(report["often"]["next"]) == 1
    assert report["dropped"]["next"] == []


@pytest.mark.parametrize("command", [("run", "far.yaml", "outr"), ("graph", "far.yaml", "outr")])
def test_a_wrong_processor_constructs_nothing(iocflow: Any, far: Path, command: tuple[str, ...]) -> None:
    """A processor that is not there is wrong use, told before anything is constructed."""
    done = iocflow(*command)
    assert done.returncode == 2
    assert "far.yaml has no processor outr; did you mean `outer`?" in done.stderr
    assert "MADE" not in done.stdout + done.stderr
