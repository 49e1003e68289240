"""Plans drawn as an outline and as a Mermaid flowchart."""

from __future__ import annotations

import re
from typing import Any

import pytest

from iocflow.activity import activity
from iocflow.cli.mermaid import mermaid, quoted
from iocflow.cli.outline import outline, plan_of
from iocflow.context import ProcessContext
from iocflow.error_handling import CONTINUE, LoggingErrorHandler, OnError, RetryingErrorHandler
from iocflow.exclusive_choice import ExclusiveChoiceProcessor
from iocflow.for_each import ForEachProcessor
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.processor import Processor
from iocflow.sequence import SequenceProcessor

OUTLINE = """\
everything: sequence
  1. fetch (at most 2 s)
     on error: ConnectionError -> 3 attempts
  2. ask: parallel split
     on error: continue
     - crm: sequence
        1. fetch
        2. score
     - risk: sequence
        1. risk
  3. decide: exclusive choice
     - score  => good -> send, else -> end
     - send  => end
     on error: logging-error-handler
  4. all: for each of rows as row (8 at once, 10% may fail)
     - send
  finally:
    - clean-up"""


class Context(ProcessContext):
    rows: list[int]
    row: int


def fetch(context: Context) -> None:
    """Do nothing."""


def score(context: Context) -> None:
    """Do nothing."""


def risk(context: Context) -> None:
    """Do nothing."""


def send(context: Context) -> None:
    """Do nothing."""


def clean_up(context: Context) -> None:
    """Do nothing."""


@pytest.fixture
def everything() -> Processor[Any]:
    """Return a processor in which every kind and every option stands."""
    retrying = OnError(ConnectionError, RetryingErrorHandler())
    ask = ParallelSplitProcessor({"crm": [fetch, score], "risk": risk}, context=Context, name="ask")
    routes = {"score": {"good": "send", "else": "end"}, "send": "end"}
    steps = {"score": score, "send": send}
    decide = ExclusiveChoiceProcessor(routes, steps, context=Context, name="decide", on_error=LoggingErrorHandler())
    each = ForEachProcessor("rows", send, as_="row", parallel=8, may_fail="10%", context=Context, name="all")
    return SequenceProcessor(
        [activity(fetch, time_limit=2, on_error=retrying), activity(ask, on_error=CONTINUE), decide, each],
        context=Context,
        name="everything",
        finally_=[clean_up],
    )


def test_outline_shows_everything(everything: Processor[Any]) -> None:
    """The outline names kinds, steps, branches, routes, handlers, limits and `finally`, indented as they are nested."""
    assert outline(plan_of(everything)) == OUTLINE


def test_a_block_without_a_name_is_named_once() -> None:
    """A block that is called by its kind says the kind once, in both drawings; any other says name and kind."""
    blocks = [
        ParallelSplitProcessor({"crm": fetch}, context=Context, name="parallel-split"),
        ExclusiveChoiceProcessor({"score": "end"}, {"score": score}, context=Context, name="exclusive-choice-2"),
        SequenceProcessor([fetch], context=Context, name="parallel-split-3"),
    ]
    plan = plan_of(SequenceProcessor(blocks, context=Context, name="all"))
    steps = [line.strip() for line in outline(plan).splitlines() if re.match(r"  \d", line)]
    assert steps == ["1. parallel-split", "2. exclusive-choice-2", "3. parallel-split-3: sequence"]
    text = mermaid([plan])
    assert '["parallel-split"]' in text
    assert '["exclusive-choice-2"]' in text
    assert '["parallel-split-3: sequence"]' in text


def test_mermaid_connects_every_node(everything: Processor[Any]) -> None:
    """Every node is defined once, and all but the two ends and the handlers have an arrow in and an arrow out."""
    lines = mermaid([plan_of(everything)]).splitlines()
    assert lines[0] == "flowchart TD"
    defined = [found[1] for line in lines if (found := re.match(r"\s*(n\d+)[\[({]", line))]
    assert len(set(defined)) == len(defined)
    arrows = [found.groups() for line in lines if (found := re.match(r"    (n\d+) -.*[>|] (n\d+)$", line))]
    assert {node for arrow in arrows for node in arrow} == set(defined)
    handlers = {to for line in lines if ".->" in line for to in re.findall(r"n\d+$", line)}
    begin, end = (
        next(line.split("(")[0].strip() for line in lines if f'(["{name}"])' in line) for name in ("everything", "end")
    )
    assert {to for _, to in arrows} == set(defined) - {begin}
    assert {source for source, _ in arrows} == set(defined) - {end} - handlers
    assert sum("subgraph" in line for line in lines) == sum(line.strip() == "end" for line in lines)


def test_mermaid_draws_several_in_one(everything: Processor[Any]) -> None:
    """Several processors make one flowchart in which no id stands twice."""
    text = mermaid([plan_of(everything), plan_of(everything)])
    assert text.count("flowchart") == 1
    ids = re.findall(r"^\s*(?:subgraph )?([nb]\d+)[\[({]", text, re.M)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("label", "safe"),
    [
        ('say "hi"', '"say #34;hi#34;"'),
        ("<b>&`;#", '"#60;b#62;#38;#96;#59;#35;"'),
        ("two\nlines", '"two lines"'),
        ("王小明-Jörg", '"王小明-Jörg"'),
        ("", '" "'),
    ],
)
def test_mermaid_labels_are_safe(label: str, safe: str) -> None:
    """Nothing in a name can end its label or mean something to Mermaid; letters of any script stay."""
    assert quoted(label) == safe
