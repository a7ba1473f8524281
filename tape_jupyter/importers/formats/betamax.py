"""Cassettes of betamax (JSON): the form of Ruby's VCR, written by Python."""

from __future__ import annotations

from collections.abc import Iterator

from tape_jupyter.importers.formats import ruby_vcr
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item

TITLE = "betamax"


def recognises(source: Source) -> int:
    if "http_interactions" not in source.keys:
        return 0
    return 90 if "betamax" in source.head_text or "url" in source.keys else 0


def read(source: Source) -> Iterator[Item]:
    yield from ruby_vcr.read(source)
