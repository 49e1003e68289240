"""Activities in processes of their own, for code that may hang or crash the interpreter."""

from iocflow.isolation.activity import IsolatedActivity
from iocflow.isolation.errors import IsolatedProcessError, IsolationError

__all__ = ["IsolatedActivity", "IsolatedProcessError", "IsolationError"]
