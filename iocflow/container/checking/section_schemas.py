"""The container's own sections as JSON Schema, for editors; what only `check` can know is left open."""

from __future__ import annotations

from typing import Any

from iocflow.container.checking.beans import RESERVED
from iocflow.container.checking.blocks import KINDS
from iocflow.container.checking.durables import DURABLE_KEYS, ON_FAILURE
from iocflow.container.checking.error_rules import DECISIONS, RETRY_OPTIONS
from iocflow.container.checking.headers import MAKERS, SCOPES
from iocflow.container.checking.step_options import STEP_OPTIONS
from iocflow.wiring.schemas import choice, duration_schema

__all__ = ["beans_schema", "hook_schema", "on_error_schema", "processors_schema"]

Schema = dict[str, Any]

_DURATION = duration_schema("A duration.")
_NAME: Schema = {"type": "string", "minLength": 1}
_NAMES: Schema = {"anyOf": [_NAME, {"type": "array", "items": _NAME}]}
_RULES: Schema = {"$ref": "#/$defs/rules"}
_STEP: Schema = {"$ref": "#/$defs/step"}
_MAYBE_PLACEHOLDER: Schema = {"type": "string", "pattern": r"\$\{"}


def _number(minimum: int, description: str) -> Schema:
    return {"description": description, "anyOf": [{"type": "integer", "minimum": minimum}, _MAYBE_PLACEHOLDER]}


def _table(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _definitions(definition: Schema, **parts: Schema) -> Schema:
    """Return the schema of a section of what is defined by id; `parts` are what its references lead to."""
    ids = {"not": {"enum": list(RESERVED)}}
    return {"type": "object", "additionalProperties": definition, "propertyNames": ids, "$defs": parts}


def on_error_schema() -> Schema:
    """Return the schema of an `on-error`: one entry, or a list of entries that are asked in order."""
    retry = {key: _DURATION if "delay" in key else {"type": ["number", "string"]} for key in RETRY_OPTIONS}
    then = {"anyOf": [{"enum": list(DECISIONS)}, _table({"goto": _NAME}, required=["goto"])]}
    rule = _table(
        {
            "for": {"description": "The errors that it is about, by class; every one without it.", **_NAMES},
            "retry": {"description": "Try again; `attempts` counts all of them.", **_table(retry)},
            "then": {"description": "A decision.", **then},
            "handle": {"description": "A bean with `handle_error`.", "anyOf": [_NAME, {"type": "object"}]},
        }
    )
    entry = {"anyOf": [_NAME, rule, {"type": "object", "required": ["class"]}]}
    return {
        "description": "Who is asked when it fails: handler beans and rules, in order.",
        "anyOf": [entry, {"type": "array", "items": entry}],
    }


def beans_schema() -> Schema:
    """Return the schema of the section `beans`."""
    bean = _table(
        {
            "class": {"description": "The class of the object; `.Name` is in this file's `package:`.", **_NAME},
            "call": {"description": "A plain function of the context, as an activity.", **_NAME},
            "factory": {"description": "A function that makes the object.", **_NAME},
            "args": {"description": "What the constructor or function is given, by name.", "type": "object"},
            "set": {"description": "Attributes that are set on the object.", "type": "object"},
            "scope": {"description": "One object for all (the default), or a new one each time.", "enum": list(SCOPES)},
            "parent": {"description": "The bean whose keys this one has, unless it has its own.", **_NAME},
            "abstract": {"description": "A template: only a `parent` for others.", "type": "boolean"},
            "init": {"description": "The method that is called when everything is set.", **_NAME},
            "close": {"description": "The method that is called at the end, last built first.", **_NAME},
            "depends-on": {"description": "Beans that are built before, and closed after.", **_NAMES},
            "on-error": _RULES,
            "time-limit": _DURATION,
            **_step_options(),
        }
    )
    return _definitions(bean, rules=on_error_schema())


def processors_schema() -> Schema:
    """Return the schema of the section `processors`."""
    steps = {"type": "array", "items": _STEP}
    processor = _table(
        {
            "context": {"description": "The class of a run's context, or a prototype bean.", **_NAME},
            **_kinds(),
            "on-error": _RULES,
            "finally": {"description": "Steps that run after the others, however they ended.", "anyOf": [steps, _STEP]},
            "max-steps": _number(1, "The bound on attempts in one run."),
            "concurrency": _number(1, "How many runs launchers may have at work at once."),
            "durable": _durable(),
            "on-failure": choice(
                "Whether a durable run that failed ends (the default), or waits for a person.", ON_FAILURE
            ),
        },
        required=["context"],
        oneOf=[{"required": [kind]} for kind in KINDS],
    )
    return _definitions(processor, step=_step_schema(), rules=on_error_schema())


def hook_schema() -> Schema:
    """Return the schema of a list of beans that go to every processor."""
    entry = {"anyOf": [_NAME, {"type": "object", "description": "An inner bean: `!new {class: …}`."}]}
    return {"anyOf": [entry, {"type": "array", "items": entry}]}


def _step_schema() -> Schema:
    inner = {"class": _NAME, "call": _NAME, "factory": _NAME, "args": {"type": "object"}, "set": {"type": "object"}}
    do = {"description": "An activity, or a list of them.", **_STEP}
    keys = {"do": do, **_kinds(), "on-error": _RULES, "time-limit": _DURATION, **_step_options(), **inner}
    kinds = [{"required": [kind]} for kind in KINDS]
    makers = [{"required": [maker]} for maker in MAKERS]
    return {
        "anyOf": [
            {"description": "The id of an activity or processor, or a dotted name.", **_NAME},
            _table(keys, oneOf=[*kinds, *makers, {"required": ["do"], "not": {"anyOf": kinds}}]),
            {"description": "Steps in order.", "type": "array", "items": _STEP},
        ]
    }


def _step_options() -> Schema:
    """Return the keys that tell how an activity is performed."""
    told = {
        "mode": "How durable runs perform it: with the record written afterwards (the default), or in one transaction.",
        "isolate": "Whether it runs in a process of its own, which its time limit can kill.",
        "on-lost": "What becomes of an attempt whose process died: it is repeated (the default), or a person decides.",
    }
    return {key: choice(told[key], words) for key, words in STEP_OPTIONS.items()}


def _durable() -> Schema:
    told = {
        "submitter": "The seed's field with who submits the run; the processor's id without it.",
        "number": "The seed's field with the submitter's own number of the run; generated without it.",
        "group": "The seed's field whose runs go one at a time, in order of submission.",
        "deadline": "The longest time from the submission to the end, or the seed's field with it.",
    }
    fields = _table({key: {"description": told[key], **_NAME} for key in DURABLE_KEYS})
    return {
        "description": "Whether its runs are stored, and go on after a crash; or which fields of the seed say more.",
        "anyOf": [{"type": "boolean"}, fields, _MAYBE_PLACEHOLDER],
    }


def _kinds() -> Schema:
    """Return the keys of the kinds of processors, with those that stand beside them."""
    route = {"anyOf": [_NAME, {"type": "object", "additionalProperties": {"type": "string"}}]}
    return {
        "sequence": {"description": "Steps in order.", "type": "array", "items": _STEP},
        "exclusive-choice": {
            "description": "A map from activity to where its results lead (the first one starts), or who decides.",
            "anyOf": [_NAME, {"type": "object", "additionalProperties": route}],
        },
        "routes": {
            "description": "What runs for each result of the activity that decides.",
            "type": "object",
            "additionalProperties": _STEP,
        },
        "parallel-split": {
            "description": "Branches that run at the same time.",
            "type": "object",
            "additionalProperties": _STEP,
        },
        "join": {"description": "Who brings the branches together.", "anyOf": [_NAME, {"type": "object"}]},
        "for-each": {"description": "The field of the context that holds the items.", **_NAME},
        "as": {"description": "The field that holds the item.", **_NAME},
        "do": {"description": "What runs for each item.", **_STEP},
        "parallel": _number(0, "How many items run at once; 0 is one after the other."),
        "may-fail": {
            "description": "How many items may fail: a number, or a share as 10%.",
            "type": ["integer", "string"],
        },
        "failed": {"description": "The field that gets the items that failed.", **_NAME},
        "collect": {"description": "For each field, the item's field that it collects.", "type": "object"},
    }
