"""The formats that are read, a module each (docs/importers.md)."""
