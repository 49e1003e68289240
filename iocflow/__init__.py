"""iocflow: background jobs as activities, wired into processors by an IoC container file.

The names below are the public ones. The core's are imported at once and need nothing but the standard library; `App` and
`load` bring the container along, and are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from iocflow.activity import Activity, BoundActivity, FunctionActivity, Result, StepLike, activity
from iocflow.async_runner import AsyncRunner
from iocflow.context import ProcessContext, StepInfo
from iocflow.error_handling import (
    CONTINUE,
    FAIL,
    PASS,
    STOP,
    Decision,
    ErrorHandler,
    GoTo,
    LoggingErrorHandler,
    OnError,
    RaisingErrorHandler,
    Retry,
    RetryingErrorHandler,
)
from iocflow.errors import (
    IocflowError,
    JoinConflictError,
    RecordedError,
    SeedError,
    StepLimitError,
    UnknownActivityError,
    UnsetError,
    UnsupportedActivityError,
)
from iocflow.exclusive_choice import ExclusiveChoiceProcessor
from iocflow.for_each import ForEachProcessor
from iocflow.hooks import Interceptor, RunObserver
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.processor import Processor
from iocflow.run import (
    Outcome,
    Run,
    RunEvent,
    RunFinished,
    RunLogFilter,
    RunStarted,
    Step,
    StepFailed,
    StepFinished,
    StepOutcome,
    StepStarted,
)
from iocflow.sequence import SequenceProcessor
from iocflow.wiring import ConfigurationError

if TYPE_CHECKING:
    from iocflow.container import App, load

__all__ = [
    "CONTINUE",
    "FAIL",
    "PASS",
    "STOP",
    "Activity",
    "App",
    "AsyncRunner",
    "BoundActivity",
    "ConfigurationError",
    "Decision",
    "ErrorHandler",
    "ExclusiveChoiceProcessor",
    "ForEachProcessor",
    "FunctionActivity",
    "GoTo",
    "Interceptor",
    "IocflowError",
    "JoinConflictError",
    "LoggingErrorHandler",
    "OnError",
    "Outcome",
    "ParallelSplitProcessor",
    "ProcessContext",
    "Processor",
    "RaisingErrorHandler",
    "RecordedError",
    "Result",
    "Retry",
    "RetryingErrorHandler",
    "Run",
    "RunEvent",
    "RunFinished",
    "RunLogFilter",
    "RunObserver",
    "RunStarted",
    "SeedError",
    "SequenceProcessor",
    "Step",
    "StepFailed",
    "StepFinished",
    "StepInfo",
    "StepLike",
    "StepLimitError",
    "StepOutcome",
    "StepStarted",
    "UnknownActivityError",
    "UnsetError",
    "UnsupportedActivityError",
    "activity",
    "load",
]


def __getattr__(name: str) -> Any:
    """Load the container when one of its names is first used."""
    if name in ("App", "load"):
        return getattr(importlib.import_module("iocflow.container"), name)
    raise AttributeError(f"module 'iocflow' has no attribute {name!r}", name=name)
