"""Every start-up check with the message that it prints: `mistakes/` has container files and what is wrong with them.

A case begins with `=== name`; below `---` stands a line for each mistake, its place first, and indented below it the
other places that it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iocflow.container import check, load
from iocflow.wiring import ConfigurationError, Mistake

CASES = Path(__file__).parent / "mistakes"


def cases() -> Iterator[pytest.ParameterSet]:
    """Yield each case: the container file and what is printed."""
    for file in sorted(CASES.glob("*.txt")):
        for case in file.read_text(encoding="utf-8").split("=== ")[1:]:
            name, _, rest = case.partition("\n")
            body, _, printed = rest.partition("\n---\n")
            yield pytest.param(body + "\n", printed.strip("\n").split("\n"), id=f"{file.stem}: {name}")


def lines(mistake: Mistake) -> Iterator[str]:
    """Yield a mistake as the cases write it."""
    yield str(mistake).removeprefix("app.yaml:")
    for place, text in mistake.related:
        if place.file == "app.yaml":
            yield f"    {place.line}: {text}"


@pytest.mark.parametrize(("body", "printed"), list(cases()))
def test_mistakes(body: str, printed: list[str], write: Callable[[str], Path], built: list[str]) -> None:
    """All mistakes are told in one go with place, remedy and other places; `load` tells the same and builds nothing."""
    path = write(body)
    checked = check(path)
    assert [line for mistake in checked.mistakes for line in lines(mistake)] == printed
    if checked.failed:
        with pytest.raises(ConfigurationError) as refused:
            load(path)
        assert refused.value.mistakes == checked.mistakes
        assert built == []
    else:
        with load(path) as app:
            assert app.warnings == checked.mistakes
