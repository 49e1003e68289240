"""From a container file to a running application.

A load flows through three folders: `reading` makes one document of the files, `checking` a checked description of the
document (with `inspecting`, which asks the user's classes what they take), `building` the objects that it describes.
`loading` lets a file flow through them, and `app` is what comes out.
"""

from iocflow.container.app import App
from iocflow.container.failures import BuildError, ClosedError, CloseError, UnknownIdError, WrongTypeError
from iocflow.container.loading import Blueprint, Checked, blueprint, check, load
from iocflow.container.secrets import Secrets

__all__ = [
    "App",
    "Blueprint",
    "BuildError",
    "Checked",
    "CloseError",
    "ClosedError",
    "Secrets",
    "UnknownIdError",
    "WrongTypeError",
    "blueprint",
    "check",
    "load",
]
