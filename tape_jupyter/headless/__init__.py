"""Notebooks that run without a person: their kernel, their folder, their outputs."""
