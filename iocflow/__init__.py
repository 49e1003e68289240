"""iocflow."""
