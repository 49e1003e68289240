"""Placeholders are replaced after parsing, in scalars only, so that a value never changes the structure."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocflow.container.nodes import Unresolved
from iocflow.container.reading.document import Document
from iocflow.container.reading.origins import Origins
from iocflow.container.reading.outside import Outside
from iocflow.container.reading.placeholders import Placeholder, PlaceholderError, parse_template
from iocflow.container.reading.resolving import Resolver
from iocflow.container.secrets import Secrets
from iocflow.wiring import Findings, Listing, Node, Place, Scalar, Table

Read = Callable[..., Document]
Told = Callable[[Document], list[str]]
Plain = Callable[..., Any]

VALUES = """
values:
  smtp: {host: mx, port: 25, tls: true, from: }
  tags: [a, 1]
  price: 1.50
  hex: 0x1F
  again: ${price}
  nested: ${smtp}
  literal: $${smtp.host}
beans:
  a: """


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${smtp.host}", "mx"),
        ("'${smtp.port}'", 25),
        ("${smtp.tls}", True),
        ("${smtp.from}", None),
        ("${price}", 1.5),
        ("${tags}", ["a", 1]),
        ("${smtp}", {"host": "mx", "port": 25, "tls": True, "from": None}),
        ("${nested.host}", "mx"),
        ("${nested}", {"host": "mx", "port": 25, "tls": True, "from": None}),
        ("http://${smtp.host}:${smtp.port}/${smtp.tls}${smtp.from}", "http://mx:25/true"),
        ("x${price}", "x1.50"),
        ("x${again}", "x1.50"),
        ("x${hex}", "x0x1F"),
        ("$${smtp.host}", "${smtp.host}"),
        ("a $${b} ${smtp.host} $$ $ }", "a ${b} mx $$ $ }"),
        ("$$${smtp.host}", "$${smtp.host}"),
        ("${literal}", "${smtp.host}"),
        ("x${literal}", "x${smtp.host}"),
        ("${zz:}", ""),
        ("${zz:5}", "5"),
        ("${zz:http://host:80/a:b}", "http://host:80/a:b"),
        ("${zz:C:\\dir}", "C:\\dir"),
        ("'${zz: spaced }'", " spaced "),
        ("${zz:${smtp.port}}", 25),
        ("${zz:${smtp.host}:${smtp.port}}", "mx:25"),
        ("${zz:${yy:deep}}", "deep"),
        ("${smtp.zz:none}", "none"),
        ("${smtp.host:other}", "mx"),
        ("${smtp.from:other}", None),
        ("${env:SET}", "env"),
        ("${env:EMPTY:other}", ""),
        ("${env:UNSET:other}", "other"),
        ("${env:UNSET:${smtp.port}}", 25),
        ("${env:INJECTED}", "x: [1]\n- ${smtp.host} !ref y"),
        ("${secret:smtp-password}", "hunter2"),
        ("${secret:none:}", ""),
        ("${secret:none:default}", "default"),
        ("!ref ${smtp.host}-bean", ("ref", "mx-bean")),
        ("!type ${env:SET}", ("type", "env")),
    ],
)
def test_values(read: Read, told: Told, plain: Plain, written: str, expected: object) -> None:
    """One placeholder alone keeps the type of what it stands for; in a longer text it is written as in its file."""
    environ = {"SET": "env", "EMPTY": "", "INJECTED": "x: [1]\n- ${smtp.host} !ref y", "SMTP_PASSWORD": "hunter2"}
    document = read(VALUES + written, environ=environ)
    assert told(document) == []
    found = plain(document.sections["beans"])["a"]
    assert found == expected
    assert type(found) is type(expected)


def test_messages_print_the_text(read: Read) -> None:
    """A replaced scalar keeps its place and the text of the file, so that no message prints the value."""
    node = read("values: {v: 5}\nbeans:\n  a: x${v}").sections["beans"]
    assert isinstance(node, Table)
    scalar = node.entries["a"]
    assert isinstance(scalar, Scalar)
    assert (scalar.value, scalar.text, str(scalar.place)) == ("x5", "x${v}", "app.yaml:4:6")


def test_here_is_the_folder_of_the_file(read: Read, plain: Plain, tmp_path: Path) -> None:
    """`${here}` is that of the file in which it stands, also when it comes through a value."""
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: parts/a.yaml\nbeans: {x: '${here}/x', y: '${part}'}\n",
            "parts/a.yaml": "iocflow: 1\nvalues: {part: '${here}'}\nbeans: {z: '${here}'}\n",
        }
    )
    assert plain(document.sections["beans"]) == {
        "z": str(tmp_path / "parts"),
        "x": str(tmp_path / "x"),
        "y": str(tmp_path / "parts"),
    }


LETTERS = ", of letters, digits, `_`, `-` and `.`"
LITERAL = "a literal `${` is written `$${`"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("'${smtp.hots}'", "undefined value `smtp.hots`; did you mean `smtp.host`?"),
        ("'${smtp.host.x}'", "undefined value `smtp.host.x`; did you mean `smtp.host`?"),
        ("'${nope:${zz}}'", None),
        ("'${env:FOO}'", "environment variable `FOO` is not set; set it, or give a default: `${env:FOO:…}`"),
        ("'${env:FARE_DB}'", "environment variable `FARE_DB` is not set; did you mean `FARES_DB`?"),
        (
            "'${secret:smtp-password}'",
            "secret `smtp-password` is neither in `SMTP_PASSWORD` of the environment nor in"
            " `/run/secrets/smtp-password`; provide one, or give a default: `${secret:smtp-password:}`",
        ),
        ("'a${'", f"`${{` is not closed; end it with `}}`; {LITERAL}"),
        ("'x ${a'", f"`${{a` is not closed; end it with `}}`; {LITERAL}"),
        ("'${a:${b}'", f"`${{a:${{b}}` is not closed; end it with `}}`; {LITERAL}"),
        ("'${a:b'", f"`${{a:b` is not closed; end it with `}}`; {LITERAL}"),
        ("'${}'", f"`${{}}` is no placeholder; write `${{key}}` or `${{key:default}}`; {LITERAL}"),
        ("'${ smtp }'", f"`${{ smtp }}` is no placeholder; write `${{key}}` or `${{key:default}}`; {LITERAL}"),
        ("'${VAR%%x}'", f"`${{VAR%%x}}` is no placeholder; write `${{key}}` or `${{key:default}}`; {LITERAL}"),
        ("'${a:${b:${c}}}'", "`${a:${b:${c}}}` nests placeholders more than once; name a value for the inner one"),
        ("'${a:{}}'", "a `{` in the default `{}}`; name a value that holds it"),
        ("'${a:$${b}}'", "`$${` in the default `$${b}}`; name a value that holds it"),
        ("'${env}'", "`${env}` without a name; write `${env:NAME}`"),
        ("'${env:}'", "`${env}` without a name; write `${env:NAME}`"),
        ("'${secret:../x}'", f"`../x` is no name of a secret; write `${{secret:NAME}}`{LETTERS}"),
        ("'${secret:../../x:y}'", f"`../../x` is no name of a secret; write `${{secret:NAME}}`{LETTERS}"),
        ("'${env:a b}'", f"`a b` is no name of an environment variable; write `${{env:NAME}}`{LETTERS}"),
        (
            "'${env:${smtp.host}}'",
            f"`${{smtp.host` is no name of an environment variable; write `${{env:NAME}}`{LETTERS}",
        ),
        ("'${secret::x}'", "`${secret}` without a name; write `${secret:NAME}`"),
        ("'${here:x}'", "`${here:x}` needs no default; write `${here}`"),
        (
            "'x${smtp}'",
            "`${smtp}` is a mapping, which cannot be part of a text; let it stand alone, or name a part of it:"
            " `${smtp.host}`",
        ),
        ("'x${tags}'", "`${tags}` is a list, which cannot be part of a text; let it stand alone"),
        ("!ref '${smtp}'", "`!ref ${smtp}` stands for no text; name a text [app.yaml:4:3: `smtp` is defined here]"),
        (
            "!ref '${smtp.port}'",
            "`!ref ${smtp.port}` stands for no text; name a text [app.yaml:4:20: `smtp.port` is defined here]",
        ),
    ],
)
def test_mistakes(read: Read, told: Told, written: str, message: str | None) -> None:
    """What a placeholder cannot be has a message, and the scalar is `Unresolved`."""
    environ = {"FARES_DB": "x"}
    column = 6
    if message is None:
        message = "undefined value `zz`; known: again, hex, literal, nested, price, smtp, smtp.from, smtp.host,"
        message += " smtp.port, smtp.tls, tags"
    document = read(VALUES + written, environ=environ)
    assert told(document) == [f"app.yaml:12:{column}: {message}"]
    beans = document.sections["beans"]
    assert isinstance(beans, Table)
    scalar = beans.entries["a"]
    assert isinstance(scalar, Scalar)
    assert isinstance(scalar.value, Unresolved)


def test_every_placeholder_of_a_text_is_reported(read: Read, told: Told) -> None:
    """One missing value does not hide another; unused values are resolved too."""
    assert told(read("values: {unused: '${a}${b}'}\nbeans: {x: '${c}', y: '${unused}'}")) == [
        "app.yaml:2:18: undefined value `a`; known: unused",
        "app.yaml:2:18: undefined value `b`; known: unused",
        "app.yaml:3:12: undefined value `c`; known: unused",
    ]


def test_without_values(read: Read, told: Told) -> None:
    """Where there are no values yet, the message shows how to define one."""
    assert told(read("beans: {x: '${a.b}'}")) == ["app.yaml:2:12: undefined value `a.b`; define it: `values: {a.b: …}`"]


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ("{a: '${b}', b: 'x${c}', c: '${a}'}", ["2:36: values refer to each other in a circle: a -> b -> c -> a"]),
        ("{a: '${a}'}", ["2:13: values refer to each other in a circle: a -> a"]),
        ("{a: {b: '${a}'}}", ["2:17: values refer to each other in a circle: a -> a.b -> a"]),
        ("{a: ['${a}']}", ["2:14: values refer to each other in a circle: a -> a[0] -> a"]),
        ("{a: '${b.c}', b: {c: '${a}'}}", ["2:30: values refer to each other in a circle: a -> b.c -> a"]),
    ],
)
def test_circles(read: Read, told: Told, values: str, messages: list[str]) -> None:
    """Values that need each other are a mistake with the way round, said once."""
    document = read(f"values: {values}\nbeans: {{x: '${{a}}'}}\n")
    assert told(document) == [f"app.yaml:{message}; give one of them a value" for message in messages]


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ("".join(f"  v{n}: x${{v{n + 1}}}\n" for n in range(2000)) + "  v2000: x\n", "refer to each other too deep"),
        (
            "".join(f"  v{n}: ${{v{n + 1}}}${{v{n + 1}}}\n" for n in range(60)) + "  v60: xxxxxxxxxx\n",
            "add up to more than 1,000,000 characters",
        ),
        (
            "".join(f"  v{n}: ['${{v{n + 1}}}', '${{v{n + 1}}}']\n" for n in range(60)) + "  v60: x\n",
            "repeat more than 100,000 nodes, from here on",
        ),
        (
            "".join(f"  v{n}: {'[' * 30}'${{v{n + 1}}}'{']' * 30}\n" for n in range(60)) + "  v60: x\n",
            "more than 64 deep",
        ),
    ],
)
def test_explosions(read: Read, told: Told, values: str, part: str) -> None:
    """Values that would grow without measure are refused at once, without a crash."""
    document = read(f"values:\n{values}beans: {{x: '${{v0}}'}}\n")
    assert any(part in message for message in told(document))


@pytest.mark.parametrize("seed", range(30))
def test_a_value_never_changes_the_structure(read: Read, plain: Plain, seed: int) -> None:
    """Whatever text a variable holds, it arrives as that very text, and everything else stays as it was."""
    letters = random.Random(seed)
    nasty = ["{", "}", "[", "]", ":", ": ", ",", "#", " #", "\n", "- ", "!ref x", "&a", "*a", "${v}", "$${", "'", '"']
    nasty += ["true", "null", "<<", "\t", "%", "@", "|", ">", "?", "\\", "\0", "\u2028", "010", "--- ", "!!python/x:y"]
    texts = ["".join(letters.choices(nasty, k=letters.randrange(8))) for _ in range(3)]
    environ = dict(zip(("A", "B", "C"), texts, strict=True))
    document = read(
        "values: {v: '${env:A}', w: {x: '${env:B}'}}\n"
        "beans: {k: ['${v}', {deep: '<${w.x}>'}, '${env:C}'], p: '${w}', q: '${zz:${env:A}}'}\n",
        environ=environ,
    )
    assert document.findings.mistakes == []
    a, b, c = texts
    assert plain(document.sections["beans"]) == {"k": [a, {"deep": f"<{b}>"}, c], "p": {"x": b}, "q": a}


def test_nodes_without_placeholders_are_kept(read: Read) -> None:
    """Reading is quick as only what changes is made anew."""
    findings = Findings()
    place = Place("f", 1, 1)
    values, outside = Table(place, {}, {}), Outside({}, Secrets(), findings)
    resolver = Resolver(values, {"f": "/"}, outside, Origins(values, (), outside), findings, findings)
    same: Node = Table(place, {"a": Listing(place, (Scalar(place, "x", "x"),))}, {"a": place})
    assert resolver.resolve(same) is same


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("plain", ("plain",)),
        ("", ()),
        ("a${b}c", ("a", Placeholder("value", "b", None, "${b}"), "c")),
        ("${b.c-d:}", (Placeholder("value", "b.c-d", (), "${b.c-d:}"),)),
        ("${env:X:y}", (Placeholder("env", "X", ("y",), "${env:X:y}"),)),
        ("${secret:x}", (Placeholder("secret", "x", None, "${secret:x}"),)),
        ("${here}", (Placeholder("here", "", None, "${here}"),)),
        ("${envy:x}", (Placeholder("value", "envy", ("x",), "${envy:x}"),)),
    ],
)
def test_templates(text: str, template: object) -> None:
    """The grammar, part by part."""
    assert parse_template(text) == template


def test_random_texts_are_templates_or_errors() -> None:
    """No text makes the grammar fail in another way, or run for long."""
    letters = random.Random(1)
    understood = 0
    for _ in range(3000):
        text = "".join(letters.choices(["${", "}", "$", "{", ":", "a", "env:", "secret:", "here", ".", " "], k=12))
        with contextlib.suppress(PlaceholderError):
            parts = parse_template(text)
            assert "".join(part if isinstance(part, str) else part.text for part in parts) == text.replace("$${", "${")
            understood += 1
    assert understood > 100
    with pytest.raises(PlaceholderError):
        parse_template("${a:" * 100_000)
