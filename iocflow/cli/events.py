"""`iocflow events`: dead letters, the events that were put aside because their runs failed or could not begin."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer

from iocflow.cli.command import FailureError, Json, Session, UsageError, command, group
from iocflow.cli.files import File, open_app
from iocflow.cli.terminal import table
from iocflow.events import DeadLetter, EventLauncher, KeepsDeadLetters
from iocflow.launch import ExitCode
from iocflow.wiring import did_you_mean

__all__ = ["events"]

WIDTH = 100
"""Characters of a reason in a list."""

LauncherName = Annotated[str, typer.Argument(metavar="LAUNCHER", help="The launcher whose source keeps them.")]
Letter = Annotated[str, typer.Argument(metavar="ID", help="What the list calls it.")]


@command(
    "iocflow events list config/fare_drop.yaml fare-events",
    "iocflow events list config/fare_drop.yaml fare-events --json",
    name="list",
)
def list_(session: Session, file: File, launcher: LauncherName, as_json: Json = False) -> ExitCode:
    """List the dead letters of a launcher's source, the oldest first.

    It may be read by a daemon meanwhile. Nothing that a container file names is constructed for it.
    """
    found = list(_source(session, file, launcher).dead_letters())
    if as_json:
        session.terminal.write_json([_data(letter) for letter in found])
        return ExitCode.OK
    rows = [(letter.id, _at(letter), _where(letter), _why(letter)[:WIDTH]) for letter in found]
    if rows:
        plain = [tuple(map(session.terminal.plain, row)) for row in rows]
        for line in table([("id", "at", "activity", "reason"), *plain]):
            session.terminal.write(line.rstrip())
    session.terminal.write(f"{len(found)} dead letter{'' if len(found) == 1 else 's'}")
    return ExitCode.OK


@command(
    "iocflow events show config/fare_drop.yaml fare-events event.json",
    "iocflow events show config/fare_drop.yaml fare-events event.json --raw > event.json",
)
def show(
    session: Session,
    file: File,
    launcher: LauncherName,
    letter: Letter,
    raw: Annotated[bool, typer.Option("--raw", help="Print what came, byte for byte, and nothing else.")] = False,
    as_json: Json = False,
) -> ExitCode:
    """Tell all of one dead letter: why it is one, and what came."""
    if raw and as_json:
        raise UsageError("--raw prints the bytes and --json tells of them; choose one")
    found = _one(_source(session, file, launcher), letter)
    if raw:
        if found.body is None:
            raise FailureError(f"what came as {letter} cannot be read any more")
        session.terminal.write_bytes(found.body)
    elif as_json:
        session.terminal.write_json(_data(found))
    else:
        for line in _told(found):
            session.terminal.write(session.terminal.plain(line))
    return ExitCode.OK


@command(
    "iocflow events replay config/fare_drop.yaml fare-events event.json",
    "iocflow events replay config/fare_drop.yaml fare-events --all",
)
def replay(
    session: Session,
    file: File,
    launcher: LauncherName,
    letters: Annotated[list[str] | None, typer.Argument(metavar="ID", help="What the list calls them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them, in place of naming them.")] = False,
    as_json: Json = False,
) -> ExitCode:
    """Bring dead letters again, byte for byte as they came.

    They are run when a daemon reads the source, or as soon as one does. The exit status is 1 when one of them is not
    there.
    """
    if every == bool(letters):
        raise UsageError("name the dead letters by what the list calls them, or write --all")
    source = _source(session, file, launcher)
    wanted = [letter.id for letter in source.dead_letters()] if every else list(dict.fromkeys(letters or ()))
    went = source.replay(wanted)
    missing = [one for one in wanted if one not in went]
    if as_json:
        session.terminal.write_json({"replayed": list(went), "missing": missing})
    else:
        session.terminal.write(f"{len(went)} event{'' if len(went) == 1 else 's'} replayed")
    if missing:
        raise FailureError(f"there is no dead letter {', '.join(missing)}")
    return ExitCode.OK


def _source(session: Session, file: str, name: str) -> KeepsDeadLetters:
    """Return the source of a launcher, if it keeps dead letters.

    Raises:
        UsageError: There is no such launcher, or its source keeps none.
    """
    with session.terminal.reserved(), open_app(session, file, drawn=True) as app:
        launchers = cast(Sequence[Any], app.section("launchers") or ())
    with_source = {each.name: each for each in launchers if isinstance(each, EventLauncher)}
    if name not in with_source:
        if any(each.name == name for each in launchers):
            raise UsageError(f"launcher {name} has no source of events; {_known(with_source)}")
        raise UsageError(
            f"{file} has no launcher {name}; {did_you_mean(name, with_source) if with_source else _known({})}"
        )
    source = with_source[name].source
    if not isinstance(source, KeepsDeadLetters):
        raise UsageError(f"launcher {name} reads {source.name}, which keeps no dead letters that a command could reach")
    return source


def _known(names: Any) -> str:
    return f"those with one: {', '.join(names)}" if names else "no launcher in it has a source of events"


def _one(source: KeepsDeadLetters, id: str) -> DeadLetter:
    known = []
    for letter in source.dead_letters():
        if letter.id == id:
            return letter
        known.append(letter.id)
    raise FailureError(f"there is no dead letter {id}; {did_you_mean(id, known) if known else 'there is none at all'}")


def _data(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter as JSON: the body as text where it is one, else in base64."""
    reason = letter.reason.as_dict() if letter.reason else {}
    data = {
        "id": letter.id,
        "at": letter.at.isoformat() if letter.at else None,
        **reason,
        "headers": _plain(letter.headers),
    }
    if letter.body is not None:
        try:
            data["body"] = letter.body.decode()
        except UnicodeDecodeError:
            data["body_base64"] = base64.b64encode(letter.body).decode()
    return data


def _plain(value: Any) -> Any:
    """Return what headers hold as JSON can have it."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _told(letter: DeadLetter) -> list[str]:
    reason = letter.reason.as_dict() if letter.reason else {"reason": "not known"}
    rows = [("at", _at(letter)), *((name, value) for name, value in reason.items() if value)]
    rows += [(f"header {name}", str(value)) for name, value in letter.headers.items()]
    body = "it cannot be read any more" if letter.body is None else letter.body.decode("utf-8", "backslashreplace")
    size = "" if letter.body is None else f", {len(letter.body):,} bytes"
    return [f"dead letter {letter.id}", *(f"  {line.rstrip()}" for line in table(rows)), f"body{size}:", body]


def _at(letter: DeadLetter) -> str:
    return letter.at.astimezone().isoformat(" ", "seconds") if letter.at else ""


def _where(letter: DeadLetter) -> str:
    return letter.reason.activity if letter.reason else ""


def _why(letter: DeadLetter) -> str:
    return letter.reason.reason if letter.reason else "not known"


events = group(
    "events",
    list_,
    show,
    replay,
    help="Dead letters, the events that were put aside: look at them, or bring them again.",
)
