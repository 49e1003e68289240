"""What a file says of durable runs: which processors have them, by which fields of their seeds, and of single steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iocflow.container.checking.bean_steps import steps_of
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Bean, Block, Process, Reference, Step
from iocflow.container.checking.graph import all_steps, bean_of, children
from iocflow.container.checking.step_options import chosen_at
from iocflow.container.inspecting.annotations import UNKNOWN, shown
from iocflow.container.inspecting.paths import path_fault, without_prefix
from iocflow.container.nodes import described
from iocflow.durable.errors import ContextTypeError
from iocflow.wiring import Listing, Node, Scalar, Table
from iocflow.wiring.duration import seconds_of
from iocflow.wiring.extras import MissingExtraError, extra

__all__ = ["DURABLE_KEYS", "ON_FAILURE", "check_durables", "read_durable"]

DURABLE_KEYS = ("submitter", "number", "group", "deadline")
ON_FAILURE = ("failed", "incident")
_LEASE = 30.0
_UNTYPED = "write the type of what it holds"
_TYPED = "say it as `dict[str, int]` does, or keep JSON of any shape as its text, in a `str`"
_STORE = "write `store: sqlite:///var/app.db`, or postgresql://USER@HOST/DATABASE, at the top"


def read_durable(process: Process, table: Table, checks: Checks) -> None:
    """Read `durable` and `on-failure` of a processor, whose context is known."""
    on_failure = chosen_at(table, "on-failure", process.owner, ON_FAILURE, checks)
    node = table.entries.get("durable")
    options = None if node is None else _options(node, process, checks)
    if node is not None and options is not None:
        process.durable = {**options, **({"on_failure": on_failure.word} if on_failure else {})}
        process.durable_place = table.keys["durable"]
        process.context_place = table.entries["context"].place if "context" in table.entries else process.place
    elif on_failure and (node is None or (isinstance(node, Scalar) and node.value is False)):
        what = f"`on-failure` of {process.owner} is about durable runs, and it is not durable"
        checks.error(table.keys["on-failure"], what, "write `durable: true` beside it, or remove it")


def _options(node: Node, process: Process, checks: Checks) -> dict[str, str] | None:
    """Return where the seed holds what; None when the processor is not durable, or something is noted."""
    what = f"`durable` of {process.owner}"
    if isinstance(node, Listing):
        checks.error(node.place, f"{what} is a list", "write `durable: true`, or {number: FIELD, group: FIELD}")
        return None
    if isinstance(node, Scalar):
        return {} if checks.coerce(node, bool, what) else None
    checks.unknown_keys(node, DURABLE_KEYS, what)
    found = {}
    for key in (key for key in DURABLE_KEYS if key in node.entries):
        text = checks.text_at(node, key, what)
        if text is None or process.context is None:
            continue
        if key == "deadline" and not text[:1].isidentifier():
            if seconds_of(text):
                found[key] = text
            else:
                said = f"`deadline` in {what} is {described(node.entries[key])}, which is no duration of a run"
                checks.error(node.entries[key].place, said, "write 30m, 1h or 1d, or the seed's field with it")
            continue
        seed = checks.signatures.annotations(process.context).get("seed_data", UNKNOWN)
        path = without_prefix(text, seed, checks.signatures)
        fault = path_fault(path, seed, checks.signatures)
        if fault:
            said = f"`{key}` in {what} is {described(node.entries[key])}"
            beside = "no duration, and " if key == "deadline" else ""
            checks.error(node.entries[key].place, f"{said}: {beside}{fault[0]}", fault[1])
        found[key] = path
    return found


# The whole picture.


def check_durables(checks: Checks) -> None:
    """Note what is wrong with durable runs, now that all processors and sections are known."""
    found = [process for process in checks.described.values() if process.durable is not None]
    store = checks.document.sections.get("store")
    if found and store is None and checks.document.complete:
        first = found[0]
        checks.error(
            first.durable_place or first.place, f"{first.owner} is durable, and the file has no `store`", _STORE
        )
    used = found or "launchers" in checks.document.sections
    if store is not None and not used and not checks.findings.failed:
        checks.warn(store.place, "there is a store, and no processor is durable", "write `durable: true` at one")
    _check_contexts(found, checks)
    _check_steps(found, checks)


def _check_contexts(processes: Iterable[Process], checks: Checks) -> None:
    """Note the fields of contexts that cannot be stored."""
    for process in processes:
        if process.context is None:
            continue
        place = process.context_place or process.place
        try:
            extra("durable.contexts.codec").ContextCodec(process.context)
        except MissingExtraError as error:
            if checks.elsewhere:
                return
            what, _, remedy = str(error).partition("; ")
            checks.error(process.durable_place or process.place, what, remedy)
            return
        except ContextTypeError as error:
            head, *fields = str(error).split("\n  ")
            for field in fields or [head]:
                what = f"`context` of {process.owner}, `{shown(process.context)}`, cannot be stored: {field}"
                checks.error(place, what, _TYPED if field.endswith(_UNTYPED) else "")


def _check_steps(processes: Iterable[Process], checks: Checks) -> None:
    """Note the options of steps that have no meaning where they stand, and transactions that could last for ever."""
    inside = _reached(processes, checks)
    used: set[int] = set()
    for process in checks.described.values():
        for step in _steps(process, checks):
            bean = bean_of(step, checks.defined)
            if process.id in inside:
                used.add(id(bean))
                _check_transaction(step, bean, process, checks)
            for key, option in (("mode", step.mode), ("on-lost", step.on_lost)):
                if option and (isinstance(step.what, Block) or _is_processor(step, checks)):
                    what = f"`{key}` of step `{step.name}` of {process.owner} is about a single activity"
                    checks.error(option.place, what, "write it at the activities inside")
                elif option and process.id not in inside:
                    checks.error(option.place, _unheeded(key, f"step `{step.name}` of {process.owner}"), _HEEDED)
    for bean in checks.defined.values():
        for key, option in (("mode", bean.mode), ("on-lost", bean.on_lost)):
            if option and id(bean) not in used:
                checks.error(option.place, _unheeded(key, bean.owner), _HEEDED)


_HEEDED = "remove it, or write `durable: true` at the processor"


def _unheeded(key: str, owner: str) -> str:
    return f"`{key}` of {owner} is about durable runs, and no durable processor runs it"


def _reached(processes: Iterable[Process], checks: Checks) -> set[str]:
    """Return the ids of the processors, with those of all that stand inside of them."""
    todo, found = list(processes), set[str]()
    while todo:
        process = todo.pop()
        if process.id not in found:
            found.add(process.id)
            inner = (step.what.id for step in _steps(process, checks) if isinstance(step.what, Reference))
            todo += [checks.described[id] for id in inner if id in checks.described]
    return found


def _steps(process: Process, checks: Checks) -> Iterator[Step]:
    """Yield the steps of a processor with those inside, also of processors that are beans."""
    todo, seen = list(all_steps((*children(process.shape), *process.finally_))), set[Bean]()
    for step in todo:
        yield step
        bean = bean_of(step, checks.defined)
        if bean is not None and bean not in seen:
            seen.add(bean)
            todo += [Step(bean.place, wire.id if isinstance(wire, Reference) else "", wire) for wire in steps_of(bean)]


def _is_processor(step: Step, checks: Checks) -> bool:
    return isinstance(step.what, Reference) and step.what.id in checks.described


def _check_transaction(step: Step, bean: Bean | None, process: Process, checks: Checks) -> None:
    """Note a transaction without a limit on SQLite, which has one writer: all others would wait for it."""
    mode = step.mode or (bean.mode if bean else None)
    store = checks.document.sections.get("store")
    sqlite = isinstance(store, Scalar) and str(store.value).startswith("sqlite:")
    if mode is None or mode.word != "transactional" or not sqlite:
        return
    limit = step.time_limit if step.time_limit is not None else bean.time_limit if bean else None
    most = _lease(checks) / 3
    if limit is None or limit > most:
        what = f"step `{step.name}` of {process.owner} is transactional, and on SQLite it keeps all others from writing"
        checks.error(mode.place, what, f"give it a `time-limit` of {most:g}s at most, a third of the worker's lease")


def _lease(checks: Checks) -> float:
    worker = checks.document.sections.get("worker")
    node = worker.entries.get("lease") if isinstance(worker, Table) else None
    given = seconds_of(str(node.value)) if isinstance(node, Scalar) else None
    return given or _LEASE
