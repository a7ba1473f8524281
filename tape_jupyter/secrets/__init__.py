"""Secrets: known, found, masked."""
