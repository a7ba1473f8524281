"""Experiments over recorded runs: what made one come out otherwise than another."""
