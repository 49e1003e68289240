"""The tables and operations that both dialects share."""
