"""Re-running, in the notebook, the cells that depend on a changed reply."""
