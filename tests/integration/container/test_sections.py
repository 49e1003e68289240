"""Sections that an installed distribution adds to container files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iocflow.container import BuildError, check, load

READER = """
from iocflow.activity import Activity
from tests.unit.container import parts

class Reader:
    def schema(self):
        return {"type": "object"}

    def read(self, section, scope):
        scope.unknown_keys(section, ("every", "sender", "does", "breaks"), "the alarm")
        every, sender, does = None, None, None
        if "every" in section.entries:
            every = scope.coerce(section.entries["every"], float, "`every` of the alarm")
        if "sender" in section.entries:
            sender = scope.reference(section.entries["sender"], parts.Sender, "`sender` of the alarm")
        if "does" in section.entries:
            does = scope.reference(section.entries["does"], (Activity, parts.Clock), "`does` of the alarm")
        parts.BUILT.append(f"{sorted(scope.beans)} {sorted(scope.processors)}")

        def build(wired):
            if "breaks" in section.entries:
                raise OSError("the alarm is broken")
            return every, wired[sender] if sender else None, wired[does] if does else None

        return build
"""


@pytest.fixture
def alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution that reads the section `alarm`."""
    site = tmp_path / "site"
    (site / "alarm-1.0.dist-info").mkdir(parents=True)
    (site / "alarm-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: alarm\nVersion: 1.0\n")
    points = "[iocflow.sections]\nalarm = alarm_of_tests:Reader\nlost = alarm_of_tests:Missing\n"
    (site / "alarm-1.0.dist-info" / "entry_points.txt").write_text(points)
    (site / "alarm_of_tests.py").write_text(READER)
    monkeypatch.syspath_prepend(str(site))


BEANS = """
beans: {smtp: {class: .Smtp, args: {host: h}}, note: {class: .Note}, clock: {class: .Clock}}
processors: {p: {context: .Order, sequence: [note]}}
"""


@pytest.mark.usefixtures("alarm")
def test_section_of_a_distribution(built: list[str], write: Callable[[str], Path]) -> None:
    """Its reader is lent the beans and processors; what its builder makes is the section, and what it names is used."""
    path = write(BEANS + "alarm: {every: 5m, sender: smtp, does: p}\n")
    found = check(path)
    assert built == ["['clock', 'note', 'smtp'] ['p']"]
    assert [str(one) for one in found.mistakes] == [
        "app.yaml:3:70: warning: bean `clock` is used by nothing in the file; remove it, or wire it"
    ]
    with load(path) as app:
        assert app.section("alarm") == (300.0, app["smtp"], app["p"])


@pytest.mark.usefixtures("alarm")
def test_mistakes_of_a_section(write: Callable[[str], Path]) -> None:
    """The scope notes misfits, unknown keys, unknown ids and beans of another type, with the words of the reader."""
    found = check(write(BEANS + "alarm: {evry: 3, every: [often], sender: clock, does: smtp}\nlost: {}\n"))
    assert [str(one).removeprefix("app.yaml:") for one in found.mistakes] == [
        "5:9: the alarm has no key `evry`; did you mean `every`?",
        "5:25: `every` of the alarm is a list, which does not fit `float`; it should be a valid number",
        "5:42: `sender` of the alarm wants `Sender`, and `clock` is a `Clock` without `send`;"
        " refer to a bean that fits",
        "5:55: `does` of the alarm wants `Activity | Clock`, and `smtp` is a `Smtp`; refer to a bean that fits",
        "6:1: the reader of section `lost` (alarm_of_tests:Missing) cannot be loaded: AttributeError: module"
        " 'alarm_of_tests' has no attribute 'Missing'; install a version of it that fits, or remove the section",
    ]
    assert (
        check(write(BEANS + "alarm: {every: !ref clock, sender: nobody}\n"))
        .rendered()
        .startswith("app.yaml:5:16: `every` of the alarm is a tagged value; write plain data that fits `float`")
    )


@pytest.mark.usefixtures("alarm")
def test_section_that_cannot_be_built(write: Callable[[str], Path], built: list[str]) -> None:
    """When a section cannot be built, the error names it with its place, and the beans are closed."""
    beans = BEANS.replace("args: {host: h}", "args: {host: h}, init: connect, close: disconnect")
    with pytest.raises(BuildError, match=r"app.yaml:5:1: `alarm` cannot be built: OSError: the alarm is broken"):
        load(write(beans + "alarm: {breaks: true}\n"))
    assert built[-1] == "disconnect h"
