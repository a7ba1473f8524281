"""What people do with takes, in `%tape takes ...`, `tape takes ...` and both words `diff`: one
place, two doors. Parses words, calls the store, tells in text or plain structure; prints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files, promotion, undo
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.reports import diff

USAGE = "takes [rename A B|default A|undo A|keep A|discard A|promote A|diff A B]"


def list_takes(cassette: Path) -> list[dict[str, Any]]:
    """Each take: what it is of, how many answers it overrides (by hand, live), its own calls; or
    why it is no good.
    """
    return [_describe_take(cassette, path) for path in files.list_take_files(cassette)]


def _describe_take(cassette: Path, path: Path) -> dict[str, Any]:
    name = files.take_name(path)
    try:
        take = Cassette.open(cassette, check="marks").take(name)
    except CassetteError as error:
        return {"take": name, "path": str(path), "error": str(error)}
    made = take.newest_overrides()
    own = sum(entry.book is take for entry in take.calls) - len(made)
    by_hand = sum(not each.by for each in made)
    return {
        "take": name, "path": str(path), "of": list(take.chain[:-1]),
        "overrides": by_hand, "live": len(made) - by_hand, "calls": own,
        "default": files.default_take(cassette) == name,
    }  # fmt: skip


def takes_text(cassette: Path) -> str:
    """The takes of a cassette, a line each."""
    rows = list_takes(cassette)
    if not rows:
        return f"{cassette.name} has no takes; %%tape replay --live X makes one, and so does cassette.override(...)"
    return "\n".join(_format_line(row) for row in rows)


def _format_line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['take']:24}  ! {row['error']}"
    counts = (("overrides", "by hand"), ("live", "live"), ("calls", "new calls"))
    told = ", ".join(f"{row[key]} {word}" for key, word in counts if row[key]) or "empty"
    chosen = "  default" if row["default"] else ""
    return f"{row['take']:24}  {told}  (take of: {' > '.join(row['of'])}){chosen}"


def choose_cassette(cassettes: Sequence[Path], words: Sequence[str]) -> Path:
    """The cassette that `words` speak of: the first with a take of that name, or so called itself;
    else the first.
    """
    verb, *told = words or ("",)
    named = told if verb == "diff" else told[:1]
    if verb == "undo" and not any(
        name in files.take_names(each) for name in named for each in cassettes
    ):
        return next(
            (each for each in cassettes if any(files.put_aside(each, name) for name in named)),
            cassettes[0],
        )
    of_take = (each for each in cassettes if set(named) & set(files.take_names(each)))
    called = (each for each in cassettes if paths.stem(each) in named)
    return next(of_take, None) or next(called, cassettes[0])


def act(cassette: Path, words: Sequence[str]) -> tuple[str, list[diff.CallDifference]]:
    """`rename A B`, `delete A`, `diff A B`: what to tell, and the differences. Raises
    TapeUsageError.
    """
    match list(words):
        case ["diff", one, other]:
            return compare_takes(resolve_word(cassette, one), resolve_word(cassette, other))
    return _run_action(cassette, words), []


def _run_action(cassette: Path, words: Sequence[str]) -> str:
    match list(words):
        case ["rename", old, new]:
            return f"take {old} is called {files.take_name(files.rename(cassette, old, new))} now"
        case ["delete" | "discard", name]:
            aside = files.delete(cassette, name)
            return f"take {name} is put aside, in {aside}; `takes undo {name}` or move it back to have it again"
        case ["undo", name]:
            return undo.undo(cassette, name)
        case ["promote", name]:
            return _promote_take(cassette, name)
        case ["keep", name]:
            return f"take {name} is kept, in {files.require_take(cassette, name)}"
        case ["default", name]:
            files.choose(cassette, name)
            own = name == paths.stem(cassette)
            return f"{'the recording' if own else f'take {name}'} replays where no take is named"
        case _:
            raise TapeUsageError(f"{' '.join(words)[:80]!r}: usage: {USAGE}")


def _promote_take(cassette: Path, name: str) -> str:
    files.require_take(cassette, name)
    done = promotion.promote(Cassette.open(cassette).take(name))
    return f"take {name} answers {', '.join(each.id for each in done)} otherwise now; to play it: --take {name}"


def compare_takes(
    one: Cassette, other: Cassette, tell: Tell = ignore_progress
) -> tuple[str, list[diff.CallDifference]]:
    found = diff.diff(one, other, tell)
    drift = [
        f"drift: {each}" for each in diff.drifts(one, other, tell)
    ]  # it makes no difference of calls
    return "\n".join(
        [diff.diff_text(found, " > ".join(one.chain), " > ".join(other.chain)), *drift]
    ), found


def difference_records(
    one: Cassette, other: Cassette, found: Sequence[diff.CallDifference]
) -> list[dict[str, Any]]:
    """For --json: the calls that differ, then what drifted around them."""
    drift = [
        {**each.record(), "what": "drift", "title": each.what} for each in diff.drifts(one, other)
    ]
    return [*(each.record() for each in found), *drift]


def resolve_word(cassette: Path, word: str) -> Cassette:
    """What a word stands for beside a cassette: itself or another of its folder, one of its takes,
    or a file.
    """
    if word == paths.stem(cassette):
        return Cassette.open(cassette)
    if word in files.take_names(cassette):
        return Cassette.open(cassette).take(word)
    beside = cassette.with_name(f"{word}{paths.SUFFIX}")
    if "/" not in word and beside.is_file():
        return Cassette.open(beside)
    if Path(word).is_file():
        return Cassette.open(word)
    have = ", ".join([paths.stem(cassette), *files.take_names(cassette)])
    raise TapeUsageError(f"{word[:80]!r} is no cassette or take here; there are: {have}")
