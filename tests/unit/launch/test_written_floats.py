"""The digits of the numbers in a JSON seed, from every place that one comes from to the field that wants them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypedDict

import pytest

from iocflow import Activity, ProcessContext, SequenceProcessor
from iocflow.cli.seeds import parse_json
from iocflow.durable.contexts.codec import ContextCodec
from iocflow.errors import SeedError
from iocflow.events.envelope import UnreadableEventError, read_event
from iocflow.launch.contract import Launch
from iocflow.wiring.json_floats import WrittenFloat

LONG = "12345678901234567.89"


class Keys(TypedDict):
    """Keys likewise."""

    exact: Decimal
    about: float
    open: Any


@dataclass(frozen=True)
class Part:
    """A frozen data class likewise."""

    exact: Decimal
    about: float
    either: float | Decimal = 0.0
    open: Any = None
    rows: list[tuple[Decimal, float]] = field(default_factory=list)
    keys: Keys | None = None


class Typed(ProcessContext):
    """Has a seed with types."""

    seed_data: Part


class Untyped(ProcessContext):
    """Has any seed."""


@dataclass
class Whole:
    """Has nothing that cannot be stored."""

    exact: Decimal
    about: float
    some: list[Decimal]


class Kept(ProcessContext):
    """Has a seed that can be stored."""

    seed_data: Whole


class Own(ProcessContext):
    """Takes its seed in its own way."""

    seed_data: Part

    def set_seed_data(self, seed_data: Any) -> None:
        self.seen = seed_data


def from_line(text: str) -> Any:
    return parse_json("--seed", text)


def from_event(text: str) -> Any:
    return read_event(f'{{"data": {text}}}'.encode(), source="folder:in", id="a").data


def seeded(context: type[Any], seed: Any) -> Any:
    """The context of a run that was launched with the seed."""
    run = Launch(SequenceProcessor([], context=context), "command line", seed).perform()
    return run.raise_for_error().context


def floats_in(value: Any) -> list[type]:
    """The classes of all numbers in a value that are floats."""
    if isinstance(value, float):
        return [type(value)]
    if isinstance(value, Part):
        value = vars(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [kind for part in parts for kind in floats_in(part)]


@pytest.fixture(params=[from_line, from_event])
def read(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """What reads JSON: the command line's seeds, and events."""
    found: Callable[[str], Any] = request.param
    return found


NESTED = f"""{{"exact": {LONG}, "about": {LONG}, "either": {LONG}, "open": [{{"x": {LONG}}}],
 "rows": [[{LONG}, {LONG}]], "keys": {{"exact": 30.10, "about": 30.10, "open": {LONG}}}}}"""


def test_a_decimal_has_the_digits_that_were_written(read: Callable[[str], Any]) -> None:
    """In data classes, rows and typed dicts; where a float or anything is wanted, it is a plain float."""
    part = seeded(Typed, read(NESTED)).seed_data
    assert (str(part.exact), str(part.rows[0][0]), str(part.keys["exact"])) == (LONG, LONG, "30.10")
    about = float(LONG)
    assert (part.about, part.either, part.open, part.rows[0][1]) == (about, about, [{"x": about}], about)
    assert part.keys["open"] == about
    assert set(floats_in(part)) == {float}


def test_an_untyped_seed_has_plain_floats(read: Callable[[str], Any]) -> None:
    """Without an annotation nothing is to be seen of how a number was written."""
    assert seeded(Untyped, read(NESTED)).seed_data == json.loads(NESTED)
    assert set(floats_in(seeded(Untyped, read(NESTED)).seed_data)) == {float}
    assert type(seeded(Untyped, read(LONG)).seed_data) is float


def test_a_context_with_a_seeding_of_its_own_gets_the_document(read: Callable[[str], Any]) -> None:
    """It is not fitted to an annotation that this context may not mean; the floats are plain."""
    seen = seeded(Own, read(NESTED)).seen
    assert seen == json.loads(NESTED)
    assert set(floats_in(seen)) == {float}


def test_a_seed_that_does_not_fit_is_told_of_by_the_run(read: Callable[[str], Any]) -> None:
    """The message is that of any other seed."""
    run = Launch(SequenceProcessor([], context=Typed), "command line", read(f'{{"exact": {LONG}}}')).perform()
    assert str(run.error) == "seed.about is missing"


@pytest.mark.parametrize("number", ["1e999", "-1e999", "123456789e400"])
def test_a_number_that_no_float_can_hold_is_refused_in_events(number: str) -> None:
    """It would be infinite, and infinity is no JSON."""
    with pytest.raises(UnreadableEventError, match=f"{number} is too large for a number; write it as a string"):
        from_event(f'{{"x": {number}}}')


def test_stored_seeds_keep_the_digits(read: Callable[[str], Any]) -> None:
    """What is submitted, as it was read, is stored with all digits of a decimal, and floats as such."""
    codec = ContextCodec(Kept)
    stored = codec.read_seed(codec.write_seed(read(f'{{"exact": {LONG}, "about": {LONG}, "some": [30.10]}}')))
    assert (str(stored.exact), stored.about, str(stored.some[0])) == (LONG, float(LONG), "30.10")
    assert type(stored.about) is float


def test_only_what_a_float_would_lose_is_kept() -> None:
    """A number that a float writes in the same way is a plain one from the beginning."""
    assert [type(one) for one in from_line("[30.28, 1.5, 30.10, 1e2]")] == [float, float, WrittenFloat, WrittenFloat]


@dataclass
class Tree:
    """Holds its like."""

    inner: Tree | None = None


class Woods(ProcessContext):
    seed_data: Tree


@pytest.mark.parametrize("deep", [101, 300, 490, 960])
def test_a_seed_that_is_nested_too_deeply(deep: int) -> None:
    """A seed of at most 100 levels becomes data classes; a deeper one, and one that holds itself, is a bad seed."""
    processor = SequenceProcessor([Nothing()], context=Woods)
    for levels in (100, deep):
        seed: Any = None
        for _ in range(levels):
            seed = {"inner": seed}
        if levels == 100:
            assert Launch(processor, "test", seed).perform().raise_for_error().outcome.name == "COMPLETED"
        else:
            with pytest.raises(SeedError, match="seed: nested more than 100 levels deep"):
                Launch(processor, "test", seed).perform()
    endless: Any = {}
    endless["inner"] = [endless, endless]
    with pytest.raises(SeedError, match="seed: nested more than 100 levels deep"):
        Launch(processor, "test", endless).perform()


class Nothing(Activity[ProcessContext]):
    """Does nothing."""

    def execute(self, context: ProcessContext) -> None: ...
