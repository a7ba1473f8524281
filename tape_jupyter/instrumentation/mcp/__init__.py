"""The Model Context Protocol's Python client."""
