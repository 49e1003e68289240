"""`iocflow check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from iocflow.cli.command import Session, command
from iocflow.cli.files import File, is_module, open_app, require_file
from iocflow.cli.terminal import table
from iocflow.container import App
from iocflow.container import check as check_file
from iocflow.launch import ExitCode
from iocflow.wiring import Mistake

__all__ = ["check"]


@command(
    "iocflow check config/fare_drop.yaml",
    "iocflow check config/fare_drop.yaml --set smtp.port=2525 --json",
)
def check(
    session: Session,
    file: File,
    as_json: Annotated[bool, typer.Option("--json", help="Print mistakes and wiring as one JSON object.")] = False,
) -> ExitCode:
    """Check a container file as a start does, and construct nothing.

    Reports every mistake in one go, each with its place and what to write instead; without mistakes, what is wired. The
    exit status is 0 when the file can be loaded, also when there are warnings, and 3 when it cannot.
    """
    if is_module(file):
        with open_app(session, file) as app:
            mistakes, failed, summary, rendered = app.warnings, False, _summary(app), ""
    else:
        require_file(file)
        checked = check_file(file, profiles=session.profiles, values=session.values)
        mistakes, failed, summary = checked.mistakes, checked.failed, checked.summary
        rendered = checked.rendered(colour=session.terminal.coloured)
    if as_json:
        found = list(map(_as_data, mistakes))
        session.terminal.write_json({"file": file, "ok": not failed, "mistakes": found, "wired": dict(summary)})
    else:
        if rendered:
            session.terminal.write(rendered)
        if not failed:
            for line in _wired(file, summary):
                session.terminal.write(line)
    return ExitCode.CONFIGURATION if failed else ExitCode.OK


def _summary(app: App) -> Mapping[str, Any]:
    """Return of an application built in Python what a container file's summary says."""
    processors = {
        id: {
            "kind": processor.plan["p"][processor.plan["main"]]["kind"],
            "context": processor.context_type.__name__,
            "steps": [step.name for step in processor.steps],
            "durable": id in app.durable_ids,
        }
        for id, processor in app.processors.items()
    }
    return {"beans": 0, "processors": processors, "launchers": {}}


def _as_data(mistake: Mistake) -> dict[str, object]:
    place = mistake.place
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "what": mistake.what,
        "remedy": mistake.remedy,
        "warning": mistake.warning,
        "related": [
            {"file": at.file, "line": at.line, "column": at.column, "what": what} for at, what in mistake.related
        ],
    }


def _wired(file: str, summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the summary as lines."""
    processors, launchers = summary["processors"], summary["launchers"]
    counts = [(summary["beans"], "bean"), (len(processors), "processor"), (len(launchers), "launcher")]
    said = ", ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts if number)
    yield f"{file}: ok, {said or 'nothing is wired'}"
    kinds = {id: f"{'durable ' if each['durable'] else ''}{each['kind']}" for id, each in processors.items()}
    rows = [(id, kinds[id], ", ".join(each["steps"])) for id, each in processors.items()]
    rows += [(name, "launcher", ", ".join(map(": ".join, keys.items()))) for name, keys in launchers.items()]
    yield from table(rows)
