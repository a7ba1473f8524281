"""Runs and proofs in a process of their own, without network and with the disk protected."""
