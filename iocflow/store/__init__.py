"""Stores of durable runs: one set of tables, in SQLite or PostgreSQL."""
