"""A namespace and its files put back to what they were before a cell ran."""
