"""Whether activities can have processes of their own where they stand."""

from __future__ import annotations

from iocflow.container.checking.bean_steps import steps_of
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Bean, Block, Chosen, Process, Step
from iocflow.container.checking.graph import all_steps, bean_of, children, wired
from iocflow.container.checking.roles import ACTIVITY
from iocflow.container.inspecting.annotations import Candidate

__all__ = ["check_isolations"]


def check_isolations(checks: Checks) -> None:
    """Note what cannot be isolated, now that all processors are known."""
    used: set[int] = set()
    for process in checks.described.values():
        for step in all_steps((*children(process.shape), *process.finally_)):
            bean = bean_of(step, checks.defined)
            used.add(id(bean))
            option = step.isolate or (bean.isolate if bean else None)
            if option is not None:
                _check(step, bean, option, process, checks)
    for bean in checks.defined.values():
        for inner in filter(None, (wired(wire, checks.defined) for wire in steps_of(bean))):
            used.add(id(inner))
            if inner.isolate:
                text = f"`isolate` of {inner.owner} has no effect in {bean.owner}, a processor that is a bean"
                checks.error(inner.isolate.place, text, "remove it, or wire the processor under `processors`")
        acts = bean.kind == "call" or checks.fits(Candidate(bean.type, bean.loose), ACTIVITY)
        if bean.isolate and acts and id(bean) not in used:
            text = f"`isolate` of {bean.owner} has no effect: no processor of this file has it as a step"
            checks.error(bean.isolate.place, text, "remove it, or wire the activity into a processor here")


def _check(step: Step, bean: Bean | None, option: Chosen, process: Process, checks: Checks) -> None:
    what = f"`isolate` of step `{step.name}` of {process.owner}"
    mode = step.mode or (bean.mode if bean else None)
    if isinstance(step.what, Block) or bean is None:
        checks.error(option.place, f"{what} is about a single activity", "write it at the activities inside")
    elif mode is not None and mode.word == "transactional":
        text = f"{what}: an activity in a process of its own cannot share the transaction of its step"
        checks.error(option.place, text, "remove `isolate`, or `mode: transactional`")
