"""Secrets come from the environment, a file or a default, and are masked by value wherever text leaves."""

from __future__ import annotations

import io
import json
import logging
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest

from iocflow.container.reading.document import Document
from iocflow.container.reading.outside import Outside
from iocflow.container.secrets import Secrets
from iocflow.wiring import Findings, Place

Read = Callable[..., Document]
Told = Callable[[Document], list[str]]
PLACE = Place("app.yaml", 3, 4)


def masking(*values: object) -> Secrets:
    secrets = Secrets()
    for value in values:
        secrets.add(value)
    return secrets


def test_the_value_is_masked_in_any_text() -> None:
    """A secret is found as it is, inside of words, and as repr, JSON, HTML and URLs write it."""
    secret = "hün<t\"er'2\\ x"
    mask = masking(secret).mask
    forms = [secret, repr(secret), json.dumps(secret), json.dumps(secret, ensure_ascii=False), quote(secret, safe="")]
    forms += [repr(secret.encode()), repr({"password": secret}), f"x{secret}y", "h&#x27;"]
    for form in forms[:-1]:
        assert "***" in mask(form)
        assert "er" not in mask(form).replace("password", "")
    assert mask(forms[-1]) == forms[-1]
    assert mask("hün&lt;t&quot;er&#x27;2\\ x") == "***"


ESCAPES: tuple[Callable[[str], str], ...] = (
    repr,
    ascii,
    json.dumps,
    lambda text: json.dumps(text, ensure_ascii=False),
    lambda text: repr(text.encode()),
)
ESCAPES_TWICE: tuple[Callable[[str], str], ...] = (
    lambda text: repr(f"user's {text!r}"),
    lambda text: repr(f'the "{text!a}" of a user'),
    lambda text: str(KeyError(f"no user for {text!r}")),
    lambda text: f"{[json.dumps({'password': text})]}",
    lambda text: str({"body": repr(text.encode())}),
)
ODD_SECRETS = [
    "corp\\svc4711",
    "o'hara4711",
    'o"hara4711',
    "Zürich4711",
    "\\\\\"'ü\n4711\\",
    "o'\"4711",
    "\x7f\u2028😀4711'",
]


@pytest.mark.parametrize("secret", ODD_SECRETS)
def test_what_is_escaped_several_times_over(secret: str) -> None:
    """Whatever escapes a secret, and then what was escaped before, none of it is left."""
    mask = masking(secret).mask
    for writers in (*product(ESCAPES, repeat=4), *product(ESCAPES + ESCAPES_TWICE, repeat=2)):
        text = secret
        for write in writers:
            text = write(text)
            assert "4711" not in mask(text), text
            assert "***" in mask(text), text


@pytest.mark.parametrize("secret", [*ODD_SECRETS, "\\" * 20 + "x", "\\ü" * 10 + "x", "'ü" * 10 + "x", "\n" * 10 + "x"])
def test_masking_takes_no_time_whatever_the_text(secret: str) -> None:
    """A long text of what a secret may be written with is searched once, not once for each of its places."""
    mask = masking(secret).mask
    began = time.monotonic()
    for text in ("\\", "\\'", "\\xfc", "\\\\\\xfc", "\\" * 15 + "n", secret[:-1], repr(secret)[1:-2]):
        mask(text * (200_000 // len(text)))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("secret", "handed", "text"),
    [
        ("12345", 12345, "***"),
        ("0012345", 12345, "***"),
        ("12345.50", Decimal("12345.50"), "***"),
        ("12345.50", 12345.5, "***"),
        (12345, "12345", "***"),
        (b"hunter2", b"hunter2", "b'***'"),
        ("hunter2\n", "hunter2", "***"),
    ],
)
def test_whatever_type_it_has_become(secret: object, handed: object, text: str) -> None:
    """A secret that was coerced to a number or bytes is masked as well."""
    assert masking(secret).mask(str(handed)) == text


def test_short_secrets() -> None:
    """What is too short to be told from other text is not masked, or only as a word."""
    secrets = Secrets()
    assert [secrets.add(value) for value in ("", "  ", "ab", "abc", "abcd", "abcde")] == [False] * 3 + [True] * 3
    assert masking("ab").mask("ab") == "ab"
    assert masking("abcd").mask("abcd, pw=abcd; abcde xabcd a_abcd") == "***, pw=***; abcde xabcd a_***"
    assert masking("abcde").mask("xabcdey") == "x***y"


def test_one_secret_in_another() -> None:
    """The longer one is masked first, so that no rest of it is left."""
    assert masking("secret", "secret-extended").mask("secret-extended secret") == "*** ***"
    assert masking("secret-extended", "secret").mask("secret-extended secret") == "*** ***"


def test_lines_of_a_key() -> None:
    """Each long line of a secret of several lines is masked, as loggers indent or cut them."""
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nabc\n-----END KEY-----\n"
    assert "MIIE" not in masking(key).mask("  | MIIEvQIBADANBg")
    assert masking(key).mask(f"<{key}>") == "<***>"


def logged(secrets: Secrets, write: Callable[[logging.Logger], None], template: str = "%(message)s") -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(template))
    handler.addFilter(secrets.filter())
    logger = logging.Logger("test", logging.DEBUG)
    logger.addHandler(handler)
    write(logger)
    return stream.getvalue()


class Holder:
    """Prints a secret when it is shown."""

    def __str__(self) -> str:
        return "holds hunter2"


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda log: log.info("pw hunter2"), "pw ***\n"),
        (lambda log: log.info("pw %s", "hunter2"), "pw ***\n"),
        (lambda log: log.info("pw %(a)s", {"a": "hunter2"}), "pw ***\n"),
        (lambda log: log.info("%s", Holder()), "holds ***\n"),
        (lambda log: log.info(Holder()), "holds ***\n"),
        (lambda log: log.info("%r", ["hunter2", 1]), "['***', 1]\n"),
        (lambda log: log.info("%d of %s", 5, "x"), "5 of x\n"),
        (
            lambda log: log.info("%d hunter2", "hunter2"),
            "%d *** (its arguments do not fit: TypeError: %d format: a real number is required, not str)\n",
        ),
    ],
)
def test_log_messages(write: Callable[[logging.Logger], None], text: str) -> None:
    """Message and arguments are masked, also when they do not fit each other; nothing is raised."""
    assert logged(masking("hunter2"), write) == text


def test_log_exceptions(capsys: pytest.CaptureFixture[str]) -> None:
    """Exception, cause, notes and stack texts are masked, and no formatter sees the original exception."""

    def write(log: logging.Logger) -> None:
        try:
            try:
                raise ValueError("bad hunter2")
            except ValueError as error:
                error.add_note("note hunter2")
                raise RuntimeError("cannot log in") from error
        except RuntimeError:
            log.exception("failed", stack_info=True)

    text = logged(masking("hunter2"), write)
    assert "hunter2" not in text
    assert "ValueError: bad ***\nnote ***" in text
    assert "RuntimeError: cannot log in" in text
    assert capsys.readouterr() == ("", "")


def test_log_records_without_secrets_are_left_alone() -> None:
    """Arguments, exception and extra fields stay as they are where there is nothing to mask."""
    record = logging.makeLogRecord({"msg": "%s", "args": ("x",), "extra": {"a": 1}})
    try:
        raise ValueError("x")
    except ValueError:
        record.exc_info = sys.exc_info()
    for secrets in (Secrets(), masking("hunter2")):
        assert secrets.filter().filter(record)
        assert (record.msg, record.args, record.exc_text, record.__dict__["extra"]) == ("%s", ("x",), None, {"a": 1})
        assert record.exc_info


def test_log_fields() -> None:
    """Extra fields are masked, whatever their type; the standard ones of logging are not touched."""
    record = logging.makeLogRecord({"msg": "m", "name": "hunter2", "user": "hunter2", "all": {"pw": "hunter2"}, "n": 5})
    assert masking("hunter2").filter().filter(record)
    fields = record.__dict__
    assert (fields["user"], fields["all"], fields["n"], fields["name"]) == ("***", "{'pw': '***'}", 5, "hunter2")


def test_secrets_that_come_later() -> None:
    """A filter masks secrets that are added after it was made."""
    secrets = Secrets()
    mask = secrets.filter()
    secrets.add("hunter2")
    record = logging.makeLogRecord({"msg": "hunter2"})
    assert mask.filter(record)
    assert record.msg == "***"


# Where they come from.


def outside(folder: Path, environ: dict[str, str] | None = None) -> tuple[Outside, Secrets, Findings]:
    secrets, findings = Secrets(), Findings()
    return Outside(environ or {}, secrets, findings, folder=str(folder)), secrets, findings


@pytest.mark.parametrize(
    ("content", "value"), [("hunter2\n", "hunter2"), ("hunter2\r\n", "hunter2"), (" two\nlines\n\n", " two\nlines\n")]
)
def test_secret_files(tmp_path: Path, content: str, value: str) -> None:
    """A secret lies in a file of its name; one line end at its end does not belong to it."""
    (tmp_path / "smtp-password").write_bytes(content.encode())
    source, secrets, findings = outside(tmp_path)
    assert source.secret("smtp-password", PLACE) == value
    assert secrets.mask(f"pw={value}") == "pw=***"
    assert findings.mistakes == []


def test_the_environment_is_before_the_file(tmp_path: Path) -> None:
    """The variable's name is upper case, with `_` for `-`; empty counts as set."""
    (tmp_path / "smtp-password").write_text("file", encoding="utf-8")
    assert outside(tmp_path, {"SMTP_PASSWORD": "variable"})[0].secret("smtp-password", PLACE) == "variable"
    assert outside(tmp_path, {"SMTP_PASSWORD": ""})[0].secret("smtp-password", PLACE) == ""
    assert outside(tmp_path)[0].secret("smtp-password", PLACE) == "file"
    assert outside(tmp_path / "no")[0].secret("smtp-password", PLACE) is None


def test_secret_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A secret file that is there but unreadable is a mistake, and its content is in no message."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin").write_bytes(b"h\xfcnter2")
    source, _, findings = outside(tmp_path)
    assert source.secret("folder", PLACE) == ""
    assert source.secret("latin", PLACE) == ""
    assert [str(mistake) for mistake in findings.mistakes] == [
        f"app.yaml:3:4: secret file `{tmp_path}/folder` cannot be read: Is a directory; check what is mounted there",
        f"app.yaml:3:4: secret file `{tmp_path}/latin` is not UTF-8; store it as UTF-8 text",
    ]


def test_secrets_of_a_document(read: Read, told: Told) -> None:
    """Every secret that a file uses is masked, defaults and indirect ones too; short ones are warned about once."""
    document = read(
        "values: {pw: '${secret:api-key}'}\n"
        "beans: {x: 'https://u:${pw}@h', y: '${secret:other:fallback}', z: ['${secret:pin}', '${secret:pin}']}",
        environ={"API_KEY": "hunter2", "PIN": "12"},
    )
    assert told(document) == [
        "app.yaml:3:68: warning: secret `pin` has fewer than 3 characters and is not masked; use a longer one"
    ]
    assert document.secrets.mask("https://u:hunter2@h fallback 12") == "https://u:***@h *** 12"
    assert "hunter2" not in repr(document.findings) + repr(document) + repr(document.secrets)


def test_no_message_shows_a_value(read: Read, told: Told) -> None:
    """Mistakes about a scalar with a secret in it print the placeholder."""
    document = read("beans: {x: '${secret:k}${nope}', y: !ref '${secret:k}'}", environ={"K": "hunter2"})
    assert told(document) == ["app.yaml:2:12: undefined value `nope`; define it: `values: {nope: …}`"]
