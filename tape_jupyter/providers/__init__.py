"""Model providers' wire formats as views of a call."""
