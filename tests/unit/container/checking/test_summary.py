"""What `check` tells of a file without mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable

from iocflow.container import Checked

BODY = """
    defaults: {on-error: alert}
    beans:
      alert: {class: .Alert}
      note: {class: .Note, on-error: {for: [OSError, .LostError], retry: {attempts: 5}}}
    processors:
      p:
        context: .Order
        sequence:
          - note
          - parallel-split: {a: {do: note, on-error: [.Alert, {then: stop}]}, b: [note, .ReadLines]}
        finally: [.Note]
      q: {context: .Order, exclusive-choice: {note: .Decide, .Decide: end}, on-error: {then: {goto: note}}}
      r: {context: .stored.Buying, sequence: [.stored.pay], durable: {number: po}, on-error: []}
    store: sqlite:///runs.db
    launchers:
      often: {processor: p, every: "${often:60s}"}
"""


def test_summary(checked: Callable[..., Checked]) -> None:
    """The summary is plain data: processors with steps, handlers and context, the number of beans, launchers."""
    found = checked(BODY)
    assert found.mistakes == ()
    assert not found.failed
    assert json.loads(json.dumps(found.summary)) == {
        "file": "app.yaml",
        "beans": 2,
        "processors": {
            "p": {
                "kind": "sequence",
                "context": "Order",
                "steps": ["note", "parallel-split [a: note, b: sequence [note, read-lines]]"],
                "handlers": ["alert", "OSError, LostError: 5 attempts", "Alert", "stop"],
                "finally": ["note"],
                "durable": False,
            },
            "q": {
                "kind": "exclusive-choice",
                "context": "Order",
                "steps": ["note", "decide"],
                "handlers": ["goto note", "OSError, LostError: 5 attempts"],
                "finally": [],
                "durable": False,
            },
            "r": {
                "kind": "sequence",
                "context": "Buying",
                "steps": ["pay"],
                "handlers": [],
                "finally": [],
                "durable": True,
            },
        },
        "launchers": {"often": {"processor": "p", "every": "${often:60s}"}},
    }
