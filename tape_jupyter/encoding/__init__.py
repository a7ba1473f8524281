"""Bodies, values and records as text, and back to the byte."""
