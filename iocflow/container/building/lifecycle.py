"""What was built is closed again, last in, first out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from iocflow.async_runner import AsyncRunner
from iocflow.container.failures import CloseError

__all__ = ["Lifecycle"]


class Lifecycle:
    """Keeps what has to be closed; methods may be async, and are awaited on `runner`."""

    def __init__(self, runner: AsyncRunner) -> None:
        """Start with nothing open."""
        self._runner = runner
        self._open: list[tuple[str, Callable[[], Any]]] = []

    def call(self, method: Callable[[], Any]) -> None:
        """Call the `init` or `close` method of a bean."""
        result = method()
        if inspect.isawaitable(result):
            self._runner.run(result)

    def opened(self, bean: str, close: Callable[[], Any]) -> None:
        """Remember to call `close`; `bean` names it in an error."""
        self._open.append((bean, close))

    def close(self) -> None:
        """Close all that is open, each one even if another fails, or is interrupted by Ctrl-C.

        Raises:
            CloseError: With all that was raised.
            BaseException: The first interruption, once all are closed; what else was raised is noted on it.
        """
        errors: list[Exception] = []
        interruption: BaseException | None = None
        while self._open:
            bean, close = self._open.pop()
            try:
                self.call(close)
            except Exception as error:  # noqa: BLE001 - the others are closed all the same
                error.add_note(f"while {bean} was closed")
                errors.append(error)
            except BaseException as error:  # noqa: BLE001 - it is raised at the end
                interruption = interruption or error
        if interruption is not None:
            for one in errors:
                interruption.add_note(f"{one.__notes__[-1]}: {type(one).__name__}: {one}")
            raise interruption
        if errors:
            raise CloseError("not everything could be closed", errors)
