"""Chains of error rules: what `on-error` says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Constant, Inner, Reference, Rule, Value, Wire
from iocflow.container.checking.own_handlers import refused
from iocflow.container.checking.roles import HANDLER, Roles
from iocflow.container.nodes import described, is_table
from iocflow.error_handling import CONTINUE, FAIL, PASS, STOP, Decision, GoTo, RaisingErrorHandler, RetryingErrorHandler
from iocflow.wiring import Node, Place, Scalar, Table, did_you_mean
from iocflow.wiring.settings import read_duration

__all__ = ["DECISIONS", "RETRY_OPTIONS", "RULE_KEYS", "Rules"]

RULE_KEYS = ("for", "retry", "then", "handle")
_ANSWERS = RULE_KEYS[1:]
DECISIONS = {"continue": CONTINUE, "stop": STOP, "fail": FAIL, "pass": PASS}
RETRY_OPTIONS: dict[str, tuple[str, Any]] = {
    "attempts": ("attempts", int),
    "delay": ("delay", timedelta),
    "growth": ("growth", float),
    "max-delay": ("max_delay", timedelta),
    "jitter": ("jitter", float),
}


class _UnknownError(Exception):
    """Stands for the errors of a rule that could not be had."""


class Rules:
    """Reads error rules; `wired` finds the bean that a node names."""

    def __init__(self, checks: Checks, roles: Roles, wired: Callable[..., Wire | None]) -> None:
        """Take what the checks share."""
        self._checks = checks
        self._roles = roles
        self._wired = wired

    def of(self, table: Table, owner: str) -> tuple[Rule, ...] | None:
        """Return the rules that `owner` has at `on-error`, which is one entry or a list of them; None without it."""
        node = table.entries.get("on-error")
        if node is None:
            return None
        what = f"`on-error` of {owner}"
        entries = self._checks.listed(node)
        texts = [what if len(entries) == 1 else f"entry {i} of {what}" for i in range(1, len(entries) + 1)]
        rules = [self._rule(entry, text) for entry, text in zip(entries, texts, strict=True)]
        self._idle(rules, texts)
        return tuple(rule for rule in rules if rule is not None)

    def _idle(self, rules: list[Rule | None], texts: list[str]) -> None:
        """Warn about the first rule behind one that answers every error."""
        last: Rule | None = None
        for rule, text in zip(rules, texts, strict=True):
            if rule is not None and last is not None:
                what = f"{text} is never asked: an entry before it answers every error"
                self._checks.warn(rule.place, what, "put it first, or remove it", related=[(last.place, "this one")])
                return
            if rule is not None and self._answers_all(rule):
                last = rule

    def _answers_all(self, rule: Rule) -> bool:
        """Return whether no error passes a rule."""
        if rule.errors and Exception not in rule.errors:
            return False
        if isinstance(rule.answer, Constant):
            return isinstance(rule.answer.value, Decision) and rule.answer.value is not PASS
        wire = rule.answer
        bean = self._roles.bean(wire) if isinstance(wire, Reference | Inner) else None
        return bean is not None and bean.target is RaisingErrorHandler

    def fit(self, rules: tuple[Rule, ...], context: type | None, what: str) -> None:
        """Note handlers that are written for another context."""
        for rule in rules:
            if isinstance(rule.answer, Reference | Inner):
                self._roles.handles(rule.answer, context, rule.place, f"a handler of {what}")

    def go(self, rules: tuple[Rule, ...], names: tuple[str, ...] | None, what: str) -> None:
        """Note answers that go to what cannot be gone to; `names` are the activities of `what`, None where none can."""
        for rule in rules:
            if not rule.goto or (names is not None and names.count(rule.goto) == 1):
                continue
            text, remedy = f"`goto: {rule.goto}` of {what} ", "answer `continue`, `stop` or `fail`"
            if names is None:
                text += "stands where nothing can be gone to"
            elif names.count(rule.goto) > 1:
                text += "is ambiguous: that activity is wired twice"
                remedy = "give one of them an id of its own"
            else:
                text += "names no activity of it"
                remedy = did_you_mean(rule.goto, names)
            self._checks.error(rule.place, text, remedy)

    def _rule(self, node: Node, what: str) -> Rule | None:
        if not is_table(node):
            if isinstance(node, Scalar) and node.value in (*DECISIONS, "retry"):
                word = node.value
                remedy = f"write `{{then: {word}}}`" if word != "retry" else "write `{retry: {attempts: 3}}`"
                self._checks.error(node.place, f"{what} is `{word}`, a bare decision", remedy)
                return None
            if isinstance(node, Scalar) and node.value is None and not node.tag:
                remedy = "name a handler, or write a rule as `{retry: {attempts: 3}}`; to have none, write `[]`"
                self._checks.error(node.place, f"{what} is {described(node)}", remedy)
                return None
            handler = self._handler(node, what)
            return None if handler is None else Rule(node.place, handler)
        self._checks.unknown_keys(node, RULE_KEYS, what)
        answers = [key for key in _ANSWERS if key in node.entries]
        if len(answers) != 1:
            found = "nothing to do" if not answers else " and ".join(f"`{key}`" for key in answers)
            self._checks.error(node.place, f"{what} says {found}", "write one of `retry`, `then`, `handle`")
            return None
        errors = self._errors(node, what)
        answer, goto = self._answer(answers[0], node.entries[answers[0]], what)
        place = node.entries[answers[0]].place if goto else node.place
        if "for" in node.entries and not errors:  # which is noted; it must not look like a rule for all of them
            errors = (_UnknownError,)
        return None if answer is None else Rule(place, answer, errors, goto)

    def _errors(self, table: Table, what: str) -> tuple[type[Exception], ...]:
        found = []
        for node in self._checks.listed(table.entries["for"]) if "for" in table.entries else ():
            if self._checks.text(node, f"`for` of {what}") is not None and isinstance(node, Scalar):
                cls: Any = self._checks.resolve(node, "exception", f"`for` of {what}")
                found += [] if cls is None else [cls]
        if "for" in table.entries and not self._checks.listed(table.entries["for"]):
            self._checks.error(table.keys["for"], f"`for` of {what} is empty", "name the errors, or remove it")
        return tuple(found)

    def _answer(self, key: str, node: Node, what: str) -> tuple[Value | None, str]:
        """Return the handler or decision, and what it goes to."""
        if key == "retry":
            return self._retry(node, f"`retry` of {what}"), ""
        if key == "handle":
            return self._handler(node, f"`handle` of {what}"), ""
        decision = self._decision(node, f"`then` of {what}")
        return (None if decision is None else Constant(decision)), "" if decision is None else decision.activity

    def _decision(self, node: Node, what: str) -> Decision | None:
        if is_table(node):
            self._checks.unknown_keys(node, ("goto",), what)
            name = self._checks.text_at(node, "goto", what)
            return None if name is None else GoTo(name)
        word = self._checks.text(node, what)
        if word == "compensate":
            remedy = "write `fail`"
            self._checks.error(node.place, f"{what} is `compensate`, which comes with durable runs", remedy)
        elif word is not None and word not in DECISIONS:
            remedy = did_you_mean(word, (*DECISIONS, "{goto: ACTIVITY}"))
            self._checks.error(node.place, f"{what} is {described(node)}, which is no decision", remedy)
        return DECISIONS.get(word or "")

    def _retry(self, retry: Node, what: str) -> Value | None:
        table = self._checks.table(retry, what)
        if table is None:
            return None
        self._checks.unknown_keys(table, RETRY_OPTIONS, what)
        options: dict[str, Any] = {}
        for key, _, node in table:
            if key in RETRY_OPTIONS:
                options[key] = self._option(node, RETRY_OPTIONS[key][1], f"`{key}` of {what}")
        given = {RETRY_OPTIONS[key][0]: value for key, value in options.items() if value is not None}
        wrong = dict(refused(RetryingErrorHandler, given))
        for key in options:
            if RETRY_OPTIONS[key][0] in wrong:
                node = table.entries[key]
                text = f"`{key}` of {what} is {described(node)}, which is out of range"
                self._checks.error(node.place, text, wrong[RETRY_OPTIONS[key][0]])
        return None if wrong or len(given) < len(options) else Constant(RetryingErrorHandler(**given))

    def _option(self, node: Node, kind: Any, what: str) -> Any:
        """Return the value of an option, a duration in seconds; None when it is noted that it is none."""
        if kind is not timedelta:
            return self._checks.coerce(node, kind, what)
        length = read_duration(node, self._checks, what)
        return None if length is None else length.total_seconds()

    def _handler(self, node: Node, what: str) -> Wire | None:
        handler = self._wired(node, what, "class", self._roles.filling(HANDLER))
        if handler is not None:
            place: Place = node.place
            self._roles.fills(handler, HANDLER, place, what)
        return handler
