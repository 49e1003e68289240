"""The JSON Schema of container files, for editors."""

from __future__ import annotations

from typing import Any

__all__ = ["json_schema", "vscode_tags"]


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a container file, sections of installed extensions included."""
    raise NotImplementedError


def vscode_tags() -> dict[str, Any]:
    """Return the setting that tells VS Code's YAML extension of the four tags."""
    raise NotImplementedError
