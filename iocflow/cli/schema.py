"""`iocflow schema`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from iocflow.cli.command import Session, command
from iocflow.container.schema import json_schema, vscode_tags
from iocflow.launch import ExitCode

__all__ = ["schema"]


@command(
    "iocflow schema > config/iocflow.schema.json",
    "iocflow schema --vscode",
)
def schema(
    session: Session,
    vscode: Annotated[
        bool, typer.Option("--vscode", help="Print the settings for VS Code's YAML extension instead: the four tags.")
    ] = False,
) -> ExitCode:
    """Print the JSON Schema of container files, with the sections that installed extensions add.

    An editor that knows YAML completes and checks a file whose first line is
    `# yaml-language-server: $schema=./iocflow.schema.json`.
    """
    session.terminal.write(json.dumps(vscode_tags() if vscode else json_schema(), indent=2, ensure_ascii=False))
    return ExitCode.OK
