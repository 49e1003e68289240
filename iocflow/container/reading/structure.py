"""The top of a container file: format version, package, imports, and which key is a section."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from iocflow.container.extensions import Extensions
from iocflow.container.nodes import clipped, is_empty, is_table, is_unresolved
from iocflow.container.reading.allowing import package_name
from iocflow.wiring import Findings, Listing, Node, Place, Scalar, Table, did_you_mean

__all__ = ["FORMAT", "STRUCTURAL", "SourceFile", "is_section", "read_structure", "table_or_note"]

FORMAT = 1
"""The version of the format that is read here."""

STRUCTURAL = ("iocflow", "package", "allow", "imports", "values", "defaults", "profiles")
"""The keys that say how files make up a document."""

_MAPPINGS = ("beans", "processors", "defaults")


@dataclass(slots=True)
class SourceFile:
    """What one file says, its keys sorted out.

    Attributes:
        file: The file as it is named in places.
        folder: Its absolute folder.
        package: Its `package:`, empty without one, and when it is wrong.
        package_place: Where that stands; None without one.
        allow: Its `allow:`, with places.
        imports: Its `imports:`, not followed yet.
        tables: Its `values` and `profiles`, as far as there are, at the place of that key.
        sections: Every other key, `defaults` too.
    """

    file: str
    folder: str
    package: str = ""
    package_place: Place | None = None
    allow: list[tuple[str, Place]] = field(default_factory=list)
    imports: list[Scalar] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    sections: dict[str, tuple[Place, Node]] = field(default_factory=dict)


def table_or_note(node: Node, what: str, findings: Findings) -> Table | None:
    """Return `node` if it is an untagged mapping, else note that `what` must be one."""
    if is_table(node):
        return node
    if not is_unresolved(node):
        findings.error(node.place, f"{what} must be a mapping", "write `key: value` lines, indented below it")
    return None


def is_section(key: str, node: Node, what: str, findings: Findings) -> bool:
    """Return whether `node` can be the section `key`, else note it; the readers of other sections check their own."""
    if isinstance(node, Table) or key in _MAPPINGS:
        return table_or_note(node, what, findings) is not None
    return not is_unresolved(node)


def read_structure(source: SourceFile, top: Table, extensions: Extensions, findings: Findings) -> bool:
    """Sort the keys of a file's mapping, `top`, into `source`; return whether the file is of this format.

    Args:
        source: Takes what the file says.
        top: The whole file.
        extensions: Tell which sections have a reader.
        findings: Takes the mistakes.
    """
    if not _is_our_format(top, findings):
        return False
    for key, place, node in top:
        if key == "package" and not is_empty(node):
            source.package_place = node.place
        if is_empty(node) or is_unresolved(node) or key == "iocflow":
            continue
        if key in ("values", "profiles"):
            table = table_or_note(node, f"`{key}:`", findings)
            if table:
                source.tables[key] = replace(table, place=place)
        elif key == "package":
            source.package = package_name(node, "`package:`", findings) or ""
        elif key == "allow":
            for entry in _texts(node, "`allow:` takes the names of packages", findings):
                name = package_name(entry, "`allow:`", findings)
                source.allow += [(name, entry.place)] if name else []
        elif key == "imports":
            source.imports = _texts(node, "`imports:` takes paths of files", findings)
        elif key != "defaults" and key not in extensions.sections:
            known = {*STRUCTURAL, *extensions.sections}
            findings.error(place, f"unknown section `{clipped(key)}`", did_you_mean(key, known, listed=16))
        elif is_section(key, node, f"`{key}:`", findings):
            source.sections[key] = place, node
    return True


def _is_our_format(table: Table, findings: Findings) -> bool:
    node = table.entries.get("iocflow")
    if node is None:
        findings.error(
            Place(table.place.file, 1, 1), "the format version is missing", f"write `iocflow: {FORMAT}` first"
        )
        return True
    if isinstance(node, Scalar) and node.value == FORMAT and type(node.value) is int:
        return True
    if isinstance(node, Scalar) and type(node.value) is int:
        findings.error(node.place, f"unknown format version {node.text}", f"this iocflow reads `iocflow: {FORMAT}`")
        return False  # every other line of another format might be a mistake here
    findings.error(node.place, "the format version is no number", f"write `iocflow: {FORMAT}`")
    return True


def _texts(node: Node, what: str, findings: Findings) -> list[Scalar]:
    """Return the texts of a list, or the one text that stands for a list of one; note what else there is."""
    texts = []
    for item in node.items if isinstance(node, Listing) else (node,):
        if not isinstance(item, Scalar) or not isinstance(item.value, str) or item.tag or not item.value:
            findings.error(item.place, what, "write one, or a list of them")
        elif "${" in item.value:
            findings.error(item.place, f"{what}, without placeholders", "write it out")
        elif not is_unresolved(item):
            texts.append(item)
    return texts
