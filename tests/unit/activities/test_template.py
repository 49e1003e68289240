"""`RenderTemplate`: escaping, undefined names, and the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from iocflow.activities import RenderTemplate, TemplateError
from iocflow.context import ProcessContext


@dataclass
class Seed:
    name: str


class Letter(ProcessContext):
    seed_data: Seed
    items: list[int]
    text: str
    later: str
    greeting: str = "Dear"


@dataclass
class Plain:
    name: str = "<b>"
    items: list[int] = field(default_factory=lambda: [1])
    text: str = ""


def rendered(template: str, *, html: bool = True, **options: Any) -> str:
    """Return what the template makes of a letter to O'Neil."""
    context = Letter()
    context.seed_data, context.items = Seed("<O'Neil & Co>"), [1, 2]
    RenderTemplate("text", html=html, template=template, **options).execute(context)
    return context.text


def test_the_option_decides_about_escaping(tmp_path: Path) -> None:
    """HTML is escaped and plain text is not, and the name of a file changes neither."""
    template = "{{ greeting }} {{ seed_data.name }}"
    assert rendered(template) == "Dear &lt;O&#39;Neil &amp; Co&gt;"
    assert rendered(template, html=False) == "Dear <O'Neil & Co>"
    for name in ("letter.txt", "letter.html"):
        file = tmp_path / name
        file.write_text("{{ name }}\n", encoding="utf-8")
        context = Plain()
        RenderTemplate("text", html=True, file=file).execute(context)
        assert context.text == "&lt;b&gt;\n"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ nope }}", "'nope' is undefined"),
        ("\n\n{{ seed_data.nope }}", "template:3: .*no attribute 'nope'"),
        ("{{ later }}", "'later' is undefined"),
        ("{% for i in items %}{{ i / 0 }}{% endfor %}", "division by zero"),
        ("{{ greeting + 1 }}", "can only concatenate str"),
        ("{{ _lender }}", "'_lender' is undefined"),
    ],
)
def test_what_is_not_there_is_an_error(template: str, said: str) -> None:
    """A name that the context does not offer, or that is not set, is never rendered as an empty text."""
    with pytest.raises(TemplateError, match=said):
        rendered(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ seed_data.__class__.__mro__ }}",
        "{{ ''.__class__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ items.append(3) }}",
        "{{ self.__init__.__globals__ }}",
        "{% for i in range(10000000) %}{% endfor %}",
        "{{ cycler.__init__.__globals__ }}",
    ],
)
def test_the_sandbox_holds(template: str) -> None:
    """A template reaches no private attribute, changes nothing and loops within bounds."""
    with pytest.raises(TemplateError, match=r"unsafe|Range too big"):
        rendered(template)


def test_broken_templates_fail_when_wired(tmp_path: Path) -> None:
    """Syntax errors, includes, missing files and wrong encodings are found at construction, with file and line."""
    with pytest.raises(TemplateError, match=r"template:2: Expected an expression"):
        RenderTemplate("text", html=True, template="\n{% if %}")
    for template in ("{% include '/etc/hostname' %}", "{% extends name %}", "{% import 'x' as x %}"):
        with pytest.raises(TemplateError, match="includes another file"):
            RenderTemplate("text", html=True, template=template)
    with pytest.raises(TemplateError, match=r"none\.txt:1: cannot read the template: No such file"):
        RenderTemplate("text", html=True, file=tmp_path / "none.txt")
    latin = tmp_path / "latin.txt"
    latin.write_bytes("Müller".encode("latin-1"))
    with pytest.raises(TemplateError, match="not in UTF-8"):
        RenderTemplate("text", html=True, file=latin)


def test_template_or_file() -> None:
    """Exactly one of the two has to be given."""
    for options in ({}, {"template": "x", "file": "x"}):
        with pytest.raises(ValueError, match="either template or file"):
            RenderTemplate("text", html=True, **options)


def test_trusted_templates_may_include_files_of_their_folder(tmp_path: Path) -> None:
    """A trusted file includes its neighbours, but nothing outside its folder."""
    (tmp_path / "foot.txt").write_text("bye", encoding="utf-8")
    main = tmp_path / "main.txt"
    main.write_text("{{ name }} {% include 'foot.txt' %}", encoding="utf-8")
    context = Plain()
    RenderTemplate("text", html=False, file=main, trusted=True).execute(context)
    assert context.text == "<b> bye"
    main.write_text("{% include '../main.txt' %}", encoding="utf-8")
    with pytest.raises(TemplateError, match=r"main\.txt"):
        RenderTemplate("text", html=False, file=main, trusted=True).execute(context)
