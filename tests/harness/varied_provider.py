"""The corpus's stand-in provider, as a model is: no two replies are alike, and each comes 0 to 40 ms late.

python tests/replay_notebooks.py FOLDER --keep DIR --provider tests/harness/varied_provider.py
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("TAPE_CORPUS", str(ROOT.parent / "shared" / "corpus")))

import fake_provider

LATE = 0.04
"""Seconds that a reply is late at most."""


class _Late(fake_provider.FakeHandler):
    def answer(self, raw: bytes) -> None:
        time.sleep(random.random() * LATE)
        super().answer(raw)


def serve(words: list[str]) -> Any:
    server = fake_provider.serve([*words, "--vary", "--delay", "0.002"])
    server.RequestHandlerClass = _Late
    return server
