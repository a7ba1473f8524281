"""Engine room: a traceback as text, without the frames of installed packages and of Python itself.

What an SDK does between a person's line and the error hangs on whether a socket was opened or a tape was read, on its
version and on the machine. A person's own frames (cells, modules that are installed nowhere) stay, with their lines;
so do the name and the message of every error that passed through one of them, and of the last one.

Tracebacks of IPython (`File ~/x.py:3, in f(a)`, `Cell In[1], line 2`) and of Python itself (`  File "x.py", line 3`, in
a group of errors after bars) are read; every other line is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_FRAME = re.compile(
    r"[ |]*(?:File ['\"]?(?P<path>[^\n'\"]+?)['\"]?(?::\d+| line \d+|, line \d+|, in | in |$)|Cell In|Input In)"
)
INSTALLED = re.compile(
    r"(?:site|dist)-packages[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python3(?:\.\d+)?t?[/\\]"  # Python's own modules: Linux, macOS, conda
    r"|[/\\](?:python3\d*|cpython-3[^/\\]*)[/\\]lib[/\\]"  # and on Windows
    r"|[/\\]tape_jupyter[/\\](?:\w+[/\\])?\w+\.py$"  # of a checkout too
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


def own(text: str) -> str:
    """The text, its tracebacks cut down to a person's own frames. What holds no traceback is the same text."""
    if "Traceback (most recent call last)" not in text:
        return text
    return "".join(_seen("\n".join(_kept(text.split("\n")))))


def _kept(lines: Sequence[str]) -> Iterator[str]:
    """All lines but those of foreign frames, and the blank line behind each."""
    number = 0
    while number < len(lines):
        found = _FRAME.match(lines[number])
        if not found or not found["path"] or not INSTALLED.search(found["path"]):
            yield lines[number]
            number += 1
            continue
        margin = _margin(lines[number])
        number += 1
        while number < len(lines) and _is_body(lines[number], margin):
            number += 1
        if number < len(lines) and not _BARS.sub("", lines[number], count=1):
            number += 1


def _margin(head: str) -> str:
    """What stands before a frame's `File`."""
    found = _BARS.match(head)
    return found[0] if found else ""


def _is_body(line: str, margin: str) -> bool:
    """Whether it is source (or the marks below it) of the frame that began at this margin."""
    return line.startswith(margin) and bool(_BODY.match(line, len(margin)))


def _seen(text: str) -> Iterator[str]:
    """The parts of chained errors; one that no frame of a person's own is in is left out, unless it is the last."""
    at = 0
    for joint in _CHAINED.finditer(text):
        part = text[at : joint.start()]
        head = _last(part)
        if head is not None and not any(_FRAME.match(line) for line in part[head:].split("\n")):
            yield part[:head]
        else:
            yield part + joint[0]
        at = joint.end()
    yield text[at:]


def _last(part: str) -> int | None:
    """Where the last traceback of a text begins."""
    found = [each.start() for each in _HEAD.finditer(part)]
    return found[-1] if found else None
