"""Keeping a process from the network and from a person's files; seeing that it tried."""
