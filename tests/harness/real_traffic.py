"""The corpus of real traffic, which is not the project's to give on: its folder or file stands in TAPE_CORPUS."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.reencode_corpus import read

_ROOT = Path(__file__).resolve().parents[2]


def records() -> list[dict[str, Any]]:
    """Its records; skips the test where it is absent."""
    corpus = Path(os.environ.get("TAPE_CORPUS", _ROOT.parent / "shared" / "corpus"))
    files = [corpus] if corpus.is_file() else sorted(corpus.glob("corpus_*.jsonl*"))
    if not files:
        pytest.skip(f"no corpus of real traffic in {corpus}; name its folder in TAPE_CORPUS")
    return read(files[0])
