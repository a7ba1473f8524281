"""Which cells depend on a changed reply, and how to run them again."""
