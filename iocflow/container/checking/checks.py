"""What the checks of one document share, and lend to the readers of its sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Union, get_args, get_origin

from iocflow.container.checking.description import Bean, Demand, Process
from iocflow.container.checking.misfits import refusals
from iocflow.container.checking.names import Names, Want
from iocflow.container.inspecting.annotations import (
    UNKNOWN,
    Candidate,
    alternatives,
    fits,
    is_protocol,
    met_by,
    missing,
    shown,
    shown_one,
)
from iocflow.container.inspecting.calling import protocol_deferral, protocol_refusal
from iocflow.container.inspecting.coercion import Coercion, MisfitError
from iocflow.container.inspecting.parameters import Signatures
from iocflow.container.nodes import clipped, described, has_unresolved, is_literal, is_table, is_tagged, is_unresolved
from iocflow.container.reading.document import Document
from iocflow.wiring import BeanInfo, Listing, Node, Place, Scalar, Table, did_you_mean

__all__ = ["Checks", "wants"]


class Checks:
    """The state of checking one document; it is the `wiring.Scope` of the section readers.

    Attributes:
        findings: The mistakes, the document's own included; `error` and `warn` add to them.
        beans: Every bean that can be referred to; templates are in `templates`.
        processors: Every processor.
        declared: Every bean as far as it is known before what it is given is read.
        defined: The described beans; `described` the processors.
        elsewhere: Whether the document is for another environment than this one.
        roots: Ids that a section outside beans and processors uses.
        overrides: The objects that replace beans.
    """

    def __init__(self, document: Document, overrides: Mapping[str, object], like: Checks | None = None) -> None:
        """Begin with the document's findings; what was found out of classes for a document `like` it is known."""
        self.document = document
        self.elsewhere = document.elsewhere
        self.findings = document.findings
        self.error, self.warn = self.findings.error, self.findings.warn
        self.overrides = overrides
        self._names = Names(document)
        self._resolved: dict[tuple[str, object, str], object] = {}
        self._fitting: dict[tuple[Candidate, Any], bool] = {}
        self.signatures: Signatures = Signatures() if like is None else like.signatures
        self.beans: dict[str, BeanInfo] = {}
        self.processors: dict[str, BeanInfo] = {}
        self.templates: dict[str, Place] = {}
        self.declared: dict[str, Bean] = {}
        self.defined: dict[str, Bean] = {}
        self.described: dict[str, Process] = {}
        self.roots: set[str] = set()
        self._coercion: Coercion = Coercion() if like is None else like._coercion

    # The scope that section readers are lent.

    def coerce(self, node: Node, annotation: Any, what: str) -> Any:
        """Return the node's value as `annotation` wants it; a misfit is noted, and gives None."""
        if is_tagged(node) and not has_unresolved(node):
            self.error(node.place, f"{what} is a tagged value", f"write plain data that fits `{shown(annotation)}`")
            return None
        return self.untagged(node, annotation, what)

    def untagged(self, node: Node, annotation: Any, what: str) -> Any:
        """Return the value as `coerce` does, of a node that is known to have no tags in it."""
        if has_unresolved(node):
            return None
        try:
            return self._coercion.coerce(_value(node, annotation, self.signatures), annotation)
        except MisfitError as error:
            for one in refusals(node, annotation, what, error.misfits):
                remedy = self._hint(one.node, annotation) or one.why
                self.error(one.node.place, one.text, remedy)
            return None

    def reference(self, node: Node, expected: type | tuple[type, ...], what: str) -> str | None:
        """Return the id that `node` names if it is a bean or processor of such a type, else note it."""
        annotation: Any = Union[expected]  # noqa: UP007 - of one, or of a tuple
        id = self.lookup(node, what, self.fitting(annotation))
        if id is None:
            return None
        self.roots.add(id)
        found = self.candidate(id)
        if not self.fits(found, annotation):
            self.misfit(id, annotation, what, node.place)
            return None
        self.demand(id, annotation, what, node.place)
        for one in alternatives(annotation):
            if not found.loose and (refused := protocol_refusal(found.cls, one)):
                method, why = refused
                text, related = f"{what} is `{id}`, whose `{method}` {why}", self.defined_here(id)
                self.error(node.place, text, f"compare it with `{shown(one)}.{method}`", related=related)
                return None
        return id

    def unknown_keys(
        self, table: Table, known: Iterable[str], what: str, *, later: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Note every key of `table` that is not `known`; of the `later` ones, with what they come."""
        names = frozenset(known)
        for key in [key for key in table.entries if key not in names]:
            if key in later:
                self.error(table.keys[key], f"`{key}` {later[key]}, which this version has not", "remove it")
            else:
                self.error(table.keys[key], f"{what} has no key `{key}`", did_you_mean(key, names, listed=16))

    def hide(self, secret: str) -> None:
        """Keep a secret that the file itself holds out of messages and logs."""
        self.document.secrets.add(secret)

    # What the container's own readers need beside that.

    def fits(self, candidate: Candidate, annotation: Any) -> bool:
        """Whether the candidate can be given where `annotation` stands; each question is answered once for a class."""
        if candidate.objects:
            return fits(candidate, annotation)
        key = (candidate, annotation)
        try:
            known = self._fitting.get(key)
        except TypeError:  # Annotated with a list, say: it cannot be kept
            return fits(candidate, annotation)
        if known is None:
            known = self._fitting[key] = fits(candidate, annotation)
        return known

    def resolve(self, node: Scalar, want: Want, what: str) -> Any:
        """Return what a dotted name stands for, found once for each file and name; None when that is noted."""
        key = (node.place.file, node.value, want)
        found = self._resolved.get(key)
        if found is None:
            found = self._resolved[key] = self._names.resolve(node, want, what)
        return found

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id that can be referred to."""
        return (*self.beans, *self.processors)

    def info(self, id: str) -> BeanInfo:
        """Return what is known of a bean or processor."""
        return self.beans[id] if id in self.beans else self.processors[id]

    def candidate(self, id: str) -> Candidate:
        """Return what a reference to `id` gives."""
        if id in self.overrides:
            return Candidate(type(self.overrides[id]), objects=(self.overrides[id],))
        bean = self.declared.get(id)
        return Candidate(self.info(id).type, loose=bean is not None and bean.loose)

    def text(self, node: Node, what: str) -> str | None:
        """Return the node's text, or note that it is none."""
        if is_unresolved(node):
            return None
        if isinstance(node, Scalar) and not node.tag and isinstance(node.value, str) and node.value:
            return None if self._has_blanks(node, what) else node.value
        if isinstance(node, Scalar) and node.tag:
            self.error(node.place, f"{what} is tagged `!{node.tag}`", "write the bare name; no tag is needed here")
        else:
            self.error(node.place, f"{what} is {described(node)}", "write one name")
        return None

    def _has_blanks(self, node: Scalar, what: str) -> bool:
        """Note it when a name begins or ends with a blank, which nobody sees."""
        name = str(node.value)
        bare = name.strip()
        if name == bare or not bare:
            return False
        where = "end" if name[0] == bare[0] else "beginning"
        remedy = f"write `{clipped(node.text.strip())}`" if is_literal(node) else "correct what it stands for"
        self.error(node.place, f"{what} is {described(node)}, which has a blank at its {where}", remedy)
        return True

    def table(self, node: Node, what: str) -> Table | None:
        """Return the node if it is a mapping, or note that it is none."""
        if is_table(node):
            return node
        if not is_unresolved(node):
            self.error(node.place, f"{what} is {described(node)}", "write a mapping, `key: value`")
        return None

    def text_at(self, table: Table, key: str, owner: str) -> str | None:
        """Return the text that `owner` has at `key`; None without one, or when it is noted that it is none."""
        node = table.entries.get(key)
        return None if node is None else self.text(node, f"`{key}` of {owner}")

    def table_at(self, table: Table, key: str, owner: str) -> Table | None:
        """Return the table that `owner` has at `key`; None without one, or when it is noted that it is none."""
        node = table.entries.get(key)
        return None if node is None else self.table(node, f"`{key}` of {owner}")

    def number_at(self, table: Table, key: str, owner: str, least: int) -> int | None:
        """Return the number that `owner` has at `key`; None without one, or when it is noted that it does not fit."""
        node = table.entries.get(key)
        number: int | None = None if node is None else self.coerce(node, int, f"`{key}` of {owner}")
        if node is None or number is None or number >= least:
            return number
        self.error(node.place, f"`{key}` of {owner} is {described(node)}", f"write {least} or more")
        return None

    def listed(self, node: Node) -> tuple[Node, ...]:
        """Return the items of a list; anything else is a list of one."""
        return node.items if isinstance(node, Listing) and not node.tag else (node,)

    def lookup(self, node: Node, what: str, fit: Callable[[str], bool] | None = None) -> str | None:
        """Return the id that `node` names, or note that there is no such bean or processor; only ids that `fit` are
        offered instead.
        """
        if is_unresolved(node):
            return None
        id = node.value if isinstance(node, Scalar) else None
        if not isinstance(id, str) or not isinstance(node, Scalar):
            self.error(node.place, f"{what} is {described(node)}", "write the id of a bean or processor")
            return None
        if self._has_blanks(node, what):
            return None
        if id in self.beans or id in self.processors:
            return id
        if id in self.templates:
            self.error(
                node.place,
                f"{what} is `{id}`, which is abstract: a template is never built",
                f"name a bean that has `parent: {id}`",
                related=[(self.templates[id], f"`{id}` is defined here")],
            )
        elif self.document.complete:  # otherwise it may be defined in a file that could not be read
            fitting = list(filter(fit, self.ids)) if fit else self.ids
            remedy = did_you_mean(id, fitting) if fitting else "none of the file's would fit here"
            remedy = "an id has no dot; a class is named by `class:`" if "." in id else remedy
            self.error(node.place, f"{what} is {described(node)}, which is no bean or processor", remedy)
        return None

    def require(self, id: str, annotation: Any, what: str, place: Place) -> None:
        """Note it when the bean `id` is not what its use at `place` wants."""
        if self.fits(self.candidate(id), annotation):
            self.demand(id, annotation, what, place)
            self.awaits(self.candidate(id), annotation, f"{what} is `{id}`", place, self.defined_here(id))
        else:
            self.misfit(id, annotation, what, place)

    def awaits(
        self, found: Candidate, annotation: Any, what: str, place: Place, related: tuple[tuple[Place, str], ...] = ()
    ) -> None:
        """Note a method that is async, where the Protocol that it meets has one that nobody awaits."""
        known = not found.loose
        faults = [(one, protocol_deferral(found.cls, one)) for one in alternatives(annotation) if known]
        if faults and all(method for _, method in faults):
            protocol, method = faults[0]
            text = f"{what}, whose `{method}` is async, and that of `{shown(protocol)}` is not: nobody awaits it"
            self.error(place, text, f"write `def {method}`", related=related)

    def fitting(self, annotation: Any) -> Callable[[str], bool]:
        """Return what tells whether a bean or processor can be given where `annotation` stands."""
        return lambda id: self.fits(self.candidate(id), annotation)

    def demand(self, id: str, annotation: Any, what: str, place: Place) -> None:
        """Have the object of a factory compared with `annotation` when it is made."""
        bean = self.declared.get(id)
        if bean is not None and bean.loose and id not in self.overrides:
            bean.demands.append(wants(annotation, what, place))

    def defined_here(self, id: str) -> tuple[tuple[Place, str], ...]:
        """Return the place of a bean or processor, to be shown beside a mistake about it."""
        return ((self.info(id).place, f"`{id}` is defined here"),)

    def misfit(self, id: str, annotation: Any, what: str, place: Place) -> None:
        """Note that the bean `id` is not what stands at `place` should be."""
        found = self.candidate(id)
        by = "the override of " if id in self.overrides else ""
        self.error(
            place,
            f"{what} wants `{shown(annotation)}`, and {by}`{id}` is {shown_one(found.cls)}{missing(found, annotation)}",
            self._remedy(id, annotation),
            related=self.defined_here(id),
        )

    def _remedy(self, id: str, annotation: Any) -> str:
        classes = [one for one in alternatives(annotation) if isinstance(one, type) and not is_protocol(one)]
        if id in self.overrides and classes:
            cls = f"`{shown(classes[0])}`"
            return f"let the fake subclass {cls}, or annotate a Protocol that names what is used of it"
        return "refer to a bean that fits"

    def _hint(self, node: Node, annotation: Any) -> str:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, str) and (value in self.beans or value in self.processors):
            return f"write `!ref {value}` to mean the bean"
        if isinstance(value, int | float) and str in alternatives(annotation):
            return f'write it in quotes to have text: "{node.text}"' if isinstance(node, Scalar) else ""
        return ""


def wants(annotation: Any, what: str, place: Place) -> Demand:
    """Return the demand that an object fits an annotation."""
    return Demand(place, f"{what} wants `{shown(annotation)}`", met_by(annotation))


def _value(node: Node, annotation: Any, signatures: Signatures) -> Any:
    """Return the node as data, but numbers that lose something as such as their files write them.

    Those are what a `Decimal` is made of (`30.10`), and what was put in for a placeholder where text is wanted.
    """
    if isinstance(node, Scalar):
        kind = type(node.value)
        if kind not in (int, float) or kind is annotation:
            return node.value
        wanted = alternatives(annotation)
        exact = (kind is float and Decimal in wanted) or (node.filled and str in wanted)
        return node.written if exact else node.value
    wanted = alternatives(annotation)
    each = next((args[-1] for one in wanted if (args := [arg for arg in get_args(one) if arg is not ...])), UNKNOWN)
    if isinstance(node, Listing):
        return [_value(item, each, signatures) for item in node.items]
    classes = [get_origin(one) or one for one in wanted]
    fields = next((found for cls in classes if isinstance(cls, type) and (found := signatures.annotations(cls))), {})
    return {key: _value(value, fields.get(key, each), signatures) for key, value in node.entries.items()}
