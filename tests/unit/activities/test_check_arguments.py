"""`check_arguments`: what constructors refuse is known while a file is checked, in the same words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from iocflow import activities
from iocflow.activities import ApplyXslt, Database, PollQuery, RenderTemplate, SendMail, SmtpSender, WriteAudit
from iocflow.wiring import ChecksArguments

QUERY = {"database": "a.db", "query": "SELECT 1 AS id", "key": "id"}
MAIL = {"sender": "a@example.com"}

WRONG: list[tuple[Callable[..., Any], dict[str, Any], dict[str, str]]] = [
    (ApplyXslt, {"stylesheet": "none.xsl"}, {"stylesheet": "none.xsl:1: cannot read the stylesheet: No such file"}),
    (ApplyXslt, {"stylesheet": "broken.xsl"}, {"stylesheet": "broken.xsl:3: "}),
    (
        ApplyXslt,
        {"stylesheet": "none.xsl", "source": "a b", "params": {"x": "_y"}},
        {"source": "'a b'", "params": "_y"},
    ),
    (RenderTemplate, {"target": "x", "html": False, "template": "a\n{{ }}"}, {"template": "template:2: Expected"}),
    (RenderTemplate, {"target": "x", "html": True, "file": "none.txt"}, {"file": "none.txt:1: cannot read"}),
    (
        RenderTemplate,
        {"target": "x.", "html": True, "file": "a", "template": "b"},
        {"target": "'x.'", "template": "either"},
    ),
    (RenderTemplate, {"target": "x", "html": True}, {"template": "give either template or file"}),
    (SmtpSender, {"host": "h", "user": "u"}, {"password": "a login needs user and password"}),
    (SmtpSender, {"host": "h", "password": "p"}, {"user": "a login needs user and password"}),
    (SmtpSender, {"host": "h", "port": 99999}, {"port": "there is no port 99999; write 1 to 65535"}),
    (SmtpSender, {"host": "", "timeout": 0.0}, {"host": "a server has a name", "timeout": "more than 0 seconds"}),
    (SmtpSender, {"host": "h", "user": "u", "password": ""}, {"password": "a login needs user and password"}),
    (SmtpSender, {"host": "h", "user": "u", "password": "p", "tls": "off"}, {"tls": "never sent unencrypted"}),
    (
        SmtpSender,
        {"host": "h", "tls": "STARTTLS"},
        {"tls": "write starttls, implicit, if-offered or off, not 'STARTTLS'"},
    ),
    (SmtpSender, {"host": "h", "timeout": "30s"}, {"timeout": "write more than 0 seconds, as a number, not '30s'"}),
    (SmtpSender, {"host": "h", "headers": {"To": "x"}}, {"headers": "the header To is set by the mail itself"}),
    (SmtpSender, {"host": "h", "ca_file": "broken.xsl"}, {"ca_file": "no certificates that can be read"}),
    (PollQuery, {**QUERY, "key": "o.id", "table": ""}, {"key": "'o.id' cannot be a name", "table": "'' cannot be"}),
    (PollQuery, {**QUERY, "query": "DELETE FROM x", "batch": 0}, {"query": "a poll only reads", "batch": "at least 1"}),
    (PollQuery, {**QUERY, "database": "mysql://x"}, {"database": "only SQLite is opened by a URL"}),
    (WriteAudit, {"database": "a.db", "table": ""}, {"table": "'' cannot be a name in SQL"}),
    (WriteAudit, {"database": "", "item_column": "x y"}, {"database": "names no file", "item_column": "cannot be"}),
    (WriteAudit, {"database": "a.db", "values": {"a b": "x..y"}}, {"values": "a b"}),
    (WriteAudit, {"database": "a.db", "values": {"a": "item.name"}}, {"values": "`each` names no field"}),
    (WriteAudit, {"database": "a.db", "each": "-", "key": "1"}, {"each": "'-'", "key": "'1'"}),
    (Database, {"source": "a.db", "busy_timeout": "5s"}, {"busy_timeout": "as a number, not '5s'"}),
    (Database, {"source": ":memory:", "busy_timeout": -1.0}, {"source": "names no file", "busy_timeout": "0 seconds"}),
    (SendMail, {"sender": "fares", "reply_to": "a\nb"}, {"sender": "no mail address", "reply_to": "line break"}),
    (SendMail, {**MAIL, "text": "", "html": "", "subject": "."}, {"html": "no body", "subject": "'.'"}),
]

RIGHT: list[tuple[Any, dict[str, Any]]] = [
    (ApplyXslt, {"stylesheet": "good.xsl", "source": "seed_data.xml", "params": {"x": "text"}}),
    (RenderTemplate, {"target": "x", "html": True, "template": "{{ text }}"}),
    (SmtpSender, {"host": "h", "port": None, "user": "u", "password": "p", "headers": None, "ca_file": None}),
    (PollQuery, {**QUERY, "batch": 1}),
    (WriteAudit, {"database": "a.db", "values": None, "each": "", "key": ""}),
    (Database, {"source": "sqlite:///a.db"}),
    (SendMail, {**MAIL, "text": "", "html": "message", "reply_to": ""}),
]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a stylesheet that works and one that does not."""
    monkeypatch.chdir(tmp_path)
    sheet = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">{}\n</xsl:stylesheet>'
    (tmp_path / "good.xsl").write_text(sheet.format(""))
    (tmp_path / "broken.xsl").write_text(sheet.format('\n\n<xsl:template match="["/>'))


@pytest.mark.parametrize(("kind", "arguments", "expected"), WRONG)
def test_what_constructors_refuse_is_told(kind: Any, arguments: dict[str, Any], expected: dict[str, str]) -> None:
    """Every complaint names its parameter, all of them come at once, and the constructor refuses the same."""
    told = list(kind.check_arguments(arguments))
    for name, part in expected.items():
        assert any(where == name and part in what for where, what in told), told
    needed = {"delegate": object()} if kind is SendMail else {}
    with pytest.raises(Exception) as raised:  # noqa: PT011 (which one differs from case to case)
        kind(**arguments, **needed)
    assert any(str(raised.value).removeprefix(f"{name}: ") == what for name, what in told)


def is_wired(one: object) -> bool:
    """Return whether it is a class whose objects a file or a program makes."""
    return isinstance(one, type) and hasattr(one, "check_arguments")


def words_of(kind: Any) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a constructor that take one of some words, and the words."""
    hints = get_type_hints(kind.__init__)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


@pytest.mark.parametrize("kind", [one for one in vars(activities).values() if is_wired(one) and words_of(one)])
@pytest.mark.parametrize("turned", [str.upper, lambda word: f" {word}", lambda word: "bad", lambda word: "", len])
def test_a_word_that_is_not_known_is_refused(kind: Any, turned: Callable[[str], object]) -> None:
    """Nothing falls through to another meaning: whatever takes one of some words names all of them."""
    needed = {ApplyXslt: {"stylesheet": "good.xsl"}, Database: {"source": "a.db"}, SmtpSender: {"host": "h"}}[kind]
    for name, words in words_of(kind).items():
        for word in words:
            kind(**needed, **{name: word})
            with pytest.raises(ValueError, match=f"^{name}: write ") as raised:
                kind(**needed, **{name: turned(word)})
            assert all(each in str(raised.value) for each in words)
            assert [where for where, _ in kind.check_arguments({**needed, name: turned(word)})] == [name]


@pytest.mark.parametrize(("kind", "arguments"), RIGHT)
def test_what_constructors_take_is_no_complaint(kind: Any, arguments: dict[str, Any], tmp_path: Path) -> None:
    """Right arguments, and none known at all because all are references, give no complaint and leave nothing behind."""
    before = sorted(tmp_path.iterdir())
    assert isinstance(kind, ChecksArguments)
    assert [*kind.check_arguments(arguments), *kind.check_arguments({})] == []
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("kind", "arguments", "expected"), WRONG)
def test_another_constructor_s_arguments_are_not_judged(
    kind: Any, arguments: dict[str, Any], expected: dict[str, str]
) -> None:
    """A subclass with a constructor of its own may mean other things by the same names."""

    class Own(kind):  # type: ignore[misc]
        def __init__(self, **arguments: object) -> None:
            pass

    assert list(Own.check_arguments(arguments)) == []
    assert list(type("Same", (kind,), {}).check_arguments(arguments))  # type: ignore[attr-defined]
