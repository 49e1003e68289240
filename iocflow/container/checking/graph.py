"""Who needs whom: circles, the order of building, and what only the whole picture shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import (
    Bean,
    Block,
    Choice,
    Constant,
    Entries,
    Inner,
    Items,
    Process,
    Reference,
    Rule,
    Shape,
    Split,
    Step,
    Steps,
    Value,
)
from iocflow.container.inspecting.annotations import shown
from iocflow.context import ProcessContext
from iocflow.wiring import Place

__all__ = ["Graph", "all_steps", "children", "inner_beans"]


def children(shape: Shape) -> tuple[Step, ...]:
    """Return the steps that stand directly in a shape."""
    if isinstance(shape, Steps):
        return shape.steps
    if isinstance(shape, Choice):
        return tuple(shape.steps.values())
    return tuple(shape.branches.values()) if isinstance(shape, Split) else (shape.body,)


def all_steps(steps: Iterable[Step]) -> Iterator[tuple[Step, Shape | None]]:
    """Yield every step with those of the blocks inside, and the block's shape where the step is one."""
    for step in steps:
        shape = step.what.shape if isinstance(step.what, Block) else None
        yield step, shape
        if shape is not None:
            yield from all_steps(children(shape))


def inner_beans(values: Iterable[Value]) -> Iterator[Bean]:
    """Yield the inner beans among the values, those inside of them too."""
    for value in values:
        if isinstance(value, Inner):
            yield value.bean
            yield from inner_beans(_values(value.bean))
        elif isinstance(value, Items | Entries):
            yield from inner_beans(_parts(value))


def _parts(value: Items | Entries) -> tuple[Value, ...]:
    return value.items if isinstance(value, Items) else tuple(value.entries.values())


def _values(bean: Bean) -> tuple[Value, ...]:
    return (*bean.positional, *bean.keywords.values(), *bean.set.values())


class Graph:
    """The references between all beans and processors of a checked document.

    Attributes:
        needs: By id, the references that must be there before it is built, in the order of the file.
        asks: By id, those whose provider it gets.
        order: Every id after all that it needs; without a circle only.
    """

    def __init__(self, checks: Checks, hooks: Iterable[Value]) -> None:
        """Draw the graph; a circle is noted. Every processor needs the `hooks`."""
        self._checks = checks
        self._hooks = tuple(hooks)
        self.asks: dict[str, set[str]] = {}
        self.needs: dict[str, tuple[Reference, ...]] = {}
        for id, bean in checks.defined.items():
            self.needs[id] = () if id in checks.overrides else tuple(self._of_bean(id, bean))
        for id, process in checks.described.items():
            self.needs[id] = () if id in checks.overrides else tuple(self._of_process(id, process))
        self.order = self._ordered()

    def dependants(self, id: str, *, without: Collection[str] = ()) -> tuple[str, ...]:
        """Return every id that needs `id`, directly or not, in the order of building; those `without` need nothing."""
        found = {id}
        for other in self.order:
            if other not in without and any(one.id in found for one in self.needs[other]):
                found.add(other)
        return tuple(other for other in self.order if other in found and other != id)

    def wanted(self) -> frozenset[str]:
        """Return what is built at once: all but what only an overridden bean would have needed."""
        held = self._held_by_overridden() - self._checks.roots
        todo = [id for id in self.needs if id not in held]
        found = set(todo)
        while todo:
            for one in self.needs[todo.pop()]:
                if one.id not in found:
                    found.add(one.id)
                    todo.append(one.id)
        return frozenset(found)

    def _held_by_overridden(self) -> set[str]:
        """Return what the overridden beans, as they are defined, need; what others need too is found from those."""
        todo = [id for id in self._checks.overrides if id in self.needs]
        held: set[str] = set()
        while todo:
            id = todo.pop()
            definition = self._checks.defined.get(id)
            for one in self.needs[id] if definition is None else self._of_bean(id, definition):
                if one.id not in held and one.id not in self._checks.overrides:
                    held.add(one.id)
                    todo.append(one.id)
        return held

    # Edges.

    def _of_values(self, id: str, values: Iterable[Value]) -> Iterator[Reference]:
        for value in values:
            if isinstance(value, Reference):
                yield value
            elif isinstance(value, Inner):
                yield from self._of_bean(id, value.bean)
            elif isinstance(value, Items | Entries):
                yield from self._of_values(id, _parts(value))
            elif not isinstance(value, Constant):
                self.asks.setdefault(id, set()).add(value.id)

    def _of_rules(self, id: str, rules: Iterable[Rule]) -> Iterator[Reference]:
        return self._of_values(id, [rule.answer for rule in rules])

    def _of_bean(self, id: str, bean: Bean) -> Iterator[Reference]:
        yield from self._of_values(id, _values(bean))
        yield from bean.depends_on
        yield from self._of_rules(id, bean.on_error)

    def _of_process(self, id: str, process: Process) -> Iterator[Reference]:
        yield from self._of_values(id, self._hooks)
        yield from self._of_rules(id, process.on_error)
        if process.context_bean:
            yield Reference(process.context_bean, process.place)
        yield from self._of_joiner(id, process.shape)
        for step, shape in all_steps((*children(process.shape), *process.finally_)):
            yield from self._of_rules(id, step.on_error)
            if isinstance(step.what, Reference | Inner):
                yield from self._of_values(id, [step.what])
            yield from self._of_joiner(id, shape)

    def _of_joiner(self, id: str, shape: Shape | None) -> Iterator[Reference]:
        if isinstance(shape, Split) and shape.join is not None:
            yield from self._of_values(id, [shape.join])

    # Circles and order.

    def _ordered(self) -> tuple[str, ...]:
        order: dict[str, None] = {}
        for id in self.needs:
            if id not in order:
                self._visit(id, order)
        return tuple(order)

    def _visit(self, start: str, order: dict[str, None]) -> None:
        """Put `start` into the order, behind all that it needs."""
        path = {start: iter(self.needs[start])}
        while path:
            id, needs = next(reversed(path.items()))
            one = next(needs, None)
            if one is None:
                order[id] = None
                del path[id]
            elif one.id in path:
                circle = list(path)
                self._circle(circle[circle.index(one.id) :], one)
            elif one.id in self.needs and one.id not in order:
                path[one.id] = iter(self.needs[one.id])

    def _circle(self, circle: list[str], closing: Reference) -> None:
        provider = closing.id in self._checks.beans and not any(id in self._checks.processors for id in circle)
        self._checks.findings.error(
            closing.place,
            f"beans need each other in a circle: {' -> '.join((*circle, closing.id))}",
            f"write `!provider {closing.id}` for the last one, or take it out" if provider else "take one of them out",
            related=[(self._checks.info(id).place, f"`{id}` is defined here") for id in circle],
        )

    # What only the whole picture shows.

    def check_closers(self) -> None:
        """Note inner beans that nobody would ever close, because a prototype holds them."""
        for id, bean in self._checks.defined.items():
            for inner in inner_beans(_values(bean)) if bean.scope == "prototype" else ():
                if inner.close:
                    text = f"`close` of the inner bean would never be called: the prototype `{id}` holds it"
                    self._checks.findings.error(
                        inner.place, text, f"make it a bean of its own, and let `{id}` refer to it"
                    )

    def check_captures(self) -> None:
        """Note singletons that hold a context, which belongs to one run."""
        for id, bean in self._checks.defined.items():
            if bean.scope == "singleton" and id not in self._checks.overrides:
                self._captures(id, self.needs[id], ())
                for inner in inner_beans(_values(bean)):
                    if issubclass(inner.type, ProcessContext):
                        self._captured(id, inner.place, shown(inner.type), ())

    def _captures(self, id: str, needs: Iterable[Reference], over: tuple[str, ...]) -> None:
        for one in needs:
            bean = self._checks.defined.get(one.id)
            if bean is None or bean.scope != "prototype" or one.id in over:
                continue
            if issubclass(bean.type, ProcessContext):
                self._captured(id, one.place, one.id, (bean.place,))
            else:
                self._captures(id, self.needs[one.id], (*over, one.id))

    def _captured(self, id: str, place: Place, context: str, defined: tuple[Place, ...]) -> None:
        self._checks.findings.error(
            place,
            f"the singleton `{id}` holds the context `{context}`, which belongs to one run",
            "take the context as the argument of `execute`",
            related=[(one, f"`{context}` is defined here") for one in defined],
        )

    def check_unused(self, templates: Iterable[str]) -> None:
        """Warn about beans and templates that nothing in the file uses."""
        used = {one.id for needs in self.needs.values() for one in needs} | self._checks.roots
        used |= {id for ids in self.asks.values() for id in ids} | self._held_by_overridden()
        used |= set(self._checks.overrides)
        for id, bean in self._checks.beans.items():
            if id not in used:
                self._checks.findings.warn(
                    bean.place, f"bean `{id}` is used by nothing in the file", "remove it, or wire it"
                )
        parents = frozenset(templates)
        for id, place in self._checks.templates.items():
            if id not in parents:
                what = f"the template `{id}` is no bean's `parent`"
                self._checks.findings.warn(place, what, "remove it, or name it as a `parent`")
