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
from pathlib import Path
from typing import Any

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.comparison.outputs import Output, output_lines, places
from tape_jupyter.core.moved_folders import MovedFolders
from tape_jupyter.core.plain_text import join_some
from tape_jupyter.dataflow.static.names import assigned_names, transform
from tape_jupyter.dataflow.tracing.handles import content_of
from tape_jupyter.dataflow.tracing.tracker import Tracker
from tape_jupyter.encoding.values.registry import CannotFreeze, freeze, thaw
from tape_jupyter.errors import CassetteError
from tape_jupyter.files.databases import BESIDE
from tape_jupyter.files.originals import KEY
from tape_jupyter.secrets.registry import Secrets, names_a_secret
from tape_jupyter.session import pins
from tape_jupyter.session.cell import TapedCell
from tape_jupyter.session.pins import clock
from tape_jupyter.session.tool_files import file_digest, name_inside, resolve_inside

_EFFECTS = {"shown": "output", "left": "memory", "wrote": "files"}
"""What is noted -> what `--no-effects` calls it: of what replays otherwise by wish, nothing is said."""
_LINES = 250
"""Lines of which each has a digest of its own."""
_LARGEST = 200_000
"""Characters beyond which nothing is noted: looking at them would be felt."""
_MOST = 50
"""Variables and files of a cell that are noted."""
_NAMED = 5
_LETTERS = 4
_QUOTED = 80

_IN_ANOTHER_ORDER = "the cell shows the lines that it showed when it was recorded in another order"
_OTHERWISE = "the cell does not show what it showed when it was recorded"
_WHY_OTHERWISE = (
    "Something that is not on the tape is not as it was: a value of an earlier cell, a file, the "
    "order of a set (PYTHONHASHSEED), the turns of threads"
)


def note_outcome(
    cell: TapedCell,
    outputs: Sequence[Output] | None,
    tracker: Tracker,
    secrets: Secrets,
    folders: MovedFolders,
) -> None:
    """Have the end mark of a recording tell what the cell showed (None: not all of it is known),
    left and wrote; a replay of the whole recording says what is another now. Files count as outputs
    do; so does, where it played tools, what only they can have left. Variables may name `folders` as
    they are here.
    """
    if not cell.replaying or cell.recording.run:
        lines = _list_lines(cell, outputs, secrets)
        ends = {
            "shown": _summarize(lines) if lines is not None else "",
            "left": _digest_variables(tracker),
            "wrote": _digest_files(cell, tracker),
        }
        left_out = cell.request.options.get("no_effects", ())
        cell.recording.ends |= {
            key: value for key, value in ends.items() if value and _EFFECTS[key] not in left_out
        }
    elif recorded := _find_recorded(cell):
        shown = _compare_shown(recorded.get("shown"), _list_lines(cell, outputs, secrets))
        variables = list(_list_other_variables(recorded.get("left"), tracker, folders))
        files = list(_list_other_files(recorded.get("wrote"), cell.folder))
        left = _describe_left([*variables, *files])
        for difference, why in zip([*shown, *left], (f". {_WHY_OTHERWISE}", ""), strict=False):
            cell.warn(f"{difference}{why}")
        of_tools: list[str] = []
        if variables and any(map(_is_of_tool, cell.execution.played)):
            assigned = assigned_names(transform(cell.request.source))
            of_tools = [name for name in variables if name not in assigned]
        begun_otherwise = _list_unkept_starts(cell.cassette)
        cell.findings.unheld += _describe_left(
            [*of_tools, *(each for each in files if each not in begun_otherwise)]
        )


def _is_of_tool(entry: Entry) -> bool:
    return entry.head().get("kind") in ("tool", "retrieval")


# What is noted


def _list_lines(
    cell: TapedCell, outputs: Sequence[Output] | None, secrets: Secrets
) -> list[str] | None:
    """What the cell showed, as comparable lines; None where that is not known, or too much."""
    if outputs is None:
        return None
    lines = list(output_lines(outputs, places(cell.folder, Path.home())))
    if sum(map(len, lines)) > _LARGEST:
        return None
    return secrets.scrub("\n".join(lines))[0].split("\n")


def _summarize(lines: Sequence[str]) -> str:
    whole = blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    if len(lines) <= _LINES:
        return " ".join([whole, "".join(map(_digest, lines))])
    return whole


def _digest_variables(tracker: Tracker) -> dict[str, str]:
    left = tracker.list_changed_data()
    named = [name for name in left if not names_a_secret(name)]
    return {name: _digest(left[name]) for name in named[:_MOST]}


def _digest_files(cell: TapedCell, tracker: Tracker) -> dict[str, str]:
    """Of files in the notebook's folder; hidden ones and what SQLite keeps beside its own are left
    out.
    """
    written: dict[str, str] = {}
    for path, content in tracker.list_changed_files().items():
        name = name_inside(cell.folder, path)
        if name is not None and "/." not in f"/{name}" and not name.endswith(BESIDE):
            written[name] = _digest_content(content, cell.folder)
    return dict(list(written.items())[:_MOST])


def _digest_content(content: bytes | None, folder: Path | None = None) -> str:
    """An empty text where there is no file; as in outputs, a text may name the `folder` that it ran in."""
    if content is None:
        return ""
    if folder is not None and isinstance(content, bytes):
        content = MovedFolders({os.path.realpath(folder): "<folder>"}).content_here(content)
    return _digest(file_digest(content))


def _digest(text: str) -> str:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=3).digest()
    return urlsafe_b64encode(digest).decode("ascii")


# What a replay is compared with


def _find_recorded(cell: TapedCell) -> Mapping[str, Any]:
    """The end mark of the recording of this very source; {} where there is none, or where the
    person had something come out otherwise: also in any take, whatever it changes.
    """
    run = pins.recorded_run(cell)
    execution, findings = cell.execution, cell.findings
    otherwise = (
        findings.edited, findings.refusals, findings.divergences, findings.stale,
        execution.selection, execution.decided, cell.request.options.get("no_effects"), cell.rerun,
        clock.seed_of(cell),
    )  # fmt: skip
    if run is None or cell.cassette is None or any(otherwise):
        return {}
    if cell.cassette.base is not None or run.get("source") != execution.cell.source:
        return {}
    return cell.cassette.ended.get(str(run["run"]), {})


def _compare_shown(recorded: object, lines: Sequence[str] | None) -> list[str]:
    if isinstance(recorded, str) and lines is not None and recorded != _summarize(lines):
        return [_describe_difference(recorded, lines)]
    return []


def _describe_difference(recorded: str, lines: Sequence[str]) -> str:
    before = recorded.partition(" ")[2]
    if not before and lines:
        return _OTHERWISE
    marks = [before[at : at + _LETTERS] for at in range(0, len(before), _LETTERS)]
    now = [_digest(line) for line in lines]
    pairs = enumerate(zip_longest(marks, now))
    first = next((at for at, (was, stands) in pairs if was != stands), len(lines))
    if first < len(lines):
        where = f": {_quote_line(lines[first])} first"
    else:
        where = ", the end of it"
    return f"{_IN_ANOTHER_ORDER if Counter(marks) == Counter(now) else _OTHERWISE}{where}"


def _quote_line(line: str) -> str:
    return repr(line if len(line) <= _QUOTED else f"{line[:_QUOTED]}...")


def _describe_left(others: Sequence[str]) -> list[str]:
    if others:
        return [f"not as the recorded cell left them: {join_some(others, _NAMED)}"]
    return []


def _list_other_variables(
    recorded: object, tracker: Tracker, folders: MovedFolders
) -> Iterator[str]:
    if isinstance(recorded, Mapping):
        for name, value in tracker.fingerprint_data(map(str, recorded)).items():
            now = _digest(value) if value else ""
            if recorded[name] not in (now, _digest_as_recorded(name, tracker, folders)):
                yield name


def _digest_as_recorded(name: str, tracker: Tracker, folders: MovedFolders) -> str | None:
    """Of a variable that names folders, which it named as they were when it was recorded; None of any
    other.
    """
    if not folders:
        return None
    try:
        structure = freeze(tracker.variables.value(name))
        recorded = folders.recorded(structure)
        return None if recorded is structure else _digest(tracker.fingerprint_value(thaw(recorded)))
    except (CannotFreeze, CassetteError):
        return None


def _list_unkept_starts(cassette: Cassette | None) -> set[str]:
    """In words, the files that the recording began with and of which it does not hold what they were:
    a replay begins with what they are now, which is said (files/originals.py).
    """
    ends = cassette.ended.values() if cassette is not None else ()
    firsts = [each for end in ends for each in end.get(KEY, ()) if isinstance(each, Mapping)]
    return {
        f"the file {each.get('path')}"
        for each in firsts
        if each.get("before") != "none" and "base64" not in each
    }


def _list_other_files(recorded: object, folder: Path | None) -> Iterator[str]:
    """In words."""
    if not isinstance(recorded, Mapping) or folder is None:
        return
    for name in map(str, recorded):
        try:
            path = resolve_inside(folder, name)
        except CassetteError:  # somebody wrote it into the cassette
            continue
        content, known = content_of(os.path.realpath(path))
        digests = _digest_content(content, folder), _digest_content(content)
        if known and recorded[name] not in digests:  # older recordings have the second one
            yield f"the file {name}"
