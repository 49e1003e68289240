"""`!type` and `!provider` where a Protocol, a typed dict or a generic type is wanted: told with a place, not raised."""

from __future__ import annotations

from pathlib import Path

import pytest

from iocflow.container import check

MODULE = """
from __future__ import annotations
from typing import Any, Iterator, Literal, Protocol, TypedDict, runtime_checkable
from iocflow import Activity, ProcessContext

class Sender(Protocol):
    def send(self, to: str) -> None: ...
class Address(TypedDict):
    street: str
class Conn: ...
class Factory(Protocol):
    def __call__(self) -> Conn: ...
@runtime_checkable
class Named(Protocol):
    name: str
class Called:
    name = "called"
class Real:
    def send(self, to: str) -> None: ...
class Context(ProcessContext): ...
class Step(Activity[Context]):
    def __init__(self, given: {annotation}) -> None: ...
    def execute(self, context: Context) -> None: ...
"""
FILE = """
iocflow: 1
package: {module}
beans:
  conn: {{class: .Conn, scope: prototype}}
  step: {{class: .Step, args: {{given: {value}}}}}
  other: {{class: .Nope}}
processors:
  p: {{context: .Context, sequence: [step]}}
"""


@pytest.mark.parametrize(
    ("annotation", "value", "right"),
    [
        ("Sender", "!type .Real", False),
        ("Sender | None", "!type .Real", False),
        ("list[Sender]", "[!type .Real]", False),
        ("Address", "!type .Real", False),
        ("list[int]", "!type .Real", False),
        ("dict[str, Sender]", "!type .Real", False),
        ("tuple[int, str]", "!type .Real", False),
        ("Literal['a']", "!type .Real", False),
        ("Iterator[int]", "!type .Real", False),
        ("Factory", "!type .Real", False),
        ("Factory", "!type .Conn", True),
        ("Factory", "!provider conn", True),
        ("Sender", "!provider conn", False),
        ("Named", "!type .Called", True),
        ("type", "!type .Real", True),
        ("type[Real]", "!type .Real", True),
        ("Any", "!type .Real", True),
    ],
)
def test_a_class_or_provider_is_compared_with_any_annotation(
    annotation: str, value: str, right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fits or is refused at its place, and the other mistakes of the file are told beside."""
    module = f"classy_{abs(hash((annotation, value)))}"
    (tmp_path / f"{module}.py").write_text(MODULE.format(annotation=annotation))
    (tmp_path / "app.yaml").write_text(FILE.format(module=module, value=value))
    monkeypatch.syspath_prepend(tmp_path)
    mistakes = check(tmp_path / "app.yaml").mistakes
    assert [one.place.line for one in mistakes] == ([7] if right else [6, 7]), mistakes
