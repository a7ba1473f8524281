"""How outputs, tables and pictures differ from what was recorded."""
