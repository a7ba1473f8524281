"""The deck and what drives it."""
