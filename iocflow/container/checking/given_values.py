"""From the nodes of `args` and `set` to values, each compared with the annotation that it meets."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
from collections.abc import Callable, Container
from typing import Any, Literal, get_args, get_origin, is_typeddict

from iocflow.container.checking.checks import Checks, wants
from iocflow.container.checking.description import Bean, Constant, Entries, Inner, Items, ProviderOf, Reference, Value
from iocflow.container.inspecting.annotations import (
    UNKNOWN,
    Candidate,
    alternatives,
    fits,
    is_protocol,
    shown,
    shown_one,
    unwrapped,
)
from iocflow.container.nodes import described, is_tagged
from iocflow.wiring import Listing, Node, Scalar, Table

__all__ = ["GivenValues"]

_LISTS: dict[Any, Callable[[Any], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}
_TABLES: tuple[Any, ...] = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class GivenValues:
    """Reads values; `inner` reads the inner bean of a `!new` table."""

    def __init__(self, checks: Checks, inner: Callable[[Table], Bean]) -> None:
        """Take what the checks share."""
        self._checks = checks
        self._inner = inner

    def value(self, node: Node, annotation: Any, what: str) -> Value:
        """Return the value; what does not fit `annotation` is noted. `what` names it in messages."""
        if isinstance(node, Scalar) and node.tag:
            return self._tagged(node, annotation, what)
        if isinstance(node, Table) and node.tag == "new":
            return self._new(node, annotation, what)
        if not is_tagged(node):
            return Constant(self._checks.untagged(node, annotation, what))
        if isinstance(node, Listing):
            return self._items(node, annotation, what)
        assert isinstance(node, Table)
        return self._entries(node, annotation, what)

    def _tagged(self, node: Scalar, annotation: Any, what: str) -> Value:
        if node.tag == "type":
            return self._type(node, annotation, what)
        id = self._checks.lookup(node, what, self._checks.fitting(annotation) if node.tag == "ref" else None)
        if id is None:
            return Constant(None)
        if node.tag == "ref":
            self._checks.require(id, annotation, what, node.place)
            return Reference(id, node.place, annotation)
        self._provider(id, node, annotation, what)
        return ProviderOf(id, node.place)

    def _type(self, node: Scalar, annotation: Any, what: str) -> Value:
        cls = self._checks.resolve(node, "class", what)
        if isinstance(cls, type) and not any(_takes_class(cls, one) for one in alternatives(annotation)):
            self._misfit(node, f"the class `{shown(cls)}`", annotation, what)
        return Constant(cls)

    def _provider(self, id: str, node: Scalar, annotation: Any, what: str) -> None:
        """Check that a provider is wanted, and one of what `id` is."""
        results = [_result(one) for one in alternatives(annotation)]
        wanted = [one for one in results if one is not None]
        if not wanted:
            self._misfit(node, "a provider", annotation, what)
        elif not any(fits(self._checks.candidate(id), one) for one in wanted):
            self._checks.misfit(id, wanted[0], f"the provider {what}", node.place)

    def _new(self, node: Table, annotation: Any, what: str) -> Value:
        bean = self._inner(node)
        if not fits(Candidate(bean.type, loose=bean.loose), annotation):
            self._misfit(node, shown_one(bean.type), annotation, what)
        elif bean.loose:
            bean.demands.append(wants(annotation, what, node.place))
        else:
            self._checks.awaits(Candidate(bean.type), annotation, f"{what} is {shown_one(bean.type)}", node.place)
        return Inner(bean, annotation)

    def _items(self, node: Listing, annotation: Any, what: str) -> Value:
        found = _generic(annotation, _LISTS)
        if found is None:
            self._misfit(node, "a list", annotation, what)
            return Constant(None)
        kind, args = found
        if kind is not tuple or args[1:] == (...,):
            args = args[:1] * len(node.items)
        wanted = [*args, *[UNKNOWN] * len(node.items)]
        items = [self.value(item, wanted[i], f"item {i + 1} of {what}") for i, item in enumerate(node.items)]
        return Items(tuple(items), _LISTS.get(kind, list))

    def _entries(self, node: Table, annotation: Any, what: str) -> Value:
        found = _generic(annotation, _TABLES)
        if found is not None:
            wanted = found[1][1] if len(found[1]) > 1 else UNKNOWN
            return Entries({key: self.value(value, wanted, f"`{key}` in {what}") for key, _, value in node})
        remedy, (first, *_) = None, alternatives(annotation)
        if any(map(dataclasses.is_dataclass, alternatives(annotation))):
            remedy = f"write `!new {{class: …{shown(first)}, args: …}}`, whose values may be tagged"
        self._misfit(node, "a mapping with tagged values", annotation, what, remedy)
        return Constant(None)

    def _misfit(self, node: Node, found: str, annotation: Any, what: str, remedy: str | None = None) -> None:
        where = f" ({described(node)})" if isinstance(node, Scalar) else ""
        text = f"{what} wants `{shown(annotation)}`, and this is {found}{where}"
        self._checks.error(node.place, text, remedy or "write one that fits")


def _generic(annotation: Any, kinds: Container[Any]) -> tuple[Any, tuple[Any, ...]] | None:
    """Return the alternative that is one of `kinds`, or takes anything, and its arguments."""
    for one in map(unwrapped, alternatives(annotation)):
        kind = get_origin(one) or one
        if _is_open(one) or kind in kinds:
            return kind, get_args(one)
    return None


def _is_open(annotation: Any) -> bool:
    return annotation in (UNKNOWN, Any, object)


def _takes_class(cls: type, annotation: Any) -> bool:
    """Whether a class object can be given where `annotation` stands."""
    annotation = unwrapped(annotation)
    if _is_open(annotation) or annotation is type or annotation is collections.abc.Callable:
        return True
    if (made := _result(annotation)) is not None:
        return made is UNKNOWN or fits(Candidate(cls), made)
    kind = get_origin(annotation) or annotation
    if kind is type:
        return fits(Candidate(cls), get_args(annotation)[0])
    if kind is Literal or is_typeddict(kind):
        return False
    if is_protocol(kind):  # what a class object has is for its instances
        return getattr(kind, "_is_runtime_protocol", False) and isinstance(cls, kind)
    return not isinstance(kind, type) or isinstance(cls, kind)


def _result(annotation: Any) -> Any | None:
    """Return what something to be called that fits `annotation` gives; None when nothing of the kind fits."""
    annotation = unwrapped(annotation)
    if _is_open(annotation) or annotation is collections.abc.Callable:
        return UNKNOWN
    kind = get_origin(annotation) or annotation
    if kind is collections.abc.Callable:
        return get_args(annotation)[-1] if get_args(annotation) else UNKNOWN
    if is_protocol(kind) and "__call__" in vars(kind):
        found = inspect.signature(kind.__call__, eval_str=True).return_annotation
        return UNKNOWN if found is inspect.Signature.empty or kind is not annotation else found
    return None
