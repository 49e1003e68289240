"""XSL transformation of a document into a message."""

from __future__ import annotations

import codecs
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from lxml import etree

from iocflow.activities.errors import StylesheetError, TransformError
from iocflow.activities.fields import check_path, read_field, write_field
from iocflow.activity import Activity

__all__ = ["ApplyXslt"]

_DENY_ALL: etree.XSLTAccessControl = etree.XSLTAccessControl.DENY_ALL  # type: ignore[attr-defined]  # not in the stub
_XSL = "{http://www.w3.org/1999/XSL/Transform}"
_NOISE = ("error", "unknown error", "runtime error", "compilation error")


class _NoOtherFiles(etree.Resolver):
    """Refuses whatever a stylesheet includes or imports: libxslt's access control does not cover these two."""

    def resolve(self, system_url: str, public_id: str, context: object = None) -> Any:  # noqa: ARG002
        """Raise, whatever is asked for."""
        raise StylesheetError(f"a stylesheet must not read other files, and this one asks for {system_url}")


class ApplyXslt(Activity[Any]):
    """Transforms a field of the context with an XSLT 1.0 stylesheet and puts the result into another field.

    It works on any context that offers the field `source` and lets `target` be set; no base class is asked for. The
    source is XML as text or bytes, or an lxml element or tree. Neither the stylesheet nor the document can read or
    write a file, reach the network, or declare entities. One object serves any number of threads.
    """

    def __init__(
        self,
        stylesheet: str | Path,
        source: str = "document",
        target: str = "message",
        params: Mapping[str, str] | None = None,
        result: Literal["text", "bytes"] = "text",
    ) -> None:
        """Compile the stylesheet.

        Args:
            stylesheet: The path of the file.
            source: The field that holds the document; a path such as `seed_data.xml` will do.
            target: The field that gets the result.
            params: The stylesheet's parameters: the name of each, and the path of the field whose value it gets.
            result: `text` for a `str`, `bytes` for the encoding that `xsl:output` names.

        Raises:
            StylesheetError: The file is missing, broken, or asks for other files; the message begins with `file:line`.
        """
        self.stylesheet = str(stylesheet)
        self.source = check_path(source, "source")
        self.target = check_path(target, "target")
        self.params = {name: check_path(path, f"params.{name}") for name, path in (params or {}).items()}
        self.result = result
        self._tree = self._parse_stylesheet()
        self._encoding = self._output_encoding()
        self._of_thread = threading.local()
        self._compiled()

    def execute(self, context: Any) -> None:
        """Transform `context.<source>` into `context.<target>`.

        Raises:
            TransformError: The document is not well formed, or the stylesheet failed on it.
        """
        document = self._parse_document(read_field(context, self.source, self.name))
        params = {
            name: etree.XSLT.strparam(str(read_field(context, path, self.name))) for name, path in self.params.items()
        }
        try:
            made = bytes(self._compiled()(document, **params))  # type: ignore[arg-type]  # the stub's profile_run is a bool
        except (etree.XSLTApplyError, ValueError) as error:
            raise TransformError(self._told(error)) from error
        write_field(context, self.target, made if self.result == "bytes" else made.decode(self._encoding), self.name)

    def _parse_stylesheet(self) -> etree._Element:
        try:
            text = Path(self.stylesheet).read_bytes()
            tree = etree.fromstring(text, _parser(), base_url=self.stylesheet)
        except OSError as error:
            raise StylesheetError(f"{self.stylesheet}:1: cannot read the stylesheet: {error.strerror}") from error
        except etree.XMLSyntaxError as error:
            raise StylesheetError(f"{self.stylesheet}:{error.lineno}: {error.msg}") from error
        if _declares_entities(tree):
            remedy = "write character references instead, as in &#160;"
            raise StylesheetError(f"{self.stylesheet}:1: entities are not resolved in a stylesheet; {remedy}")
        return tree

    def _output_encoding(self) -> str:
        """Return the encoding that the stylesheet's last `xsl:output` asks for; UTF-8 when none does."""
        named = [output.get("encoding") for output in self._tree.iterchildren(f"{_XSL}output")]
        encoding = next((name for name in reversed(named) if name), "UTF-8")
        try:
            return codecs.lookup(encoding).name
        except LookupError as error:
            raise StylesheetError(f"{self.stylesheet}:1: xsl:output names an unknown encoding {encoding!r}") from error

    def _compiled(self) -> etree.XSLT:
        """Return the stylesheet compiled for this thread: lxml would compile it anew for each call from another one."""
        transform: etree.XSLT | None = getattr(self._of_thread, "transform", None)
        if transform is None:
            try:
                transform = etree.XSLT(self._tree, access_control=_DENY_ALL)
            except etree.XSLTParseError as error:
                raise StylesheetError(self._told(error)) from error
            except StylesheetError as error:
                raise StylesheetError(f"{self.stylesheet}:{self._line_of_import()}: {error}") from error
            self._of_thread.transform = transform
        return transform

    def _line_of_import(self) -> str:
        return next((str(part.sourceline) for part in self._tree.iter(f"{_XSL}import", f"{_XSL}include")), "1")

    def _parse_document(self, document: object) -> etree._ElementTree | etree._Element:
        """Return the document as a tree, parsed by this thread unless it is one already."""
        tree: etree._ElementTree | etree._Element
        try:
            if isinstance(document, str):
                # The parser's encoding wins over an XML declaration, which is out of date once the text is a str.
                tree = etree.fromstring(document.encode(), _parser("utf-8"))
            elif isinstance(document, bytes):
                tree = etree.fromstring(document, _parser())
            elif isinstance(document, etree._Element | etree._ElementTree):
                tree = document
            else:
                kind = type(document).__name__
                raise TransformError(f"{self.name}: {self.source} must be XML text, bytes or an lxml tree, not {kind}")
        except (etree.XMLSyntaxError, UnicodeEncodeError) as error:
            raise TransformError(f"{self.name}: {self.source} is not well-formed XML: {error}") from error
        if _declares_entities(tree):
            raise TransformError(f"{self.name}: {self.source} declares entities, which are refused; write their text")
        return tree

    def _told(self, error: Exception) -> str:
        """Return libxslt's messages as one line that begins with the place."""
        entries = list(getattr(error, "error_log", ()))
        line = next((entry.line for entry in entries if entry.line > 0), 1)
        said = dict.fromkeys(entry.message.strip() for entry in entries)
        told = [text for text in said if text not in _NOISE and not text.startswith(_NOISE[2:])] or [str(error)]
        return f"{self.stylesheet}:{line}: {'; '.join(told[-2:])}"


def _parser(encoding: str | None = None) -> etree.XMLParser:
    """Return a parser of its own for one document: it resolves nothing and loads nothing."""
    parser = etree.XMLParser(
        encoding=encoding, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    parser.resolvers.add(_NoOtherFiles())
    return parser


def _declares_entities(tree: etree._Element | etree._ElementTree) -> bool:
    """Tell whether the document's own DTD declares any entity; string values expand them, however they are parsed."""
    root = tree.getroottree() if isinstance(tree, etree._Element) else tree
    dtd = root.docinfo.internalDTD
    return dtd is not None and any(True for _ in dtd.iterentities())  # type: ignore[attr-defined]  # not in the stub
