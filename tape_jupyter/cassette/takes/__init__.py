"""Takes: cassettes that hold what differs from another one, such as an overridden reply."""
