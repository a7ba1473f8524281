"""Cells on a deck of one's own, without IPython, and a provider to ask: for tests of what the deck does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.session.session import TapedCell, CellRequest, CellReport, TapeSession
from tests.harness.provider import Provider


class Taped:
    """A cell while it runs; `report` once it is over."""

    def __init__(self, cell: TapedCell) -> None:
        self.cell, self.report = cell, CellReport("", None, [], [], [], [], 0.0, False)


@contextmanager
def taped(
    deck: TapeSession, mode: str, path: Path, source: str = "x", **told: Any
) -> Iterator[Taped]:
    """Begins and ends a cell as a shell does; what the body raises goes on."""
    running = Taped(deck.begin(CellRequest(mode, path=path, source=source, **told)))
    error: BaseException | None = None
    try:
        yield running
    except BaseException as raised:
        error = raised
        raise
    finally:
        running.report = deck.end(running.cell, error)


def question(text: str, *messages: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "max_tokens": 9,
        "messages": [*messages, {"role": "user", "content": text}],
        **more,
    }


def ask(provider: Provider, text: str, **more: Any) -> str:
    """One question over httpx, answered by the provider."""
    reply = httpx.post(f"{provider.url}/v1/messages", json=question(text, **more))
    return reply.json()["content"][0]["text"]


def on_tape(path: Path) -> Cassette:
    return Cassette.open(path, check="whole")


def texts(path: Path) -> list[str]:
    """The last question of every recorded call."""
    return [
        json.loads(entry.request().body)["messages"][-1]["content"] for entry in on_tape(path).calls
    ]
