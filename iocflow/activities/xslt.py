"""XSL transformation of a document into a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from lxml import etree

from iocflow.activities.arguments import Rule, chosen, complaints, keep, path_rules
from iocflow.activities.errors import TransformError
from iocflow.activities.fields import check_path, read_field, write_field
from iocflow.activities.stylesheet import Stylesheet, declares_entities, safe_parser
from iocflow.activity import Activity

__all__ = ["ApplyXslt"]


Form = Literal["text", "bytes"]


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
        result: Form = "text",
    ) -> None:
        """Compile the stylesheet.

        Args:
            stylesheet: The path of the file.
            source: The field that holds the document; a path such as `seed_data.xml` will do.
            target: The field that gets the result.
            params: The stylesheet's parameters: the name of each, and the path of the field whose value it gets.
            result: `text` for a `str`, `bytes` for the encoding that `xsl:output` names.

        Raises:
            ValueError: A path is none, or `result` is neither word.
            StylesheetError: The file is missing, broken, or asks for other files; the message begins with `file:line`.
        """
        self.params = dict(params or {})
        keep(_rules({"source": source, "target": target, "params": self.params, "result": result}))
        self.source = source
        self.target = target
        self.result = result
        self.stylesheet = Stylesheet(stylesheet)

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the constructor would refuse; the stylesheet is read and compiled for that."""
        return complaints(_rules(arguments)) if cls.__init__ is ApplyXslt.__init__ else ()

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
            made = bytes(self.stylesheet.compiled()(document, **params))  # type: ignore[arg-type]  # the stub's profile_run is a bool
        except (etree.XSLTApplyError, ValueError) as error:
            raise TransformError(self.stylesheet.told(error)) from error
        result = made if self.result == "bytes" else made.decode(self.stylesheet.encoding)
        write_field(context, self.target, result, self.name)

    def _parse_document(self, document: object) -> etree._ElementTree | etree._Element:
        """Return the document as a tree, parsed by this thread unless it is one already."""
        tree: etree._ElementTree | etree._Element
        try:
            if isinstance(document, str):
                # The parser's encoding wins over an XML declaration, which is out of date once the text is a str.
                tree = etree.fromstring(document.encode(), safe_parser("utf-8"))
            elif isinstance(document, bytes):
                tree = etree.fromstring(document, safe_parser())
            elif isinstance(document, etree._Element | etree._ElementTree):
                tree = document
            else:
                kind = type(document).__name__
                raise TransformError(f"{self.name}: {self.source} must be XML text, bytes or an lxml tree, not {kind}")
        except (etree.XMLSyntaxError, UnicodeEncodeError) as error:
            raise TransformError(f"{self.name}: {self.source} is not well-formed XML: {error}") from error
        if declares_entities(tree):
            raise TransformError(f"{self.name}: {self.source} declares entities, which are refused; write their text")
        return tree


def _rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the arguments that are `given`."""
    yield from path_rules(given, "source", "target")
    yield from chosen(given, "result", Form)
    for param, path in (given.get("params") or {}).items():
        yield "params", partial(check_path, path, f"params.{param}")
    if "stylesheet" in given:
        yield "stylesheet", partial(Stylesheet, given["stylesheet"])
