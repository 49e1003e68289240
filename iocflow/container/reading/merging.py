"""Sections of several files as one; an id is defined once, and only a profile replaces it."""

from __future__ import annotations

from dataclasses import dataclass, field

from iocflow.container.nodes import clipped
from iocflow.wiring import Findings, Listing, Node, Place, Table, did_you_mean

__all__ = ["ONE_ID_SPACE", "Merged"]

ONE_ID_SPACE = ("beans", "processors")
"""The sections whose keys are ids of one space: a processor can stand wherever a bean can."""


@dataclass(slots=True)
class _Section:
    """A section as it grows; `single` is one that is no mapping."""

    place: Place
    entries: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)
    single: Node | None = None


class Merged:
    """The sections of a document: mappings are merged by key, lists one after the other, anything else stands once."""

    def __init__(self, findings: Findings, absent: Findings, where: str = "") -> None:
        """Begin without any section.

        Args:
            findings: Takes the mistakes.
            absent: Takes those about what no file defines.
            where: Ends the message about what is defined twice.
        """
        self._findings = findings
        self._absent = absent
        self._where = where
        self._sections: dict[str, _Section] = {}

    def add(self, key: str, place: Place, node: Node) -> None:
        """Add what one file says under `key`, which stands at `place`."""
        section = self._sections.get(key)
        if section is None:
            section = self._sections[key] = _Section(place, single=None if isinstance(node, Table) else node)
        elif isinstance(section.single, Listing) and isinstance(node, Listing):
            section.single = Listing(place, section.single.items + node.items)
        elif section.single or not isinstance(node, Table):
            self._note_second(f"section `{key}`", place, section.place)
            return
        section.place = place  # in the end that of the root file
        for name, name_place, child in node if isinstance(node, Table) else ():
            home = self._home(key, name)
            if home:
                self._note_second(_called(key, name), name_place, home.keys[name])
            else:
                section.entries[name] = child
                section.keys[name] = name_place

    def replace(self, profile: Merged, name: str, *, chosen: bool) -> None:
        """Check that all of `profile`, called `name`, replaces something that is here; if `chosen`, replace it."""
        for key, section in profile._sections.items():
            mine = self._sections.get(key)
            if section.single:
                self._replace_single(key, section.single, f"profile `{name}`", section.place, chosen=chosen)
                continue
            for entry, node in section.entries.items():
                home = self._home(key, entry)
                place = section.keys[entry]
                if home is None:
                    what = f"profile `{name}` replaces {_called(key, entry)}, which is not defined"
                    self._absent.error(place, what, did_you_mean(entry, self._names(key)))
                elif chosen:
                    if home is not mine:
                        del home.entries[entry], home.keys[entry]
                        home = mine = self._sections.setdefault(key, _Section(section.place))
                    home.entries[entry], home.keys[entry] = node, place

    def nodes(self) -> dict[str, Node]:
        """Return every section as one node."""
        return {
            key: section.single or Table(section.place, section.entries, section.keys)
            for key, section in self._sections.items()
        }

    def _replace_single(self, key: str, node: Node, who: str, place: Place, *, chosen: bool) -> None:
        mine = self._sections.get(key)
        if mine is None:
            self._absent.error(place, f"{who} replaces section `{key}`, which is not defined", "define it first")
        elif mine.single is None:
            related = ((mine.place, "defined here"),)
            what = f"{who} replaces the mapping `{key}` by something else"
            self._findings.error(node.place, what, "write a mapping", related=related)
        elif chosen:
            mine.single = node

    def _home(self, key: str, name: str) -> _Section | None:
        """Return the section that defines `name`, which for an id may be the other one of its space."""
        for section_key in ONE_ID_SPACE if key in ONE_ID_SPACE else (key,):
            section = self._sections.get(section_key)
            if section and name in section.keys:
                return section
        return None

    def _names(self, key: str) -> list[str]:
        keys = ONE_ID_SPACE if key in ONE_ID_SPACE else (key,)
        return [
            name for section_key in keys if section_key in self._sections for name in self._sections[section_key].keys
        ]

    def _note_second(self, what: str, place: Place, first: Place) -> None:
        remedy = "rename or remove one; only a profile replaces a definition"
        self._findings.error(place, f"{what} is defined twice{self._where}", remedy, related=((first, "first here"),))


def _called(key: str, name: str) -> str:
    return f"id `{clipped(name)}`" if key in ONE_ID_SPACE else f"`{clipped(name)}` of `{key}`"
