"""What a cell showed, as digests on its run's end mark, and whether a replay of it shows the same.

    shown: "5f3c09aa1b7e fK3cAb9zQ0.."

The first word is a digest of all lines that the cell showed (comparison/outputs.py: without what a
comparison forgives), the second one of each line, four letters a line, where there are at most
`LINES`. Known secrets are masked before. It tells of anything that went otherwise outside the calls:
threads in another order, a value of an earlier cell, a file.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path

from tape_jupyter.comparison.outputs import Output, output_lines, places
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session import pins
from tape_jupyter.session.cell import TapedCell

LINES = 250
"""Lines of which each has a digest of its own."""

LARGEST = 200_000
"""Characters beyond which nothing is noted: looking at them would be felt."""

_LETTERS = 4
_SHOWN_LINE = 80


def note_outputs(cell: TapedCell, outputs: Sequence[Output], secrets: Secrets) -> None:
    """Have the end mark of a recording tell what the cell showed; a replay of the whole recording
    says where it shows something else.
    """
    lines = _list_lines(cell, outputs, secrets)
    if lines is None:
        return
    if not cell.replaying or cell.recording.run:
        cell.recording.ends["shown"] = _summarize(lines)
    elif (recorded := _find_recorded(cell)) and recorded != _summarize(lines):
        cell.warn(_describe_difference(recorded, lines))


IN_ANOTHER_ORDER = "the cell shows the lines that it showed when it was recorded in another order"
WHY_IN_ANOTHER_ORDER = (
    "Its threads or tasks took turns otherwise, or its code asks in another order"
)
OTHERWISE = "the cell does not show what it showed when it was recorded"
WHY_OTHERWISE = (
    "Something that is not on the tape is not as it was: a value of an earlier cell, a file, what "
    "ran beside it"
)


def _list_lines(cell: TapedCell, outputs: Sequence[Output], secrets: Secrets) -> list[str] | None:
    where = places(cell.folder, Path.home())
    lines = list(output_lines(outputs, where))
    if sum(map(len, lines)) > LARGEST:
        return None
    return secrets.scrub("\n".join(lines))[0].split("\n")


def _find_recorded(cell: TapedCell) -> str:
    """What the recording of this very source showed; "" where it does not tell, or where the person
    had something come out otherwise.
    """
    run = pins.recorded_run(cell)
    execution, findings = cell.execution, cell.findings
    otherwise = (
        findings.edited, findings.refusals, findings.divergences, findings.stale,
        execution.selection, execution.decided, cell.request.options.get("no_effects"),
    )  # fmt: skip
    if run is None or cell.cassette is None or any(otherwise):
        return ""
    if run.get("source") != execution.cell.source:
        return ""
    ended: Mapping[str, object] = cell.cassette.ended.get(str(run["run"]), {})
    return str(ended.get("shown", ""))


def _summarize(lines: Sequence[str]) -> str:
    whole = blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return " ".join([whole, "".join(map(_digest_line, lines))]) if len(lines) <= LINES else whole


def _digest_line(line: str) -> str:
    digest = blake2b(line.encode("utf-8", "surrogatepass"), digest_size=3).digest()
    return urlsafe_b64encode(digest).decode("ascii")


def _describe_difference(recorded: str, lines: Sequence[str]) -> str:
    before = recorded.partition(" ")[2]
    marks = [before[at : at + _LETTERS] for at in range(0, len(before), _LETTERS)]
    now = [_digest_line(line) for line in lines]
    if not before and lines:
        return f"{OTHERWISE}. {WHY_OTHERWISE}"
    first = next(at for at, pair in enumerate(zip_longest(marks, now)) if pair[0] != pair[1])
    where = f": {_quote_line(lines[first])} first" if first < len(lines) else ", the end of it"
    if Counter(marks) == Counter(now):
        return f"{IN_ANOTHER_ORDER}{where}. {WHY_IN_ANOTHER_ORDER}"
    return f"{OTHERWISE}{where}. {WHY_OTHERWISE}"


def _quote_line(line: str) -> str:
    return repr(line if len(line) <= _SHOWN_LINE else f"{line[:_SHOWN_LINE]}...")
