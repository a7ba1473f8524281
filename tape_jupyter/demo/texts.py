"""What the demo changes by hand: constants and modes of its notebook, one reply in its cassette.
Plain text in, plain text out; what is to be replaced must be there exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tape_jupyter.comparison import outputs
from tape_jupyter.errors import TapeUsageError

NOTEBOOK = "pipeline.ipynb"
URL = "http://127.0.0.1:8099"
PORT = urlsplit(URL).port or 0
TICKET = "I can't access my billing information."
ANOTHER_TICKET = "I still can't access my billing information."
STAND_IN_MODELS = {
    "CLASSIFIER": "claude-haiku-4-5",
    "AGENT": "gpt-5-mini",
    "WRITER": "claude-sonnet-5",
}
"""What the stand-in answers as, so that there is a list price to show."""
EDITED = "The customer is delighted, and would like to pay twice."


def pipeline() -> str:
    """The demo's notebook, as JSON; its cells say `%%tape replay` and have no outputs."""
    return (files("tape_jupyter.demo") / NOTEBOOK).read_text(encoding="utf-8")


def swapped(text: str, old: str, new: str) -> str:
    """Raises TapeUsageError where `old` is not there exactly once."""
    if text.count(old) != 1:
        raise TapeUsageError(f"{old[:60]!r} is there {text.count(old)} times, not once")
    return text.replace(old, new)


def to_record(notebook: str, url: str, models: Mapping[str, str]) -> str:
    """The notebook with `%%tape record` for `%%tape replay`, its address and models set."""
    notebook = swapped(notebook, f'URL = \\"{URL}\\"', f'URL = \\"{url}\\"')
    for role, model in models.items():
        notebook = swapped(notebook, f'{role} = \\"gemma3-270m\\"', f'{role} = \\"{model}\\"')
    return notebook.replace('"%%tape replay\\n"', '"%%tape record\\n"')


def to_replay(notebook: str) -> str:
    return notebook.replace('"%%tape record\\n"', '"%%tape replay\\n"')


def with_another_ticket(notebook: str) -> str:
    """The same notebook, its prompts changed by one word."""
    return swapped(notebook, f'TICKET = \\"{TICKET}\\"', f'TICKET = \\"{ANOTHER_TICKET}\\"')


def with_last_reply(cassette: str, old_text: str, new_text: str) -> str:
    """The cassette with the text of its last reply changed, as a person changes it in an editor."""
    before, mark, reply = cassette.rpartition("\nresponse:\n")
    written = json.dumps(old_text, ensure_ascii=False)[1:-1]  # a quoted string escapes as JSON does
    return before + mark + swapped(reply, written if written in reply else old_text, new_text)


def cell_texts(notebook: Path) -> dict[str, str]:
    """What each code cell of a notebook file printed or gave, by cell id; the tape's own lines left
    out.
    """
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: _read_output_text(cell["outputs"])
        for cell in cells
        if cell["cell_type"] == "code"
    }


def _read_output_text(cell_outputs: list[dict[str, Any]]) -> str:
    kept = [output for output in cell_outputs if not outputs.is_summary(output)]
    texts = [
        output.get("text") or (output.get("data") or {}).get("text/plain") or "" for output in kept
    ]
    return "\n".join(outputs.join_lines(text).strip() for text in texts)
