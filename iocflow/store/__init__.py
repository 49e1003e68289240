"""Stores of durable runs: one set of tables, in SQLite or PostgreSQL."""

from __future__ import annotations

from iocflow.store.contract import Store
from iocflow.store.opening import open_store

__all__ = ["Store", "open_store"]
