"""The JSON Schemas of the container's own sections, as editors use them."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from iocflow.container.extensions import Extensions

GOOD: dict[str, dict[str, Any]] = {
    "beans": {
        "base": {"abstract": True, "args": {"database": "x"}},
        "send": {"class": ".Send", "parent": "base", "time-limit": "3s", "depends-on": ["base"], "scope": "prototype"},
        "retried": {
            "call": ".step",
            "on-error": [{"for": "OSError", "retry": {"attempts": 3, "delay": "1s"}}, "alert"],
        },
    },
    "processors": {
        "p": {
            "context": ".Order",
            "sequence": [
                "send",
                {"do": ["a", ".b"], "time-limit": "3s", "on-error": {"then": {"goto": "a"}}},
                {"parallel-split": {"x": "a", "y": {"do": "b", "on-error": [{"then": "continue"}]}}, "join": ".merge"},
                {
                    "for-each": "lines",
                    "as": "line",
                    "do": [{"sequence": ["a"]}],
                    "may-fail": "10%",
                    "collect": {"a": "b"},
                },
                {"exclusive-choice": ".decide", "routes": {"yes": "a", "else": "end"}},
                {"class": ".Inner", "args": {}},
            ],
            "finally": "clean-up",
            "max-steps": 10,
            "concurrency": "${n}",
        },
        "q": {"context": "ctx", "exclusive-choice": {"a": {"found": "b", "else": "end"}, "b": "end"}},
        "r": {
            "context": ".Order",
            "sequence": [{"do": "a", "mode": "transactional", "on-lost": "incident"}],
            "durable": {"submitter": "customer", "number": "po", "group": "customer", "deadline": "1h"},
            "on-failure": "incident",
        },
        "s": {"context": ".Order", "sequence": ["a"], "durable": True, "on-failure": "${failing}"},
    },
    "store": {"store": "sqlite:///var/app.db"},
    "worker": {"worker": {"threads": 4, "lease": "30s", "tick": "5s", "deliveries": 5, "window": 1024}},
    "observers": {"observers": [".watch", {"class": ".Watch"}]},
    "interceptors": {"interceptors": "wrap"},
}
BAD: list[tuple[str, Any]] = [
    ("beans", {"a": {"clas": ".X"}}),
    ("beans", {"a": {"class": ".X", "scope": "session"}}),
    ("beans", {"a": {"class": ".X", "on-error": {"then": "carry on"}}}),
    ("beans", {"a": {"class": ".X", "on-error": [{"retry": {"tries": 3}}]}}),
    ("beans", {"end": {"class": ".X"}}),
    ("beans", {"a": {"class": ".X", "time-limit": 3}}),
    ("beans", {"a": {"class": ".X", "on-error": {"retry": {"delay": 3}}}}),
    ("processors", {"else": {"context": ".X", "sequence": ["a"]}}),
    ("processors", {"p": {"context": ".X"}}),
    ("processors", {"p": {"context": ".X", "sequence": ["a"], "parallel-split": {"x": "a"}}}),
    ("processors", {"p": {"context": ".X", "sequence": [{"sequence": ["a"], "parallel-split": {"x": "a"}}]}}),
    ("processors", {"p": {"context": ".X", "sequence": [{"time-limit": "3s"}]}}),
    ("processors", {"p": {"sequence": ["a"]}}),
    ("processors", {"p": {"context": ".X", "sequence": [{"do": "a", "time-limt": "3s"}]}}),
    ("processors", {"p": {"context": ".X", "parallel-split": {"x": {"do": "a", "on-error": {"thn": "stop"}}}}}),
    ("processors", {"p": {"context": ".X", "sequence": ["a"], "durable": {"grup": "po"}}}),
    ("processors", {"p": {"context": ".X", "sequence": [{"do": "a", "mode": "eager"}], "durable": True}}),
    ("beans", {"a": {"call": ".x", "on-lost": "forget"}}),
    ("observers", [3]),
    ("store", "mysql://db"),
    ("worker", {"threads": 0}),
    ("worker", {"lease": 30}),
]


def validator(section: str) -> Any:
    """Return the validator of a section."""
    schema = Extensions().reader(section).schema()
    cls = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    cls.check_schema(schema)
    return cls(schema)


@pytest.mark.parametrize("section", GOOD)
def test_schema_accepts_what_can_be_loaded(section: str) -> None:
    """Every form that the file format knows is accepted."""
    content = GOOD[section].get(section, GOOD[section])
    assert [error.message for error in validator(section).iter_errors(content)] == []


@pytest.mark.parametrize(("section", "content"), BAD)
def test_schema_refuses_what_cannot_be_loaded(section: str, content: Any) -> None:
    """A misspelt key, however deep, a value or an id that cannot be, and two kinds or none where there is one."""
    assert not validator(section).is_valid(content)
