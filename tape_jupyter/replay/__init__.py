"""Which recorded call answers a live one. Pure decisions."""
