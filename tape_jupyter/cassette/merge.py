"""Joins two cassettes that diverged (two kernels, two git branches) into a third. Neither is ever
written.

Every record of both is kept, once, in the order that it has in its own file; where nothing else
says which comes first, the older does, so that of each cell the newest recording counts. A record
that is not the same in both (a reply edited by hand in one of them) is a conflict: it is named, and
nothing is written until somebody says whose counts.
"""

from __future__ import annotations

import os
import secrets as entropy
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tape_jupyter.cassette import external_texts, paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.journal import Journal
from tape_jupyter.cassette.migrations import VERSION, migrated
from tape_jupyter.cassette.runs import Current, run_of
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.progress import Tell, count_items, ignore_progress
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import CassetteError, TapeUsageError

Prefer = Literal["", "a", "b"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that both hold, and not alike: what it is, and its lines (1-based) in either."""

    what: str
    a: int
    b: int


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of it. `path` is None where conflicts kept it from being written.

    `both`, `only_a` and `only_b` count records; `superseded` are runs that counted in one of them
    and no longer do, each with the run that counts instead; `notes` are for people.
    """

    path: Path | None
    both: int = 0
    only_a: int = 0
    only_b: int = 0
    conflicts: tuple[Conflict, ...] = ()
    superseded: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "path": str(self.path) if self.path else None}


class _Piece(NamedTuple):
    """One record of one of the files: its name (the same record has the same), when it was written,
    its text.
    """

    name: tuple[str, ...]
    at: str
    text: bytes
    line: int
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Side:
    """A cassette as it is to be joined."""

    path: Path
    header: dict[str, Any]
    pieces: list[_Piece]
    notes: list[str]


def merge_cassettes(
    a: Path,
    b: Path,
    out: Path | None = None,
    prefer: Prefer = "",
    on_progress: Tell = ignore_progress,
) -> Merged:
    """Join two cassettes, or two takes of one cassette, into a new file.

    `out` must not be there yet; without it the file lies beside `a`, called as that with `-merged`.
    `prefer` says whose version of a record counts where they differ. Raises CassetteError for a
    file that cannot be read or written, TapeUsageError where they cannot be joined at all, or `out`
    is there.
    """
    ours, theirs = _read_side(a, on_progress), _read_side(b, on_progress)
    _require_same_base(ours, theirs)
    goal = _choose_output(ours.path, out)
    their_pieces = {piece.name: piece for piece in theirs.pieces}
    conflicts = tuple(
        Conflict(_format_title(piece), piece.line, other.line)
        for piece in ours.pieces
        if (other := their_pieces.get(piece.name)) is not None and other.text != piece.text
    )
    common = sum(piece.name in their_pieces for piece in ours.pieces)
    merged = Merged(None, common, len(ours.pieces) - common, len(theirs.pieces) - common, conflicts)
    if conflicts and not prefer:
        return merged
    on_progress("joining them", 0, 0)
    pieces = list(_join_pieces(ours.pieces, theirs.pieces, prefer))
    on_progress(f"writing {goal.name}, and reading it again", 0, 0)
    _write_merged(goal, ours.header, pieces, (ours.path, theirs.path))
    notes = (*ours.notes, *theirs.notes, *_describe_double_overrides(ours, theirs))
    return Merged(
        goal,
        common,
        merged.only_a,
        merged.only_b,
        conflicts,
        _find_superseded_runs(ours.pieces, theirs.pieces, pieces),
        notes,
    )


# ---------------------------------------------------------------- reading


def _read_side(path: Path, on_progress: Tell) -> _Side:
    """Raises CassetteError for what is no sound cassette: nothing is joined that could not be
    replayed.
    """
    on_progress(f"checking {path.name}", 0, 0)
    cassette = Cassette.open(path, check="whole")
    if not path.exists():
        raise TapeUsageError(f"{path}: there is no such cassette")
    journal = Journal(path)
    texts = [
        (journal.read(span.offset, span.length).replace(b"\r\n", b"\n"), journal.line(span.offset))
        for span in journal.scan()
    ]
    records = [
        emitter.parse_record(text.decode("utf-8"))
        for text, _ in count_items(texts, f"records of {path.name}", on_progress)
    ]
    if not records:
        raise TapeUsageError(f"{path} holds nothing to join")
    version = int(records[0]["tape"])
    if version < VERSION:
        records = migrated(records, version)
        texts = [(emitter.emit(record).encode("utf-8"), 1) for record in records]
    pieces, at = [], ""
    for record, (text, line) in zip(records, texts, strict=True):
        at = max(at, str(record.get("at", "")))
        if "tape" not in record:
            pieces.append(_Piece(_build_record_name(record, text), at, text, line, record))
    torn = [f"{path}: {note}" for note in cassette.notes] if cassette.torn else []
    return _Side(path, records[0], pieces, torn)


def _build_record_name(record: Mapping[str, Any], text: bytes) -> tuple[str, ...]:
    """What a record is known by: its id. Late bytes and overrides have none: the same text is the
    same record.
    """
    kind = next(iter(record))
    if kind in ("more", "override"):
        return kind, text.decode("utf-8")
    return kind, str(record[kind]), str(record.get("run", "")) if kind == "call" else ""


def _format_title(piece: _Piece) -> str:
    kind, name, *rest = piece.name
    return f"call {name} of run {rest[0]}" if kind == "call" else f"{kind} {name}"


def _require_same_base(ours: _Side, theirs: _Side) -> None:
    """Both must be cassettes, or takes of the very same base."""
    bases = [side.header.get("base") for side in (ours, theirs)]
    if bases[0] == bases[1]:
        return
    if None in bases:
        take, other = (ours, theirs) if bases[1] is None else (theirs, ours)
        raise TapeUsageError(
            f"{take.path} is a take and {other.path} is a cassette: they cannot be joined"
        )
    raise TapeUsageError(
        f"{ours.path} and {theirs.path} are takes of two different recordings: join the recordings first, then make "
        "the overrides again"
    )


# ---------------------------------------------------------------- joining


def _join_pieces(
    ours: Sequence[_Piece], theirs: Sequence[_Piece], prefer: Prefer
) -> Iterator[_Piece]:
    """Every record once, each file's own order kept; the older first where neither file says."""
    mine, yours = {piece.name: piece for piece in ours}, {piece.name: piece for piece in theirs}
    done: set[tuple[str, ...]] = set()
    i = j = 0
    while i < len(ours) or j < len(theirs):
        if i < len(ours) and ours[i].name in done:
            i += 1
            continue
        if j < len(theirs) and theirs[j].name in done:
            j += 1
            continue
        one = ours[i] if i < len(ours) else None
        two = theirs[j] if j < len(theirs) else None
        chosen = _choose_next(one, two, mine, yours)
        done.add(chosen.name)
        counts = yours if prefer == "b" else mine
        yield counts.get(chosen.name, chosen)


def _choose_next(
    one: _Piece | None, two: _Piece | None, mine: Mapping[Any, _Piece], yours: Mapping[Any, _Piece]
) -> _Piece:
    """A record that both hold waits until both have come to it."""
    if one is None or two is None:
        chosen = one or two
        assert chosen is not None
        return chosen
    if one.name in yours:
        return one if two.name in mine else two
    return one if two.name in mine or one.at <= two.at else two


def _find_superseded_runs(
    ours: Sequence[_Piece], theirs: Sequence[_Piece], merged: Sequence[_Piece]
) -> dict[str, str]:
    """The runs that counted before, and those that count instead."""
    before = {run for side in (ours, theirs) for run in _find_current_runs(side).kept}
    after = _find_current_runs(merged)
    return {run: after.newer.get(run, "") for run in sorted(before - set(after.kept))}


def _find_current_runs(pieces: Sequence[_Piece]) -> Current:
    return Current(run_of(piece.record) for piece in pieces if piece.name[0] == "run")


def _describe_double_overrides(ours: _Side, theirs: _Side) -> list[str]:
    """Calls that either take overrides in a way of its own: both stay, the later one counts."""
    one, two = (
        {p.name: p for p in side.pieces if p.name[0] == "override"} for side in (ours, theirs)
    )
    mine = {_find_override_target(piece) for name, piece in one.items() if name not in two}
    yours = {_find_override_target(piece) for name, piece in two.items() if name not in one}
    return [
        f"call {call} of run {run} is overridden in both: the later one counts"
        for run, call in sorted(mine & yours)
    ]


def _find_override_target(piece: _Piece) -> tuple[str, str]:
    return str(piece.record.get("run", "")), str(piece.record["override"])


# ---------------------------------------------------------------- writing


def _choose_output(a: Path, out: Path | None) -> Path:
    if out is None:
        stem, number = f"{paths.stem(a)}-merged", 1
        goal = a.with_name(f"{stem}{paths.SUFFIX}")
        while goal.exists():
            number += 1
            goal = a.with_name(f"{stem}-{number}{paths.SUFFIX}")
        return goal
    if out.exists() or out.is_symlink():
        raise TapeUsageError(f"{out} exists already and is not overwritten; name a new file")
    if not out.parent.is_dir():
        raise TapeUsageError(f"{out.parent}: there is no such folder")
    return out


def _write_merged(
    goal: Path, header: Mapping[str, Any], pieces: Sequence[_Piece], sources: Sequence[Path]
) -> None:
    """Write it whole, prove that it can be read, and only then give it its name; never over another
    file.
    """
    draft = goal.with_name(f".{goal.name}-{entropy.token_hex(4)}.tmp")
    try:
        _copy_assets(goal, pieces, sources)
        with draft.open("xb") as file:
            file.write(emitter.emit(dict(header)).encode("utf-8"))
            file.writelines(
                piece.text if piece.text.endswith(b"\n") else piece.text + b"\n" for piece in pieces
            )
            file.flush()
            os.fsync(file.fileno())
        Cassette.open(draft, check="whole")
        _name_draft(draft, goal)
    except OSError as error:
        raise CassetteError(
            f"cannot be written: {error.strerror or error}", path=str(goal)
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def _name_draft(draft: Path, goal: Path) -> None:
    try:
        os.link(draft, goal)
    except FileExistsError:
        raise TapeUsageError(
            f"{goal} was created by another program meanwhile; name another file"
        ) from None
    except OSError:  # a file system without links
        with goal.open("xb") as file:
            file.write(draft.read_bytes())


def _copy_assets(goal: Path, pieces: Sequence[_Piece], sources: Sequence[Path]) -> None:
    """Long texts lie in assets/ beside a cassette, named by their digest: those of both go where
    the new file is.
    """
    if pieces:
        named = set().union(*(external_texts.asset_names(dict(piece.record)) for piece in pieces))
    else:
        named = set()
    folder = _find_root(goal).parent / "assets"
    for name in sorted(named):
        for source in (_find_root(path).parent / "assets" for path in sources):
            if source != folder and (source / name).is_file() and not (folder / name).exists():
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, folder / name)


def _find_root(path: Path) -> Path:
    return files.cassette_of(path.absolute())


def merge_text(merged: Merged, a: Path, b: Path) -> str:
    """For people."""
    lines = [
        f"{each.what} is not the same in both: {a}:{each.a}, {b}:{each.b}"
        for each in merged.conflicts
    ]
    if merged.path is None:
        return "\n".join(
            [
                *lines,
                "Nothing was written. Choose one: --prefer a, or --prefer b (neither file is changed)",
            ]
        )
    counts = (
        f"{merged.both} records of both, {merged.only_a} of A alone, {merged.only_b} of B alone"
    )
    lines += [
        f"run {old} no longer counts: {new or 'another run'} is newer"
        for old, new in merged.superseded.items()
    ]
    return "\n".join(
        [f"{merged.path}: {counts}", *(f"  {line}" for line in (*lines, *merged.notes))]
    )
