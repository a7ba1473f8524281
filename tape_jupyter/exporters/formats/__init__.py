"""The formats that a recording is written in, a module each."""
