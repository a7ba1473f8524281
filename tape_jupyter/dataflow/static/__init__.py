"""What can be told from a cell's source alone: names, uses, effects and outcomes."""
