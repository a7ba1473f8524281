"""Notebook room: the deck and what drives it."""
