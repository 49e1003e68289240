"""Activities that keep state of a run on themselves are told, however they write it, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iocflow import Activity, ProcessContext
from iocflow.container import check


class Order(ProcessContext):
    """What the activities work on."""

    n: int = 0
    items: list[Any]


class Sets(Activity[Order]):
    def execute(self, context: Order) -> None:
        self.n = context.n


class Counts(Activity[Order]):
    def execute(self, context: Order) -> None:
        self.n += context.n


class Unpacks(Activity[Order]):
    def execute(self, context: Order) -> None:
        context.n, self.n = context.items


class Annotates(Activity[Order]):
    def execute(self, context: Order) -> None:
        self.n: int = context.n


class Loops(Activity[Order]):
    def execute(self, context: Order) -> None:
        for self.n in context.items:
            context.n = 1


class Chains(Activity[Order]):
    def execute(self, context: Order) -> None:
        context.n = self.n = 1


class Nested(Activity[Order]):
    def execute(self, context: Order) -> None:
        def later() -> None:
            self.n = 1

        context.n = 1
        later()


class Captured(Activity[Order]):
    def execute(self, context: Order) -> None:
        context.items = [one for one in context.items if self.name != one]
        self.n = 1


class OtherName(Activity[Order]):
    def execute(this, context: Order) -> None:  # noqa: N805 - the point of the test
        this.n = 1


class SetsContext(Activity[Order]):
    def execute(self, context: Order) -> None:
        context.n = len(self.name)


class CountsContext(Activity[Order]):
    def execute(self, context: Order) -> None:
        context.n += len(self.name)


class UnpacksContext(Activity[Order]):
    def execute(self, context: Order) -> None:
        context.n, context.items = len(self.name), []


class SetsInside(Activity[Order]):
    def execute(self, context: Order) -> None:
        context.items[0].n = self.name
        self.inner.n = context.n  # type: ignore[attr-defined]


class Holder(Activity[Order]):
    def __init__(self, held: Activity[Order]) -> None:
        self.held = held

    def execute(self, context: Order) -> None:
        self.held.execute(context)


class Reads(Activity[Order]):
    def execute(self, context: Order) -> None:
        print(self.name, context.n)


def warned(cls: type, folder: Path) -> list[str]:
    """Return what is warned about a bean of `cls` that a processor uses."""
    file = folder / "app.yaml"
    file.write_text(
        f"iocflow: 1\nbeans: {{step: {{class: {__name__}.{cls.__name__}}}}}\n"
        f"processors: {{p: {{context: {__name__}.Order, sequence: [step]}}}}\n",
        encoding="utf-8",
    )
    return [one.what for one in check(file, allow=[__name__]).mistakes]


@pytest.mark.parametrize(
    "cls", [Sets, Counts, Unpacks, Annotates, Loops, Chains, Nested, Captured, OtherName], ids=lambda cls: cls.__name__
)
def test_writing_on_itself_is_told(cls: type, tmp_path: Path) -> None:
    """Each way of setting an attribute of the activity that all runs share is a warning with its name."""
    told = f"`{cls.__name__}.execute` sets `self.n`, and `step` is a singleton that all runs share"
    assert warned(cls, tmp_path) == [told]


NAMELESS = {
    "a dotted name": "sequence: [NAME, NAME]",
    "in a block": "sequence: [{parallel-split: {a: NAME, b: [NAME]}}]",
    "with options": "sequence: [{do: NAME, time-limit: 2s}]",
    "in a finally": "sequence: [same], finally: [NAME]",
    "an inner bean": "sequence: [!new {class: NAME}]",
    "held by a singleton": "sequence: [holder]",
}


@pytest.mark.parametrize("steps", NAMELESS.values(), ids=NAMELESS)
def test_beans_without_an_id_are_shared_too(steps: str, tmp_path: Path) -> None:
    """A bean that has no id of its own is made once for all runs as well, and told of once for each place."""
    file = tmp_path / "app.yaml"
    name = f"{__name__}.Sets"
    holder = f"beans: {{holder: {{class: {__name__}.Holder, args: {{held: !new {{class: {name}}}}}}}}}\n"
    file.write_text(
        f"iocflow: 1\n{holder if 'holder' in steps else f'beans: {{same: {{class: {__name__}.Reads}}}}'}\n"
        f"processors: {{p: {{context: {__name__}.Order, {steps.replace('NAME', name)}}}}}\n",
        encoding="utf-8",
    )
    told = [one.what for one in check(file, allow=[__name__]).mistakes if "sets `self" in one.what]
    assert set(told) == {"`Sets.execute` sets `self.n`, and `Sets` is a singleton that all runs share"}
    assert len(told) == 1


def test_what_a_prototype_holds_is_not_shared(tmp_path: Path) -> None:
    """A prototype's inner bean is made anew with it."""
    file = tmp_path / "app.yaml"
    held = f"{{class: {__name__}.Holder, args: {{held: !new {{class: {__name__}.Sets}}}}, scope: prototype}}"
    file.write_text(f"iocflow: 1\nbeans: {{holder: {held}}}\n", encoding="utf-8")
    assert not [one for one in check(file, allow=[__name__]).mistakes if "sets `self" in one.what]


@pytest.mark.parametrize(
    "cls", [SetsContext, CountsContext, UnpacksContext, SetsInside, Reads], ids=lambda cls: cls.__name__
)
def test_writing_elsewhere_is_not_told(cls: type, tmp_path: Path) -> None:
    """Setting what belongs to the run, or to another object, is no warning."""
    assert warned(cls, tmp_path) == []
