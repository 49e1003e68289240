"""iocflow: background jobs as activities, wired into processors by an IoC container file.

The names below are the public ones. A name's module is loaded when the name is first used, so that a program pays for
what it uses and no more; `__init__.pyi` lists the same names for type checkers.
"""

import importlib
from typing import Any

# At once, not lazily: `activity` is a module and a function of it, and the function is the one that is public here.
from iocflow.activity import Activity, BoundActivity, FunctionActivity, Result, StepLike, activity

_PUBLIC = {
    "async_runner": "AsyncRunner",
    "container": "App client load",
    "context": "ProcessContext StepInfo",
    "error_handling": "CONTINUE FAIL PASS STOP Decision ErrorHandler GoTo LoggingErrorHandler OnError"
    " RaisingErrorHandler Retry RetryingErrorHandler",
    "wiring.of_extras": "Client Durable",
    "errors": "IocflowError JoinConflictError RecordedError SeedError StepLimitError"
    " UnknownActivityError UnsetError UnsupportedActivityError",
    "exclusive_choice": "ExclusiveChoiceProcessor",
    "for_each": "ForEachProcessor",
    "hooks": "Interceptor RunObserver",
    "parallel_split": "ParallelSplitProcessor",
    "processor": "Processor",
    "run": "Outcome Run RunEvent RunFinished RunLogFilter RunStarted Step StepFailed StepFinished"
    " StepOutcome StepStarted",
    "sequence": "SequenceProcessor",
    "wiring": "ConfigurationError",
}
_HOME = {name: f"iocflow.{module}" for module, names in _PUBLIC.items() for name in names.split()}

__all__ = ["Activity", "BoundActivity", "FunctionActivity", "Result", "StepLike", "activity"]
__all__ += _HOME.keys() - {"Client", "Durable"}  # noqa: PLE0605 - these need an extra


def __getattr__(name: str) -> Any:
    """Load the module of a public name, and keep the name here."""
    if name in _HOME:
        return globals().setdefault(name, getattr(importlib.import_module(_HOME[name]), name))
    raise AttributeError(f"module 'iocflow' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *__all__})
