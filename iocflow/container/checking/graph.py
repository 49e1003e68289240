"""Who needs whom: circles, the order of building, and what only the whole picture shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import (
    Bean,
    Block,
    Choice,
    Entries,
    Inner,
    Items,
    Process,
    ProviderOf,
    Reference,
    Shape,
    Split,
    Step,
    Stepped,
    Steps,
    Value,
    Wire,
)
from iocflow.container.inspecting.annotations import shown
from iocflow.context import ProcessContext
from iocflow.wiring import Place

__all__ = ["Graph", "all_steps", "children"]


def children(shape: Shape) -> tuple[Step, ...]:
    """Return the steps that stand directly in a shape."""
    if isinstance(shape, Steps):
        return shape.steps
    if isinstance(shape, Choice):
        return tuple(shape.steps.values())
    return tuple(shape.branches.values()) if isinstance(shape, Split) else (shape.body,)


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield every step with those of the blocks inside."""
    for step in steps:
        yield step
        if isinstance(step.what, Block):
            yield from all_steps(children(step.what.shape))


def bean_of(step: Step, beans: Mapping[str, Bean]) -> Bean | None:
    """Return the bean that a step runs; None where that is a processor or a block."""
    return None if isinstance(step.what, Block) else wired(step.what, beans)


def wired(wire: Wire, beans: Mapping[str, Bean]) -> Bean | None:
    """Return the bean that stands where one is named; None where that is a processor."""
    return wire.bean if isinstance(wire, Inner) else beans.get(wire.id)


def _walked(values: Iterable[Value]) -> Iterator[Value]:
    """Yield every value with those inside, also inside of inner beans."""
    for value in values:
        yield value
        if isinstance(value, Inner):
            yield from _walked(_of_bean(value.bean))
        elif isinstance(value, Stepped):
            yield from _walked((value.wire,))
        elif isinstance(value, Items):
            yield from _walked(value.items)
        elif isinstance(value, Entries):
            yield from _walked(value.entries.values())


def _inner_beans(values: Iterable[Value]) -> tuple[Bean, ...]:
    return tuple(value.bean for value in values if isinstance(value, Inner))


def _of_bean(bean: Bean) -> tuple[Value, ...]:
    """Return the values that a bean needs."""
    rules = (rule.answer for rule in bean.on_error)
    return (*bean.positional, *bean.keywords.values(), *bean.set.values(), *bean.depends_on, *rules)


def _of_process(process: Process) -> Iterator[Value]:
    """Yield the values that a processor needs."""
    yield from (rule.answer for rule in process.on_error)
    if process.context_bean:
        yield Reference(process.context_bean, process.place)
    whole = Step(process.place, process.id, Block(process.kind, process.id, process.place, process.shape))
    for step in all_steps((whole, *process.finally_)):
        yield from (rule.answer for rule in step.on_error)
        if not isinstance(step.what, Block):
            yield step.what
        elif isinstance(step.what.shape, Split) and step.what.shape.join is not None:
            yield step.what.shape.join


class Graph:
    """The references between all beans and processors of a checked document.

    Attributes:
        needs: By id, the references that must be there before it is built, in the order of the file.
        asks: Every id whose provider somebody gets.
        order: Every id after all that it needs; without a circle only.
        shared: The inner beans that are made once, for all runs: those of singletons and of processors.
    """

    def __init__(self, checks: Checks, hooks: Collection[Value]) -> None:
        """Draw the graph; a circle is noted. Every processor needs the `hooks`."""
        self._checks = checks
        self._inner: dict[str, tuple[Bean, ...]] = {}
        self.asks: set[str] = set()
        self.needs: dict[str, tuple[Reference, ...]] = {}
        for id, bean in checks.defined.items():
            values = tuple(_walked(_of_bean(bean)))
            self.needs[id] = () if id in checks.overrides else self._needs(values)
            self._inner[id] = _inner_beans(values)
        for id, process in checks.described.items():
            values = tuple(_walked((*hooks, *_of_process(process))))
            self.needs[id] = () if id in checks.overrides else self._needs(values)
            self._inner[id] = _inner_beans(values)
        singles = [id for id, bean in checks.defined.items() if bean.scope == "singleton"]
        makers = [id for id in (*singles, *checks.described) if id not in checks.overrides]
        self.shared = tuple(dict.fromkeys(bean for id in makers for bean in self._inner[id]))
        self.order = self._ordered()

    def _needs(self, walked: Collection[Value]) -> tuple[Reference, ...]:
        self.asks.update(value.id for value in walked if isinstance(value, ProviderOf))
        return tuple(value for value in walked if isinstance(value, Reference))

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
            for one in self.needs[id] if definition is None else self._needs(tuple(_walked(_of_bean(definition)))):
                if one.id not in held and one.id not in self._checks.overrides:
                    held.add(one.id)
                    todo.append(one.id)
        return held

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
        holder = self._checks.defined.get(circle[-1])
        given = holder is not None and all(one is not closing for one in holder.depends_on)
        provider = given and closing.id in self._checks.beans and self._checks.processors.keys().isdisjoint(circle)
        self._checks.error(
            closing.place,
            f"beans need each other in a circle: {' -> '.join((*circle, closing.id))}",
            f"write `!provider {closing.id}` for the last one, or take it out" if provider else "take one of them out",
            related=[(self._checks.info(id).place, f"`{id}` is defined here") for id in circle],
        )

    # What only the whole picture shows.

    def check_closers(self) -> None:
        """Note inner beans that nobody would ever close, because a prototype holds them."""
        for id, bean in self._checks.defined.items():
            for inner in self._inner[id] if bean.scope == "prototype" else ():
                if inner.close:
                    text = f"`close` of the inner bean would never be called: the prototype `{id}` holds it"
                    self._checks.error(inner.place, text, f"make it a bean of its own, and let `{id}` refer to it")

    def check_captures(self) -> None:
        """Note singletons that hold a context, which belongs to one run."""
        for id, bean in self._checks.defined.items():
            if bean.scope == "singleton" and id not in self._checks.overrides:
                self._captures(id, self.needs[id], ())
                for inner in self._inner[id]:
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
        self._checks.error(
            place,
            f"the singleton `{id}` holds the context `{context}`, which belongs to one run",
            "take the context as the argument of `execute`",
            related=[(one, f"`{context}` is defined here") for one in defined],
        )

    def check_unused(self, templates: Iterable[str]) -> None:
        """Warn about beans and templates that nothing in the file uses."""
        used = {one.id for needs in self.needs.values() for one in needs} | self._checks.roots
        used |= self.asks | self._held_by_overridden()
        used |= set(self._checks.overrides)
        for id, bean in self._checks.beans.items():
            if id not in used:
                self._checks.warn(bean.place, f"bean `{id}` is used by nothing in the file", "remove it, or wire it")
        parents = frozenset(templates)
        for id, place in self._checks.templates.items():
            if id not in parents:
                what = f"the template `{id}` is no bean's `parent`"
                self._checks.warn(place, what, "remove it, or name it as a `parent`")
