"""Engine room: the closed list of what outputs may differ in and still be the same.

It is all that is forgiven, in `tape replay`, in a bundle's proof and in its digests alike: `words()` is what people are
told. A rule names what repeats itself on no machine or only on one: where an object lay in memory, where a folder lies
on the disk, how long something took, ids that a library draws for its own markup. What a program computed or a model
said is never on it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tape_jupyter import frames

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
    """One thing that is forgiven: in words, in which kinds of output (beginnings of their names), and how."""

    words: str
    kinds: tuple[str, ...]
    apply: Callable[[str], str]


def _put(pattern: str, instead: str) -> Callable[[str], str]:
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda text: compiled.sub(instead, text)


def _renamed(pattern: str) -> Callable[[str], str]:
    """Names that group 1 finds are numbered as they come, wherever they stand in the text."""
    compiled = re.compile(pattern)

    def apply(text: str) -> str:
        names = dict.fromkeys(compiled.findall(text))
        if not names:
            return text
        numbers = {name: f"id-{number}" for number, name in enumerate(names, 1)}
        anyone = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
        return anyone.sub(lambda found: numbers[found[0]], text)

    return apply


_traced = _put(rf"(\bFile \"?){_FOLDERS}([^/\\\n\":,]+\.pyx?\b)", r"\1\2")
_warned = _put(rf"^{_FOLDERS}([^/\\\n\":,]+\.py:\d+: [A-Z]\w*:)", r"\1")
_wall = _put(r"^(CPU times|Wall time): .*$", r"\1: ...")
_timeit = _put(r"^[\d.]+ \S+ ± [\d.]+ \S+ per loop \(.*\)$", "... per loop")
_svg_date = _put(r"<dc:date>[^<]*</dc:date>", "<dc:date/>")
_svg_ids = _renamed(r"\bid=\"([a-zA-Z]{1,2}[0-9a-f]{10})\"")

LATE = (
    "a call ended after its cell did; it is kept under that cell's run",
    "a connection is spoken on after its cell; that is kept under that cell's run",
)
"""What the tape says on stderr, below whatever cell runs then, of what an earlier one began and was recorded late."""

RULES = (
    Rule(
        "the line that `%tape record` and other modes print", ("stream",),
        _put(r"^(?:tape (?:record|replay|once|new_episodes|live|off): |TAPE_MODE=\w+ wins: %tape ).*\n?", ""),
    ),
    Rule(
        "the line that a call was recorded after its cell (`tape: a call ended after ...`)", ("stream",),
        _put(rf"^tape: (?:{'|'.join(map(re.escape, LATE))})(?:\n|\Z)", ""),
    ),
    Rule("memory addresses (`at 0x7f3a10`)", ANY, _put(rf"\bat 0x{_HEX}{{4,16}}\b", "at 0x...")),
    Rule(
        "in tracebacks: frames of installed packages and of Python itself, and errors before the last that none of the "
        "notebook's own frames is in (own frames with their lines, names and messages count)",
        ("stream", "error"), frames.own,
    ),
    Rule(
        "the folders of files in tracebacks and warnings (their names and lines count)", ("stream", "error"),
        lambda text: _warned(_traced(text)),
    ),
    Rule(
        "the times that `%%time` and `%%timeit` tell", ("stream",),
        lambda text: _timeit(_wall(text)),
    ),
    Rule(
        "the times in a progress bar of tqdm", ("stream",),
        _put(r"\[(?:\d+:)?\d\d:\d\d(?:<[^\]\n]*|, *[^\]\n]*(?:it/s|s/it|B/s|[a-zA-Z]+/s)[^\]\n]*)\]", "[...]"),
    ),
    Rule("ids of a styled pandas table (`T_1f0a3`)", HTML, _renamed(r"\b(T_[0-9a-f]{5})(?=_|\b)")),
    Rule(
        "ids of elements that a library draws at random (plotly, altair, bokeh)", HTML,
        _renamed(rf"\bid=[\"'][\w-]*?({_UUID})[\"']"),
    ),
    Rule("ids and date in an SVG of matplotlib", SVG, lambda text: _svg_ids(_svg_date(text))),
)  # fmt: skip

PLACES = "the notebook's folder and the home folder, where an output names them"


def words() -> list[str]:
    """All that is forgiven, a line each."""
    return [*STRUCTURE, *(rule.words for rule in RULES), PLACES]


def places(folder: Path | None, home: Path | None = None, packages: Iterable[str] = ()) -> dict[str, str]:
    """What stands for the folder that a notebook ran in and for its home (`lines` takes it). Several may be joined.

    `packages`: where packages lie that are installed from there (editable ones): elsewhere they are among the others.
    """
    named = [(home, "<home>"), (folder, "<folder>")]
    found = {str(form): word for path, word in named if path for form in (path.absolute(), path.resolve())}
    inner = str(folder.resolve()) + os.sep if folder else ""
    for path in packages:
        if inner and path.startswith(inner):
            continue  # it goes with the notebook
        word = f"site-packages/{Path(path).name}"
        found[path] = word
        if home and Path(path).is_relative_to(home):
            found[str(Path("~", Path(path).relative_to(home)))] = word  # as IPython has it
    return {path: word for path, word in found.items() if len(path) > 1}


def forgive(text: str, kind: str, where: Mapping[str, str] = {}) -> str:
    """The text of an output of a kind (a MIME type, "stream" or "error") without what is forgiven."""
    if not kind.startswith(ANY) and kind not in SVG:
        return text
    for path, word in sorted(where.items(), key=lambda each: -len(each[0])):
        text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", word, text)
    for rule in RULES:
        if kind.startswith(rule.kinds):
            text = rule.apply(text)
    return text
