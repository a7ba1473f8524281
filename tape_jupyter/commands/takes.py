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
    overrides = take.newest_overrides()
    call_count = sum(entry.book is take for entry in take.calls) - len(overrides)
    by_hand = sum(not each.by for each in overrides)
    return {
        "take": name, "path": str(path), "of": list(take.chain[:-1]),
        "overrides": by_hand, "live": len(overrides) - by_hand, "calls": call_count,
        "default": files.default_take(cassette) == name,
    }  # fmt: skip


def takes_text(cassette: Path) -> str:
    """The takes of a cassette, a line each."""
    rows = list_takes(cassette)
    if not rows:
        return (
            f"{cassette.name} has no takes yet: a changed reply makes one (%tape override, or "
            "Edit reply in the viewer)"
        )
    return "\n".join(_format_line(row) for row in rows)


def _format_line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['take']:24}  ! {row['error']}"
    counts = (("overrides", "by hand"), ("live", "live"), ("calls", "new calls"))
    summary = ", ".join(f"{row[key]} {label}" for key, label in counts if row[key]) or "empty"
    chosen = "  default" if row["default"] else ""
    return f"{row['take']:24}  {summary}  (take of: {' > '.join(row['of'])}){chosen}"


def choose_cassette(cassettes: Sequence[Path], arguments: Sequence[str]) -> Path:
    """The cassette that `arguments` speak of: the first with a take of that name, or so called itself;
    else the first.
    """
    verb, *names = arguments or ("",)
    named = names if verb == "diff" else names[:1]
    if verb == "undo" and not any(
        name in files.take_names(each) for name in named for each in cassettes
    ):
        for each in cassettes:
            if any(files.put_aside(each, name) for name in named):
                return each
        return cassettes[0]
    of_take = (each for each in cassettes if set(named) & set(files.take_names(each)))
    called = (each for each in cassettes if paths.stem(each) in named)
    return next(of_take, None) or next(called, cassettes[0])


def act(cassette: Path, arguments: Sequence[str]) -> tuple[str, list[diff.CallDifference]]:
    """`rename A B`, `delete A`, `diff A B`: what to tell, and the differences. Raises
    TapeUsageError.
    """
    match list(arguments):
        case ["diff", one, other]:
            return compare_takes(resolve_word(cassette, one), resolve_word(cassette, other))
    return _run_action(cassette, arguments), []


def _run_action(cassette: Path, arguments: Sequence[str]) -> str:
    match list(arguments):
        case ["rename", old, new]:
            return f"take {old} is called {files.take_name(files.rename(cassette, old, new))} now"
        case ["delete" | "discard", name]:
            aside = files.delete(cassette, name)
            return f"take {name} was moved to {aside}; `%tape takes undo {name}` brings it back"
        case ["undo", name]:
            return undo.undo(cassette, name)
        case ["promote", name]:
            return _promote_take(cassette, name)
        case ["keep", name]:
            return f"take {name} is kept, in {files.require_take(cassette, name)}"
        case ["default", name]:
            files.choose(cassette, name)
            is_recording = name == paths.stem(cassette)
            return f"{'the recording' if is_recording else f'take {name}'} is replayed when no take is named"
        case _:
            raise TapeUsageError(f"{' '.join(arguments)[:80]!r}: usage: {USAGE}")


def _promote_take(cassette: Path, name: str) -> str:
    files.require_take(cassette, name)
    done = promotion.promote(Cassette.open(cassette).take(name))
    return f"take {name} answers {', '.join(each.id for each in done)} differently now; to play it: --take {name}"


def compare_takes(
    one: Cassette, other: Cassette, on_progress: Tell = ignore_progress
) -> tuple[str, list[diff.CallDifference]]:
    differences = diff.diff(one, other, on_progress)
    # it makes no difference of calls
    drift = [f"drift: {each}" for each in diff.drifts(one, other, on_progress)]
    return "\n".join(
        [diff.diff_text(differences, " > ".join(one.chain), " > ".join(other.chain)), *drift]
    ), differences


def difference_records(
    one: Cassette, other: Cassette, differences: Sequence[diff.CallDifference]
) -> list[dict[str, Any]]:
    """For --json: the calls that differ, then what drifted around them."""
    drift = [
        {**each.record(), "what": "drift", "title": each.what} for each in diff.drifts(one, other)
    ]
    return [*(each.record() for each in differences), *drift]


def resolve_word(cassette: Path, name: str) -> Cassette:
    """What a word stands for beside a cassette: itself or another of its folder, one of its takes,
    or a file.
    """
    if name == paths.stem(cassette):
        return Cassette.open(cassette)
    if name in files.take_names(cassette):
        return Cassette.open(cassette).take(name)
    sibling = cassette.with_name(f"{name}{paths.SUFFIX}")
    if "/" not in name and sibling.is_file():
        return Cassette.open(sibling)
    if Path(name).is_file():
        return Cassette.open(name)
    have = ", ".join([paths.stem(cassette), *files.take_names(cassette)])
    raise TapeUsageError(f"{name[:80]!r} is not a cassette or take here; there are: {have}")
