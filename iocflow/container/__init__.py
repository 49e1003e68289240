"""From a container file to a running application.

A load flows through three folders: `reading` makes one document of the files, `checking` a checked description of the
document (with `inspecting`, which asks the user's classes what they take), `building` the objects that it describes.
`loading` lets a file flow through them, and `app` is what comes out; `clients` only submits durable runs.
"""

from iocflow.container.app import App
from iocflow.container.clients import client
from iocflow.container.failures import (
    BuildError,
    ClosedError,
    CloseError,
    NotDurableError,
    UnknownIdError,
    WrongTypeError,
)
from iocflow.container.loading import Blueprint, Checked, blueprint, check, load
from iocflow.container.secrets import Secrets

__all__ = [
    "App",
    "Blueprint",
    "BuildError",
    "Checked",
    "CloseError",
    "ClosedError",
    "NotDurableError",
    "Secrets",
    "UnknownIdError",
    "WrongTypeError",
    "blueprint",
    "check",
    "client",
    "load",
]
