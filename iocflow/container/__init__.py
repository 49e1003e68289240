"""From a container file to a running application: read, check as a whole, then build."""

from iocflow.container.app import App
from iocflow.container.check import Checked, check
from iocflow.container.failures import BuildError, ClosedError, CloseError, UnknownIdError, WrongTypeError
from iocflow.container.load import load

__all__ = [
    "App",
    "BuildError",
    "Checked",
    "CloseError",
    "ClosedError",
    "UnknownIdError",
    "WrongTypeError",
    "check",
    "load",
]
