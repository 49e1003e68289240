"""iocflow: background jobs as activities, wired into processors by an IoC container file.

The names below are the public ones. A name's module is loaded when the name is first used, so that a program pays for
what it uses and no more.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# At once, not lazily: `activity` is a module and a function of it, and the function is the one that is public here.
from iocflow.activity import Activity, BoundActivity, FunctionActivity, Result, StepLike, activity

if TYPE_CHECKING:
    from iocflow.async_runner import AsyncRunner as AsyncRunner
    from iocflow.container import App as App
    from iocflow.container import load as load
    from iocflow.context import ProcessContext as ProcessContext
    from iocflow.context import StepInfo as StepInfo
    from iocflow.error_handling import CONTINUE as CONTINUE
    from iocflow.error_handling import FAIL as FAIL
    from iocflow.error_handling import PASS as PASS
    from iocflow.error_handling import STOP as STOP
    from iocflow.error_handling import Decision as Decision
    from iocflow.error_handling import ErrorHandler as ErrorHandler
    from iocflow.error_handling import GoTo as GoTo
    from iocflow.error_handling import LoggingErrorHandler as LoggingErrorHandler
    from iocflow.error_handling import OnError as OnError
    from iocflow.error_handling import RaisingErrorHandler as RaisingErrorHandler
    from iocflow.error_handling import Retry as Retry
    from iocflow.error_handling import RetryingErrorHandler as RetryingErrorHandler
    from iocflow.errors import IocflowError as IocflowError
    from iocflow.errors import JoinConflictError as JoinConflictError
    from iocflow.errors import RecordedError as RecordedError
    from iocflow.errors import SeedError as SeedError
    from iocflow.errors import StepLimitError as StepLimitError
    from iocflow.errors import UnknownActivityError as UnknownActivityError
    from iocflow.errors import UnsetError as UnsetError
    from iocflow.errors import UnsupportedActivityError as UnsupportedActivityError
    from iocflow.exclusive_choice import ExclusiveChoiceProcessor as ExclusiveChoiceProcessor
    from iocflow.for_each import ForEachProcessor as ForEachProcessor
    from iocflow.hooks import Interceptor as Interceptor
    from iocflow.hooks import RunObserver as RunObserver
    from iocflow.parallel_split import ParallelSplitProcessor as ParallelSplitProcessor
    from iocflow.processor import Processor as Processor
    from iocflow.run import Outcome as Outcome
    from iocflow.run import Run as Run
    from iocflow.run import RunEvent as RunEvent
    from iocflow.run import RunFinished as RunFinished
    from iocflow.run import RunLogFilter as RunLogFilter
    from iocflow.run import RunStarted as RunStarted
    from iocflow.run import Step as Step
    from iocflow.run import StepFailed as StepFailed
    from iocflow.run import StepFinished as StepFinished
    from iocflow.run import StepOutcome as StepOutcome
    from iocflow.run import StepStarted as StepStarted
    from iocflow.sequence import SequenceProcessor as SequenceProcessor
    from iocflow.wiring import ConfigurationError as ConfigurationError

_PUBLIC = {
    "async_runner": "AsyncRunner",
    "container": "App load",
    "context": "ProcessContext StepInfo",
    "error_handling": "CONTINUE Decision ErrorHandler FAIL GoTo LoggingErrorHandler"
    " OnError PASS RaisingErrorHandler Retry RetryingErrorHandler STOP",
    "errors": "IocflowError JoinConflictError RecordedError SeedError"
    " StepLimitError UnknownActivityError UnsetError UnsupportedActivityError",
    "exclusive_choice": "ExclusiveChoiceProcessor",
    "for_each": "ForEachProcessor",
    "hooks": "Interceptor RunObserver",
    "parallel_split": "ParallelSplitProcessor",
    "processor": "Processor",
    "run": "Outcome Run RunEvent RunFinished RunLogFilter"
    " RunStarted Step StepFailed StepFinished StepOutcome StepStarted",
    "sequence": "SequenceProcessor",
    "wiring": "ConfigurationError",
}
_HOME = {name: f"iocflow.{module}" for module, names in _PUBLIC.items() for name in names.split()}

__all__ = ["Activity", "BoundActivity", "FunctionActivity", "Result", "StepLike", "activity", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Load the module of a public name, and keep the name here."""
    if name not in _HOME:
        raise AttributeError(f"module 'iocflow' has no attribute {name!r}", name=name)
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *_HOME})
