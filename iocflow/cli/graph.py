"""`iocflow graph`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from iocflow.cli.command import Session, command
from iocflow.cli.completion import processor_ids
from iocflow.cli.files import File, open_app
from iocflow.cli.mermaid import mermaid
from iocflow.cli.outline import outline, plan_of
from iocflow.launch import ExitCode

__all__ = ["Form", "graph"]


class Form(StrEnum):
    """What a processor is drawn as."""

    MERMAID = "mermaid"
    TEXT = "text"


@command(
    "iocflow graph config/fare_drop.yaml fare-drop --format text",
    "iocflow graph config/fare_drop.yaml > fare_drop.mmd",
)
def graph(
    session: Session,
    file: File,
    processor: Annotated[
        str | None, typer.Argument(metavar="PROCESSOR", help="Draw this one only.", autocompletion=processor_ids)
    ] = None,
    form: Annotated[Form, typer.Option("--format", metavar="FORM", help="mermaid or text.")] = Form.MERMAID,
) -> ExitCode:
    """Draw processors: what follows what, where results lead, who is asked when something fails.

    Mermaid is shown by many editors, forges and wikis as a picture; text suits a terminal. Nothing that a container
    file names is constructed for it.
    """
    with session.terminal.reserved(), open_app(session, file, processor=processor, drawn=True) as app:
        chosen = app.processors.values() if processor is None else [app.processor(processor)]
        plans = list(map(plan_of, chosen))
        session.terminal.write(mermaid(plans) if form is Form.MERMAID else "\n\n".join(map(outline, plans)))
    return ExitCode.OK
