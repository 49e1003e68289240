"""Profiles that are not chosen: checked as if each were, without what only the place where it is chosen can tell."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from iocflow.container import check, load
from tests.unit.container.parts import Clock, Note

BASE = """
allow: not_installed_either
values: {url: "sqlite:///var/app.db", step: note, port: 25, sheet: shop.xsl}
store: ${url}
beans:
  note: {class: .Note, on-error: {for: .LostError, retry: {attempts: 3}}}
  smtp: {class: .Smtp, args: {host: h, port: "${port}"}}
  send: {class: .Send, args: {delegate: !ref smtp}}
  range: {class: .more.Range, args: {low: 1}}
  base: {abstract: true, class: .Clock}
  clock: {parent: base}
  other: {class: .Note}
  last: {class: .Note, mode: transactional, time-limit: 1s}
processors:
  p: {context: .stored.Buying, sequence: [note, other], on-error: {for: .LostError, then: {goto: other}}, durable: true}
  q: {context: .Order, exclusive-choice: {note: {else: send}, send: end}}
  r: {context: .stored.Buying, sequence: [last], durable: true}
launchers:
  often: {processor: p, every: 5s}
"""
PROFILE = """
profiles:
  prod:
    values: {url: "postgresql://${env:NO_SUCH_USER}@db/app", step: "${env:NO_SUCH_STEP}", port: "${secret:no-such}"}
    beans:
      note: {class: .not_installed.Note, on-error: {for: [.not_installed.NoteError], then: stop}}
      smtp: {class: not_installed_either.Smtp, args: {anything: "${env:NO_SUCH_HOST}"}, init: connect, close: hang_up}
      range: {class: .more.Range, args: {low: 9, high: 1}}
      clock: {parent: "${env:NO_SUCH_PARENT}"}
      last: {class: .Note, mode: transactional, time-limit: "${env:NO_SUCH_LIMIT}"}
    processors:
      p:
        context: .not_installed.Order
        sequence: [note, .not_installed.Step, {for-each: items, as: item, do: other}, "${step}"]
        on-error: {for: .not_installed.PError, then: {goto: step}}
      q: {context: .Order, exclusive-choice: .not_installed.Decide, routes: {a: note, b: .not_installed.Other}}
    launchers:
      often: {processor: p, every: "${env:NO_SUCH_PACE}", jitter: "${env:NO_SUCH_JITTER}"}
"""


def test_another_place_may_have_what_is_missing_here(
    write: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables, secrets, modules and libraries that are not here are no mistakes of a profile that is not chosen."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    before = set(sys.modules)
    assert [str(one) for one in check(write(BASE + PROFILE)).mistakes if not one.warning] == []
    assert not any("not_installed" in name for name in set(sys.modules) - before)


def test_the_same_profile_is_a_mistake_where_it_is_chosen(write: Callable[[str], Path]) -> None:
    """Chosen, it needs all of that."""
    found = [one.what for one in check(write(BASE + PROFILE), profiles=["prod"]).mistakes if not one.warning]
    for missing in ("NO_SUCH_USER", "no-such", "not_installed", "not_installed_either", "9 is more than 1"):
        assert any(missing in what for what in found), missing
    assert not any("with profile" in what for what in found)


OTHER = """
profiles:
  a: {beans: {smtp: {class: .Clock}}}
  b: {beans: {note: {class: .Clock}}, values: {port: x}}
"""
LIGHT = (
    BASE.replace("durable: true", "max-steps: 9").replace("store: ${url}\n", "").replace("mode: transactional, ", "")
)


@pytest.mark.parametrize(
    ("chosen", "told"),
    [([], {"`a`", "`b`"}), (["a"], {"", "`b`"}), (["b"], {"`a`", ""}), (["a", "b"], {""})],
)
def test_each_of_the_others_alone(write: Callable[[str], Path], chosen: list[str], told: set[str]) -> None:
    """What is chosen is checked together, and each other profile by itself, whichever are chosen."""
    path = write(LIGHT + OTHER)
    found = [one.what for one in check(path, profiles=chosen).mistakes if not one.warning]
    assert {
        what.partition(": ")[0].removeprefix("with profile ") if what.startswith("with") else "" for what in found
    } == told


def test_overridden_beans_are_not_what_a_profile_makes_of_them(write: Callable[[str], Path]) -> None:
    """An override stands in every profile, so that a test can load a file whatever a profile has in that place."""
    text = LIGHT + "profiles:\n  b: {beans: {note: {class: .Clock}}}\n"
    path = write(text)
    assert check(path).failed
    with load(path, override={"note": Note()}) as app:
        assert isinstance(app["clock"], Clock)


def test_what_the_caller_gives_is_for_what_is_chosen(write: Callable[[str], Path]) -> None:
    """A value that is given, and is a mapping in another profile, is no mistake of that one."""
    path = write(LIGHT + "profiles: {b: {values: {sheet: {one: x}}}}\n")
    assert not check(path, values={"sheet": "other.xsl"}).failed
