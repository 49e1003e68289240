"""A small HTTP/1.1 server for what the daemon offers: events that are posted to it, health, and metrics."""
