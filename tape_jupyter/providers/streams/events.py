"""A stream of server-sent events with the exact bytes of each, and how one is spelled again.

`b"".join(event.raw for event in parse(body)) == body` for any bytes. An event that is given other
data keeps its other lines, its line ends, its JSON's dialect and padding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tape_jupyter.encoding.http.json_style import Dialect, dialect, find_dialect

_BORDER: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n")
_DATA: Final = re.compile(rb"(?:^|(?<=[\r\n]))data: ?([^\r\n]*)(\r\n|\n|\r|$)")
_BREAKS: Final = re.compile("[\x7f-\x9f\u2028\u2029]")
"""Not control characters to JSON, line ends to many readers of streams (str.splitlines)."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event. `raw` are its bytes with the blank line; `data` its JSON, None where it has none.

    `place` says where in the recorded stream it stood, None for one that was made.
    """

    raw: bytes
    data: Any = None
    place: int | None = None

    @property
    def kind(self) -> str:
        """The `type` of its data, "" without one."""
        event_type = self.data.get("type") if isinstance(self.data, dict) else None
        return event_type if isinstance(event_type, str) else ""

    def replace_data(self, data: Any) -> StreamEvent:
        """The same event with other data; itself where the data is the same."""
        if data == self.data and same_json(data, self.data):
            return self
        match = _DATA.search(self.raw)
        if match is None:
            return replace(self, data=data)
        text = _read_data(self.raw)
        bare = _strip_padding(text)
        encoded = spell(data, find_dialect(bare, self.data) or _guess_dialect(bare))
        encoded = encoded[:-1] + b" " * (len(text) - len(bare)) + encoded[-1:]
        start, end = match.span(1)
        # data that stood on several lines now stands on one
        rest = _DATA.sub(b"", self.raw[match.end() :])
        return replace(
            self, raw=self.raw[:start] + encoded + self.raw[end : match.end()] + rest, data=data
        )

    def like(self, data: Any) -> StreamEvent:
        """A new event in this one's style."""
        if isinstance(data, dict) and b"event:" in self.raw[:8]:
            name = data.get("type")
        else:
            name = None
        end = b"\r\n" if b"\r\n" in self.raw else b"\n"
        colon = b": " if b"data: " in self.raw or b"data:" not in self.raw else b":"
        lines = [b"event" + colon + name.encode()] if isinstance(name, str) else []
        text = _read_data(self.raw)
        spelling = _guess_dialect(_strip_padding(text)) if text else dialect("compact")
        return StreamEvent(
            end.join([*lines, b"data" + colon + spell(data, spelling), b"", b""]), data
        )


STYLE: Final = StreamEvent(b'event: x\ndata: {"type":"x"}\n\n')
"""What a stream looks like where nothing was recorded to look like."""
BARE_STYLE: Final = StreamEvent(b'data: {"id":"x"}\n\n')
"""The same without names of events."""


def parse_events(body: bytes) -> list[StreamEvent]:
    """The events of a stream, and whatever else stands in it, in order."""
    return [
        StreamEvent(raw, _parse_data(raw), place) for place, raw in enumerate(_split_events(body))
    ]


def join_events(events: Sequence[StreamEvent]) -> bytes:
    return b"".join(event.raw for event in events)


def style_of(events: Sequence[StreamEvent], default: StreamEvent = STYLE) -> StreamEvent:
    """An event to make others like."""
    return next((event for event in events if isinstance(event.data, dict)), default)


def same_json(one: Any, two: Any) -> bool:
    """Whether two values are the same JSON: 1, 1.0 and true are equal in Python and are not the
    same.
    """
    if isinstance(one, dict) and isinstance(two, dict):
        return list(one) == list(two) and all(same_json(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same_json, one, two))
    return type(one) is type(two) and bool(one == two)


def spell(value: Any, spelling: Dialect) -> bytes:
    """The JSON as it may stand in a stream, in one line: half characters and line ends of any kind
    are escaped.
    """
    text = _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", spelling.encode(value))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(_escape_surrogate(char) for char in text).encode("utf-8")


def join_halves(text: str) -> str:
    """The text with halves of characters that came in two events put together."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        return text.encode("utf-16", "surrogatepass").decode(
            "utf-16", "surrogatepass" if _has_lone_surrogate(text) else "strict"
        )
    return text


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return True
    return False


def _escape_surrogate(char: str) -> str:
    return f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char


def _split_events(body: bytes) -> Iterator[bytes]:
    start = 0
    for match in _BORDER.finditer(body):
        yield body[start : match.end()]
        start = match.end()
    if start < len(body):
        yield body[start:]


def _read_data(raw: bytes) -> str:
    return b"\n".join(line for line, _ in _DATA.findall(raw)).decode("utf-8", "replace")


def _parse_data(raw: bytes) -> Any:
    text = _read_data(raw)
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strip_padding(text: str) -> str:
    """Anthropic pads events with spaces before the last brace, so that their length tells nothing."""
    return text[:-1].rstrip(" ") + text[-1:]


def _guess_dialect(text: str) -> Dialect:
    """A dialect like that of a text that is in none exactly."""
    layout = "spaced" if '": ' in text[:200] else "compact"
    return dialect(f"{layout} ascii" if text.isascii() and "\\u" in text else layout)
