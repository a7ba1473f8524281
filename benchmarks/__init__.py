"""Benchmarks: one script a figure; each prints one JSON line. Ratios against a floor measured in the same run."""
