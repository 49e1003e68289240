"""A container file with its imports and profiles as one document, every placeholder replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from iocflow.container.extensions import Extensions
from iocflow.container.nodes import clipped
from iocflow.container.reading.allowing import given_allow, lies_in, project_allow
from iocflow.container.reading.imports import FileReader
from iocflow.container.reading.merging import Merged
from iocflow.container.reading.origins import Origins
from iocflow.container.reading.outside import Outside
from iocflow.container.reading.profiles import Profiles
from iocflow.container.reading.resolving import Resolver
from iocflow.container.reading.structure import SourceFile
from iocflow.container.reading.values import check_values, given_keys, overlaid, with_given
from iocflow.container.secrets import Secrets
from iocflow.wiring import Findings, Node, Place, Table

__all__ = ["Document", "adopt", "read_document"]


@dataclass(slots=True, repr=False)
class Document:
    """What the files say, merged. (Without a `repr`, which would show secrets.)

    Attributes:
        path: The root file as it was named.
        sections: Every section that is not structural (beans, processors, launchers, …), imports and profiles merged.
        defaults: The merged `defaults:`.
        unchosen: For each profile that is not chosen, its name and the document as it would be with that one alone.
        elsewhere: Whether it is such a one: what is not set or installed here may be where the profile is chosen.
        packages: The `package:` of each file that has one, for `.Name`; empty when it is wrong, which is noted.
        package_places: Where those stand.
        allow: The packages that names may come from.
        secrets: The secrets that were replaced.
        findings: The mistakes so far; later checks add theirs.
        sources: The lines of each file, to show in messages.
        extensions: The installed extensions.
        complete: Whether every file could be read; if not, ids that seem unknown may be defined in one that was not.
    """

    path: str
    sections: dict[str, Node] = field(default_factory=dict)
    defaults: Table | None = None
    unchosen: Sequence[tuple[str, Document]] = ()
    elsewhere: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    package_places: Mapping[str, Place] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    secrets: Secrets = field(default_factory=Secrets)
    findings: Findings = field(default_factory=Findings)
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    extensions: Extensions = field(default_factory=Extensions)
    complete: bool = True


def read_document(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
    secrets: Secrets | None = None,
) -> Document:
    """Read the file at `path` with its imports; a mistake in a file never raises, it is noted in `document.findings`.

    Args:
        path: The root file.
        profiles: The chosen profiles; a later one replaces what an earlier one says.
        values: What wins over the files' `values:`, by dotted key (`smtp.host`).
        allow: Packages that names may come from, beside those that the root file allows; what a file cannot allow, a
            caller cannot either.
        environ: The environment, `os.environ` by default.
        secrets: Gets the secrets that are read.
    """
    name = os.fspath(path)
    document = Document(name, secrets=secrets or Secrets())
    chosen = (profiles,) if isinstance(profiles, str) else tuple(profiles)
    reader = FileReader(document.extensions, document.findings)
    reader.read(name)
    document.complete = reader.complete
    document.package_places = {one.file: one.package_place for one in reader.files if one.package_place}
    document.packages = {one.file: one.package for one in reader.files if one.package_place}
    _allow(document, reader, (allow,) if isinstance(allow, str) else tuple(allow))
    if reader.files:
        environ = os.environ if environ is None else environ
        others = _merge(document, reader.files, chosen, values or {}, environ)
        document.unchosen = tuple((one, _alone(document, reader.files, one, values or {}, environ)) for one in others)
    return document


def _alone(
    document: Document, files: Sequence[SourceFile], profile: str, given: Mapping[str, Any], environ: Mapping[str, str]
) -> Document:
    """Return the document as it would be with that profile alone; what would be wrong then is noted in `document`."""
    other = replace(document, sections={}, defaults=None, findings=Findings(), elsewhere=True)
    _merge(other, files, (profile,), given, environ)
    adopt(document.findings, other.findings, profile)
    return other


def adopt(findings: Findings, others: Findings, profile: str) -> None:
    """Add to `findings` the mistakes that there would be with a profile, and are not without it."""
    known = {(one.place, one.what) for one in findings.mistakes}
    for one in others.mistakes:
        what = f"with profile `{clipped(profile)}`: {one.what}"
        if not one.warning and known.isdisjoint({(one.place, one.what), (one.place, what)}):
            findings.mistakes.append(replace(one, what=what))


def _allow(document: Document, reader: FileReader, given: tuple[str, ...]) -> None:
    """Set what the root file, the caller and the project allow; note what an imported file allows in vain."""
    project = project_allow(os.path.dirname(os.path.abspath(document.path)), document.findings)
    root = next((source for source in reader.files if source.file == document.path), None)
    own = (root.package, *(package for package, _ in root.allow)) if root else ()
    lent = given_allow(given, Place(document.path, 1, 1), document.findings)
    document.allow = tuple(dict.fromkeys(package for package in (*own, *lent, *project.packages) if package))
    document.sources = {**reader.sources, **project.sources}
    for source in reader.files:
        for package, place in source.allow:
            if not lies_in(package, document.allow):
                what = f"`allow:` of an imported file counts for nothing: `{package}`"
                document.findings.warn(place, what, f"write it in `{document.path}`")


def _merge(
    document: Document,
    files: Sequence[SourceFile],
    chosen: tuple[str, ...],
    given: Mapping[str, Any],
    environ: Mapping[str, str],
) -> list[str]:
    """Make one of the `files`, in which imported ones stand before those that import them.

    Returns:
        The names of the profiles that are not chosen.
    """
    findings = document.findings
    # elsewhere, the environment holds something else, and the caller gives something else
    here = Findings() if document.elsewhere else findings
    outside = Outside(environ, document.secrets, here)
    # when a file could not be read, what seems to be missing may be in it
    absent = findings if document.complete else Findings()
    sections, profiles = Merged(findings, absent), Profiles(findings, absent)
    values = Table(Place(document.path, 1, 1), {}, {})
    for source in files:
        for key, (place, node) in source.sections.items():
            sections.add(key, place, node)
        profiles.add(source, document.extensions)
        if "values" in source.tables:
            check_values(source.tables["values"], findings)
            values = overlaid(values, source.tables["values"])
    top = files[-1].tables.get("profiles")
    profiles.check_names(chosen, top.place if top else Place(document.path, 1, 1))
    profiles.apply(sections, chosen)
    values = with_given(profiles.apply_values(values, chosen), given, here if document.complete else Findings())
    origins = Origins(values, given_keys(given), outside)
    resolver = Resolver(values, {source.file: source.folder for source in files}, outside, origins, findings, absent)
    resolver.resolve_values()
    document.sections = {key: resolver.resolve(node) for key, node in sections.nodes().items()}
    defaults = document.sections.pop("defaults", None)
    document.defaults = defaults if isinstance(defaults, Table) else None
    return profiles.others(chosen)
