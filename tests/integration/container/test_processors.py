"""Processors of a container file, run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal

import pytest

from iocflow.activity import Activity
from iocflow.container import App
from iocflow.run import Outcome, Run
from tests.unit.container import parts
from tests.unit.container.parts import Order

Loaded = Callable[..., App]


class Work(Activity[Order]):
    """Appends its name to the lines, or fails."""

    def __init__(self, fails: int = 0, error: str = "ValueError") -> None:
        self.fails, self.error = fails, error

    def execute(self, context: Order) -> str | None:
        context.lines = [*getattr(context, "lines", []), self.name]
        if context.step.attempt <= self.fails:
            raise {"ValueError": ValueError, "LostError": parts.LostError}[self.error](self.name)
        return None


class Slow(Activity[Order]):
    """Waits longer than anybody lets it."""

    async def execute(self, context: Order) -> None:
        await asyncio.sleep(30)


@pytest.fixture(autouse=True)
def work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let container files name `Work` and `Slow` beside the other parts."""
    for one in (Work, Slow):
        monkeypatch.setattr(parts, one.__name__, one, raising=False)
        monkeypatch.setattr(one, "__module__", parts.__name__)


def trail(run: Run[Order]) -> list[str]:
    """Return the rows of a run's trail, with the outcome of those that are not simply done."""
    return [step.activity + ("" if step.outcome.name == "DONE" else f" {step.outcome.name}") for step in run.steps]


WORK = """
    beans:
      a: {class: .Work}
      b: {class: .Work}
      bad: {class: .Work, args: {fails: 9}}
      lost: {class: .Work, args: {fails: 9, error: LostError}}
      twice: {class: .Work, args: {fails: 2}}
      alert: {class: .Alert}
"""


def run(app: App, processor: str = "p") -> Run[Order]:
    """Run a processor of the application."""
    return app.processor(processor, Order).do_activities()


BLOCKS = """
      smtp: {class: .Smtp, args: {host: h}}
      ask: {class: .Decide}
    processors:
      inner: {context: .Order, sequence: [b]}
      p:
        context: .Order
        sequence:
          - a
          - inner
          - {do: [a, b]}
          - parallel-split:
              left: {do: .Note}
              right: {do: [.Note, .Wait], time-limit: 5s}
            join: .merge
          - {for-each: lines, as: line, do: .Note, parallel: 2, collect: {lost: line}}
          - exclusive-choice: ask
            routes: {approve: .Note, review: end}
          - .Note
          - exclusive-choice:
              .decide: {approve: end, else: b}
              b: end
        finally: [.Note]
    """


def test_every_block(loaded: Loaded) -> None:
    """Blocks nest in a sequence as the file shows them; each part has its name in the trail."""
    app = loaded(WORK + BLOCKS)
    with app:
        made = run(app).raise_for_error()
        assert app.processor("p").plan["p"].keys() >= {"sequence", "right"}, "a branch's list is called as the branch"
    assert trail(made) == [
        "a",
        "inner/b",
        "inner",
        "sequence/a",
        "sequence/b",
        "sequence",
        "parallel-split/left/note",
        "parallel-split/left",
        "parallel-split/right/note",
        "parallel-split/right/wait",
        "parallel-split/right",
        "parallel-split",
        *["for-each/note"] * 4,
        "for-each",
        "exclusive-choice/ask",
        "exclusive-choice/note",
        "exclusive-choice",
        "note",
        "exclusive-choice-2/decide",
        "exclusive-choice-2/b",
        "exclusive-choice-2",
        "note",
    ]
    assert made.context.lost == made.context.lines[:4]


def test_every_kind(loaded: Loaded) -> None:
    """Each kind can be a processor of its own, with its keys beside it."""
    app = loaded(
        WORK
        + """
    processors:
      graph:
        context: .Order
        exclusive-choice: {.Decide: {approve: a, else: end}, a: b, b: end}
      decided: {context: .Order, exclusive-choice: .decide, routes: {approve: a, review: b}}
      split: {context: .Order, parallel-split: {x: .Note, y: .Note}}
      each: {context: .Order, for-each: lines, as: line, do: bad, may-fail: 50%, failed: lost}
    """
    )
    with app:
        assert trail(run(app, "graph")) == ["decide", "a", "b"]
        assert trail(run(app, "decided")) == ["decide", "b"]
        assert trail(run(app, "split")) == ["x/note", "x", "y/note", "y"]
        assert list(app.processors) == ["graph", "decided", "split", "each"]
        assert app.processors["each"].plan["p"]["each"]["each"]["may_fail"] == "50%"


def test_rules(loaded: Loaded) -> None:
    """Rules are asked in order: those of the step, of the bean, of the processor; the first that answers counts."""
    app = loaded(
        WORK
        + """
      own: {class: .Work, args: {fails: 9}, on-error: [{for: .LostError, then: stop}, alert, {then: continue}]}
    processors:
      retried: {context: .Order, sequence: [twice], on-error: {for: [OSError, ValueError], retry: {attempts: 3}}}
      stopped: {context: .Order, sequence: [lost, a], on-error: [{for: ValueError, then: fail}, {then: stop}]}
      bean: {context: .Order, sequence: [own, a]}
      step: {context: .Order, sequence: [{do: own, on-error: {then: stop}}, a]}
      gone: {context: .Order, sequence: [bad, a, b], on-error: {handle: alert}}
      skipped: {context: .Order, sequence: [bad, a, b], on-error: {then: {goto: b}}}
    """
    )
    with app:
        assert [step.attempts for step in run(app, "retried").steps] == [3]
        assert trail(run(app, "stopped")) == ["lost STOPPED"]
        assert trail(run(app, "bean")) == ["own HANDLED", "a"]
        assert trail(run(app, "step")) == ["own STOPPED"]
        assert trail(run(app, "gone")) == ["bad FAILED"]
        assert trail(run(app, "skipped")) == ["bad HANDLED", "b"]


def test_defaults(loaded: Loaded) -> None:
    """The default rules are for each processor that names none, an empty list included, and not for blocks."""
    app = loaded(
        "defaults: {on-error: {then: stop}}"
        + WORK.replace("\n    ", "\n")
        + """
processors:
  p: {context: .Order, sequence: [bad, a]}
  own: {context: .Order, sequence: [bad, a], on-error: {then: continue}}
  none: {context: .Order, sequence: [bad], on-error: []}
  block: {context: .Order, sequence: [{sequence: [bad, a]}, b], on-error: {then: continue}}
    """
    )
    with app:
        assert trail(run(app)) == ["bad STOPPED"]
        assert trail(run(app, "own")) == ["bad HANDLED", "a"]
        assert trail(run(app, "block")) == ["sequence/bad FAILED", "sequence HANDLED", "b"]
        with pytest.raises(ValueError, match="bad"):
            run(app, "none")


def test_contexts(loaded: Loaded) -> None:
    """A context is a class, or a prototype bean that is given something; every run has a new one."""
    app = loaded("""
        beans:
          filled: {class: .Filled, scope: prototype, args: {rate: "1.5"}}
          plain: {class: .Order, scope: prototype}
          note: {class: .Note}
        processors:
          filled-one: {context: filled, sequence: [note]}
          plain-one: {context: plain, sequence: [note]}
    """)
    with app:
        processor = app.processor("filled-one", parts.Filled)
        first, second = processor.do_activities().context, processor.do_activities().context
        assert (first.rate, second.rate) == (Decimal("1.5"), Decimal("1.5"))
        assert first is not second
        assert type(run(app, "plain-one").context) is Order


def test_time_limit(loaded: Loaded) -> None:
    """The time limit of a step, or of its bean, cancels what is async; the step's own goes before the bean's."""
    app = loaded("""
        beans: {slow: {class: .Slow, time-limit: 10ms}, patient: {class: .Slow, time-limit: 1d}}
        processors:
          p: {context: .Order, sequence: [slow], on-error: {then: fail}}
          q: {context: .Order, sequence: [{do: patient, time-limit: 10ms}], on-error: {then: fail}}
    """)
    with app:
        assert isinstance(run(app).error, TimeoutError)
        assert isinstance(run(app, "q").error, TimeoutError)


def test_observers_and_interceptors(loaded: Loaded) -> None:
    """The observers and interceptors of the file go to every processor, also into what is nested in it."""
    app = loaded(
        """
        observers: watch
        interceptors: [wrap, .Interceptor]
        beans:
          watch: {call: .observe}
          wrap: {class: .Interceptor}
          note: {class: .Note}
        processors:
          p: {context: .Order, sequence: [note, {sequence: [note]}]}
    """
    )
    with app:
        run(app)
        assert app["wrap"].seen == ["note", "sequence/note"]


def test_limits(loaded: Loaded) -> None:
    """`max-steps` bounds a run's attempts; `concurrency` is kept for the launchers."""
    app = loaded(
        WORK
        + """
    processors:
      p: {context: .Order, sequence: [bad], max-steps: 4, concurrency: 2, on-error: {retry: {attempts: 100}}}
      q: {context: .Order, sequence: [a]}
    """
    )
    with app:
        assert run(app).outcome is Outcome.FAILED
        assert app.processor("p").max_steps == 4
        assert [getattr(app.processor(id), "concurrency", None) for id in "pq"] == [2, None]


def test_one_function_in_two_beans(loaded: Loaded) -> None:
    """Two beans of one function are two activities, each with its id in the trail."""
    app = loaded("""
        beans: {one: {call: .decide}, two: {call: .decide}}
        processors: {p: {context: .Order, sequence: [one, two, one, .decide]}}
    """)
    with app:
        assert trail(run(app)) == ["one", "two", "one", "decide"]


def test_names(loaded: Loaded) -> None:
    """An activity goes by its bean's id, whichever its class; one that names itself keeps that name inside."""
    with loaded(
        WORK + "      self-named: {class: .Work, set: {name: me}}\n    processors:\n"
        "      p: {context: .Order, sequence: [a, self-named]}"
    ) as app:
        done = run(app)
        assert trail(done) == ["a", "self-named"]
        assert done.context.lines == ["a", "me"]


def test_beans_in_a_processor_that_is_a_bean_keep_their_options(loaded: Loaded) -> None:
    """A bean's handlers, limit and id go with it into a processor that is wired as a bean, however it is taken."""
    with loaded("""
        beans:
          bad: {class: .Work, args: {fails: 9}, on-error: {then: {goto: second}}}
          slow: {class: .Slow, time-limit: 10ms, on-error: alert}
          never: {class: .Work}
          first: {call: .observe}
          second: {call: .observe}
          alert: {class: iocflow.RetryingErrorHandler, args: {attempts: 2, delay: 0}}
          ready:
            class: iocflow.SequenceProcessor
            args: {steps: [!ref first, !ref bad, !ref never, !ref second], context: !type .Order}
          routed:
            class: iocflow.ExclusiveChoiceProcessor
            args:
              routes: {bad: end, second: end}
              steps: {bad: !ref bad, second: !ref second}
              context: !type .Order
          unsaid: {class: .own.Unsaid, args: {steps: [!ref second, !ref slow]}}
        processors:
          p: {context: .Order, sequence: [ready, routed, unsaid]}
    """) as app:
        run = app.processor("p").launch()
        assert trail(run) == [
            "ready/first",
            "ready/bad HANDLED",
            "ready/second",
            "ready",
            "routed/bad HANDLED",
            "routed/second",
            "routed",
            "unsaid/observe",
            "unsaid/slow FAILED",
            "unsaid FAILED",
        ]
        assert [step.attempts for step in run.steps if step.activity == "unsaid/slow"] == [2]
        assert isinstance(run.error, TimeoutError)


def test_overriding_a_step_of_a_processor_that_is_a_bean(loaded: Loaded) -> None:
    """A step's options stay when the bean is overridden for a while, and the former step is there again afterwards."""
    with loaded("""
        beans:
          bad: {class: .Work, args: {fails: 9}, on-error: {then: continue}}
          pair:
            class: .own.Pair
            args: {first: !ref bad, second: !new {class: .Work, args: {fails: 9}, on-error: {then: continue}}}
        processors:
          p: {context: .Order, sequence: [pair]}
    """) as app:
        every = ["pair/bad HANDLED", "pair/work HANDLED", "pair"]
        with app.override("bad", Work()):
            assert trail(app.processor("p").do_activities()) == ["pair/work", "pair/work-2 HANDLED", "pair"]
        assert trail(app.processor("p").do_activities()) == every
