"""Stored contexts that a changed class reads, upgrades or refuses."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from unit.durable.context_parts import Line, Order, order

from iocflow.context import ProcessContext
from iocflow.durable.contexts.codec import ContextCodec
from iocflow.durable.errors import ContextReadError, ContextTypeError


@dataclass
class Picky:
    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("value must not be below 0")
        if self.value > 9:
            raise LookupError("no such value")


class First(ProcessContext):
    seed_data: str
    price: float
    old: int


class Second(ProcessContext):
    version: ClassVar[int] = 2

    seed_data: int
    price: Decimal
    big: int

    @classmethod
    def upgrade(cls, data: dict[str, Any], version: int) -> dict[str, Any]:
        """Bring what version 0 or 1 stored to this version."""
        assert version < 2
        data.pop("old", None)
        if "price" in data:
            data["price"] = Decimal(str(data["price"]))
        if "seed_data" in data:
            data["seed_data"] = int(data["seed_data"])
        return data


class Third(ProcessContext):
    version = 3
    seed_data: None
    picky: Picky
    upgraded: ClassVar[Any] = None

    @classmethod
    def upgrade(cls, data: dict[str, Any], version: int) -> Any:
        """Do what the test says."""
        return cls.upgraded(data)


class Stuck(ProcessContext):
    version = 1
    seed_data: None


def unreadable(cls: type[ProcessContext], data: bytes) -> str:
    """Return why the class cannot read `data`; nothing of it is set then."""
    context = cls()
    with pytest.raises(ContextReadError) as caught:
        ContextCodec(cls).read(data, context)
    assert vars(context) == {}
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b'{"lines":[{"article":"a","price":"1"},{"article":1,"price":"1"}]}',
            ".lines[1].article: Expected `str`, got `int`",
        ),
        (b'{"lines":[{"article":"a"}]}', ".lines[0]: Object missing required field `price`"),
        (b'{"total":"abc"}', ".total: Invalid decimal string"),
        (b'{"note":null}', ".note: Expected `str`, got `null`"),
        (b'{"prices":{"a":{}}}', ".prices[...]: Expected `decimal`, got `object`"),
        (b'{"customer":{"name":1,"limit":"1"}}', ".customer: 1 validation error for Customer name Input should be"),
        (b'{"gone":1,"note":"x"}', ".gone: the class has no such field; keep it, or take it out in `upgrade`"),
        (b'{"note":"x","_version":1}', ": version 1 of the class wrote it, and this is none"),
        (b'{"note":"x","_version":"1"}', ": Expected `int`, got `str`"),
        (b"[]", ": Expected `object`, got `array`"),
        (b"", ": Input data was truncated"),
        (b'{"note":"\xff"}', ": Invalid UTF-8 encoded string"),
    ],
)
def test_what_the_class_cannot_read_is_refused(data: bytes, message: str) -> None:
    """The error names the field and the reason, and the context is left as it was."""
    assert unreadable(Order, data).startswith(f"a stored Order{message}")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"picky":{"value":-1},"_version":3}', ".picky: value must not be below 0"),
        (b'{"picky":{"value":10},"_version":3}', ": LookupError: no such value"),
        (b'{"_version":4}', ": version 4 of the class wrote it, and this is 3"),
    ],
)
def test_errors_of_the_class_are_told(data: bytes, message: str) -> None:
    """Whatever the classes raise while they are read is a context that cannot be read; so is one from the future."""
    assert unreadable(Third, data) == f"a stored Third{message}"


def test_no_version_costs_nothing() -> None:
    """A class without a version stores none; one with a version stores it beside the fields."""
    assert ContextCodec(Order).write(order(note="x")) == b'{"note":"x"}'
    second = Second()
    second.big = 1
    assert ContextCodec(Second).write(second) == b'{"big":1,"_version":2}'
    assert ContextCodec(Second).write(Second()) == b'{"_version":2}'


def test_older_contexts_are_upgraded() -> None:
    """What an older class stored is handed to `upgrade` as plain JSON, with integers of any size."""
    first = First()
    first.price, first.old = 0.1, 1
    second = Second()
    codec = ContextCodec(Second)
    codec.read(ContextCodec(First).write(first), second)
    assert vars(second) == {"price": Decimal("0.1")}
    codec.read(f'{{"big":{2**80},"_version":1}}'.encode(), second)
    assert second.big == 2**80
    read = Second()
    codec.read(codec.write(second), read)
    assert vars(read) == vars(second)


def test_older_seeds_are_upgraded() -> None:
    """A seed that waited while the class changed is upgraded as the context that has nothing else."""
    codec = ContextCodec(Second)
    assert codec.read_seed(ContextCodec(First).write_seed("17")) == 17
    assert codec.read_seed(codec.write_seed(18)) == 18
    with pytest.raises(ContextReadError, match="a stored Second: it has no seed_data"):
        codec.read_seed(b'{"_version":2}')


def test_identity_of_a_seed_leaves_the_version_out() -> None:
    """A seed that is submitted again after the class got a version is the same seed; another one is not."""

    class Later(First):
        version: ClassVar[int] = 1

    first, later = ContextCodec(First), ContextCodec(Later)
    assert first.write_seed("17") != later.write_seed("17")
    assert first.seed_identity(first.write_seed("17")) == later.seed_identity(later.write_seed("17"))
    assert later.seed_identity(later.write_seed("17")) != later.seed_identity(later.write_seed("18"))


@pytest.mark.parametrize(
    ("upgraded", "message"),
    [
        (lambda data: data["missing"], ": its `upgrade` from version 1 failed: KeyError: 'missing'"),
        (lambda data: None, ": its `upgrade` from version 1 returned NoneType, not a dict"),
        (lambda data: {"gone": 1}, ".gone: the class has no such field; keep it, or take it out in `upgrade`"),
        (lambda data: {"picky": {"value": "x"}}, ".picky.value: Expected `int`, got `str`"),
        (lambda data: {"picky": object()}, ": object is no data that can be stored"),
    ],
)
def test_failed_upgrades_are_told(monkeypatch: pytest.MonkeyPatch, upgraded: Any, message: str) -> None:
    """An `upgrade` that raises, or returns what the class cannot read, is a context that cannot be read."""
    monkeypatch.setattr(Third, "upgraded", staticmethod(upgraded))
    assert unreadable(Third, b'{"_version":1}') == f"a stored Third{message}"


def test_older_contexts_need_an_upgrade() -> None:
    """A class with a version and no `upgrade` refuses what older ones stored."""
    assert unreadable(Stuck, b"{}") == "a stored Stuck: version 0 of the class wrote it; give the class an `upgrade`"


def test_versions_are_numbers() -> None:
    """A version that is no number is refused at load; a field of that name is a field."""

    class Textual(ProcessContext):
        version = "2"
        seed_data: None

    class Versioned(ProcessContext):
        seed_data: None
        version: str = "2"
        upgrade: str = ""

    with pytest.raises(ContextTypeError, match=r"Textual.version is '2'; it must be a number, 1 or more"):
        ContextCodec(Textual)
    context = Versioned()
    context.version = "3"
    assert ContextCodec(Versioned).write(context) == b'{"version":"3"}'


def test_defaults_fill_what_older_records_lack() -> None:
    """A field that was added to a stored dataclass with a default has it when an older record is read."""
    context = Order()
    ContextCodec(Order).read(b'{"lines":[{"article":"a","price":"1.0"}]}', context)
    assert context.lines == [Line("a", Decimal("1.0"))]
