"""Values and small tools that everything above uses. Imports nothing of ours but errors."""
