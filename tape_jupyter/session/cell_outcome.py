"""What a cell showed and left in the notebook's variables, as digests on its run's end mark, and
whether a replay of it shows and leaves the same.

    shown: "5f3c09aa1b7e fK3cAb9zQ0.."
    left: {todo: fK3c, total: Ab9z}

The first word of `shown` is a digest of all lines that the cell showed (comparison/outputs.py:
without what a comparison forgives), the second one of each line, four letters a line, where there
are at most `LINES`. Known secrets are masked before. `left` has the variables that the cell made or
changed and whose values can be read. It tells of anything that went otherwise outside the calls:
threads in another order, a value of an earlier cell, a file.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tape_jupyter.comparison.outputs import Output, output_lines, places
from tape_jupyter.dataflow.tracing.tracker import Tracker
from tape_jupyter.secrets.registry import Secrets, names_a_secret
from tape_jupyter.session import pins
from tape_jupyter.session.cell import TapedCell

LINES = 250
"""Lines of which each has a digest of its own."""

LARGEST = 200_000
"""Characters beyond which nothing is noted: looking at them would be felt."""

VARIABLES = 50
"""Variables of a cell that are noted."""

MOST_NAMED = 5

_LETTERS = 4
_SHOWN_LINE = 80


def note_outcome(
    cell: TapedCell, outputs: Sequence[Output] | None, tracker: Tracker, secrets: Secrets
) -> None:
    """Have the end mark of a recording tell what the cell showed (None: not all of it is known) and
    left; a replay of the whole recording says what is another now.
    """
    lines = _list_lines(cell, outputs, secrets) if outputs is not None else None
    if not cell.replaying or cell.recording.run:
        left = tracker.list_changed_data()
        named = [name for name in left if not names_a_secret(name)][:VARIABLES]
        marks = _digest_values({name: left[name] for name in named})
        cell.recording.ends |= {"shown": _summarize(lines)} if lines is not None else {}
        cell.recording.ends |= {"left": marks} if marks else {}
        return
    recorded = _find_recorded(cell)
    differences = [
        *_compare_shown(recorded.get("shown"), lines),
        *_compare_left(recorded.get("left"), tracker),
    ]
    for difference in differences:
        cell.warn(f"{difference}. {WHY_OTHERWISE}" if difference is differences[0] else difference)


def _compare_shown(recorded: object, lines: Sequence[str] | None) -> Iterator[str]:
    if isinstance(recorded, str) and lines is not None and recorded != _summarize(lines):
        yield _describe_difference(recorded, lines)


def _compare_left(recorded: object, tracker: Tracker) -> Iterator[str]:
    if not isinstance(recorded, Mapping):
        return
    now = _digest_values(tracker.fingerprint_data(map(str, recorded)))
    others = [name for name, digest in now.items() if digest != recorded[name]]
    if others:
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        yield f"not as the recorded cell left them: {', '.join(others[:MOST_NAMED])}{more}"


def _digest_values(prints: Mapping[str, str]) -> dict[str, str]:
    return {name: _digest_line(value) if value else "" for name, value in prints.items()}


IN_ANOTHER_ORDER = "the cell shows the lines that it showed when it was recorded in another order"
OTHERWISE = "the cell does not show what it showed when it was recorded"
WHY_OTHERWISE = (
    "Something that is not on the tape is not as it was: a value of an earlier cell, a file, the "
    "order of a set (PYTHONHASHSEED), the turns of threads"
)


def _list_lines(cell: TapedCell, outputs: Sequence[Output], secrets: Secrets) -> list[str] | None:
    where = places(cell.folder, Path.home())
    lines = list(output_lines(outputs, where))
    if sum(map(len, lines)) > LARGEST:
        return None
    return secrets.scrub("\n".join(lines))[0].split("\n")


def _find_recorded(cell: TapedCell) -> Mapping[str, Any]:
    """The end mark of the recording of this very source; {} where there is none, or where the
    person had something come out otherwise.
    """
    run = pins.recorded_run(cell)
    execution, findings = cell.execution, cell.findings
    otherwise = (
        findings.edited, findings.refusals, findings.divergences, findings.stale,
        execution.selection, execution.decided, cell.request.options.get("no_effects"), cell.rerun,
    )  # fmt: skip
    if run is None or cell.cassette is None or any(otherwise):
        return {}
    if run.get("source") != execution.cell.source:
        return {}
    return cell.cassette.ended.get(str(run["run"]), {})


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
        return OTHERWISE
    pairs = enumerate(zip_longest(marks, now))
    first = next((at for at, (was, stands) in pairs if was != stands), len(lines))
    where = f": {_quote_line(lines[first])} first" if first < len(lines) else ", the end of it"
    if Counter(marks) == Counter(now):
        return f"{IN_ANOTHER_ORDER}{where}"
    return f"{OTHERWISE}{where}"


def _quote_line(line: str) -> str:
    return repr(line if len(line) <= _SHOWN_LINE else f"{line[:_SHOWN_LINE]}...")
