"""Scheduled polling: launchers that fire by interval, cron expression, calendar, or once."""
