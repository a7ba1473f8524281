"""Cohere's API."""
