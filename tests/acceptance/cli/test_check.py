"""`iocflow check` from the outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def broken(shop: Path) -> Path:
    """Return the shop's file with two mistakes, in lines 6 and 14."""
    text = shop.read_text(encoding="utf-8").replace(".Greet,", ".Gret,").replace("[stop, say]", "[stop, sya]")
    shop.write_text(text, encoding="utf-8")
    return shop


def test_summary_of_what_is_wired(iocflow: Any, shop: Path) -> None:
    """A right file leaves with 0, and a summary counts and lists what is wired."""
    done = iocflow("check", "shop.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shop.yaml: ok, 6 beans, 5 processors" in done.stdout
    assert "  failing   sequence  greet, fail, say" in done.stdout


def test_all_mistakes_at_once(iocflow: Any, broken: Path) -> None:
    """A wrong file leaves with 3; every mistake is printed with its place, its line and a caret."""
    done = iocflow("check", "shop.yaml")
    assert done.returncode == 3
    assert "shop.yaml:6:" in done.stdout
    assert "shop.yaml:14:" in done.stdout
    assert "did you mean `say`?" in done.stdout
    assert "     6 |   greet: {class: .Gret, args:" in done.stdout
    assert "^" in done.stdout
    assert ": ok" not in done.stdout
    assert done.stderr == ""


def test_mistakes_as_json(iocflow: Any, broken: Path) -> None:
    """--json tells the same to a program: each mistake with file, line, column, what and remedy."""
    done = iocflow("check", "shop.yaml", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 3
    assert report["ok"] is False
    errors = [mistake for mistake in report["mistakes"] if not mistake["warning"]]
    assert [(mistake["file"], mistake["line"]) for mistake in errors] == [("shop.yaml", 6), ("shop.yaml", 14)]
    assert errors[1]["remedy"] == "did you mean `say`?"


def test_summary_as_json(iocflow: Any, shop: Path) -> None:
    """--json of a right file holds what is wired."""
    done = iocflow("check", "shop.yaml", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["mistakes"]) == (0, True, [])
    assert report["wired"]["processors"]["greeting"]["steps"] == ["greet", "say"]


def test_nothing_is_constructed(iocflow: Any, shop: Path) -> None:
    """check calls no constructor of the file's classes."""
    module = shop.with_suffix(".py")
    text = module.read_text(encoding="utf-8")
    module.write_text(
        text.replace("self.word, self.token = word, token", "raise SystemExit('constructed')"), encoding="utf-8"
    )
    assert iocflow("check", "shop.yaml").returncode == 0
    assert "constructed" in iocflow("run", "shop.yaml", "greeting").stderr


def test_options_take_part(iocflow: Any, shop: Path) -> None:
    """A profile and a value that do not exist are mistakes of the call, reported like those of the file."""
    unknown = iocflow("check", "shop.yaml", "--profile", "lowd")
    assert unknown.returncode == 3
    assert "did you mean `loud`?" in unknown.stdout
    assert iocflow("check", "shop.yaml", "--profile", "loud").returncode == 0


def test_application_built_in_python(iocflow: Any, shop: Path) -> None:
    """`module:app` is checked by building it."""
    done = iocflow("check", "shop:app")
    assert done.returncode == 0, done.stderr
    assert "shop:app: ok, 1 processor\n  greeting  sequence  say" in done.stdout
