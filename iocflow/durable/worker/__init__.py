"""The worker: claims runs, moves them on, and has what they did on record."""
