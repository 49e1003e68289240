"""Scheduled polling: launchers that fire by interval, cron expression, calendar, or once."""

from iocflow.schedule.constructors import at, calendar, cron, every, next_firings
from iocflow.schedule.polling import PollingLauncher

__all__ = ["PollingLauncher", "at", "calendar", "cron", "every", "next_firings"]
