"""The closed list of what outputs may differ in and still be the same.

It is all that is forgiven, in `tape replay`, in a bundle's proof and in its digests alike:
`forgiven_words()` is what people are told. A rule names what repeats itself on no machine or only on one:
where an object lay in memory, where a folder lies on the disk, how long something took, ids that a
library draws for its own markup. What a program computed or a model said is never on it.

When a cell's outputs are the same as those saved with the notebook, and how to show where they
differ.

What they may differ in and still be the same is one closed list, comparison/outputs.py. Everything
else counts.

A traceback as text, without the frames of installed packages and of Python itself.

What an SDK does between a person's line and the error hangs on whether a socket was opened or a
tape was read, on its version and on the machine. A person's own frames (cells, modules that are
installed nowhere) stay, with their lines; so do the name and the message of every error that passed
through one of them, and of the last one.

Tracebacks of IPython (`File ~/x.py:3, in f(a)`, `Cell In[1], line 2`) and of Python itself (`  File "x.py", line 3`, in
a group of errors after bars) are read; every other line is left as it is.

What a PNG shows, apart from how it is packed. No picture library; nothing of the picture is
decoded.

The rows of pixels of a PNG are packed by zlib, whose bytes differ with its version, and beside them
stand texts and dates. Two PNGs whose head, palette, transparency and unpacked rows are the same
show the same.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import hashlib
import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

_FRAME = re.compile(
    r"[ |]*(?:File ['\"]?(?P<path>[^\n'\"]+?)['\"]?(?::\d+| line \d+|, line \d+|, in | in |$)|Cell In|Input In)"
)
INSTALLED = re.compile(
    r"(?:site|dist)-packages[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python3(?:\.\d+)?t?[/\\]"  # Python's own modules: Linux, macOS, conda
    r"|[/\\](?:python3\d*|cpython-3[^/\\]*)[/\\]lib[/\\]"  # and on Windows
    r"|[/\\]tape_jupyter[/\\](?:\w+[/\\])*\w+\.py$"  # of a checkout too
    r"|^<frozen ",
    re.IGNORECASE,
)
"""Where in a path it shows that it belongs to an installed package."""
_CHAINED = re.compile(
    r"^[ |]*(?:The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)[ ]*\n(?:[ |]*\n)*",
    re.MULTILINE,
)
_HEAD = re.compile(r"^.*Traceback \(most recent call last\).*\n?", re.MULTILINE)
_BODY = re.compile(r"(?:  |-+> | +\d|\[Previous line repeated)")
_BARS = re.compile(r"[ |]*")


def own_frames(text: str) -> str:
    """The text, its tracebacks cut down to a person's own frames. What holds no traceback is the
    same text.
    """
    if "Traceback (most recent call last)" not in text:
        return text
    return "".join(_iterate_relevant_errors("\n".join(_iterate_own_frames(text.split("\n")))))


def _iterate_own_frames(lines: Sequence[str]) -> Iterator[str]:
    """All lines but those of foreign frames, and the blank line behind each."""
    number = 0
    while number < len(lines):
        match = _FRAME.match(lines[number])
        if not match or not match["path"] or not INSTALLED.search(match["path"]):
            yield lines[number]
            number += 1
            continue
        margin = _find_margin(lines[number])
        number += 1
        while number < len(lines) and _is_body(lines[number], margin):
            number += 1
        if number < len(lines) and not _BARS.sub("", lines[number], count=1):
            number += 1


def _find_margin(head: str) -> str:
    """What stands before a frame's `File`."""
    match = _BARS.match(head)
    return match[0] if match else ""


def _is_body(line: str, margin: str) -> bool:
    """Whether it is source (or the marks below it) of the frame that began at this margin."""
    return line.startswith(margin) and bool(_BODY.match(line, len(margin)))


def _iterate_relevant_errors(text: str) -> Iterator[str]:
    """The parts of chained errors; one that no frame of a person's own is in is left out, unless it
    is the last.
    """
    at = 0
    for joint in _CHAINED.finditer(text):
        part = text[at : joint.start()]
        head = _find_last_traceback(part)
        if head is not None and not any(_FRAME.match(line) for line in part[head:].split("\n")):
            yield part[:head]
        else:
            yield part + joint[0]
        at = joint.end()
    yield text[at:]


def _find_last_traceback(part: str) -> int | None:
    """Where the last traceback of a text begins."""
    starts = [each.start() for each in _HEAD.finditer(part)]
    return starts[-1] if starts else None


Output = Mapping[str, Any]
Remark = Literal["unheld", "lost"]
REMARKS: tuple[Remark, Remark] = ("unheld", "lost")
"""What a cell says of itself: what recorded tools did that a replay did not do again (unheld), and
what should be on the tape and could not be written (lost).
"""
NOWHERE: Mapping[str, str] = MappingProxyType({})

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COUNT = re.compile(r"\b(In|Cell In|Input In) ?\[\d+\]")
_WIDGET = "application/vnd.jupyter.widget-view+json"
DIFF_LINES = 60
"""Lines of a cell's diff that are shown; a replay that went wrong early differs everywhere."""
DIFF_WIDTH = 4_000
"""Characters of such a line that are shown: ten megabytes may stand in one."""


def is_summary(output: Output) -> bool:
    """Whether it is the tape's own summary (reports/cell_summary.py marks it)."""
    mark = (output.get("metadata") or {}).get("tape")
    return isinstance(mark, Mapping) and bool(mark.get("summary"))


def summary_of(outputs: Iterable[Output]) -> str:
    """The tape's summary as plain text, "" where there is none."""
    return "\n".join(
        join_lines((output.get("data") or {}).get("text/plain", ""))
        for output in outputs
        if is_summary(output)
    )


def shown_text(outputs: Iterable[Output]) -> str:
    """The text that a cell's outputs show, without the tape's own."""
    cell_outputs = [each for each in outputs if not is_summary(each)]
    texts = [
        each.get("text") or each.get("data", {}).get("text/plain", "") for each in cell_outputs
    ]
    return "".join("".join(text) for text in texts)


def summary_remarks(outputs: Iterable[Output], kind: Remark) -> tuple[str, ...]:
    """What a cell's summary says of this kind. A program may take its summary away:
    fresh_kernel.remarks.
    """
    marks = (output.get("metadata", {}).get("tape", {}) for output in outputs if is_summary(output))
    return tuple(str(each) for mark in marks for each in mark.get(kind, ()))


def failure_of(outputs: Iterable[Output]) -> tuple[str, str]:
    """Name and value of the exception a cell ended with; ("", "") where it did not."""
    errors = [
        (str(o.get("ename", "")), str(o.get("evalue", "")))
        for o in outputs
        if o.get("output_type") == "error"
    ]
    return errors[-1] if errors else ("", "")


def join_lines(value: Any) -> str:
    """Text of a multi-line string as notebooks have it: one string, or a list of lines."""
    if isinstance(value, list):
        return "".join(str(line) for line in value)
    if isinstance(value, str):
        return value
    return json.dumps(value, indent=1, sort_keys=True, default=str)


def count_characters(outputs: Iterable[Output]) -> int:
    """About how many characters the outputs are compared by; each value of a structure counts as
    a hundred.
    """
    count, waiting = 0, list[Any](outputs)
    while waiting:
        each = waiting.pop()
        count += len(each) if isinstance(each, str) else 100
        if isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each
    return count


def merge_streams(outputs: Iterable[Any]) -> list[Any]:
    """The outputs as a front end saves them: neighbouring messages of one stream are one output."""
    kept: list[Any] = []
    for output in outputs:
        last = kept[-1] if kept else {}
        if (
            output.get("output_type") == last.get("output_type") == "stream"
            and output["name"] == last["name"]
        ):
            last["text"] = join_lines(last["text"]) + join_lines(output["text"])
        else:
            kept.append(output)
    return kept


def same_outputs(
    saved: Sequence[Output], replayed: Sequence[Output], where: Mapping[str, str] = NOWHERE
) -> bool:
    """`where`: what stands for folders that either ran in (forgiven.places)."""
    return list(output_lines(saved, where)) == list(output_lines(replayed, where))


def format_more(more: int, thing: str = "line") -> str:
    """`... and 1 more line`"""
    return f"... and {more:,} more {thing}{'' if more == 1 else 's'}"


def diff_outputs(
    saved: Sequence[Output], replayed: Sequence[Output], where: Mapping[str, str] = NOWHERE
) -> list[str]:
    """A unified diff of what was saved and what replay gave, without file headings; [] when they
    are the same.
    """
    before, after = list(output_lines(saved, where)), list(output_lines(replayed, where))
    lines = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    more = len(lines) - DIFF_LINES
    shortened_lines = [shortened(line) for line in lines[:DIFF_LINES]]
    return [*shortened_lines, format_more(more)] if more > 0 else shortened_lines


def shortened(line: str) -> str:
    """A line of a diff as it is shown."""
    more = len(line) - DIFF_WIDTH
    if more > 0:
        return f"{line[:DIFF_WIDTH]} ... and {more:,} more characters"
    return line


def output_lines(outputs: Iterable[Output], where: Mapping[str, str] = NOWHERE) -> Iterator[str]:
    """The outputs as lines of text, each part under a heading; equal lines are equal outputs."""
    streams: dict[str, str] = {}
    for output in outputs:
        if is_summary(output):
            continue
        if output.get("output_type") == "stream":
            name = str(output.get("name"))
            streams[name] = streams.get(name, "") + join_lines(output.get("text", ""))
            continue
        yield from _format_streams(streams, where)
        yield from _format_output(output, where)
    yield from _format_streams(streams, where)


def _format_streams(streams: dict[str, str], where: Mapping[str, str]) -> Iterator[str]:
    """Both streams between two displays: each in its order, their interleaving is a race."""
    for name in sorted(streams, reverse=True):
        text = forgive(_apply_carriage_returns(streams[name]), "stream", where)
        if text or not streams[name]:
            yield from _add_heading(name, text)
    streams.clear()


def _apply_carriage_returns(text: str) -> str:
    """A line that a carriage return began anew shows only its last writing, as in a front end."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def _format_output(output: Output, where: Mapping[str, str]) -> Iterator[str]:
    if output.get("output_type") == "error":
        trace = _COUNT.sub(
            r"\1 [ ]", _ANSI.sub("", "\n".join(map(str, output.get("traceback") or ())))
        )
        heading = f"{output.get('ename')}: {output.get('evalue')}"
        yield from _add_heading(forgive(heading, "error", where), forgive(trace, "error", where))
        return
    for kind, value in sorted((output.get("data") or {}).items()):
        yield from _add_heading(kind, _format_part(kind, value, where))


def _format_part(kind: str, value: Any, where: Mapping[str, str]) -> str:
    if kind == _WIDGET:
        return "(a widget)"
    if kind.startswith("image/") and not kind.endswith("xml"):
        return described(kind, join_lines(value))
    return forgive(join_lines(value), kind, where)


def _add_heading(heading: str, text: str) -> Iterator[str]:
    yield f"[{heading}]"
    # Not splitlines(): a form feed or U+2028 in a model's text is no line end.
    yield from text.removesuffix("\n").split("\n")


STRUCTURE = (
    "the tape's own summary below a cell",
    "what the tape answers to a cell of `%tape` lines alone (a failure counts, but for `%tape export` and `verify`)",
    "execution counts, and `In [n]` in tracebacks",
    "how a stream was cut into messages, and what a carriage return overwrote",
    "how stdout and stderr were interleaved between two displays",
    "colours in tracebacks",
    "which widget model a cell shows (that it shows a widget counts)",
    "metadata of a display, and the order of the kinds in it",
    "how a PNG is packed and what stands in it beside the picture: its size, colours and rows of pixels count",
)
"""What outputs.py leaves out by the way it reads outputs; the rules below change their text."""

ANY = ("text/", "stream", "error", "application/json", "application/javascript")
HTML = ("text/html",)
SVG = ("image/svg+xml",)
_HEX = "[0-9a-fA-F]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}|{_HEX}{{32}}"
_FOLDERS = r"(?:[A-Za-z]:)?[^\n\":,]*[/\\]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is forgiven: in words, in which kinds of output (beginnings of their names),
    and how.
    """

    description: str
    kinds: tuple[str, ...]
    apply: Callable[[str], str]


def _build_replacer(pattern: str, instead: str) -> Callable[[str], str]:
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda text: compiled.sub(instead, text)


def _build_renumberer(pattern: str) -> Callable[[str], str]:
    """Names that group 1 finds are numbered as they come, wherever they stand in the text."""
    compiled = re.compile(pattern)

    def renumber_names(text: str) -> str:
        names = dict.fromkeys(compiled.findall(text))
        if not names:
            return text
        numbers = {name: f"id-{number}" for number, name in enumerate(names, 1)}
        anyone = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
        return anyone.sub(lambda match: numbers[match[0]], text)

    return renumber_names


_traced = _build_replacer(rf"(\bFile \"?){_FOLDERS}([^/\\\n\":,]+\.pyx?\b)", r"\1\2")
_warned = _build_replacer(rf"^{_FOLDERS}([^/\\\n\":,]+\.py:\d+: [A-Z]\w*:)", r"\1")
_of_cells = _build_replacer(r"\bipykernel_\d+([/\\])\d+\.py\b", r"ipykernel\1cell.py")
_wall = _build_replacer(r"^(CPU times|Wall time): .*$", r"\1: ...")
_timeit = _build_replacer(r"^[\d.]+ \S+ ± [\d.]+ \S+ per loop \(.*\)$", "... per loop")
_svg_date = _build_replacer(r"<dc:date>[^<]*</dc:date>", "<dc:date/>")
_svg_ids = _build_renumberer(r"\bid=\"([a-zA-Z]{1,2}[0-9a-f]{10})\"")

LATE = (
    "a call ended after its cell did; it is kept under that cell's run",
    "a connection is spoken on after its cell; that is kept under that cell's run",
)
"""What the tape says on stderr, below whatever cell runs then, of what an earlier one began and was
recorded late.
"""

RULES = (
    Rule(
        "the line that `%tape record` and other modes print", ("stream",),
        _build_replacer(
            r"^(?:tape (?:record|replay|once|new_episodes|live|off): |TAPE_MODE=\w+ wins: %tape ).*\n?", ""
        ),
    ),
    Rule(
        "the line that a call was recorded after its cell (`tape: a call ended after ...`)", ("stream",),
        _build_replacer(rf"^tape: (?:{'|'.join(map(re.escape, LATE))})(?:\n|\Z)", ""),
    ),
    Rule("memory addresses (`at 0x7f3a10`)", ANY, _build_replacer(rf"\bat 0x{_HEX}{{4,16}}\b", "at 0x...")),
    Rule(
        "in tracebacks: frames of installed packages and of Python itself, and errors before the last that none of the "
        "notebook's own frames is in (own frames with their lines, names and messages count)",
        ("stream", "error"), own_frames,
    ),
    Rule(
        "the folders of files in tracebacks and warnings (their names and lines count), and the name that ipykernel "
        "makes of a cell's text: it is another for `%%tape replay` than for `%%tape record`", ("stream", "error"),
        lambda text: _warned(_traced(_of_cells(text))),
    ),
    Rule(
        "the times that `%%time` and `%%timeit` tell", ("stream",),
        lambda text: _timeit(_wall(text)),
    ),
    Rule(
        "the times in a progress bar of tqdm", ("stream",),
        _build_replacer(
            r"\[(?:\d+:)?\d\d:\d\d(?:<[^\]\n]*|, *[^\]\n]*(?:it/s|s/it|B/s|[a-zA-Z]+/s)[^\]\n]*)\]", "[...]"
        ),
    ),
    Rule("ids of a styled pandas table (`T_1f0a3`)", HTML, _build_renumberer(r"\b(T_[0-9a-f]{5})(?=_|\b)")),
    Rule(
        "ids of elements that a library draws at random (plotly, altair, bokeh)", HTML,
        _build_renumberer(rf"\bid=[\"'][\w-]*?({_UUID})[\"']"),
    ),
    Rule("ids of links in a terminal's text (rich)", ANY, _build_renumberer(r"\x1b]8;id=(\d+);")),
    Rule("ids and date in an SVG of matplotlib", SVG, lambda text: _svg_ids(_svg_date(text))),
)  # fmt: skip

PLACES = "the notebook's folder and the home folder, where an output names them"


def forgiven_words() -> list[str]:
    """All that is forgiven, a line each."""
    return [*STRUCTURE, *(rule.description for rule in RULES), PLACES]


def places(
    folder: Path | None, home: Path | None = None, packages: Iterable[str] = ()
) -> dict[str, str]:
    """What stands for the folder that a notebook ran in and for its home (`output_lines` takes it).
    Several may be joined.

    `packages`: where packages lie that are installed from there (editable ones): elsewhere they are
    among the others.
    """
    named = [(home, "<home>"), (folder, "<folder>")]
    placeholders = {
        str(form): placeholder
        for path, placeholder in named
        if path
        for form in (path.absolute(), path.resolve())
    }
    inner = str(folder.resolve()) + os.sep if folder else ""
    for path in packages:
        if inner and path.startswith(inner):
            continue  # it goes with the notebook
        placeholder = f"site-packages/{Path(path).name}"
        placeholders[path] = placeholder
        if home and Path(path).is_relative_to(home):
            placeholders[str(Path("~", Path(path).relative_to(home)))] = (
                placeholder  # as IPython has it
            )
    return {path: placeholder for path, placeholder in placeholders.items() if len(path) > 1}


def forgive(text: str, kind: str, where: Mapping[str, str] = {}) -> str:
    """The text of an output of a kind (a MIME type, "stream" or "error") without what is forgiven."""
    if not kind.startswith(ANY) and kind not in SVG:
        return text
    for path, placeholder in sorted(where.items(), key=lambda each: -len(each[0])):
        text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", placeholder, text)
    for rule in RULES:
        if kind.startswith(rule.kinds):
            text = rule.apply(text)
    return text


MOST = 256 * 1024 * 1024
"""Bytes of unpacked rows that are looked at; a larger picture counts by its bytes."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SHOWN = (b"IHDR", b"PLTE", b"tRNS")
_PIECE = 1 << 20


def described(kind: str, value: str) -> str:
    """A picture of an output (base64) as a line: equal lines, equal pictures."""
    try:
        data = base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return f"{kind}, not base64: {hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}"
    rows = _digest_rows(data) if kind == "image/png" else None
    if rows is None:
        return f"{len(data):,} bytes, {hashlib.sha256(data).hexdigest()}"
    width, height = struct.unpack(">II", data[16:24])
    return f"{width} x {height} pixels, {rows}"


def _digest_rows(data: bytes) -> str | None:
    """A digest of what a PNG shows; None for what is no whole PNG."""
    digest, unpack, left = hashlib.sha256(), zlib.decompressobj(), MOST
    try:
        for name, content in _read_chunks(data):
            if name in _SHOWN:
                digest.update(name + content)
            elif name == b"IDAT":
                pending = content
                while pending and left > 0:
                    piece = unpack.decompress(pending, _PIECE)
                    digest.update(piece)
                    left -= len(piece)
                    pending = unpack.unconsumed_tail
    except (struct.error, zlib.error, ValueError):
        return None
    return digest.hexdigest() if unpack.eof and left > 0 else None


def _read_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of a PNG's chunks. Raises ValueError or struct.error where they do not end
    well.
    """
    if data[:8] != _SIGNATURE or data[12:16] != b"IHDR":
        raise ValueError("no PNG")
    at = 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        name, end = data[at + 4 : at + 8], at + 12 + size
        if end > len(data):
            raise ValueError("cut short")
        yield name, data[at + 8 : end - 4]
        if name == b"IEND":
            return
        at = end
