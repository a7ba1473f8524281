"""Python values as text, and back."""
