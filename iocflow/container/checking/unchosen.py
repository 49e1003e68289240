"""What can be said of a profile that is not chosen: its keys, and the names in modules that are there anyway."""

from __future__ import annotations

import sys

from iocflow.container.checking.blocks import KINDS
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.headers import MAKERS, refuse_keys
from iocflow.container.checking.processors import LATER_PROCESSOR_KEYS, PROCESSOR_KEYS
from iocflow.container.nodes import is_literal
from iocflow.wiring import Scalar, Table

__all__ = ["check_unchosen"]

_BESIDE = tuple(key for keys in KINDS.values() for key in keys)


def check_unchosen(checks: Checks) -> None:
    """Note what is wrong with profiles whatever the environment holds.

    Nothing is imported for them: what a test's profile names need not be installed where the application runs.
    """
    for profile, key, section in checks.document.unchosen:
        if key not in ("beans", "processors") or not isinstance(section, Table):
            continue
        for id, _, node in section:
            owner = f"{key.removesuffix('s')} `{id}` of profile `{profile}`"
            table = checks.table(node, owner) if is_literal(node) or isinstance(node, Table) else None
            if table is None:
                continue
            if key == "beans":
                refuse_keys(table, owner, checks, inner=False)
                _check_names(table, owner, checks)
            else:
                checks.unknown_keys(table, (*PROCESSOR_KEYS, *_BESIDE), owner, later=LATER_PROCESSOR_KEYS)


def _check_names(bean: Table, owner: str, checks: Checks) -> None:
    """Look up what makes a bean, if its module is imported already."""
    for maker in MAKERS:
        node = bean.entries.get(maker)
        if not isinstance(node, Scalar) or node.tag or not isinstance(node.value, str) or not is_literal(node):
            continue
        package = checks.document.packages.get(node.place.file) or ""
        full = package + node.value if node.value.startswith(".") else node.value
        if full.rpartition(".")[0] in sys.modules:
            checks.resolve(node, "class" if maker == "class" else "function", f"`{maker}` of {owner}")
