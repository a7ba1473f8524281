"""A taped cell or block, from its first call to its end."""
