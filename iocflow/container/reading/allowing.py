"""Which packages the names of a container file may come from, and who allows them."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from iocflow.container.nodes import clipped, is_unresolved
from iocflow.container.reading.files import Refusal, lines_of, read_text
from iocflow.wiring import Findings, Node, Place, Scalar

__all__ = [
    "ProjectAllow",
    "given_allow",
    "is_dotted",
    "is_standard",
    "lies_in",
    "package_name",
    "project_allow",
    "refusal_of",
]

_TOML_PLACE = re.compile(r" *\(at (?:line (\d+), column (\d+)|end of document)\)")
_OURS = re.compile(r"""(?m)(?:^|\.)\s*["']?iocflow["']?\s*[\].=]""")
_ALLOW = re.compile(r"""\ballow["']?\s*=""")


def is_dotted(text: str) -> bool:
    """Return whether `text` is a dotted name: identifiers with single dots between them."""
    return all(part.isidentifier() for part in text.split("."))


def is_standard(name: str) -> bool:
    """Return whether the dotted `name` begins with a module of the standard library."""
    return name.partition(".")[0] in sys.stdlib_module_names


def lies_in(name: str, packages: Iterable[str]) -> bool:
    """Return whether the module or package `name` is one of `packages`, or lies in one of them."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def package_name(node: Node, what: str, findings: Findings) -> str | None:
    """Return the package that `node` names if a file may allow it, else note why not.

    Args:
        node: What the file says.
        what: The key in words, for the message.
        findings: Takes the mistake.
    """
    if is_unresolved(node):
        return None
    text = node.text if isinstance(node, Scalar) else ""
    if not isinstance(node, Scalar) or node.value != text or node.tag or not is_dotted(text):
        said = f", not `{clipped(text)}`" if text else ""
        findings.error(node.place, f"{what} takes the dotted name of a package{said}", "write it like `acme.jobs`")
        return None
    refused = refusal_of(text)
    if refused:
        findings.error(node.place, f"{what} cannot name {refused[0]} `{text}`", refused[1])
        return None
    return text


def refusal_of(package: str) -> tuple[str, str] | None:
    """Return what `package` is that a file cannot allow, and what to do instead; None if it can."""
    if is_standard(package):
        return "the standard library's", "call it in a function of a package of your own, and name that"
    if package.partition(".")[0] == "iocflow":
        return "iocflow's own", "its activities and handlers can be named without it"
    return None


def given_allow(given: Iterable[str], place: Place, findings: Findings) -> tuple[str, ...]:
    """Return those of the `given` packages that can be allowed; note the others at `place`.

    A caller allows no more than a file: with the standard library, whoever writes the file could run any command.
    """
    allowed = []
    for package in given:
        refused = refusal_of(package)
        if not is_dotted(package):
            what = f"`allow=` takes the dotted names of packages, not `{clipped(package)}`"
            findings.error(place, what, "write it like `acme.jobs`")
        elif refused:
            findings.error(place, f"`allow=` cannot name {refused[0]} `{package}`", refused[1])
        else:
            allowed.append(package)
    return tuple(allowed)


@dataclass(frozen=True, slots=True)
class ProjectAllow:
    """What the pyproject.toml files allow, and their lines where one has a mistake."""

    packages: tuple[str, ...]
    sources: dict[str, list[str]]


def project_allow(root: str, findings: Findings) -> ProjectAllow:
    """Return what `[tool.iocflow] allow` of pyproject.toml lists.

    The files that count are the one in the working directory, and the nearest one in `root` or above it.
    """
    packages: list[str] = []
    sources: dict[str, list[str]] = {}
    for path in _project_files(root):
        text = read_text(path)
        if isinstance(text, Refusal):
            findings.error(Place(path, 1, 1), text.what, text.remedy)
        elif _OURS.search(text) and _ALLOW.search(text):  # parsing takes as long as reading all else
            before = len(findings.mistakes)
            packages += _allowed_in(path, text, findings)
            if len(findings.mistakes) > before:
                sources[path] = lines_of(text)
    return ProjectAllow(tuple(packages), sources)


def _project_files(root: str) -> list[str]:
    """Return the one of the working directory and the nearest one at or above `root`, as far as there are."""
    here = "pyproject.toml"
    found = [here] if os.path.isfile(here) else []
    folder = root
    while not os.path.isfile(os.path.join(folder, here)):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return found
    near = os.path.join(folder, here)
    return found if found and os.path.samefile(near, here) else [*found, near]


def _allowed_in(path: str, text: str, findings: Findings) -> list[str]:
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        at = _TOML_PLACE.search(str(error))
        place = Place(path, int(at[1]), int(at[2])) if at and at[1] else Place(path, len(lines_of(text)), 1)
        findings.error(place, f"not TOML: {_TOML_PLACE.sub('', str(error))}", "correct it")
        return []
    entries = tool.get("iocflow", {}).get("allow", []) if isinstance(tool.get("iocflow", {}), dict) else []
    line = next((at for at, line in enumerate(lines_of(text), 1) if _ALLOW.search(line)), 1)
    place = Place(path, line, 1)
    if not isinstance(entries, list) or not all(isinstance(entry, str) and is_dotted(entry) for entry in entries):
        findings.error(place, "`allow` of `[tool.iocflow]` is a list of packages", 'write `allow = ["acme.jobs"]`')
        return []
    for entry in entries:
        refused = refusal_of(entry)
        if refused:
            findings.error(place, f"`allow` of `[tool.iocflow]` cannot name {refused[0]} `{entry}`", refused[1])
    return [entry for entry in entries if not refusal_of(entry)]
