"""Digests of values, so that two can be told apart without keeping them."""
