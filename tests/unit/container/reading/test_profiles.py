"""Profiles replace whole definitions that exist, and nothing else; values come from files, profiles and the caller."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from iocflow.container.reading.document import Document

Read = Callable[..., Document]
Told = Callable[[Document], list[str]]
Plain = Callable[..., Any]

BASE = """
values: {db: prod.db, smtp: {host: mx, port: 25}}
beans: {sender: {class: .Smtp, args: {host: "${smtp.host}"}}, other: {class: .Other}}
processors: {run: {sequence: [sender]}}
launchers: {poll: {every: 60s}}
observers: [metrics]
defaults: {on-error: [log]}
"""


def test_a_profile_replaces_whole_definitions(read: Read, told: Told, plain: Plain) -> None:
    """What a chosen profile says takes the place of a whole definition, in its place; values are merged."""
    document = read(
        f"{BASE}profiles:\n  test:\n    beans: {{sender: {{class: .Fake}}}}\n    values: {{smtp: {{host: local}}}}\n"
        "    launchers: {poll: {every: 1s}}\n    observers: [nothing]\n    defaults: {on-error: [fail]}\n",
        profiles=["test"],
    )
    assert told(document) == []
    assert plain(document.sections["beans"]) == {"sender": {"class": ".Fake"}, "other": {"class": ".Other"}}
    assert plain(document.sections["launchers"]) == {"poll": {"every": "1s"}}
    assert plain(document.sections["observers"]) == ["nothing"]
    assert plain(document.defaults) == {"on-error": ["fail"]}


def test_a_profile_that_is_not_chosen_changes_nothing(read: Read, plain: Plain) -> None:
    """Without its name the files say what they say."""
    profiles = "profiles: {test: {beans: {sender: 1}, values: {db: x}}}\n"
    assert plain(read(BASE + profiles).sections["beans"]) == plain(read(BASE).sections["beans"])


def test_later_profiles_win(read: Read, told: Told, plain: Plain) -> None:
    """Two chosen profiles are applied in the order in which they are given."""
    text = f"{BASE}profiles: {{a: {{beans: {{other: 1}}}}, b: {{beans: {{other: 2}}}}}}\n"
    for names, value in (("ab", 2), ("ba", 1), ("aba", 2)):
        document = read(text, profiles=list(names))
        assert told(document) == []
        assert plain(document.sections["beans"])["other"] == value


def test_a_bean_can_stand_in_for_a_processor(read: Read, told: Told, plain: Plain) -> None:
    """Beans and processors share their ids, so a profile may put a fake activity where a processor was."""
    document = read(f"{BASE}profiles: {{t: {{beans: {{run: {{class: .Fake}}}}}}}}", profiles=["t"])
    assert told(document) == []
    assert plain(document.sections["processors"]) == {}
    assert plain(document.sections["beans"])["run"] == {"class": ".Fake"}


def test_profiles_of_imported_files(read: Read, told: Told, plain: Plain) -> None:
    """A profile may be spread over files; it replaces what any file defines."""
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: a.yaml\nbeans: {x: 1}\nprofiles: {t: {beans: {y: 3}, values: {v: 4}}}\n",
            "a.yaml": "iocflow: 1\nbeans: {y: 1}\nvalues: {v: 1, w: 1}\n"
            "profiles: {t: {beans: {x: 2}, values: {v: 3, w: 3}}}\n",
        },
        profiles=["t"],
    )
    assert told(document) == []
    assert plain(document.sections["beans"]) == {"y": 3, "x": 2}


@pytest.mark.parametrize("chosen", [[], ["test"]])
def test_mistakes(read: Read, told: Told, chosen: list[str]) -> None:
    """A profile that replaces nothing is a mistake, chosen or not."""
    text = """
values: {v: 1, t: {u: 1}}
beans: {sender: 1}
launchers: {poll: 1}
daemon: {grace: 1s}
profiles:
  test:
    beans: {sendr: 1}
    values: {w: 1, t: {x: 1}}
    launchers: {pol: 1}
    package: x
    bean: 1
    observers: [x]
    daemon: 5
  other: 5
  empty:
  third: {values: 3, beans: []}
"""
    assert told(read(text, profiles=chosen)) == [
        "app.yaml:9:13: profile `test` replaces id `sendr`, which is not defined; did you mean `sender`?",
        "app.yaml:10:14: profile `test` replaces the value `w`, which is not defined; known: t, t.u, v",
        "app.yaml:10:24: profile `test` replaces the value `t.x`, which is not defined; did you mean `t.u`?",
        "app.yaml:11:17: profile `test` replaces `pol` of `launchers`, which is not defined; did you mean `poll`?",
        "app.yaml:12:5: `package:` cannot stand in a profile; a profile replaces definitions and values",
        "app.yaml:13:5: unknown section `bean` in a profile; did you mean `beans`?",
        "app.yaml:14:5: profile `test` replaces section `observers`, which is not defined; define it first",
        "app.yaml:15:13: profile `test` replaces the mapping `daemon` by something else; write a mapping"
        " [app.yaml:6:1: defined here]",
        "app.yaml:16:10: profile `other` must be a mapping; write `key: value` lines, indented below it",
        "app.yaml:18:19: `values:` of profile `third` must be a mapping; write `key: value` lines, indented below it",
        "app.yaml:18:29: `beans:` of profile `third` must be a mapping; write `key: value` lines, indented below it",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profiles: {test: , prod: }", "app.yaml:2:1: unknown profile `tset`; did you mean `test`?"),
        ("", "app.yaml:1:1: unknown profile `tset`; the files have no `profiles:`"),
    ],
)
def test_unknown_profiles(read: Read, told: Told, text: str, message: str) -> None:
    """A chosen profile must exist."""
    assert told(read(text, profiles=["tset"])) == [message]


def test_a_profile_says_a_thing_once(read: Read, told: Told) -> None:
    """One profile that defines an id in two files is a mistake with both places."""
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: a.yaml\nbeans: {x: 1}\nprofiles: {t: {beans: {x: 2}}}\n",
            "a.yaml": "iocflow: 1\nprofiles: {t: {processors: {x: 3}}}\n",
        }
    )
    assert told(document) == [
        "app.yaml:4:24: id `x` is defined twice in profile `t`; rename or remove one;"
        " only a profile replaces a definition"
        " [a.yaml:2:29: first here]"
    ]


def test_placeholders_of_a_profile_that_is_not_chosen(read: Read, told: Told) -> None:
    """They are checked as far as the environment does not matter: what runs elsewhere need not be complete here."""
    text = """
values: {k: 1}
beans: {x: 1}
profiles:
  prod:
    values: {k: '${nope}'}
    beans: {x: ['${secret:pw}', '${env:DB}', '${k}', '${zzz:1}', '${a', {y: '${kk}'}]}
"""
    assert told(read(text)) == [
        "app.yaml:7:17: with profile `prod`: undefined value `nope`; known: k",
        "app.yaml:8:66: with profile `prod`: `${a` is not closed; end it with `}`; a literal `${` is written `$${`",
        "app.yaml:8:77: with profile `prod`: undefined value `kk`; did you mean `k`?",
    ]
    assert len(told(read(text, profiles=["prod"]))) == 5


# Values.

VALUES = """values: {db: file.db, smtp: {host: mx, port: 25}, tags: [a]}
beans:
  b: {db: '${db}', host: '${smtp.host}', port: '${smtp.port}', tags: '${tags}'}
"""


def test_the_root_file_wins(read: Read, told: Told, plain: Plain) -> None:
    """The values of imported files are defaults of those that import them, key by key."""
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: [a.yaml, b.yaml]\nvalues: {smtp: {host: app}}\n"
            "beans: {x: ['${smtp.host}', '${smtp.port}', '${smtp.tls}', '${only}']}\n",
            "a.yaml": "iocflow: 1\nvalues: {smtp: {host: a, port: 1}, only: a}\n",
            "b.yaml": "iocflow: 1\nimports: c.yaml\nvalues: {smtp: {port: 2}}\n",
            "c.yaml": "iocflow: 1\nvalues: {smtp: {port: 3, tls: c}}\n",
        }
    )
    assert told(document) == []
    assert plain(document.sections["beans"]) == {"x": ["app", 2, "c", "a"]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"db": "x"}, {"db": "x"}),
        ({"smtp.port": "2525"}, {"port": "2525"}),
        ({"smtp.port": 2525, "smtp.host": None}, {"port": 2525, "host": None}),
        ({"smtp": {"port": 1.5, "host": True}}, {"port": 1.5, "host": True}),
        ({"db": Path("var") / "x.db"}, {"db": str(Path("var") / "x.db")}),
        ({"tags": ["b", 1]}, {"tags": ["b", 1]}),
        ({"tags": "text"}, {"tags": "text"}),
        ({"db": "${smtp.host} $${x} {} : # [ \n"}, {"db": "${smtp.host} $${x} {} : # [ \n"}),
        ({"db": "null"}, {"db": "null"}),
        ({"db": ""}, {"db": ""}),
    ],
)
def test_values_of_the_caller(
    read: Read, told: Told, plain: Plain, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    """What the caller gives wins, by dotted key or nested, and is taken as it is."""
    document = read(VALUES, values=given)
    assert told(document) == []
    bean = plain(document.sections["beans"])["b"]
    assert bean == {"db": "file.db", "host": "mx", "port": 25, "tags": ["a"], **expected}


def test_the_caller_wins_over_profiles(read: Read, plain: Plain) -> None:
    """The order is: imported files, root file, profiles, caller."""
    document = read(
        f"{VALUES}profiles: {{t: {{values: {{db: t, smtp: {{host: t}}}}}}}}", profiles=["t"], values={"db": "x"}
    )
    assert plain(document.sections["beans"])["b"] == {"db": "x", "host": "t", "port": 25, "tags": ["a"]}


def test_a_value_that_is_set_is_not_resolved(read: Read, told: Told, plain: Plain) -> None:
    """A missing secret is no mistake when the caller gives the value instead."""
    document = read("values: {pw: '${secret:pw}'}\nbeans: {b: '${pw}'}", values={"pw": "x"})
    assert told(document) == []
    assert plain(document.sections["beans"]) == {"b": "x"}


KINDS = "give a text, a number, true or false, a path, or a list of those"


@pytest.mark.parametrize(
    ("key", "value", "column", "message"),
    [
        ("smtp.hots", "x", 23, "no value `smtp.hots` to set; did you mean `smtp.host`?"),
        ("zz", "x", 1, "no value `zz` to set; known: db, smtp, smtp.host, smtp.port, tags"),
        ("db.x", "x", 10, "no value `db.x` to set; did you mean `db`?"),
        ("smtp", "x", 23, "the value `smtp` to set is a mapping; set one of its own: `smtp.host`, `smtp.port`"),
        ("db", {1}, 10, f"the value `db` to set is of type set; {KINDS}"),
        ("db", Decimal(1), 10, f"the value `db` to set is of type Decimal; {KINDS}"),
        ("tags", [object()], 51, f"the value `tags` to set is of type list; {KINDS}"),
        (5, "x", 1, "no value `5` to set; known: db, smtp, smtp.host, smtp.port, tags"),
    ],
)
def test_values_that_cannot_be_set(read: Read, told: Told, key: Any, value: Any, column: int, message: str) -> None:
    """The caller can set values that exist; told at what there is of the key, else at `values:`."""
    assert told(read(VALUES, values={key: value})) == [f"app.yaml:2:{column}: {message}"]


def test_setting_without_values(read: Read, told: Told) -> None:
    """Without any values there is nothing to set."""
    assert told(read("", values={"x": 1})) == ["app.yaml:1:1: no value `x` to set; there is none to choose from"]


def test_keys_of_values(read: Read, told: Told) -> None:
    """A value must be one that a placeholder can name, and plain data."""
    text = "values: {a.b: 1, 'x y': 2, env: 1, secret: 1, here: 2, k: !ref x, l: [!new {}], deep: {c d: 1}}"
    assert told(read(text)) == [
        "app.yaml:2:10: no placeholder can name the value `a.b`; nest it: `smtp: {host: …}` is `${smtp.host}`",
        "app.yaml:2:18: no placeholder can name the value `x y`; use letters, digits, `-` and `_`",
        "app.yaml:2:28: the value `env` cannot be named `env`; placeholders use that word",
        "app.yaml:2:36: the value `secret` cannot be named `secret`; placeholders use that word",
        "app.yaml:2:47: the value `here` cannot be named `here`; placeholders use that word",
        "app.yaml:2:59: the tag `!ref` in `values:`; values are plain data; write it where it is used",
        "app.yaml:2:71: the tag `!new` in `values:`; values are plain data; write it where it is used",
        "app.yaml:2:88: no placeholder can name the value `c d`; use letters, digits, `-` and `_`",
    ]
