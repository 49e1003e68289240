"""Event-driven launching: sources of events, and the launcher that runs a processor for each of them."""
