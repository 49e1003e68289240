"""From dotted names in a container file to the classes and functions they stand for, default-deny."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from iocflow.container.document import Document
from iocflow.wiring import Scalar

__all__ = ["Names", "Want"]

Want = Literal["class", "function", "exception", "any"]


class Names:
    """Finds what the names of one document stand for, within the packages that it is allowed to reach."""

    def __init__(self, document: Document, components: Iterable[str]) -> None:
        """Take the document, and what is registered in the entry-point group `iocflow.components`."""
        self._document = document
        self._components = tuple(components)

    def resolve(self, node: Scalar, want: Want, what: str) -> object | None:
        """Return what `node` names, or note why it cannot be had (in `document.findings`) and return None.

        Args:
            node: A dotted name, or `.Name` which is relative to the `package:` of its file.
            want: `any` is a class or a plain function.
            what: The place in words, for the message: "class of bean smtp-sender".
        """
        raise NotImplementedError
