"""Causes unlike those of cases.py, written after the search was done and never used to change it."""

OTHERS = []
