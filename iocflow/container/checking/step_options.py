"""Words to choose from, and the options of steps that are one of some words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import get_args

from iocflow.activity import Mode, OnLost
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Bean, Chosen, Step
from iocflow.container.nodes import described
from iocflow.wiring import Table, did_you_mean

__all__ = ["STEP_OPTIONS", "chosen_at", "read_step_options"]

STEP_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "mode": get_args(Mode),
    "on-lost": get_args(OnLost),
    "isolate": ("process",),
}
"""What an activity may have, with the words to choose from; the first two are about durable runs."""


def chosen_at(table: Table, key: str, owner: str, words: Collection[str], checks: Checks) -> Chosen | None:
    """Return the word that `owner` has at `key`; None without one, or when it is noted that it is none of `words`."""
    word = checks.text_at(table, key, owner)
    if word is None:
        return None
    node = table.entries[key]
    if word in words:
        return Chosen(word, node.place)
    checks.error(node.place, f"`{key}` of {owner} is {described(node)}, which is none", did_you_mean(word, words))
    return None


def read_step_options(of: Bean | Step, table: Table, owner: str, checks: Checks) -> None:
    """Read the `mode`, the `on-lost` and the `isolate` of an activity or step."""
    of.mode, of.on_lost, of.isolate = (
        chosen_at(table, key, owner, words, checks) for key, words in STEP_OPTIONS.items()
    )
