"""What the tests of reading container files share: files in a folder of their own, read from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from iocflow.container.reading.document import Document, read_document
from iocflow.container.rendering import in_order
from iocflow.wiring import Listing, Node, Table

Files = str | bytes | Mapping[str, str | bytes]
Read = Callable[..., Document]
Told = Callable[[Document], list[str]]
Plain = Callable[[Node | None], Any]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return a function that writes files and reads `app.yaml`, with the current folder there and no environment.

    One text is `app.yaml` itself, after a first line `iocflow: 1` unless it is bytes.
    """
    monkeypatch.chdir(tmp_path)

    def function(files: Files, **options: Any) -> Document:
        if isinstance(files, str):
            files = f"iocflow: 1\n{files}"
        for name, content in ({"app.yaml": files} if isinstance(files, str | bytes) else files).items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_document("app.yaml", **{"environ": {}, **options})

    return function


@pytest.fixture
def told() -> Told:
    """Return a function that gives the mistakes of a document as text, related places in brackets."""

    def function(document: Document) -> list[str]:
        return [
            f"{mistake}{''.join(f' [{place}: {what}]' for place, what in mistake.related)}"
            for mistake in in_order(document.findings.mistakes)
        ]

    return function


@pytest.fixture
def plain() -> Plain:
    """Return a function that turns nodes into dicts, lists and values; a tag becomes `(tag, value)`."""

    def function(node: Node | None) -> Any:
        if node is None:
            return None
        value: Any
        if isinstance(node, Table):
            value = {key: function(child) for key, _, child in node}
        elif isinstance(node, Listing):
            value = [function(item) for item in node.items]
        else:
            value = node.value
        return (node.tag, value) if node.tag else value

    return function
