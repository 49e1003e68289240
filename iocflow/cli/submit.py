"""`iocflow submit`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from iocflow.cli.command import Session, UsageError, command
from iocflow.cli.completion import processor_ids
from iocflow.cli.files import File, is_module, open_app, require_file
from iocflow.cli.lines import Lines
from iocflow.cli.progress import Progress
from iocflow.cli.seeds import read_seed
from iocflow.cli.stores import Json
from iocflow.container import Secrets, client
from iocflow.durable.client import Client, Report, Ticket
from iocflow.durable.errors import ContextError, SubmitError
from iocflow.durable.terms import Terms
from iocflow.errors import SeedError
from iocflow.launch import ExitCode
from iocflow.wiring.duration import seconds_of

__all__ = ["submit"]


def _time(name: str) -> Any:
    return typer.Option(f"--{name}", metavar="TIME", help=_TIMES[name])


_TIMES = {
    "deadline": "When it is timed out wherever it stands: from now, as 1h, or a time, as 2027-01-01T06:00.",
    "not-before": "It does not start earlier; written as --deadline.",
    "start-by": "It fails as expired when it was not started by then; written as --deadline.",
}


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a run beside its seed."""

    submitter: Annotated[
        str | None,
        typer.Option("--submitter", metavar="NAME", help="Who submits; else the seed may say, or the processor."),
    ] = None
    number: Annotated[
        str | None, typer.Option("--number", metavar="TEXT", help="The submitter's own number; generated without it.")
    ] = None
    group: Annotated[
        str | None, typer.Option("--group", metavar="KEY", help="Runs of one group go one at a time, in order.")
    ] = None
    priority: Annotated[int, typer.Option("--priority", metavar="N", min=0, max=9, help="9 goes first.")] = 0
    deadline: Annotated[str | None, _time("deadline")] = None
    not_before: Annotated[str | None, _time("not-before")] = None
    start_by: Annotated[str | None, _time("start-by")] = None

    def terms(self) -> Terms:
        """Return what a client takes.

        Raises:
            UsageError: A time is none.
        """
        return {
            "submitter": self.submitter,
            "number": self.number,
            "group": self.group,
            "priority": self.priority,
            "deadline": _moment("--deadline", self.deadline),
            "not_before": _moment("--not-before", self.not_before),
            "start_by": _moment("--start-by", self.start_by),
        }

    def refuse_beside_many(self) -> None:
        """Refuse what can be said of one run only.

        Raises:
            UsageError: With its name.
        """
        for name in ("number", "deadline", "not_before", "start_by"):
            if getattr(self, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} is about one run, and --seeds submits many")


@command(
    "iocflow submit config/order.yaml order --seed @samples/order/po_17.json --priority 5 --deadline 1h",
    "iocflow submit config/order.yaml order --seeds @samples/order/orders.jsonl",
)
def submit(
    session: Session,
    file: File,
    processor: Annotated[
        str, typer.Argument(metavar="PROCESSOR", help="A durable processor of FILE.", autocompletion=processor_ids)
    ],
    *,
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="JSON|@FILE|@-", help="The data that starts the run.")
    ] = None,
    said: Said,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="@FILE|@-", help="Many seeds, a line of JSON each, in its place.")
    ] = None,
    number_field: Annotated[
        str, typer.Option("--number-field", metavar="PATH", help="With --seeds: the field with each run's number.")
    ] = "",
    as_json: Json = False,
) -> ExitCode:
    """Submit a durable run, or one for each line of a file, and return before any step starts; a worker does them.

    No bean is built. The same submitter and number is the same run: with --number-field (or a file that says where
    seeds have their number) a long file can be submitted again after it was interrupted. The exit status is 2 when
    there is no such processor or the seed does not fit, and 1 when the number is another run's, or a line was refused.
    """
    if seeds is None:
        terms, data = said.terms(), read_seed(seed)
        with _client(session, file) as found, _usable():
            ticket = found.submit(processor, data, **terms)
        _tell(session, ticket, as_json=as_json)
        return ExitCode.OK
    if seed is not None:
        raise UsageError("--seed gives one seed and --seeds many; write one of them")
    said.refuse_beside_many()
    lines = Lines(seeds, number_field)
    with _client(session, file) as found, lines:
        with _usable():
            again = bool(number_field) or found.numbers(processor)
        with _telling_how_far(session, lines, again=again), Progress(session.terminal, "submitted") as progress:
            report = found.submit_many(
                processor,
                lines.seeds(),
                number=lines.number if number_field else None,
                submitter=said.submitter,
                group=(lambda _: said.group) if said.group else None,
                priority=said.priority,
                progress=lambda done: progress.at(lines.dealt_with(done)),
            )
    return _tell_many(session, report, lines, as_json=as_json)


def _tell(session: Session, ticket: Ticket, *, as_json: bool) -> None:
    if as_json:
        session.terminal.write_json(asdict(ticket))
        return
    there = "" if ticket.new else ", which was there"
    session.terminal.write(session.terminal.plain(f"{ticket.submitter} {ticket.number}: run {ticket.id}{there}"))


def _tell_many(session: Session, report: Report, lines: Lines, *, as_json: bool) -> ExitCode:
    """Tell what became of many seeds; what was refused, with the line it stands in."""
    refused = sorted(
        [*((lines.line_of(one.index), str(one.error)) for one in report.refused), *lines.broken],
        key=lambda one: one[0],
    )
    if as_json:
        told = [{"line": line, "error": error} for line, error in refused]
        session.terminal.write_json({"new": report.new, "known": report.known, "refused": told})
    else:
        known = f", {report.known:,} were there" if report.known else ""
        session.terminal.write(f"{report.new:,} submitted{known}")
        for line, error in refused:
            session.complain(f"{error}", head=f"{lines.name}:{line}: ")
    return ExitCode.FAILED if refused else ExitCode.OK


@contextmanager
def _usable() -> Iterator[None]:
    """Take what cannot be submitted as it is for wrong use.

    Raises:
        UsageError: There is no such processor, or the seed or a term does not fit.
    """
    try:
        yield
    except (SubmitError, SeedError, ContextError) as error:
        raise UsageError(str(error)) from error


@contextmanager
def _telling_how_far(session: Session, lines: Lines, *, again: bool) -> Iterator[None]:
    """Tell whoever stops it in the middle, or has it stopped, what is submitted, and whether all may be sent again."""
    try:
        yield
    except BaseException:
        remedy = (
            "send the whole file again: what was submitted is not submitted twice"
            if again
            else "without numbers a run that is sent again is another run: look at `iocflow runs`, and send the rest"
        )
        where = f"behind line {lines.done}" if lines.done else "in the first lines"
        session.complain(f"stopped {where} of {lines.name}; {remedy}")
        raise


@contextmanager
def _client(session: Session, file: str) -> Iterator[Client]:
    """Lend a client that can submit."""
    if is_module(file):
        with open_app(session, file) as app:
            yield app.client
        return
    require_file(file)
    secrets = Secrets()
    session.mask(secrets.mask)
    found = client(file, profiles=session.profiles, values=session.values, secrets=secrets)
    try:
        yield found
    finally:
        found.close()


def _moment(option: str, text: str | None) -> str | datetime | None:
    """Return a duration from now, or a time, in this machine's zone unless it has one."""
    if text is None or seconds_of(text) is not None:
        return text
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise UsageError(f"{option} {text} is no time; write 30s, 5m, 2h or 1d from now, or 2027-01-01T06:00") from None
