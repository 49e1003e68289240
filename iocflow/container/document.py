"""A container file with its imports and profiles as one document, every placeholder replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iocflow.container.extensions import Extensions
from iocflow.container.secrets import Secrets
from iocflow.wiring import Findings, Node, Table

__all__ = ["Document", "read_document"]


@dataclass(slots=True)
class Document:
    """What the files say, merged.

    Attributes:
        path: The root file as it was named.
        root: The folder of the root file.
        sections: Every section that is not structural (beans, processors, launchers, …), imports and profiles merged.
        defaults: The merged `defaults:`.
        packages: The `package:` of each file that has one, for `.Name`.
        allow: The packages that names may come from.
        secrets: The secrets that were replaced.
        findings: The mistakes so far; later checks add theirs.
        sources: The lines of each file, to show in messages.
        files: The files that were read, the root file first.
        extensions: The installed extensions.
    """

    path: str
    root: str
    sections: dict[str, Node] = field(default_factory=dict)
    defaults: Table | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    secrets: Secrets = field(default_factory=Secrets)
    findings: Findings = field(default_factory=Findings)
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    extensions: Extensions = field(default_factory=Extensions)


def read_document(
    path: str | os.PathLike[str],
    *,
    profiles: Iterable[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Document:
    """Read the file at `path` with its imports; a mistake in a file never raises, it is noted in `document.findings`.

    Args:
        path: The root file.
        profiles: The chosen profiles; a later one replaces what an earlier one says.
        values: What wins over the files' `values:`, by dotted key (`smtp.host`).
        allow: Packages that names may come from, beside those that the root file allows.
        environ: The environment, `os.environ` by default.
    """
    raise NotImplementedError
