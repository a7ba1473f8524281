"""The peers' recorders behind one door: `recorded(name, path)` and `replayed(name, path)` as context managers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

PEERS = ("vcrpy", "cassetter")


def recorded(name: str, path: Path) -> AbstractContextManager[Any]:
    return _use(name, path, "all")


def replayed(name: str, path: Path) -> AbstractContextManager[Any]:
    return _use(name, path, "none")


def _use(name: str, path: Path, mode: str) -> AbstractContextManager[Any]:
    """Both match on method, URI and body: without the body they answer one prompt with another's reply."""
    if name == "vcrpy":
        import vcr

        return vcr.use_cassette(str(path), record_mode=mode, match_on=["method", "uri", "body"])
    import cassetter

    return cassetter.use_cassette(str(path), record_mode=mode, match_on=["method", "uri", "body"])
