"""The Python environment of a bundle: what it needs, its lock, and how it is installed."""
