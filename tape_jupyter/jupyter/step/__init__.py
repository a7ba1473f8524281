"""Stepping through a cell's calls."""
