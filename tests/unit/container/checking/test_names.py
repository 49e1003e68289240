"""Dotted names are default-deny: what is imported lies in an allowed package, and so does what is found."""

from __future__ import annotations

import builtins
import itertools
import smtplib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from iocflow.container.checking.names import Names
from iocflow.container.reading.document import Document
from iocflow.wiring import Table

Read = Callable[..., Document]
Ask = Callable[..., tuple[Any, list[str]]]
Want = Literal["class", "function", "exception", "any"]

NUMBERS = itertools.count()
INIT = """
import functools, os
from os import getcwd
from pydantic import BaseModel
from smtplib import SMTPException
from subprocess import Popen, run

class Sender: pass
class TemporaryError(Exception): pass
class Odd: __module__ = 5
def act(context): pass
async def later(context): pass
cached = functools.lru_cache(act)
partial = functools.partial(os.system, "ls")
VALUE = 5
Alias = list[int]
"""
LAZY = """
def __getattr__(name):
    if name == "Bad":
        raise RuntimeError("no " + name)
    raise AttributeError(name)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the name of an importable package that no other test uses."""
    name = f"names_{next(NUMBERS)}_x"
    modules = {
        "__init__": INIT,
        "jobs": "class Job: pass\n",
        "broken": "import no_such_module_anywhere\n",
        "extra": "try:\n    import no_such_module_anywhere\nexcept ImportError as error:\n"
        "    raise ImportError('the extra is not installed') from error\n",
        "raising": "\n1 / 0\n",
        "leaving": "raise SystemExit(3)\n",
        "syntax": "def x(:\n",
        "lazy": LAZY,
    }
    (tmp_path / name).mkdir()
    for module, text in modules.items():
        (tmp_path / name / f"{module}.py").write_text(text, encoding="utf-8")
    (tmp_path / f"{name}s.py").write_text("class Neighbour: pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


@pytest.fixture
def ask(read: Read, package: str) -> Ask:
    """Return a function that resolves one name: what was found, and the mistakes with `PKG` for the package."""

    def function(
        written: str, want: Want = "class", head: str = "package: PKG", **options: Any
    ) -> tuple[Any, list[str]]:
        components = options.pop("components", ())
        document = read(f"{head}\nbeans:\n  b: {written}\n".replace("PKG", package), **options)
        beans = document.sections["beans"]
        assert isinstance(beans, Table)
        document.extensions.components = frozenset(one.replace("PKG", package) for one in components)  # type: ignore[misc]
        found = Names(document).resolve(beans.entries["b"], want, "class of bean `b`")  # type: ignore[arg-type]
        return found, [str(mistake).replace(package, "PKG") for mistake in document.findings.mistakes]

    return function


@pytest.mark.parametrize(
    ("written", "want", "name"),
    [
        (".Sender", "class", "Sender"),
        ("PKG.Sender", "class", "Sender"),
        (".jobs.Job", "class", "Job"),
        (".act", "function", "act"),
        (".later", "function", "later"),
        (".act", "any", "act"),
        (".Sender", "any", "Sender"),
        (".TemporaryError", "exception", "TemporaryError"),
        (".SMTPException", "exception", "SMTPException"),
        ("smtplib.SMTPException", "exception", "SMTPException"),
        ("ConnectionError", "exception", "ConnectionError"),
        ("builtins.OSError", "exception", "OSError"),
        ("json.JSONDecodeError", "exception", "JSONDecodeError"),
        ("iocflow.LoggingErrorHandler", "class", "LoggingErrorHandler"),
        ("iocflow.ProcessContext", "class", "ProcessContext"),
        ("iocflow.SeedError", "exception", "SeedError"),
        ("!type .Sender", "class", "Sender"),
    ],
)
def test_names(ask: Ask, written: str, want: Want, name: str) -> None:
    """Classes, functions and exceptions of allowed packages are found."""
    found, mistakes = ask(written, want)
    assert mistakes == []
    assert found.__name__ == name


def test_exceptions_of_the_standard_library(ask: Ask) -> None:
    """A name without a dot after `for:` is a built-in exception."""
    assert ask("ConnectionError", "exception")[0] is builtins.ConnectionError
    assert ask("smtplib.SMTPException", "exception")[0] is smtplib.SMTPException


STANDARD = "the standard library's, which no container file can name;"
STANDARD += " call it in a function of your own package, and name that"
ONE = "a name is one look-up in a module: `package.module.Name`, and nothing inside of `Name`"
OUTSIDE = "outside of the allowed packages (PKG);"
DOTTED = "write `package.module.Name`, or `.Name` in the `package:` of the file"
PYPROJECT = "to `allow:` of `app.yaml` or `[tool.iocflow] allow` of pyproject.toml"


@pytest.mark.parametrize(
    ("written", "want", "message"),
    [
        # what it is
        (".Sendr", "class", "no `Sendr` in the module `PKG`; did you mean `Sender`?"),
        (".acd", "function", "no `acd` in the module `PKG`; did you mean `act`?"),
        (".jobs.Jobb", "class", "no `Jobb` in the module `PKG.jobs`; did you mean `Job`?"),
        (".job.Job", "class", "there is no module `PKG.job`; did you mean `jobs`?"),
        (".lazy.Y", "class", "no `Y` in the module `PKG.lazy`; there is none to choose from"),
        (".act", "class", "`PKG.act` is a function, not a class; a function goes under `call:` or `factory:`"),
        (".Sender", "function", "`PKG.Sender` is a class, not a plain function; a class goes under `class:`"),
        (".Sender", "exception", "`PKG.Sender` is a class, not an exception class; name an exception class"),
        (".VALUE", "class", "`PKG.VALUE` is a value of type `int`, not a class; name a class"),
        (".Alias", "class", "`PKG.Alias` is a value of type `GenericAlias`, not a class; name a class"),
        (
            ".cached",
            "function",
            "`PKG.cached` is a value of type `_lru_cache_wrapper`, not a plain function; name a plain function",
        ),
        (
            ".partial",
            "any",
            "`PKG.partial` is a value of type `partial`, not a class or a plain function;"
            " name a class or a plain function",
        ),
        (".getcwd", "function", "`PKG.getcwd` is a built-in function, not a plain function; name a plain function"),
        (".os", "class", "`PKG.os` is a module, not a class; name a class"),
        (".Odd", "class", "`PKG.Odd` does not tell its module; name one that is defined in a module"),
        (
            "KeyboardInterrupt",
            "exception",
            "`KeyboardInterrupt` is no `Exception`, so no handler ever sees it; name an `Exception`",
        ),
        (
            "ConectionError",
            "exception",
            "no `ConectionError` in the module `builtins`; did you mean `ConnectionError`?",
        ),
        ("print", "exception", "`print` is a built-in function, not an exception class; name an exception class"),
        # how it is written
        (
            "Sender",
            "class",
            "`Sender` is no dotted name; write `.Sender` for one in the `package:` of the file,"
            " or `package.module.Sender`",
        ),
        ("..x", "class", f"`..x` is no dotted name; {DOTTED}"),
        (".a b", "class", f"`.a b` is no dotted name; {DOTTED}"),
        ("''", "class", f"`` is no dotted name; {DOTTED}"),
        ("5", "class", f"`5` is no dotted name; {DOTTED}"),
        ("PKG.", "class", f"`PKG.` is no dotted name; {DOTTED}"),
        ("PKG:Sender", "class", f"`PKG:Sender` is no dotted name; {DOTTED}"),
        # its module
        (".Sender.x", "class", f"there is no module `PKG.Sender`; {ONE}"),
        (".jobs.Job.x", "class", f"there is no module `PKG.jobs.Job`; {ONE}"),
        (
            ".syntax.X",
            "class",
            "the module `PKG.syntax` cannot be imported: SyntaxError: invalid syntax (syntax.py, line 1);"
            " correct the module",
        ),
        # where it comes from
        ("os.system", "function", f"`os.system` is {STANDARD}"),
        ("subprocess.Popen", "class", f"`subprocess.Popen` is {STANDARD}"),
        ("builtins.eval", "any", f"`builtins.eval` is {STANDARD}"),
        (".Popen", "class", f"`subprocess.Popen` is {STANDARD}"),
        (".run", "function", f"`subprocess.run` is {STANDARD}"),
        ("logging.os.system", "function", f"`logging.os.system` is {STANDARD}"),
        (".os.system", "function", f"there is no module `PKG.os`; {ONE}"),
        ("smtplib.SMTP", "exception", "`smtplib.SMTP` is a class, not an exception class; name an exception class"),
        ("antigravity.XError", "exception", f"`antigravity.XError` is {STANDARD}"),
        ("unittest.__main__.X", "exception", f"`unittest.__main__.X` is {STANDARD}"),
        ("pydantic.BaseModel", "class", f"`pydantic.BaseModel` lies {OUTSIDE} add `pydantic` {PYPROJECT}"),
        (
            "pydantic.ValidationError",
            "exception",
            f"`pydantic.ValidationError` lies {OUTSIDE} add `pydantic` {PYPROJECT}",
        ),
        (".BaseModel", "class", f"`PKG.BaseModel` comes from `pydantic.main`, {OUTSIDE} add `pydantic` {PYPROJECT}"),
        (
            "PKGs.Neighbour",
            "class",
            f"`PKGs.Neighbour` lies {OUTSIDE} did you mean `PKG`? If not, add `PKGs` {PYPROJECT}",
        ),
        # iocflow itself
        ("iocflow.App", "class", "`iocflow.App` cannot be named in a container file; use it in Python"),
        ("iocflow.load", "any", "`iocflow.load` cannot be named in a container file; use it in Python"),
        (
            "iocflow.LogingErrorHandler",
            "class",
            "no `LogingErrorHandler` in the module `iocflow`; did you mean `LoggingErrorHandler`?",
        ),
        (
            "iocflow.container.checking.names.Names",
            "class",
            "`iocflow.container.checking.names.Names` is a part inside of iocflow;"
            " the ready-made ones are in `iocflow.activities` and `iocflow` itself",
        ),
        (
            "iocflow.importlib",
            "any",
            "`iocflow.importlib` is a module, not a class or a plain function; name a class or a plain function",
        ),
    ],
)
def test_mistakes(ask: Ask, written: str, want: Want, message: str) -> None:
    """Each name that cannot be had has its own message, and nothing is returned."""
    found, mistakes = ask(written, want)
    assert found is None
    assert len(mistakes) == 1
    assert mistakes[0].startswith(f"app.yaml:4:6: class of bean `b`: {message}")


@pytest.mark.parametrize(
    ("module", "error", "remedy"),
    [
        (
            "broken",
            "ModuleNotFoundError: No module named 'no_such_module_anywhere' ({file}:1)",
            "install what has `no_such_module_anywhere`, or correct the name where it is imported",
        ),
        (
            "extra",
            "ImportError: the extra is not installed ({file}:4)",
            "install what has `no_such_module_anywhere`, or correct the name where it is imported",
        ),
        ("raising", "ZeroDivisionError: division by zero ({file}:2)", "correct the module"),
        ("leaving", "SystemExit: 3 ({file}:1)", "correct the module"),
    ],
)
def test_an_import_that_raises(ask: Ask, tmp_path: Path, package: str, module: str, error: str, remedy: str) -> None:
    """The error of a module is reported with its type, text and line, and what is not installed is no fault of it."""
    _, mistakes = ask(f".{module}.X")
    where = error.format(file=tmp_path / "PKG" / f"{module}.py")
    assert mistakes == [
        f"app.yaml:4:6: class of bean `b`: the module `PKG.{module}` cannot be imported: {where}; {remedy}"
    ]


def test_a_broken_module_is_reported_once(read: Read, package: str) -> None:
    """However many names it should provide, a module fails once."""
    document = read(f"package: {package}\nbeans: {{a: .raising.A, b: .raising.B, c: .jobs.Job}}")
    beans = document.sections["beans"]
    assert isinstance(beans, Table)
    names = Names(document)
    found = [names.resolve(node, "class", key) for key, _, node in beans]  # type: ignore[arg-type]
    assert [one is None for one in found] == [True, True, False]
    assert len(document.findings.mistakes) == 1


def test_a_lookup_that_raises(ask: Ask, tmp_path: Path) -> None:
    """A module's own `__getattr__` may fail in any way."""
    assert ask(".lazy.Bad")[1] == [
        f"app.yaml:4:6: class of bean `b`: `PKG.lazy.Bad` cannot be had: RuntimeError: no Bad"
        f" ({tmp_path}/PKG/lazy.py:4); correct the module `PKG.lazy`"
    ]


def test_nothing_is_imported_before_it_is_allowed(ask: Ask, package: str) -> None:
    """The check comes before the import; package boundaries count, not the beginning of a name."""
    assert ask("PKGs.Neighbour")[0] is None
    assert f"{package}s" not in sys.modules
    assert ask("PKG.jobs.Job", head="allow: PKG.lazy")[0] is None
    assert package not in sys.modules
    assert ask("PKGs.Neighbour", head="allow: PKGs")[0].__name__ == "Neighbour"


def test_ways_to_allow(ask: Ask) -> None:
    """The root file's `package:` and `allow:`, the caller, and registered components allow a name."""
    assert ask("PKG.Sender", head="package: PKG")[0]
    assert ask("PKG.Sender", head="allow: [PKG]")[0]
    assert ask("PKG.Sender", head="", allow=["PKG"])[0] is None  # the name in the options is not replaced
    assert ask("PKG.jobs.Job", head="", components=["PKG"])[0]
    assert ask("PKG.jobs.Job", head="", components=["PKG.jobs.Job"])[0]
    assert ask("PKG.BaseModel", head="", components=["PKG.BaseModel"])[0]
    assert ask("PKG.BaseModel", head="", components=["PKG"])[0] is None
    assert ask("PKG.Sender", head="")[1] == [
        f"app.yaml:4:6: class of bean `b`: `PKG.Sender` lies outside of the allowed packages (none);"
        f" add `PKG` {PYPROJECT}"
    ]


def test_relative_names_need_a_package(ask: Ask) -> None:
    """`.Name` is relative to the package of its own file."""
    assert ask(".Sender", head="allow: PKG")[1] == [
        "app.yaml:4:6: class of bean `b`: `.Sender` is relative, but the file has no `package:`;"
        " write `package: your.package` at the top of the file, or the full name"
    ]


def test_relative_names_of_imported_files(read: Read, package: str) -> None:
    """Each file's names are relative to its own package, which allows nothing unless the root file says so."""
    document = read(
        {
            "app.yaml": f"iocflow: 1\npackage: {package}\nimports: [a.yaml, b.yaml]\n",
            "a.yaml": f"iocflow: 1\npackage: {package}.jobs\nbeans: {{a: .Job}}\n",
            "b.yaml": "iocflow: 1\npackage: pydantic\nbeans: {b: .BaseModel}\n",
        }
    )
    beans = document.sections["beans"]
    assert isinstance(beans, Table)
    names = Names(document)
    found = [names.resolve(node, "class", key) for key, _, node in beans]  # type: ignore[arg-type]
    assert [getattr(one, "__name__", None) for one in found] == ["Job", None]
    assert (
        document.findings.mistakes[0].what
        == f"b: `pydantic.BaseModel` lies outside of the allowed packages ({package})"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("os.system", f"`${{env:N}}` is {STANDARD}"),
        (".Nothing", "`${env:N}` names nothing in the module of `${env:N}`"),
        (".nothing.X", "there is no module of `${env:N}`"),
        (".act", "`${env:N}` is a function, not a class"),
        (".Popen", f"`${{env:N}}` is {STANDARD}"),
        ("secret.Name", "`${env:N}` lies outside of the allowed packages (PKG); add its package"),
        ("secret", "`${env:N}` is no dotted name"),
        (".raising.X", "the module of `${env:N}` cannot be imported: ZeroDivisionError"),
    ],
)
def test_names_from_outside_are_not_shown(ask: Ask, value: str, message: str) -> None:
    """A name that comes through a placeholder is checked like any other, and printed as the placeholder."""
    found, mistakes = ask("${env:N}", environ={"N": value})
    assert found is None
    assert mistakes[0].startswith(f"app.yaml:4:6: class of bean `b`: {message}")
    assert value not in mistakes[0]


def test_what_is_unresolved_is_passed_over(ask: Ask) -> None:
    """A name whose placeholder is missing has its one mistake already."""
    found, mistakes = ask("${nope}")
    assert found is None
    assert [mistake.split("; ")[0] for mistake in mistakes] == ["app.yaml:4:6: undefined value `nope`"]


def test_components_are_looked_up_late(read: Read, package: str) -> None:
    """The installed distributions are searched for components only for a name that nothing else allows."""
    document = read(f"package: {package}\nbeans: {{b: .Sender}}")
    beans = document.sections["beans"]
    assert isinstance(beans, Table)
    assert Names(document).resolve(beans.entries["b"], "class", "b")  # type: ignore[arg-type]
    assert "components" not in vars(document.extensions)
