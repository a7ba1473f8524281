"""Cassettes of betamax (JSON): the form of Ruby's VCR, written by Python."""

from __future__ import annotations

from collections.abc import Iterator

from tape_jupyter.importers.formats import ruby_vcr
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item

TITLE = "betamax"


def recognises(source: Source) -> int:
    return 90 if "http_interactions" in source.keys and "betamax" in source.head_text else 0


def read(source: Source) -> Iterator[Item]:
    yield from ruby_vcr.read(source)
