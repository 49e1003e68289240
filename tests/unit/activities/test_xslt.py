"""`ApplyXslt`: what it makes, what it refuses, and where it says the mistake is."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lxml import etree

from iocflow.activities import ApplyXslt, ContextFieldError, StylesheetError, TransformError
from iocflow.context import ProcessContext
from iocflow.errors import UnsetError

HEAD = (
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"'
    ' xmlns:exsl="http://exslt.org/common" extension-element-prefixes="exsl">'
)
NAMES = '<xsl:template match="/"><p><xsl:value-of select="/a/b"/></p></xsl:template>'


class Doc(ProcessContext):
    document: Any
    message: Any


@pytest.fixture
def sheet(tmp_path: Path) -> Any:
    """Return a function that writes a stylesheet of the given body and returns its path."""

    def write(body: str, head: str = HEAD, name: str = "sheet.xsl") -> Path:
        path = tmp_path / name
        path.write_text(f"{head}\n{body}\n</xsl:stylesheet>", encoding="utf-8")
        return path

    return write


def apply(stylesheet: Path, document: Any, **options: Any) -> Any:
    """Return what the stylesheet makes of the document."""
    context = SimpleNamespace(document=document, message=None)
    ApplyXslt(stylesheet, **options).execute(context)
    return context.message


@pytest.mark.parametrize(
    "document",
    [
        "<a><b>Müller &amp; 王</b></a>",
        '<?xml version="1.0" encoding="iso-8859-1"?><a><b>Müller &amp; 王</b></a>',
        "<a><b>Müller &amp; 王</b></a>".encode("utf-16"),
        etree.fromstring("<a><b>Müller &amp; 王</b></a>"),
        etree.ElementTree(etree.fromstring("<a><b>Müller &amp; 王</b></a>")),
    ],
    ids=["text", "text with an outdated declaration", "bytes", "element", "tree"],
)
def test_takes_text_bytes_or_a_tree(sheet: Any, document: Any) -> None:
    """Text, bytes in any encoding, an element and a tree give the same result, on a context without a base class."""
    assert apply(sheet(NAMES), document) == '<?xml version="1.0"?>\n<p>Müller &amp; 王</p>\n'


@pytest.mark.parametrize(("encoding", "umlaut"), [("iso-8859-1", b"M\xfcller"), ("utf-8", "Müller".encode())])
def test_keeps_the_encoding_that_the_stylesheet_asks_for(sheet: Any, encoding: str, umlaut: bytes) -> None:
    """Bytes come in the encoding of xsl:output, and text is decoded by that same encoding."""
    path = sheet(f'<xsl:output method="html" encoding="{encoding}"/>{NAMES}')
    document = "<a><b>Müller</b></a>"
    assert apply(path, document, result="bytes") == b"<p>" + umlaut + b"</p>\n"
    assert apply(path, document) == "<p>Müller</p>\n"


def test_text_output_and_an_empty_result(sheet: Any) -> None:
    """A stylesheet that makes plain text, or nothing, gives just that."""
    assert apply(sheet('<xsl:output method="text"/>' + NAMES), "<a><b>x &lt; y</b></a>") == "x < y"
    assert apply(sheet('<xsl:output method="text"/>' + NAMES), "<a/>") == ""


def test_parameters_come_from_fields_and_are_never_xpath(sheet: Any) -> None:
    """A parameter is the text of the field it names, whatever quotes that holds."""
    path = sheet('<xsl:param name="who"/><xsl:template match="/"><p><xsl:value-of select="$who"/></p></xsl:template>')
    context = SimpleNamespace(document="<a/>", seed_data=SimpleNamespace(name="""O'Neil "x" /a"""))
    ApplyXslt(path, params={"who": "seed_data.name"}).execute(context)
    assert """<p>O'Neil "x" /a</p>""" in context.message


def test_source_and_target_are_named_fields(sheet: Any) -> None:
    """The fields may be deep in the context, and have any name."""
    context = SimpleNamespace(seed_data=SimpleNamespace(xml="<a><b>1</b></a>", html=""))
    ApplyXslt(sheet(NAMES), source="seed_data.xml", target="seed_data.html").execute(context)
    assert "<p>1</p>" in context.seed_data.html


def test_missing_and_unset_fields_are_named(sheet: Any) -> None:
    """A field that the context does not have, and one that nobody has set, are told apart, each by its name."""
    with pytest.raises(ContextFieldError, match=r"apply-xslt reads nope, but Doc has no field nope"):
        ApplyXslt(sheet(NAMES), source="nope").execute(Doc())
    with pytest.raises(UnsetError, match=r"Doc\.document is not set"):
        ApplyXslt(sheet(NAMES)).execute(Doc())


@pytest.mark.parametrize("path", ["", "a b", "a..b", "_secret", "a._b", "1"])
def test_paths_are_checked_when_it_is_wired(sheet: Any, path: str) -> None:
    """What cannot be the path of a public field is refused at construction."""
    with pytest.raises(ValueError, match="is no path of a field"):
        ApplyXslt(sheet(NAMES), source=path)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("<xsl:template match='/['/>", r"sheet\.xsl:2: "),
        ("<xsl:template match='/'>", r"sheet\.xsl:3: Opening and ending tag mismatch"),
        ("\n\n<xsl:include href='other.xsl'/>", r"sheet\.xsl:4: .* asks for .*other\.xsl"),
        ("<xsl:import href='/etc/other.xsl'/>", r"sheet\.xsl:2: .* asks for /etc/other\.xsl"),
        ("<xsl:import href='http://127.0.0.1:9/other.xsl'/>", r"sheet\.xsl:2: .* asks for http://"),
        ("<xsl:output encoding='klingon'/>", r"sheet\.xsl:1: .* unknown encoding 'klingon'"),
    ],
    ids=["bad pattern", "not well formed", "include", "import", "import from the network", "encoding"],
)
def test_broken_stylesheets_fail_when_wired(sheet: Any, tmp_path: Path, body: str, place: str) -> None:
    """A stylesheet that cannot work is refused at construction, with file and line; existing includes too."""
    sheet("<xsl:template match='b'>leaked</xsl:template>", name="other.xsl")
    with pytest.raises(StylesheetError, match=place):
        ApplyXslt(sheet(body))


def test_a_missing_stylesheet_is_named(tmp_path: Path) -> None:
    """A path that leads nowhere is refused at construction."""
    with pytest.raises(StylesheetError, match=r"none\.xsl:1: cannot read the stylesheet: No such file"):
        ApplyXslt(tmp_path / "none.xsl")


def test_entities_are_refused_everywhere(sheet: Any) -> None:
    """Entities, which can read files or grow without bound, are refused in stylesheets, text and trees."""
    laughs = '<!DOCTYPE a [<!ENTITY l "ha"><!ENTITY m "&l;&l;&l;&l;">]><a><b>&m;</b></a>'
    outside = '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/hostname">]><a><b>&f;</b></a>'
    for document in (laughs, outside, etree.fromstring(laughs)):
        with pytest.raises(TransformError, match="declares entities"):
            apply(sheet(NAMES), document)
    with pytest.raises(StylesheetError, match="entities are not resolved"):
        ApplyXslt(sheet(NAMES, head='<!DOCTYPE x [<!ENTITY nbsp "&#160;">]>' + HEAD))


@pytest.mark.parametrize(
    "body",
    [
        "<xsl:template match='/'><xsl:copy-of select=\"document('{path}')\"/></xsl:template>",
        "<xsl:template match='/'><xsl:for-each select='document(string(/a/@f))'><x/></xsl:for-each></xsl:template>",
        "<xsl:template match='/'><exsl:document href='{out}'><x/></exsl:document></xsl:template>",
        "<xsl:template match='/'><xsl:document href='{out}'><x/></xsl:document></xsl:template>",
    ],
    ids=["document()", "document() by data", "exsl:document", "xsl:document"],
)
def test_stylesheets_neither_read_nor_write_files(sheet: Any, tmp_path: Path, body: str) -> None:
    """Reading or writing any file is refused with what was tried, and leaves nothing behind."""
    secret, out = tmp_path / "secret.xml", tmp_path / "out.xml"
    secret.write_text("<secret/>")
    with pytest.raises(TransformError, match=r"sheet\.xsl:2: .*(read|write) rights for .* denied"):
        apply(sheet(body.format(path=secret, out=out)), f"<a f='{secret}'/>")
    assert not out.exists()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("<a>", "document is not well-formed XML"),
        ("", "document is not well-formed XML"),
        ("<a>\ud800</a>", "document is not well-formed XML"),
        (None, "must be XML text, bytes or an lxml tree, not NoneType"),
        ({}, "must be XML text, bytes or an lxml tree, not dict"),
        ("<b/>", "no a in the document"),
    ],
    ids=["not closed", "empty", "surrogate", "None", "dict", "xsl:message"],
)
def test_documents_that_cannot_be_transformed(sheet: Any, document: Any, said: str) -> None:
    """What is no document, and what the stylesheet itself refuses, is an error that says why."""
    path = sheet(
        "<xsl:template match='/b'><xsl:message terminate='yes'>no a in the document</xsl:message></xsl:template>"
    )
    with pytest.raises(TransformError, match=said):
        apply(path, document)


def test_endless_recursion_ends(sheet: Any) -> None:
    """A template that calls itself for ever is stopped, with the reason first."""
    path = sheet(
        "<xsl:template match='/'><xsl:call-template name='x'/></xsl:template>"
        "<xsl:template name='x'><xsl:call-template name='x'/></xsl:template>"
    )
    with pytest.raises(TransformError, match="infinite template recursion"):
        apply(path, "<a/>")


def test_one_object_serves_eight_threads(sheet: Any) -> None:
    """Eight threads that transform at once through one object each get their own result, every time."""
    transform = ApplyXslt(sheet('<xsl:output method="text"/>' + NAMES))
    barrier = threading.Barrier(8)

    def work(number: int) -> bool:
        barrier.wait()
        right = True
        for turn in range(200):
            context = SimpleNamespace(document=f"<a><b>{number}-{turn}</b></a>")
            transform.execute(context)
            right &= context.message == f"{number}-{turn}"
        return right

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [True] * 8
