"""The JSON Schema of container files, for editors; `check` knows more than a schema can say."""

from __future__ import annotations

from typing import Any

from iocflow.container.checking.section_schemas import on_error_schema
from iocflow.container.extensions import Extensions
from iocflow.container.reading.structure import FORMAT

__all__ = ["json_schema", "vscode_tags"]

_PACKAGE = {"type": "string", "pattern": r"^\w+(\.\w+)*$"}
_NOTHING = {"type": "null"}


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of a container file, sections of installed extensions included.

    Raises:
        ExtensionError: The reader of a section cannot be loaded.
    """
    extensions = Extensions()
    definitions: dict[str, Any] = {}
    sections = {key: _hoisted(extensions.reader(key).schema(), key, definitions) for key in sorted(extensions.sections)}
    replaced = {key: {"$ref": f"#/properties/{key}"} for key in ("values", "defaults", *sections)}
    profile = {"type": "object", "properties": replaced, "additionalProperties": False}
    properties = {
        "iocflow": {"description": "The version of the format.", "const": FORMAT},
        "package": {"description": "What `.Name` is relative to; it is allowed, too.", **_PACKAGE},
        "allow": _one_or_more("Packages that names may come from, beside `package`.", _PACKAGE),
        "imports": _one_or_more("Files to read first, relative to this one.", {"type": "string"}),
        "values": {"description": "What placeholders stand for: `${key}`, `${key.part}`.", "type": ["object", "null"]},
        "defaults": _or_nothing(_defaults()),
        "profiles": _or_nothing(
            {
                "description": "Definitions that take the place of others when the profile is chosen.",
                "type": "object",
                "additionalProperties": _or_nothing(profile),
            }
        ),
        **{key: _or_nothing(schema) for key, schema in sections.items()},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "iocflow container file",
        "type": "object",
        "properties": properties,
        "required": ["iocflow"],
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }


def vscode_tags() -> dict[str, Any]:
    """Return the setting that tells VS Code's YAML extension of the four tags."""
    return {"yaml.customTags": ["!ref scalar", "!new mapping", "!provider scalar", "!type scalar"]}


def _defaults() -> dict[str, Any]:
    chain = {**on_error_schema(), "description": "The chain of every processor that names none."}
    return {"type": "object", "properties": {"on-error": chain}, "additionalProperties": False}


def _one_or_more(description: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "anyOf": [item, {"type": "array", "items": item}, _NOTHING]}


def _or_nothing(schema: dict[str, Any]) -> dict[str, Any]:
    """Return `schema`, or a key with nothing after it."""
    return {"anyOf": [schema, _NOTHING]}


def _hoisted(schema: Any, key: str, definitions: dict[str, Any]) -> Any:
    """Return a section's schema with its `$defs` moved to `definitions`, where references to them are looked up."""
    if isinstance(schema, list):
        return [_hoisted(part, key, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {}
    for name, part in schema.items():
        if name == "$defs":
            definitions |= {f"{key}.{own}": _hoisted(one, key, definitions) for own, one in part.items()}
        elif name == "$ref" and str(part).startswith("#/$defs/"):
            moved[name] = f"#/$defs/{key}.{part.removeprefix('#/$defs/')}"
        else:
            moved[name] = _hoisted(part, key, definitions)
    return moved
