"""Files of a notebook's folder as they were before a recording changed them."""
