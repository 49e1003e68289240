"""What classes say themselves of the arguments that a file gives them (`wiring.ChecksArguments`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Bean, Constant, Value
from iocflow.container.checking.own_handlers import own_handler, refused
from iocflow.container.inspecting.annotations import shown
from iocflow.container.nodes import has_unresolved, is_literal
from iocflow.container.reading.allowing import lies_in
from iocflow.wiring import Node, Scalar, Table

__all__ = ["note_complaints"]


def note_complaints(
    bean: Bean, given: Table | None, values: Mapping[str, Value], checks: Checks, wrong: Collection[str] | None
) -> None:
    """Note what the bean's class says of its arguments, each at its place; an overridden bean is never made.

    Args:
        bean: The bean.
        given: What the file gives.
        values: The same as values; only constants are shown to the class.
        checks: Takes the mistakes.
        wrong: The arguments of which it is noted that they do not fit, or None when nothing is noted of any: a class
            that compares its arguments is asked then only, the ready-made ones tell of each for itself.
    """
    cls = bean.target
    own = own_handler(cls) if bean.kind == "class" and cls is not None else None
    if bean.kind != "class" or bean.id in checks.overrides or not (own or hasattr(cls, "check_arguments")):
        return
    ready = lies_in(cls.__module__, ("iocflow",))
    if wrong is not None and not (own or ready):
        return
    if (given is not None and has_unresolved(given)) or (checks.elsewhere and not own):
        return  # elsewhere there may be other files
    fit = {name: value for name, value in values.items() if name not in (wrong or ())}
    constants = {name: value.value for name, value in fit.items() if isinstance(value, Constant)}
    nodes = {} if given is None else given.entries
    try:
        found = refused(own, constants) if own else cls.check_arguments(constants)
        complaints = [(str(name), str(text)) for name, text in found]
    except Exception as error:  # noqa: BLE001 - it is the user's code, and may raise anything
        text = _hidden(f"{type(error).__name__}: {error}", *nodes.values())
        what = f"the arguments of {bean.owner} cannot be checked: `{shown(bean.target)}.check_arguments` raised {text}"
        checks.error(bean.place if given is None else given.place, what, "correct the method, or what it is given")
        return
    for name, text in complaints:
        if ready and name not in constants and len(constants) < len(values):
            continue  # what is no constant is not shown to the class, which takes it for left out
        node = nodes.get(name)
        place = bean.place if node is None else node.place
        checks.error(place, f"`{name}` of {bean.owner}: {_hidden(text, *nodes.values())}")


def _hidden(text: str, *nodes: Node) -> str:
    """Return `text` with the placeholder in place of what was put in for it, which is not for printing."""
    for node in nodes:
        if isinstance(node, Scalar) and not is_literal(node) and node.value not in (None, ""):
            word = rf"(?<!\w){re.escape(str(node.value))}(?!\w)"
            text = re.sub(word, node.text.replace("\\", r"\\"), text)
    return text
