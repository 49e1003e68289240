"""Durable runs: processors that run from a store, carried on after a crash by whichever process is there."""
