"""HTTP clients."""
