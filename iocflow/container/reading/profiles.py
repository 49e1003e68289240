"""Profiles: whole definitions that take the place of others when the profile is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from iocflow.container.extensions import Extensions
from iocflow.container.nodes import clipped, is_empty
from iocflow.container.reading.merging import Merged
from iocflow.container.reading.resolving import key_paths
from iocflow.container.reading.structure import STRUCTURAL, SourceFile, is_section, table_or_note
from iocflow.container.reading.values import check_values, overlaid
from iocflow.wiring import Findings, Node, Place, Table, did_you_mean

__all__ = ["Profiles"]


class Profiles:
    """The profiles of all files of a document."""

    def __init__(self, findings: Findings, absent: Findings) -> None:
        """Begin without any profile; `absent` takes the mistakes about what no file defines."""
        self._findings = findings
        self._absent = absent
        self._merged: dict[str, Merged] = {}
        self._values: dict[str, Table] = {}

    def add(self, source: SourceFile, extensions: Extensions) -> None:
        """Add the profiles of one file; `extensions` know the sections that have readers."""
        for name, _, node in source.tables.get("profiles", ()):
            merged = self._merged.setdefault(
                name, Merged(self._findings, self._absent, f" in profile `{clipped(name)}`")
            )
            if is_empty(node):
                continue
            profile = table_or_note(node, f"profile `{clipped(name)}`", self._findings)
            for key, place, section in profile or ():
                if key not in ("values", "defaults") and key not in extensions.sections:
                    self._note_unknown(key, place, {"values", "defaults", *extensions.sections})
                elif is_empty(section):
                    continue
                elif key == "values":
                    self._add_values(name, section)
                elif is_section(key, section, f"`{key}:` of profile `{clipped(name)}`", self._findings):
                    merged.add(key, place, section)

    def check_names(self, chosen: Iterable[str], place: Place) -> None:
        """Note each chosen name that no file defines, at `place`."""
        for name in chosen:
            if name not in self._merged:
                remedy = did_you_mean(name, self._merged) if self._merged else "the files have no `profiles:`"
                self._absent.error(place, f"unknown profile `{clipped(name)}`", remedy)

    def apply(self, sections: Merged, chosen: Sequence[str]) -> None:
        """Check every profile against the `sections`, and replace what the chosen ones say, in their order."""
        for name in self._in_order(chosen):
            sections.replace(self._merged[name], name, chosen=name in chosen)

    def apply_values(self, values: Table, chosen: Sequence[str]) -> Table:
        """Check the values of every profile, and return `values` with those of the chosen ones in their place."""
        for name in self._in_order(chosen):
            if name in self._values:
                overlay = overlaid(values, self._values[name], self._unknown_value(name, values))
                values = overlay if name in chosen else values
        return values

    def others(self, chosen: Iterable[str]) -> list[str]:
        """Return the names of the profiles that are not chosen."""
        return [name for name in self._merged if name not in set(chosen)]

    def _in_order(self, chosen: Sequence[str]) -> list[str]:
        """Return the profiles that are not chosen, then those that are; each is compared with what it finds then."""
        others = [name for name in self._merged if name not in chosen]
        return [*others, *(name for name in dict.fromkeys(chosen) if name in self._merged)]

    def _add_values(self, name: str, node: Node) -> None:
        values = table_or_note(node, f"`values:` of profile `{clipped(name)}`", self._findings)
        if values:
            check_values(values, self._findings)
            before = self._values.get(name)
            self._values[name] = overlaid(before, values) if before else values

    def _note_unknown(self, key: str, place: Place, known: Iterable[str]) -> None:
        if key in STRUCTURAL:
            self._findings.error(
                place, f"`{key}:` cannot stand in a profile", "a profile replaces definitions and values"
            )
        else:
            self._findings.error(place, f"unknown section `{clipped(key)}` in a profile", did_you_mean(key, known))

    def _unknown_value(self, name: str, values: Table) -> Callable[[str, Place], None]:
        def note(key: str, place: Place) -> None:
            what = f"profile `{name}` replaces the value `{clipped(key)}`, which is not defined"
            self._absent.error(place, what, did_you_mean(key, key_paths(values)))

        return note
