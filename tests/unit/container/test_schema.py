"""The JSON Schema for editors: valid itself, and it takes what the format takes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from iocflow.container.extensions import Extensions
from iocflow.container.schema import json_schema, vscode_tags

FILE = """
iocflow: 1
package: samples.fare_drop
imports: [parts/mail.yaml]
allow: acme
values: {db: '${env:DB:x}', smtp: {port: 25}}
defaults: {on-error: [log-it]}
beans:
  activity: {abstract: true, args: {database: "${db}"}}
  send:
    class: .SendMessage
    args: {delegate: !ref smtp-sender, to: !new {class: .Pager}}
    on-error:
      - {for: [ConnectionError, .SmtpTemporaryError], retry: {attempts: 5, delay: 500ms, growth: 2}}
      - alert-ops
processors:
  fare-drop:
    context: .FareDropContext
    sequence: [build, send]
observers: [metrics]
interceptors:
profiles:
  test: {beans: {send: {class: .Fake}}, values: {db: x}}
  empty:
"""


class Loader(yaml.SafeLoader):
    """Reads a file as an editor does that knows the four tags."""


for _tag in ("!ref", "!provider", "!type"):
    Loader.add_constructor(_tag, lambda loader, node: loader.construct_scalar(node))
Loader.add_constructor("!new", lambda loader, node: loader.construct_mapping(node, deep=True))


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """Return a validator of the schema, which is checked itself."""
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def problems(validator: Draft202012Validator, text: str) -> list[str]:
    return [error.json_path for error in validator.iter_errors(yaml.load(text, Loader))]


def test_a_file(validator: Draft202012Validator) -> None:
    """A file with everything in it fits."""
    assert problems(validator, FILE) == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("beans: {}", "$"),
        ("iocflow: 2", "$.iocflow"),
        ("iocflow: 1\nbean: {}", "$"),
        ("iocflow: 1\nbeans: {a: {clas: .X}}", "$.beans"),
        ("iocflow: 1\npackage: .x", "$.package"),
        ("iocflow: 1\nprofiles: {t: {package: x}}", "$.profiles"),
        ("iocflow: 1\nprofiles: {t: {beans: {a: {clas: .X}}}}", "$.profiles"),
        ("iocflow: 1\nvalues: [x]", "$.values"),
        ("iocflow: 1\nimports: {a: b}", "$.imports"),
        ("iocflow: 1\ndefaults: {on-eror: x}", "$.defaults"),
    ],
)
def test_mistakes(validator: Draft202012Validator, text: str, path: str) -> None:
    """What `check` refuses at first sight, an editor marks."""
    assert problems(validator, text) == [path]


def test_sections_of_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every installed reader adds its section; its own definitions are found after it was put in."""

    class Reader:
        def schema(self) -> dict[str, Any]:
            return {
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/thing"},
                "$defs": {
                    "thing": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/thing-list"}]},
                    "thing-list": {"type": "array"},
                },
            }

        def read(self, section: Any, scope: Any) -> Any:
            raise NotImplementedError

    monkeypatch.setattr(Extensions, "sections", {"things": None})
    monkeypatch.setattr(Extensions, "reader", lambda self, key: Reader())
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert problems(validator, "iocflow: 1\nthings: {a: 1, b: [x]}\nprofiles: {t: {things: {a: 2}}}") == []
    assert problems(validator, "iocflow: 1\nthings: {a: x}") == ["$.things"]


def test_every_section_has_a_schema() -> None:
    """What is installed is in the schema."""
    assert {"beans", "processors", "observers", "interceptors", "launchers", "daemon"} <= set(
        json_schema()["properties"]
    )


def test_tags_of_editors() -> None:
    """VS Code learns of the four tags, with their kinds of node."""
    assert vscode_tags() == {"yaml.customTags": ["!ref scalar", "!new mapping", "!provider scalar", "!type scalar"]}
