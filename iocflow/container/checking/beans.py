"""The section `beans`: from its tables to described beans."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from iocflow.container.checking.bean_steps import BeanSteps
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.complaints import note_complaints
from iocflow.container.checking.description import Bean, Constant, Inner, Items, Reference, Value, Wire
from iocflow.container.checking.error_rules import Rules
from iocflow.container.checking.given_values import GivenValues
from iocflow.container.checking.headers import MAKERS, read_header
from iocflow.container.checking.names import Want
from iocflow.container.checking.roles import ACTIVITY, Roles
from iocflow.container.checking.step_options import read_step_options
from iocflow.container.checking.templates import Templates
from iocflow.container.inspecting.annotations import UNKNOWN, Candidate, fields_of, member_of, shown
from iocflow.container.inspecting.calling import uncallable
from iocflow.container.inspecting.parameters import Signature, arranged
from iocflow.container.nodes import is_unresolved
from iocflow.wiring import BeanInfo, Node, Place, Scalar, Table, check_id, did_you_mean
from iocflow.wiring.settings import read_duration

__all__ = ["Beans"]

RESERVED = ("end", "else")
"""Ids that mean something else in the routes of an exclusive choice."""


class Beans:
    """Reads beans: first what each one is (`declare`), then, when all are known, what it is given (`describe`)."""

    def __init__(self, checks: Checks) -> None:
        """Take what the checks share."""
        self._checks = checks
        self._declared: dict[str, tuple[Bean, Table]] = {}
        self.values = GivenValues(checks, self.inner)
        self.roles = Roles(checks)
        self.rules = Rules(checks, self.roles, self.wired)
        self._steps = BeanSteps(checks, self.roles, self.rules)
        self.used_templates: set[str] = set()
        self._abstract: dict[str, Table] = {}

    def declare(self, section: Table) -> None:
        """Find out what every bean of the section is, so that others can refer to it."""
        templates = Templates(section, self._checks)
        for id, place, node in section:
            if is_unresolved(node):
                self._checks.beans[id] = BeanInfo(id, object, place)
        for id, place, table in list(definitions(section, "bean", self._checks)):
            merged = templates.merged(id)
            abstract = table.entries.get("abstract")
            if abstract is not None and self._checks.coerce(abstract, bool, f"`abstract` of bean `{id}`"):
                self._checks.templates[id] = place
                self._abstract[id] = merged
                continue
            orphan = id in templates.orphans and not any(maker in merged.entries for maker in MAKERS)
            if orphan or id in templates.circular:  # what it is cannot be known, and that is said already
                self._checks.beans[id] = BeanInfo(id, object, place)
                continue
            bean = read_header(id, place, merged, self._checks)
            self._declared[id] = bean, merged
            self._checks.declared[id] = bean
            made = type(self._checks.overrides[id]) if id in self._checks.overrides else bean.type
            self._checks.beans[id] = BeanInfo(id, made, place)
        self.used_templates = templates.parents

    def describe(self) -> None:
        """Read what every declared bean is given."""
        for id, (bean, table) in self._declared.items():
            self._complete(bean, table)
            self._checks.defined[id] = bean
        for id, table in self._abstract.items():
            if id not in self.used_templates:  # with the others, the beans that have their parts from them are checked
                template = read_header(id, self._checks.templates[id], table, self._checks, template=True)
                self._complete(template, table, template=True)
        self._steps.check()

    def scope_of(self, id: str) -> str:
        """Return the scope of a declared bean; one that is its own parent is excused."""
        return self._declared[id][0].scope if id in self._declared else "prototype"

    def inner(self, table: Table) -> Bean:
        """Return the bean of a `!new` table."""
        bean = read_header("", table.place, table, self._checks)
        self._complete(bean, table)
        return bean

    def wired(self, node: Node, what: str, want: Want, fit: Callable[[str], bool] | None = None) -> Wire | None:
        """Return the bean that stands where one is named: an id (of those that `fit`), a dotted name, or `!new`."""
        if isinstance(node, Table) and node.tag == "new":
            return Inner(self.inner(node))
        name = self._checks.text(node, what)
        if name is None or not isinstance(node, Scalar):
            return _unknown(node) if isinstance(node, Scalar) else None
        if "." not in name:
            id = self._checks.lookup(node, what, fit)
            return None if id is None else Reference(id, node.place)
        target = self._checks.resolve(node, want, what)
        if target is None:
            return _unknown(node)
        kind = "class" if isinstance(target, type) else "call"
        return Inner(self.inner(Table(node.place, {kind: node}, {kind: node.place})))

    def _complete(self, bean: Bean, table: Table, *, template: bool = False) -> None:
        """Read what the bean is given; a template need not be given all."""
        checks = self._checks
        bean.positional, bean.keywords = self._arguments(bean, table, template)
        if bean.kind != "call":
            bean.set = self._settings(bean, table)
            bean.init, bean.close = self._method(bean, table, "init"), self._method(bean, table, "close")
        if bean.close and bean.scope == "prototype":
            remedy = "remove it, or let the bean be a singleton"
            text = f"`close` of {bean.owner} would never be called: it is a prototype"
            checks.error(table.keys["close"], text, remedy)
        if "depends-on" in table.entries:
            listed = checks.listed(table.entries["depends-on"])
            ids = [(checks.lookup(node, f"`depends-on` of {bean.owner}"), node.place) for node in listed]
            for id, place in ids:
                if id is not None and id == bean.id:
                    checks.error(place, f"`depends-on` of {bean.owner} names that bean itself", "remove it")
            bean.depends_on = tuple(Reference(id, place) for id, place in ids if id not in (None, bean.id))
        bean.on_error = self.rules.of(table, bean.owner) or ()
        bean.time_limit = time_limit(table, bean.owner, checks)
        read_step_options(bean, table, bean.owner, checks)
        if not template and bean.kind != "call" and not checks.fits(Candidate(bean.type, bean.loose), ACTIVITY):
            for key in ("on-error", "time-limit", "isolate"):
                if key in table.entries:
                    text = f"`{key}` of {bean.owner} is about an activity, and `{shown(bean.type)}` is none"
                    checks.error(table.keys[key], text, "write it at the activity that uses the bean, or remove it")

    # What is given to the constructor or function.

    def _arguments(self, bean: Bean, table: Table, template: bool) -> tuple[tuple[Value, ...], Mapping[str, Value]]:
        given = self._checks.table_at(table, "args", bean.owner)
        signature = self._checks.signatures.of(bean.target)
        if bean.kind == "call":
            signature = signature.without_first()
        values: dict[str, Value] = {}
        mistakes, wrong = self._checks.findings.mistakes, list[str]()
        before = len(mistakes)
        for key, place, node in given or ():
            count = len(mistakes)
            if signature.takes(key):
                values[key] = self.values.value(node, signature.annotation(key), f"`{key}` of {bean.owner}")
            else:
                self._unknown(bean, place, key, signature)
            wrong += [key] if len(mistakes) > count else []
        if bean.kind == "call" or template:  # what else a function needs depends on who calls it; see `Roles.acts`
            return (), values
        if given is not None or "args" not in table.entries:
            self._missing(bean, signature, given)
        note_complaints(bean, given, values, self._checks, wrong if len(mistakes) > before else None)
        values = self._steps.of(bean, values)
        positional, keywords = arranged(signature, values, Constant)
        return _spread(positional, signature), keywords

    def _unknown(self, bean: Bean, place: Place, key: str, signature: Signature) -> None:
        maker = getattr(bean.target, "__name__", bean.kind)
        self._checks.error(
            place,
            f"`{maker}` takes no `{key}`",
            self._instead(key, signature),
            related=[(bean.place, f"{bean.owner} is defined here")] if place.line != bean.place.line else [],
        )

    def _instead(self, key: str, signature: Signature) -> str:
        if key == signature.bound:
            return "whoever calls it gives that; take another name"
        return did_you_mean(key, signature.parameters) if signature.parameters else "it takes nothing"

    def _missing(self, bean: Bean, signature: Signature, given: Table | None) -> None:
        """Note what is not given, and needed."""
        entries = {} if given is None else given.entries
        lacking = [one.name for one in signature.parameters.values() if one.required and one.name not in entries]
        surplus = [key for key in entries if key not in signature.parameters]
        if lacking and (signature.open or not any(difflib.get_close_matches(key, lacking) for key in surplus)):
            names = ", ".join(f"`{name}`" for name in lacking)
            values = ", ".join(f"{name}: …" for name in lacking)
            what = f"{bean.owner} lacks {names}, which `{bean.target.__name__}` needs"
            self._checks.error(bean.place, what, f"write `args: {{{values}}}`")

    # What is done to the object.

    def _settings(self, bean: Bean, table: Table) -> Mapping[str, Value]:
        values: dict[str, Value] = {}
        hints = self._checks.signatures.annotations(bean.type) if "set" in table.entries else {}
        for key, place, node in self._checks.table_at(table, "set", bean.owner) or ():
            annotation = hints.get(key, UNKNOWN)
            mistake = self._setting(bean, key)
            if mistake:
                self._checks.error(place, f"`set` of {bean.owner} names `{key}`, {mistake[0]}", mistake[1])
                continue
            member = member_of(bean.type, key)
            if isinstance(member, property) and member.fset is not None:
                written = list(self._checks.signatures.of(member.fset).parameters.values())
                annotation = written[-1].annotation
            elif isinstance(member, functools.cached_property) and annotation is UNKNOWN:
                annotation = self._checks.signatures.of(member.func).returns
            values[key] = self.values.value(node, annotation, f"`{key}` of {bean.owner}")
        return values

    def _setting(self, bean: Bean, key: str) -> tuple[str, str] | None:
        """Return what is wrong with setting the attribute `key`, and the remedy."""
        made = bean.type
        if key.startswith("_"):
            return "which is private", "set a public attribute, or give it to the constructor by `args`"
        if made is object:
            return None
        if not Candidate(made).has(key):
            return f"which `{shown(made)}` has not", did_you_mean(key, fields_of(made))
        member = member_of(made, key)
        if isinstance(member, property) and member.fset is None:
            return "which can only be read", "give it to the constructor by `args`"
        if inspect.isfunction(member):
            return "which is a method", did_you_mean(key, fields_of(made))
        if issubclass(made, tuple) and key in getattr(made, "_fields", ()):
            return f"and `{shown(made)}` is a tuple", "give it to the constructor by `args`"
        if dataclasses.is_dataclass(made) and made.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            return f"and `{shown(made)}` is frozen", "give it to the constructor by `args`"
        return None

    def _method(self, bean: Bean, table: Table, key: str) -> str:
        """Return the name of the method that `init` or `close` names, empty without one or when it cannot be called."""
        name = self._checks.text_at(table, key, bean.owner)
        if name is None:
            return ""
        what, made, place = f"`{key}` of {bean.owner} is `{name}`, ", bean.type, table.entries[key].place
        if name.startswith("_"):
            self._checks.error(place, f"{what}which is private", "name a public method")
        elif made is object:
            return name
        elif not inspect.isroutine(member := member_of(made, name)):
            methods = [one for one in dir(made) if not one.startswith("_") and callable(getattr(made, one, None))]
            self._checks.error(place, f"{what}and `{shown(made)}` has no such method", did_you_mean(name, methods))
        elif inspect.isfunction(member) and self._needs(member):
            self._checks.error(place, f"{what}which needs arguments", "name a method without any")
        elif why := uncallable(made, name, awaited=True):
            self._checks.error(place, f"{what}which {why}", "write it without `yield`")
        else:
            return name
        return ""

    def _needs(self, method: Callable[..., Any]) -> bool:
        """Whether a method has a parameter beside `self` that has to be given."""
        return any(one.required for one in self._checks.signatures.of(method).without_first().parameters.values())


def definitions(section: Table, noun: str, checks: Checks) -> Iterator[tuple[str, Place, Table]]:
    """Yield the id, place and table of what a section defines; note an id that would be taken for something else."""
    for id, place, node in section:
        if id in RESERVED:
            checks.error(place, f"`{id}` cannot be the id of a {noun}: routes give it a meaning", "take another one")
        elif check_id(id, noun, place, checks.findings) and (table := checks.table(node, f"{noun} `{id}`")) is not None:
            yield id, place, table


def time_limit(table: Table, owner: str, checks: Checks) -> float | None:
    """Return the seconds of a `time-limit`."""
    node = table.entries.get("time-limit")
    if node is None:
        return None
    limit = read_duration(node, checks, f"`time-limit` of {owner}")
    if limit is not None and limit <= timedelta(0):
        checks.error(node.place, f"`time-limit` of {owner} is not more than 0", "write a duration, as `2s`")
        return None
    return None if limit is None else limit.total_seconds()


def _unknown(node: Node) -> Inner:
    """Return what stands where a bean could not be had, which is noted: if nothing did, others would look wrong."""
    return Inner(Bean("", node.place, "class", None, object))


def _spread(positional: tuple[Value, ...], signature: Signature) -> tuple[Value, ...]:
    """Return the positional values with the list for `*args` laid out."""
    several = [i for i, one in enumerate(signature.parameters.values()) if one.several]
    if not several or len(positional) != several[0] + 1:
        return positional
    last = positional[-1]
    if isinstance(last, Items):
        return (*positional[:-1], *last.items)
    values = last.value if isinstance(last, Constant) else None
    return (*positional[:-1], *map(Constant, values or ()))
