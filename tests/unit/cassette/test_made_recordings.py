"""Recordings of every kind are saved in the bytes that they always were; opened, pruned and merged they are what they were.

`made_recordings.json` holds a digest of each. A change that is meant:

    python tests/unit/cassette/test_made_recordings.py > tests/unit/cassette/made_recordings.json

Old cassettes must still open and match after it. With a number behind it, it prints the cassette and what is read of it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.merge import merge_cassettes, merge_text
from tape_jupyter.cassette.prune import prune_cassette
from tape_jupyter.cassette.runs import (
    current_run_ids,
    later_recordings,
    newer_than,
    whole_run_before,
)
from tape_jupyter.core.call import FunctionCall
from tape_jupyter.errors import CassetteError, TapeUsageError
from tests.harness.made_recordings import Maker, plain, same_names, spoiled

KEPT = Path(__file__).with_name("made_recordings.json")
MADE = 12


def told(number: int, folder: Path) -> dict[str, Any]:
    """What comes of one recording and of what befalls it."""
    with same_names():
        ours, theirs = folder / "ours.tapes", folder / "theirs.tapes"
        a, b = ours / "main.tape.yaml", theirs / "main.tape.yaml"
        maker = Maker(a, number)
        maker.record(3)
        theirs.mkdir()
        b.write_bytes(a.read_bytes())
        _copy_assets(ours, theirs)
        read = _opened(a)
        maker.record(1)
        other = Maker(b, number + 1000)
        other.record(1)
        if number % 4 == 0:  # somebody edited what both hold
            b.write_bytes(b.read_bytes().replace(b"brief", b"terse", 1))
        return {
            "text": a.read_text("utf-8"),
            "read": read,
            "again": _opened(a),
            "merged": _tried(lambda: _merged(a, b, folder / "merged.tape.yaml", number)),
            "spoiled": list(_spoiled(a, number)),
            "pruned": _tried(lambda: _pruned(a)),
            "back": _back(b, maker.runs + other.runs),
        }


def _copy_assets(source: Path, goal: Path) -> None:
    for file in source.glob("assets/*"):
        (goal / "assets").mkdir(exist_ok=True)
        (goal / "assets" / file.name).write_bytes(file.read_bytes())


def _opened(path: Path) -> Any:
    cassette = Cassette.open(path, check="whole")
    assert not cassette.refresh()
    calls = [
        [each.run, each.id, each.match, each.line, each.head(), plain(each.request()), plain(each.reply())]
        for each in cassette.calls
    ]  # fmt: skip
    named = [cassette.call(run, name) is entry for (run, name), entry in cassette.by_name.items()]
    ranks = [
        [newer_than(cassette.runs, name), later_recordings(cassette.runs, name), whole_run_before(cassette.runs, cassette.ended, name)]
        for run in cassette.runs if (name := run["run"])
    ]  # fmt: skip
    current = sorted(current_run_ids(cassette.runs))
    return [cassette.runs, current, ranks, cassette.ended, calls, named, cassette.notes, cassette.torn]  # fmt: skip


def _merged(a: Path, b: Path, goal: Path, number: int) -> Any:
    before = a.read_bytes(), b.read_bytes()
    prefer = ("", "a", "b")[number % 3]
    merged = merge_cassettes(a, b, goal, prefer)
    assert (a.read_bytes(), b.read_bytes()) == before
    if merged.path is None:
        return [merge_text(merged, a, b), _record(merged)]
    return [merge_text(merged, a, b), _record(merged), goal.read_text("utf-8"), _opened(goal)]


def _record(merged: Any) -> Any:
    return {**merged.record(), "path": bool(merged.path)}


def _spoiled(path: Path, number: int) -> Iterator[Any]:
    random, data = Random(f"spoiled {number}"), path.read_bytes()
    for _ in range(2):
        what, changed = spoiled(data, random)
        folder = path.parent.with_name("spoiled.tapes")
        folder.mkdir(exist_ok=True)
        _copy_assets(path.parent, folder)
        file = folder / "main.tape.yaml"
        file.write_bytes(changed)
        opened = _tried(lambda file=file: _opened(file))
        pruned = _tried(lambda file=file: [prune_cassette(file), file.read_text("utf-8")])
        more = _tried(lambda file=file: Maker(file, number + 2000).record(1))
        yield [what, opened, pruned, more, _tried(lambda file=file: _opened(file))]
        file.unlink()


def _pruned(path: Path) -> Any:
    dry = prune_cassette(path, dry=True)
    done = prune_cassette(path)
    assert done == dry
    assert prune_cassette(path).runs == ()
    return [dry, dry.text(path, dry=True), path.read_text("utf-8"), _opened(path)]


def _back(path: Path, runs: list[str]) -> Any:
    """What of each of the last recordings would count again, and the newest of them that can."""
    dry = [_tried(lambda run=run: prune_cassette(path, dry=True, back_to=run)) for run in runs[-5:]]
    able = [run for run, each in zip(runs[-5:], dry, strict=True) if not isinstance(each, str)]
    done = [prune_cassette(path, back_to=run) for run in able[-1:]]
    return [dry, done, path.read_text("utf-8")]


def _tried(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (CassetteError, TapeUsageError) as error:
        return f"{type(error).__name__}: {error}"


def by_hand(folder: Path) -> list[Any]:
    """What a reader is told where a hand put something else in a line: a sentence, or what it reads instead."""
    folder.mkdir(exist_ok=True)
    path = folder / "hand.tapes" / "main.tape.yaml"
    with same_names():
        maker = Maker(path, 14)
        maker.record(2)
        inner = [
            call for call in Cassette.open(path).calls if isinstance(call.request(), FunctionCall)
        ]
        take = Cassette.open(path).override(inner[0], value=7, take="t").path
    take.write_text(
        re.sub('at: "[^"]*"', 'at: "2026-11-22T10:00:00.000Z"', take.read_text("utf-8"))
    )
    return [_read_by_hand(file) for file in (path, take)]


def _read_by_hand(path: Path) -> list[Any]:
    lines, told = path.read_text("utf-8").splitlines(keepends=True), []
    for number, line in enumerate(lines):
        name, colon, _ = line.partition(":")
        if not colon:
            continue
        for other in (f"{name}: 7\n", f"{name}: [1]\n", f"{name}: {{}}\n", ""):
            path.write_text("".join([*lines[:number], other, *lines[number + 1 :]]), "utf-8")
            told.append(_tried(lambda: _opened(path)))
    path.write_text("".join(lines), "utf-8")
    return told


def digests(number: int, folder: Path) -> dict[str, str]:
    return {key: _digest(value, folder) for key, value in told(number, folder).items()}


def _digest(value: Any, folder: Path) -> str:
    text = json.dumps(value, default=repr).replace(str(folder), "")
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def test_recordings_are_saved_opened_pruned_and_merged_as_they_always_were(tmp_path):
    kept = json.loads(KEPT.read_text())
    now = {}
    for number in range(MADE):
        folder = tmp_path / str(number)
        folder.mkdir()
        now[str(number)] = digests(number, folder)
    differing = {
        name: [part for part in now[name] if now[name][part] != kept[name][part]] for name in now
    }
    assert {name: parts for name, parts in differing.items() if parts} == {}


def test_what_a_hand_put_elsewhere_is_told_or_read_as_it_always_was(tmp_path):
    assert _digest(by_hand(tmp_path), tmp_path) == json.loads(KEPT.read_text())["by hand"]


def main() -> None:
    made = {}
    for number in map(int, sys.argv[1:] or range(MADE)):
        with tempfile.TemporaryDirectory() as folder:
            if sys.argv[1:]:
                print(json.dumps(told(number, Path(folder)), indent=1, default=repr))
            else:
                made[str(number)] = json.dumps(digests(number, Path(folder)))
    if made:
        with tempfile.TemporaryDirectory() as folder:
            made["by hand"] = json.dumps(_digest(by_hand(Path(folder)), Path(folder)))
        lines = [f'"{name}": {text}' for name, text in made.items()]
        print("{", ",\n".join(lines), "}", sep="\n")


if __name__ == "__main__":
    main()
