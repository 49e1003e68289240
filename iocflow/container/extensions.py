"""What installed distributions add to container files, found by entry points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, distributions
from types import MappingProxyType

from iocflow.errors import IocflowError
from iocflow.wiring import SectionReader

__all__ = ["ExtensionError", "Extensions"]


class ExtensionError(IocflowError):
    """An installed extension cannot be loaded; the message names its entry point."""


class Extensions:
    """The installed extensions; the distributions are scanned at first use, and once."""

    @cached_property
    def _points(self) -> tuple[EntryPoint, ...]:
        # `entry_points()` parses the file of every distribution; only a few of them name a group of ours
        points: dict[tuple[str, str], EntryPoint] = {}
        for distribution in distributions():
            if "[iocflow." in (distribution.read_text("entry_points.txt") or ""):
                for point in distribution.entry_points:
                    points.setdefault((point.group, point.name), point)  # the first one on the path, as an import
        return tuple(points.values())

    @cached_property
    def sections(self) -> Mapping[str, EntryPoint]:
        """The readers of sections by the key of their section (group `iocflow.sections`)."""
        return MappingProxyType({point.name: point for point in self._points if point.group == "iocflow.sections"})

    @cached_property
    def components(self) -> frozenset[str]:
        """What files may name without allowing it: packages, or names in a module (group `iocflow.components`)."""
        points = (point for point in self._points if point.group == "iocflow.components")
        return frozenset(point.value.replace(":", ".") for point in points)

    def reader(self, key: str) -> SectionReader:
        """Return a new reader of the section `key`.

        Raises:
            ExtensionError: Its module or class cannot be loaded.
        """
        point = self.sections[key]
        try:
            reader: SectionReader = point.load()()
        except Exception as error:
            raise ExtensionError(
                f"the reader of section `{key}` ({point.value}) cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        return reader
