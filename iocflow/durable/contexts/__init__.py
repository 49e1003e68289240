"""Process contexts as JSON: what can be stored, written, proved to read back equal, and read."""
