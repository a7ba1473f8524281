"""Candidate fixes over many recordings, offline: `tape try WHERE... --candidate FILE...`."""
