"""Engine room: when a cell's outputs are the same as those saved with the notebook, and how to show where they differ.

What they may differ in and still be the same is one closed list, forgiven.py. Everything else counts.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from tape_jupyter import pictures
from tape_jupyter.forgiven import forgive

Output = Mapping[str, Any]
NOWHERE: Mapping[str, str] = MappingProxyType({})

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


def told_of(outputs: Iterable[Output], kind: Literal["unheld", "lost"]) -> tuple[str, ...]:
    """What a cell's summary says of this kind: what recorded tools did that a replay did not do again (unheld), or what
    should be on the tape and could not be written (lost).
    """
    marks = (output.get("metadata", {}).get("tape", {}) for output in outputs if is_summary(output))
    return tuple(str(each) for mark in marks for each in mark.get(kind, ()))


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


def same(saved: Sequence[Output], replayed: Sequence[Output], where: Mapping[str, str] = NOWHERE) -> bool:
    """`where`: what stands for folders that either ran in (forgiven.places)."""
    return list(lines(saved, where)) == list(lines(replayed, where))


def diff(saved: Sequence[Output], replayed: Sequence[Output], where: Mapping[str, str] = NOWHERE) -> list[str]:
    """A unified diff of what was saved and what replay gave, without file headings; [] when they are the same."""
    before, after = list(lines(saved, where)), list(lines(replayed, where))
    found = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    more = len(found) - DIFF_LINES
    return [*found[:DIFF_LINES], f"... and {more} more lines"] if more > 0 else found


def lines(outputs: Iterable[Output], where: Mapping[str, str] = NOWHERE) -> Iterator[str]:
    """The outputs as lines of text, each part under a heading; equal lines are equal outputs."""
    streams: dict[str, str] = {}
    for output in outputs:
        if is_summary(output):
            continue
        if output.get("output_type") == "stream":
            name = str(output.get("name"))
            streams[name] = streams.get(name, "") + joined(output.get("text", ""))
            continue
        yield from _streams(streams, where)
        yield from _shown(output, where)
    yield from _streams(streams, where)


def _streams(streams: dict[str, str], where: Mapping[str, str]) -> Iterator[str]:
    """Both streams between two displays: each in its order, their interleaving is a race."""
    for name in sorted(streams, reverse=True):
        text = forgive(_overwritten(streams[name]), "stream", where)
        if text or not streams[name]:
            yield from _headed(name, text)
    streams.clear()


def _overwritten(text: str) -> str:
    """A line that a carriage return began anew shows only its last writing, as in a front end."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _shown(output: Output, where: Mapping[str, str]) -> Iterator[str]:
    if output.get("output_type") == "error":
        trace = _COUNT.sub(r"\1 [ ]", _ANSI.sub("", "\n".join(map(str, output.get("traceback") or ()))))
        heading = f"{output.get('ename')}: {output.get('evalue')}"
        yield from _headed(forgive(heading, "error", where), forgive(trace, "error", where))
        return
    for kind, value in sorted((output.get("data") or {}).items()):
        yield from _headed(kind, _part(kind, value, where))


def _part(kind: str, value: Any, where: Mapping[str, str]) -> str:
    if kind == _WIDGET:
        return "(a widget)"
    if kind.startswith("image/") and not kind.endswith("xml"):
        return pictures.described(kind, joined(value))
    return forgive(joined(value), kind, where)


def _headed(heading: str, text: str) -> Iterator[str]:
    yield f"[{heading}]"
    # Not splitlines(): a form feed or U+2028 in a model's text is no line end.
    yield from text.removesuffix("\n").split("\n")
