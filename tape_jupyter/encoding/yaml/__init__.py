"""The text of a cassette: a strict subset of YAML 1.2, written and read."""
