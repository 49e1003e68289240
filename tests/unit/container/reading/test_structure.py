"""The top of a file, and several files as one: sections, ids, packages, what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocflow.container.reading.document import Document, read_document

Read = Callable[..., Document]
Told = Callable[[Document], list[str]]
Plain = Callable[..., Any]

MAPPING = "must be a mapping; write `key: value` lines, indented below it"
OWN_PACKAGE = "call it in a function of a package of your own, and name that"
READY_MADE = "its activities and handlers can be named without it"
TWICE = "is defined twice; rename or remove one; only a profile replaces a definition"


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (b"beans: {}\n", ["app.yaml:1:1: the format version is missing; write `iocflow: 1` first"]),
        (b"iocflow: 2\nnew-section: 1\n", ["app.yaml:1:10: unknown format version 2; this iocflow reads `iocflow: 1`"]),
        (b"iocflow: '1'\n", ["app.yaml:1:10: the format version is no number; write `iocflow: 1`"]),
        (b"iocflow: true\n", ["app.yaml:1:10: the format version is no number; write `iocflow: 1`"]),
        (b"iocflow: 1.0\n", ["app.yaml:1:10: the format version is no number; write `iocflow: 1`"]),
        (b"iocflow: {}\n", ["app.yaml:1:10: the format version is no number; write `iocflow: 1`"]),
        ("bean: {}", ["app.yaml:2:1: unknown section `bean`; did you mean `beans`?"]),
        ("Values: {}", ["app.yaml:2:1: unknown section `Values`; did you mean `values`?"]),
        ("launcher: {}", ["app.yaml:2:1: unknown section `launcher`; did you mean `launchers`?"]),
        (
            "beans: []\nprocessors: !new {}\nvalues: 3\nprofiles: x\ndefaults: []\nlaunchers: !new {}",
            [
                f"app.yaml:2:8: `beans:` {MAPPING}",
                f"app.yaml:3:13: `processors:` {MAPPING}",
                f"app.yaml:4:9: `values:` {MAPPING}",
                f"app.yaml:5:11: `profiles:` {MAPPING}",
                f"app.yaml:6:11: `defaults:` {MAPPING}",
                f"app.yaml:7:12: `launchers:` {MAPPING}",
            ],
        ),
        (
            "package: .x",
            ["app.yaml:2:10: `package:` takes the dotted name of a package, not `.x`; write it like `acme.jobs`"],
        ),
        (
            "package: ${x}",
            ["app.yaml:2:10: `package:` takes the dotted name of a package, not `${x}`; write it like `acme.jobs`"],
        ),
        ("package: [x]", ["app.yaml:2:10: `package:` takes the dotted name of a package; write it like `acme.jobs`"]),
        (
            "package: subprocess",
            [f"app.yaml:2:10: `package:` cannot name the standard library's `subprocess`; {OWN_PACKAGE}"],
        ),
        (
            "package: os.path",
            [f"app.yaml:2:10: `package:` cannot name the standard library's `os.path`; {OWN_PACKAGE}"],
        ),
        (
            "allow: [acme, builtins, iocflow.container, a-b, 5, !ref x, '${y}']",
            [
                f"app.yaml:2:15: `allow:` cannot name the standard library's `builtins`; {OWN_PACKAGE}",
                "app.yaml:2:25: `allow:` cannot name iocflow's own `iocflow.container`; its activities and handlers can"
                " be named without it",
                "app.yaml:2:44: `allow:` takes the dotted name of a package, not `a-b`; write it like `acme.jobs`",
                "app.yaml:2:49: `allow:` takes the names of packages; write one, or a list of them",
                "app.yaml:2:52: `allow:` takes the names of packages; write one, or a list of them",
                "app.yaml:2:60: `allow:` takes the names of packages, without placeholders; write it out",
            ],
        ),
    ],
)
def test_mistakes(read: Read, told: Told, content: str | bytes, messages: list[str]) -> None:
    """Each mistake at the top of a file has its own message."""
    assert told(read(content)) == messages


def test_empty_sections_say_nothing(read: Read, told: Told) -> None:
    """A key with nothing after it, as when all below is commented out, is no mistake."""
    keys = [
        "package",
        "allow",
        "imports",
        "values",
        "defaults",
        "beans",
        "processors",
        "launchers",
        "profiles",
        "observers",
    ]
    document = read("".join(f"{key}:\n" for key in keys))
    assert told(document) == []
    assert document.sections == {}


def test_sections_of_several_files(read: Read, told: Told, plain: Plain) -> None:
    """Mappings are merged by key, lists follow one another, the imported file's first."""
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: a.yaml\nbeans: {x: 1}\nprocessors: {p: 1}\n"
            "launchers: {p: 1}\nobservers: [one]\n",
            "a.yaml": "iocflow: 1\nbeans: {y: 2}\nlaunchers: {y: 2}\nobservers: [two]\ndefaults: {on-error: [z]}\n",
        }
    )
    assert told(document) == []
    assert {key: plain(node) for key, node in document.sections.items()} == {
        "beans": {"y": 2, "x": 1},
        "launchers": {"y": 2, "p": 1},
        "observers": ["two", "one"],
        "processors": {"p": 1},
    }
    assert plain(document.defaults) == {"on-error": ["z"]}
    assert document.sections["beans"].place.file == "app.yaml"


def test_a_second_definition(read: Read, told: Told) -> None:
    """An id that is defined twice is a mistake that shows both places; beans and processors have one space of ids."""
    document = read(
        {
            "app.yaml": "iocflow: 1\nimports: a.yaml\nbeans: {x: 1}\nprocessors: {y: 1}\nlaunchers: {x: 1, l: 1}\n"
            "defaults: {on-error: x}\ndaemon: 5\nobservers: {}\n",
            "a.yaml": "iocflow: 1\nbeans: {y: 2}\nprocessors: {x: 2}\nlaunchers: {l: 2}\ndefaults: {on-error: y}\n"
            "daemon: 6\nobservers: []\n",
        }
    )
    assert told(document) == [
        f"app.yaml:3:9: id `x` {TWICE} [a.yaml:3:14: first here]",
        f"app.yaml:4:14: id `y` {TWICE} [a.yaml:2:9: first here]",
        f"app.yaml:5:19: `l` of `launchers` {TWICE} [a.yaml:4:13: first here]",
        f"app.yaml:6:12: `on-error` of `defaults` {TWICE} [a.yaml:5:12: first here]",
        f"app.yaml:7:1: section `daemon` {TWICE} [a.yaml:6:1: first here]",
        f"app.yaml:8:1: section `observers` {TWICE} [a.yaml:7:1: first here]",
    ]


def test_one_space_of_ids_in_one_file(read: Read, told: Told) -> None:
    """A processor cannot have the id of a bean beside it."""
    assert told(read("beans: {x: 1}\nprocessors: {x: 1}\n")) == [
        f"app.yaml:3:14: id `x` {TWICE} [app.yaml:2:9: first here]"
    ]


def test_packages(read: Read, told: Told) -> None:
    """Each file has its own package; only the root file's is allowed, and what the root and the caller allow."""
    document = read(
        {
            "app.yaml": "iocflow: 1\npackage: acme.jobs\nallow: [vendor, acme.jobs]\nimports: a.yaml\n",
            "a.yaml": "iocflow: 1\npackage: other.parts\nallow: [vendor.mail, elsewhere]\n",
        },
        allow=["given"],
    )
    assert document.packages == {"app.yaml": "acme.jobs", "a.yaml": "other.parts"}
    assert document.allow == ("acme.jobs", "vendor", "given")
    assert told(document) == [
        "a.yaml:3:22: warning: `allow:` of an imported file counts for nothing: `elsewhere`; write it in `app.yaml`"
    ]
    assert not document.findings.failed


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ("shutil", f"cannot name the standard library's `shutil`; {OWN_PACKAGE}"),
        ("os.path", f"cannot name the standard library's `os.path`; {OWN_PACKAGE}"),
        ("builtins", f"cannot name the standard library's `builtins`; {OWN_PACKAGE}"),
        (
            "iocflow.store",
            "cannot name iocflow's own `iocflow.store`; its activities and handlers can be named without it",
        ),
        ("", "takes the dotted names of packages, not ``; write it like `acme.jobs`"),
        (".jobs", "takes the dotted names of packages, not `.jobs`; write it like `acme.jobs`"),
    ],
)
def test_what_a_caller_cannot_allow(read: Read, told: Told, package: str, message: str) -> None:
    """A caller allows no more than a file can: neither the standard library, nor iocflow, nor what is no package."""
    document = read("package: acme.jobs\n", allow=["given", package])
    assert document.allow == ("acme.jobs", "given")
    assert told(document) == [f"app.yaml:1:1: `allow=` {message}"]


def test_one_name_for_a_list(read: Read) -> None:
    """A caller who passes one text means one name."""
    assert read("profiles: {test: }", allow="acme", profiles="test").allow == ("acme",)


@pytest.mark.parametrize(
    ("toml", "allow", "messages"),
    [
        ('[tool.iocflow]\nallow = ["acme.jobs", "vendor"]\n', ("acme.jobs", "vendor"), []),
        ('tool.iocflow.allow = ["acme"]\n', ("acme",), []),
        ('[tool]\niocflow = {allow = ["acme"]}\n', ("acme",), []),
        ('[tool."iocflow"]\n"allow" = ["acme"]\n', ("acme",), []),
        ('[project]\nname = "iocflow"\n[tool.other]\nallow = ["x"]\n', (), []),
        ("[tool.other]\nbroken = [\n", (), []),
        (
            '[tool.iocflow]\n\nallow = "acme"\n',
            (),
            ['pyproject.toml:3:1: `allow` of `[tool.iocflow]` is a list of packages; write `allow = ["acme.jobs"]`'],
        ),
        (
            '[tool.iocflow]\nallow = ["os", "acme"]\n',
            ("acme",),
            [f"pyproject.toml:2:1: `allow` of `[tool.iocflow]` cannot name the standard library's `os`; {OWN_PACKAGE}"],
        ),
        (
            '[tool.iocflow]\nallow = ["acme"\n',
            (),
            ["pyproject.toml:3:1: not TOML: Unclosed array; correct it"],
        ),
    ],
)
def test_what_the_project_allows(
    read: Read, told: Told, toml: str, allow: tuple[str, ...], messages: list[str]
) -> None:
    """`[tool.iocflow] allow` of pyproject.toml counts, however it is written; files without it are not even parsed."""
    document = read({"app.yaml": "iocflow: 1\n", "pyproject.toml": toml})
    assert document.allow == allow
    assert told(document) == messages
    assert not messages or document.sources["pyproject.toml"] == toml.split("\n")


def test_which_projects_allow(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project files of the current folder, and the nearest one above the container file, count; no other."""
    read({"app.yaml": "iocflow: 1\n", "pyproject.toml": '[tool.iocflow]\nallow = ["far"]\n'})
    inner = tmp_path / "project" / "config"
    inner.mkdir(parents=True)
    (inner.parent / "pyproject.toml").write_text('[tool.iocflow]\nallow = ["near"]\n', encoding="utf-8")
    (inner / "app.yaml").write_text("iocflow: 1\n", encoding="utf-8")
    assert read_document("project/config/app.yaml").allow == ("far", "near")
    monkeypatch.chdir(inner)
    assert read_document("app.yaml").allow == ("near",)
    monkeypatch.chdir(inner.parent)
    assert read_document("config/app.yaml").allow == ("near",)
