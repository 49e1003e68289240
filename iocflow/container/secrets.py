"""Secrets are masked by their value, wherever text leaves the application."""

from __future__ import annotations

import logging

__all__ = ["Secrets"]


class Secrets:
    """The secret values that an application was given, and the means to keep them out of messages, logs and pages."""

    def add(self, value: object) -> bool:
        """Remember `value`; return whether it can be masked (it is long enough)."""
        raise NotImplementedError

    def mask(self, text: str) -> str:
        """Return `text` with every secret replaced by `***`."""
        raise NotImplementedError

    def filter(self) -> logging.Filter:
        """Return a filter for log handlers that masks message, arguments and exception text."""
        raise NotImplementedError
