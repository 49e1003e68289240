"""Files that cannot be read, and imports: every file once, every failure with a place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocflow.container.reading.document import Document, read_document
from iocflow.container.reading.files import MAX_BYTES
from iocflow.wiring import Findings

Read = Callable[..., Document]
Told = Callable[[Document], list[str]]
Plain = Callable[..., Any]


def mistakes(findings: Findings) -> list[str]:
    return [str(mistake) for mistake in findings.mistakes]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("iocflow: 1\n".encode("utf-16"), "app.yaml:1:1: `app.yaml` is UTF-16; save it as UTF-8"),
        ("iocflow: 1\n".encode("utf-32"), "app.yaml:1:1: `app.yaml` is UTF-32; save it as UTF-8"),
        (b"iocflow: 1\n# f\xfcr\n", "app.yaml:2:4: not UTF-8: the byte 0xfc; save it as UTF-8"),
        (
            b"iocflow: 1\na: \x1b[31m\n",
            "app.yaml:2:4: the control character U+001B is no text;"
            " remove it, or write it as an escape in double quotes",
        ),
        (
            b"iocflow: 1\n#" + b"x" * MAX_BYTES,
            "app.yaml:1:1: `app.yaml` is larger than 5 MB; keep data in files of their own",
        ),
        (b"", "app.yaml:1:1: the file is empty; a container file begins with `iocflow: 1`"),
        (b"\xef\xbb\xbf", "app.yaml:1:1: the file is empty; a container file begins with `iocflow: 1`"),
    ],
)
def test_contents(read: Read, told: Told, content: bytes, message: str) -> None:
    """What is no text of a reasonable size is refused with the reason."""
    document = read(content)
    assert told(document) == [message]
    assert not document.complete


def test_a_byte_order_mark_is_no_mistake(read: Read, told: Told) -> None:
    """Editors on Windows write one; the places after it are right."""
    document = read(b"\xef\xbb\xbfiocflow: 1\nbean: {}\n")
    assert told(document) == ["app.yaml:2:1: unknown section `bean`; did you mean `beans`?"]


def test_windows_line_ends(read: Read, told: Told) -> None:
    """CR LF counts as one line end."""
    assert told(read(b"iocflow: 1\r\n\r\nbean: {}\r\n")) == [
        "app.yaml:3:1: unknown section `bean`; did you mean `beans`?"
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("ap.yaml", "ap.yaml:1:1: `ap.yaml` does not exist; did you mean `app.yaml`?"),
        ("zzz.yaml", "zzz.yaml:1:1: `zzz.yaml` does not exist; its folder holds: app.yaml"),
        ("parts/x.yaml", "parts/x.yaml:1:1: `parts/x.yaml` does not exist; its folder holds no container file"),
        ("no/x.yaml", "no/x.yaml:1:1: `no/x.yaml` does not exist; there is no folder `no`"),
        ("app.yaml/x", "app.yaml/x:1:1: `app.yaml/x` does not exist; there is no folder `app.yaml`"),
        ("parts", "parts:1:1: `parts` is a folder; name a file in it"),
        ("pipe", "pipe:1:1: `pipe` is a device or pipe; name a file"),
        ("loop", "loop:1:1: `loop` cannot be read: Too many levels of symbolic links; check its permissions"),
        (
            "lost.yaml",
            "lost.yaml:1:1: `lost.yaml` is a link that leads nowhere, to `gone.yaml`; let it lead to a container file,"
            " or name another one",
        ),
        ("los.yaml", "los.yaml:1:1: `los.yaml` does not exist; its folder holds: app.yaml"),
        ("a\0b", "a\0b:1:1: `a\0b` cannot be read: embedded null byte; name a file"),
    ],
)
def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str) -> None:
    """A path that leads to no file is a mistake in the first line of it, never an exception."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.yaml").write_text("iocflow: 1\n", encoding="utf-8")
    (tmp_path / "parts").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost.yaml").symlink_to("gone.yaml")
    document = read_document(path)
    assert mistakes(document.findings) == [message]
    assert document.sections == {}


def test_a_path_object(tmp_path: Path) -> None:
    """The path may be a `Path`."""
    (tmp_path / "app.yaml").write_text("iocflow: 1\n", encoding="utf-8")
    document = read_document(tmp_path / "app.yaml")
    assert document.path == str(tmp_path / "app.yaml")
    assert list(document.sources) == [document.path]


def test_imports_are_relative_to_their_file(read: Read, told: Told, plain: Plain) -> None:
    """Each file is read once, however often it is imported; imported definitions stand first."""
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: [parts/a.yaml, parts/b.yaml]\nbeans: {app: 1}\n",
            "parts/a.yaml": "iocflow: 1\nimports: deep/c.yaml\nbeans: {a: 1}\n",
            "parts/b.yaml": "iocflow: 1\nimports: [../parts/deep/c.yaml, ./a.yaml]\nbeans: {b: 1}\n",
            "parts/deep/c.yaml": "iocflow: 1\nbeans: {c: 1}\n",
        }
    )
    assert told(document) == []
    assert plain(document.sections["beans"]) == {"c": 1, "a": 1, "b": 1, "app": 1}
    assert set(document.sources) == {"app.yaml", "parts/b.yaml", "parts/a.yaml", "parts/deep/c.yaml"}


def test_a_link_is_the_file_it_leads_to(read: Read, told: Told, tmp_path: Path) -> None:
    """A file that is reached by two names is read once."""
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: [a.yaml, link.yaml]\n",
            "a.yaml": "iocflow: 1\nbeans: {a: 1}\n",
        }
    )
    assert told(document) == []


def test_a_link_that_leads_nowhere_is_told_of_where_it_is_imported(read: Read, told: Told, tmp_path: Path) -> None:
    """The message says so, and does not offer the same name instead."""
    (tmp_path / "lost.yaml").symlink_to("gone.yaml")
    assert told(read({"app.yaml": "iocflow: 1\nimports: [lost.yaml]\n"})) == [
        "app.yaml:2:11: `lost.yaml` is a link that leads nowhere, to `gone.yaml`; let it lead to a container file, or"
        " name another one"
    ]


@pytest.mark.parametrize(
    ("files", "messages"),
    [
        (
            {
                "app.yaml": "iocflow: 1\nimports: [parts/mial.yaml, no/x.yaml, parts]\n",
                "parts/mail.yaml": "iocflow: 1\n",
            },
            [
                "app.yaml:2:11: `parts/mial.yaml` does not exist; did you mean `parts/mail.yaml`?",
                "app.yaml:2:28: `no/x.yaml` does not exist; there is no folder `no`",
                "app.yaml:2:39: `parts` is a folder; name a file in it",
            ],
        ),
        (
            {
                "app.yaml": "iocflow: 1\nimports: a.yaml\n",
                "a.yaml": "iocflow: 1\nimports: [b.yaml]\n",
                "b.yaml": "iocflow: 1\nimports: [app.yaml]\n",
            },
            [
                "b.yaml:2:11: `app.yaml` imports itself: app.yaml -> a.yaml -> b.yaml -> app.yaml;"
                " remove one of the imports"
            ],
        ),
        (
            {"app.yaml": "iocflow: 1\nimports: [./app.yaml]\n"},
            ["app.yaml:2:11: `app.yaml` imports itself: app.yaml -> app.yaml; remove one of the imports"],
        ),
        (
            {"app.yaml": "iocflow: 1\nimports: a.yaml\n", "a.yaml": b"iocflow: 1\n\xff"},
            ["a.yaml:2:1: not UTF-8: the byte 0xff; save it as UTF-8 [app.yaml:2:10: imported here]"],
        ),
        (
            {"app.yaml": 'iocflow: 1\nimports: "a\\0b"\n'},
            ["app.yaml:2:10: `a\0b` cannot be read: embedded null byte; name a file"],
        ),
        (
            {"app.yaml": "iocflow: 1\nimports: [5, !ref x, {a: b}, ''.yaml, '${x}.yaml']\n".replace("''.yaml", "''")},
            [
                "app.yaml:2:11: `imports:` takes paths of files; write one, or a list of them",
                "app.yaml:2:14: `imports:` takes paths of files; write one, or a list of them",
                "app.yaml:2:22: `imports:` takes paths of files; write one, or a list of them",
                "app.yaml:2:30: `imports:` takes paths of files; write one, or a list of them",
                "app.yaml:2:34: `imports:` takes paths of files, without placeholders; write it out",
            ],
        ),
    ],
)
def test_import_mistakes(read: Read, told: Told, files: dict[str, str | bytes], messages: list[str]) -> None:
    """An import that leads nowhere, or back, is a mistake at the import, with the way it went."""
    assert told(read(files)) == messages


def test_nothing_is_missed_in_what_was_not_read(read: Read, told: Told) -> None:
    """When an import cannot be read, what it may define is not called undefined."""
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: [a.yaml]\nvalues: {v: 1}\nbeans: {x: '${key}', y: '${env:NO}'}\n"
            "profiles: {t: {beans: {z: 1}, values: {w: 2}}}\n",
            "a.yaml": "iocflow: 1\nbeans: {",
        },
        values={"other": "1"},
        profiles=["u"],
    )
    assert told(document) == [
        "a.yaml:2:8: not YAML: something is missing here; close what is open; quote a text that begins with one of"
        " `{}[],`",
        "app.yaml:4:25: environment variable `NO` is not set; set it, or give a default: `${env:NO:…}`",
    ]
    assert not document.complete
