"""The proof that a bundle reproduces: its notebook is run again, cut off, and compared."""
