"""A cassette of as many spans as are asked for: agents' loops, recorded once through the taps, repeated as other runs."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from harness import client, prose, question, respond

LOOPS, TURNS = 20, 24
_AT = re.compile(r'^((?:at|    utc|  at): ")(\d{4}-[^"]+)Z"', re.MULTILINE)
_RUN = re.compile(r"\br-([0-9a-f]{8})\b")
_APART = timedelta(minutes=2)


def write(path: Path, spans: int) -> None:
    """A cassette of about so many spans (at least): each run is one loop, which asks with all that was said before."""
    once = path.with_name("once.tape.yaml")
    if not once.exists():
        record(once)
    text = once.read_text(encoding="utf-8")
    header, _, loops = text.partition("---\nrun:")
    loops = f"---\nrun:{loops}"
    with path.open("w", encoding="utf-8") as file:
        file.write(header)
        for number in range(-(-spans // (LOOPS * (1 + 2 * TURNS)))):
            file.write(_again(loops, number))


def _again(loops: str, number: int) -> str:
    def later(found: re.Match[str]) -> str:
        return f'{found[1]}{(datetime.fromisoformat(found[2]) + number * _APART).isoformat(timespec="milliseconds")}Z"'

    return _AT.sub(later, _RUN.sub(lambda run: f"r-{run[1]}{number:04x}", loops))


def record(path: Path) -> None:
    """LOOPS runs of TURNS model calls, each followed by a tool's."""
    import tape_jupyter as tape

    asking = client(respond)

    @tape.tool
    def lookup_order(query: str) -> dict[str, object]:
        return {"order": query, "rows": [prose(len(query), 12)] * 3}

    for loop in range(LOOPS):
        with tape.recording(path):
            said: list[dict[str, str]] = []
            for turn in range(TURNS):
                said.append(
                    {"role": "user", "content": f"Ticket {loop * TURNS + turn}: {prose(turn, 40)}"}
                )
                reply = asking.messages.create(**{**question(turn), "messages": said})
                said.append({"role": "assistant", "content": reply.content[0].text})
                lookup_order(query=f"order {loop} {turn}")
