"""Traces of other systems as cassettes: `tape import FILE`, `tape.import_trace()`."""
