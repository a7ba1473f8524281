"""What a cell showed and left in the notebook's variables, as digests on its run's end mark, and
whether a replay of it shows and leaves the same.

    shown: "5f3c09aa1b7e fK3cAb9zQ0.."
    left: {todo: fK3c, total: Ab9z}
    wrote: {report/sums.csv: 0f9_}

The first word of `shown` is a digest of all lines that the cell showed (comparison/outputs.py:
without what a comparison forgives), the second one of each line, four letters a line, where there
are at most `LINES`. Known secrets are masked before. `left` has the variables that the cell made or
changed and whose values can be read, `wrote` the files in the notebook's folder ("": it removed
them). It tells of anything that went otherwise outside the calls: threads in another order, a value
of an earlier cell, a file.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any

from tape_jupyter.comparison.outputs import Output, output_lines, places
from tape_jupyter.dataflow.tracing.handles import content_of
from tape_jupyter.dataflow.tracing.tracker import Tracker
from tape_jupyter.files.first_contents import BESIDE
from tape_jupyter.secrets.registry import Secrets, names_a_secret
from tape_jupyter.session import pins
from tape_jupyter.session.cell import TapedCell

LINES = 250
"""Lines of which each has a digest of its own."""

LARGEST = 200_000
"""Characters beyond which nothing is noted: looking at them would be felt."""

MOST = 50
"""Variables and files of a cell that are noted."""

MOST_NAMED = 5

_LETTERS = 4
_SHOWN_LINE = 80


def note_outcome(
    cell: TapedCell, outputs: Sequence[Output] | None, tracker: Tracker, secrets: Secrets
) -> None:
    """Have the end mark of a recording tell what the cell showed (None: not all of it is known),
    left and wrote; a replay of the whole recording says what is another now.
    """
    lines = _list_lines(cell, outputs, secrets) if outputs is not None else None
    if not cell.replaying or cell.recording.run:
        ends = {
            "shown": _summarize(lines) if lines is not None else "",
            "left": _digest_variables(tracker),
            "wrote": _digest_files(cell, tracker),
        }
        cell.recording.ends |= {key: value for key, value in ends.items() if value}
        return
    recorded = _find_recorded(cell)
    differences = [
        *_compare_shown(recorded.get("shown"), lines),
        *_compare_left(recorded.get("left"), recorded.get("wrote"), cell.folder, tracker),
    ]
    for difference in differences:
        cell.warn(f"{difference}. {WHY_OTHERWISE}" if difference is differences[0] else difference)


def _compare_shown(recorded: object, lines: Sequence[str] | None) -> Iterator[str]:
    if isinstance(recorded, str) and lines is not None and recorded != _summarize(lines):
        yield _describe_difference(recorded, lines)


def _compare_left(
    variables: object, files: object, folder: Path | None, tracker: Tracker
) -> Iterator[str]:
    others: list[str] = []
    if isinstance(variables, Mapping):
        now = tracker.fingerprint_data(map(str, variables))
        others += [name for name, value in now.items() if _digest(value) != variables[name]]
    if isinstance(files, Mapping) and folder is not None:
        names = [str(name) for name in files if _is_below(str(name))]
        written = {name: content_of(str(folder / name)) for name in names}
        others += [
            f"the file {name}"
            for name, (content, known) in written.items()
            if known and _digest(content) != files[name]
        ]
    if others:
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        yield f"not as the recorded cell left them: {', '.join(others[:MOST_NAMED])}{more}"


def _is_below(name: str) -> bool:
    """Whether a path is one within the folder that it is relative to."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _digest_variables(tracker: Tracker) -> dict[str, str]:
    left = tracker.list_changed_data()
    named = [name for name in left if not names_a_secret(name)]
    return {name: _digest(left[name]) for name in named[:MOST]}


def _digest_files(cell: TapedCell, tracker: Tracker) -> dict[str, str]:
    """Of files below the notebook's folder; hidden ones and what SQLite keeps beside its own are
    left out.
    """
    top = f"{cell.folder}{os.sep}"
    written = tracker.list_changed_files()
    named = [path for path in written if path.startswith(top) and not path.endswith(BESIDE)]
    relative = {path.removeprefix(top).replace(os.sep, "/"): written[path] for path in named}
    plain = [name for name in relative if not f"/{name}".count("/.")]
    return {name: _digest(relative[name]) for name in plain[:MOST]}


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


def _digest(content: str | bytes | None) -> str:
    """Four letters; "" for what is not there."""
    if content is None or content == "":
        return ""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return urlsafe_b64encode(blake2b(data, digest_size=3).digest()).decode("ascii")


def _digest_line(line: str) -> str:
    return _digest(line.encode("utf-8", "surrogatepass"))


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
