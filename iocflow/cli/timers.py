"""The words of the commands that change how a scheduled launcher stands, and what they do with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from iocflow.cli.command import FailureError, Session, UsageError
from iocflow.cli.stores import By, client_of
from iocflow.store.launchers import Launchers, Standing
from iocflow.wiring import did_you_mean

__all__ = ["LauncherWords", "changed"]


@dataclass(frozen=True, slots=True)
class LauncherWords:
    """Which store, and which launcher in it."""

    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="The container file, or MODULE:APP; left out with --store."),
    ] = None
    launcher: Annotated[str | None, typer.Argument(metavar="LAUNCHER", help="The id of a scheduled launcher.")] = None
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="The store itself, in place of FILE, as postgresql://…"),
    ] = None

    @property
    def words(self) -> list[str]:
        """What stands on the command line, FILE first unless there is a store."""
        return [word for word in (self.file, self.launcher) if word is not None]


def changed(
    session: Session, given: LauncherWords, by: By, change: Callable[[Launchers], Callable[..., bool]]
) -> Standing:
    """Change how a launcher stands; return how it does now.

    Raises:
        UsageError: No launcher is named.
        FailureError: The store knows none of that name.
    """
    with client_of(session, given) as (client, left):
        if len(left) != 1:
            raise UsageError("name one launcher, behind the FILE or --store URL")
        launchers = client.store.launchers
        if not change(launchers)(left[0], **by.journalled()):
            known = [one.name for one in launchers.standings()]
            hint = did_you_mean(left[0], known) if known else "a daemon makes it known (iocflow serve FILE)"
            raise FailureError(f"no daemon ever served a scheduled launcher `{left[0]}` over this store; {hint}")
        (found,) = launchers.standings(left)
        return found
