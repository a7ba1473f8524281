"""Engine room: when a cell's outputs are the same as those saved with the notebook, and how to show where they differ.

Left out of the comparison: execution counts, the tape's own summary, how a stream was cut into messages, colours and
`In [n]` of tracebacks, ids of widgets. Everything else counts, memory addresses included: a repr with an address
in it does not repeat itself.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Output = Mapping[str, Any]

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COUNT = re.compile(r"\b(In|Cell In|Input In) ?\[\d+\]")
_WIDGET = "application/vnd.jupyter.widget-view+json"
DIFF_LINES = 60
"""Lines of a cell's diff that are shown; a replay that went wrong early differs everywhere."""


def is_summary(output: Output) -> bool:
    """Whether it is the tape's own summary (notebook/summary.py marks it)."""
    mark = (output.get("metadata") or {}).get("tape")
    return isinstance(mark, Mapping) and bool(mark.get("summary"))


def summary_of(outputs: Iterable[Output]) -> str:
    """The tape's summary as plain text, "" where there is none."""
    return "\n".join(
        joined((output.get("data") or {}).get("text/plain", "")) for output in outputs if is_summary(output)
    )


def failure_of(outputs: Iterable[Output]) -> tuple[str, str]:
    """Name and value of the exception a cell ended with; ("", "") where it did not."""
    errors = [(str(o.get("ename", "")), str(o.get("evalue", ""))) for o in outputs if o.get("output_type") == "error"]
    return errors[-1] if errors else ("", "")


def joined(value: Any) -> str:
    """Text of a multi-line string as notebooks have it: one string, or a list of lines."""
    if isinstance(value, list):
        return "".join(str(line) for line in value)
    return value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True, default=str)


def merged(outputs: Iterable[Any]) -> list[Any]:
    """The outputs as a front end saves them: neighbouring messages of one stream are one output."""
    kept: list[Any] = []
    for output in outputs:
        last = kept[-1] if kept else {}
        if output.get("output_type") == last.get("output_type") == "stream" and output["name"] == last["name"]:
            last["text"] = joined(last["text"]) + joined(output["text"])
        else:
            kept.append(output)
    return kept


def same(saved: Sequence[Output], replayed: Sequence[Output]) -> bool:
    return list(lines(saved)) == list(lines(replayed))


def diff(saved: Sequence[Output], replayed: Sequence[Output]) -> list[str]:
    """A unified diff of what was saved and what replay gave, without file headings; [] when they are the same."""
    found = list(difflib.unified_diff(list(lines(saved)), list(lines(replayed)), lineterm="", n=2))[2:]
    more = len(found) - DIFF_LINES
    return [*found[:DIFF_LINES], f"... and {more} more lines"] if more > 0 else found


def lines(outputs: Iterable[Output]) -> Iterator[str]:
    """The outputs as lines of text, each part under a heading; equal lines are equal outputs."""
    streams: dict[str, str] = {}
    for output in outputs:
        if is_summary(output):
            continue
        if output.get("output_type") == "stream":
            name = str(output.get("name"))
            streams[name] = streams.get(name, "") + joined(output.get("text", ""))
            continue
        yield from _streams(streams)
        yield from _shown(output)
    yield from _streams(streams)


def _streams(streams: dict[str, str]) -> Iterator[str]:
    """Both streams between two displays: each in its order, their interleaving is a race."""
    for name in sorted(streams, reverse=True):
        yield from _headed(name, _overwritten(streams[name]))
    streams.clear()


def _overwritten(text: str) -> str:
    """A line that a carriage return began anew shows only its last writing, as in a front end."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _shown(output: Output) -> Iterator[str]:
    if output.get("output_type") == "error":
        trace = _COUNT.sub(r"\1 [ ]", _ANSI.sub("", "\n".join(map(str, output.get("traceback") or ()))))
        yield from _headed(f"{output.get('ename')}: {output.get('evalue')}", trace)
        return
    for kind, value in sorted((output.get("data") or {}).items()):
        yield from _headed(kind, "(a widget)" if kind == _WIDGET else joined(value))


def _headed(heading: str, text: str) -> Iterator[str]:
    yield f"[{heading}]"
    # Not splitlines(): a form feed or U+2028 in a model's text is no line end.
    yield from text.removesuffix("\n").split("\n")
