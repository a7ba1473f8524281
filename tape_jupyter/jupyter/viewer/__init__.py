"""The span viewer's other half: what it reads, edits, exports and runs."""
