"""Whether a bundle is what it says: every byte against its digest, notebook and recordings
readable.

Nothing of the bundle runs: no kernel is started, no module of it imported, nothing unpickled, no
page shown. What only a replay can show (that the cells come out the same) is told as what its maker
says.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.bundle import signing
from tape_jupyter.bundle.archive import Bundle, locations, opened
from tape_jupyter.bundle.signing import NONE, Signed
from tape_jupyter.cassette.paths import SUFFIX
from tape_jupyter.core import notebook_schema
from tape_jupyter.core.parse_limits import ReadBudget
from tape_jupyter.core.plain_text import format_count, join_some
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError, CassetteError

SESSION = ("notebook", "cassette", "take", "asset")
"""Roles of what is read here, besides the digests."""
MOST_RECORDS = 200_000
"""Of one recording."""
_RECORD = b"\n---\n"


@dataclass(frozen=True)
class Verdict:
    """What was found out about a bundle. `digest` is "" where it was refused before it had one.

    `problems` are what is wrong, `notes` what somebody should know who means to run it. `calls`
    were counted in its recordings. `claims` are the words of its maker, for which nothing here stands.
    """

    place: str
    digest: str = ""
    notebook: str = ""
    files: int = 0
    size: int = 0
    cassettes: int = 0
    calls: int = 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    signed: Signed = NONE

    @property
    def good(self) -> bool:
        return not self.problems

    def record(self) -> dict[str, Any]:
        """For --json: `ok`, and every field; the claims are called `said`."""
        named = {"claims": "said"}
        fields = {named.get(name, name): value for name, value in asdict(self).items()}
        return {"ok": self.good, **fields}

    def lines(self) -> Iterator[tuple[str, str]]:
        """What people read: a mark (ok, wrong, note, said) and a line; a bundle's control
        characters are not in it.
        """
        for mark, text in self._build_lines():
            yield mark, "".join(char if char.isprintable() else " " for char in text)

    def _build_lines(self) -> Iterator[tuple[str, str]]:
        yield from (("wrong", problem) for problem in self.problems)
        if self.good:
            yield (
                "ok",
                (
                    f"intact: {format_count(self.files, 'file')}, {format_count(self.size, 'byte')}, "
                    "each as the manifest says"
                ),
            )
            yield (
                "ok",
                (
                    f"readable: {self.notebook}, {format_count(self.cassettes, 'recording')} with "
                    f"{format_count(self.calls, 'call')}"
                ),
            )
            yield (
                {"signer": "ok", "none": "note", "key": "note"}[self.signed.state],
                self.signed.text(),
            )
        yield from (("note", note) for note in self.notes)
        yield from (("said", claim) for claim in self.claims)
        if self.digest:
            yield "said" if self.problems else "ok", f"sha256 of the manifest: {self.digest}"


def verify_bundle(
    place: str | Path,
    *,
    signature: str | Path | None = None,
    signers: Path | None = None,
    on_progress: Tell = ignore_progress,
) -> Verdict:
    """Check a bundle at a place (bundle/archive/locations.py). Raises BundleError where there is
    nothing to check, or it cannot be checked here (a full disk), else tells.

    `signature` is where its signature lies, `PLACE.sig` by itself.
    """
    shown_place = locations.shown_place(place)
    with locations.fetched(place) as path:
        if not path.is_dir() and not (path.is_file() and locations.is_bundle(path)):
            raise BundleError(
                "it is not a bundle: the .tape.zip that tape export makes of a recorded notebook",
                place=shown_place,
            )
        try:
            with opened(path, on_progress) as it:
                verdict = _check_bundle(it, shown_place, on_progress)
                manifest = it.manifest.to_bytes()
        except BundleError as error:
            if isinstance(
                error.__cause__, OSError
            ):  # this machine could not: it says nothing of it
                raise
            problems = error.problems if len(error.problems) > 1 else (error.reason,)
            return Verdict(shown_place, problems=problems)
    signed = signing.verify_signature(manifest, _read_signature(place, signature), signers)
    problems = (*verdict.problems, *([signed.text()] if signed.state == "wrong" else []))
    return Verdict(**{**_list_fields(verdict), "signed": signed, "problems": problems})


def _list_fields(verdict: Verdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}


def _read_signature(place: str | Path, signature: str | Path | None) -> bytes | None:
    data = locations.small(
        signature if signature is not None else locations.place_beside(place, signing.SUFFIX)
    )
    if data is None and signature is not None:
        raise BundleError("there is no such signature", place=locations.shown_place(signature))
    return data


def _check_bundle(it: Bundle, place: str, on_progress: Tell) -> Verdict:
    manifest = it.manifest
    problems: list[str] = []
    notes, budget = [*_check_lock(it, problems), *_list_left_out(it)], ReadBudget(it.packed_size)
    with tempfile.TemporaryDirectory(prefix="tape-verify-") as folder:
        unpacked = it.extract(Path(folder, "bundle"), SESSION)
        problems += [
            f"{name} is not a notebook that can be read: {reason}"
            for name in it.names("notebook")
            if (reason := notebook_schema.wrong((unpacked / name).read_bytes()))
        ]
        if not problems:
            problems += _check_cells(it, notes, budget)
        names = [
            *it.names("cassette"),
            *(name for name in it.names("take") if name.endswith(SUFFIX)),
        ]
        problems += _check_choices(it)
        calls = 0
        for done, name in enumerate(names):
            on_progress("reading recordings", done, len(names))
            calls += _check_recording(unpacked / name, name, problems, notes, budget)
    return Verdict(
        place, it.digest, manifest.notebook, len(manifest.files), manifest.size, len(names), calls,
        tuple(problems), tuple(notes), tuple(_list_claims(it)),
    )  # fmt: skip


def _check_choices(it: Bundle) -> Iterator[str]:
    """Files that say which take replays where none is named, of a take that is not there."""
    takes = it.names("take")
    for name in takes:
        if not name.endswith(SUFFIX):
            chosen = it.read(name).decode("utf-8", "replace").strip()
            if f"{name.removesuffix('.default')}.{chosen}{SUFFIX}" not in takes:
                yield f"{name} names the take {chosen[:80]!r}, which is not in it"


def _check_cells(it: Bundle, notes: list[str], budget: ReadBudget) -> list[str]:
    """How the cells of the notebook are not those of the manifest."""
    from tape_jupyter.bundle.proof import expected

    notebook = json.loads(it.read(it.manifest.notebook).decode("utf-8"))
    if notebook.get("nbformat") != 4:
        notes.append(
            f"{it.manifest.notebook} has an old format: its cells were not compared with the manifest's"
        )
        return []
    problems, unsure, unread = expected.compare_with_manifest(
        it.manifest.cells, notebook["cells"], budget
    )
    if unread:
        notes.append(
            f"cells whose outputs were not compared, they would take too long: {_format_few(unread)}. "
            "A replay compares them"
        )
    if unsure:
        notes.append(
            f"cells whose saved outputs are not, byte for byte, what the manifest expects: {_format_few(unsure)}. "
            "The cause may be folder names of its maker's machine, which do not count; a replay can tell"
        )
    return problems


def _format_few(numbers: Sequence[int]) -> str:
    return join_some([str(number) for number in numbers], 12)


def _check_recording(
    path: Path,
    name: str,
    problems: list[str],
    notes: list[str],
    budget: ReadBudget,
) -> int:
    """How many calls a cassette or take holds itself; every record is read whole, and every reply
    restored, that the budget allows.
    """
    from tape_jupyter.cassette.reader import Book

    try:
        _require_few_records(path)
        book = Book.open(path, check="marks")
        unread = {id(entry) for entry in book.check(budget=budget)}
        own_calls = [entry for entry in book.calls if entry.book is book]
        restored = [
            entry
            for entry in own_calls
            if id(entry) not in unread and budget.allows_texts(book.long_texts(entry))
        ]
        edited, left = 0, len(own_calls) - len(restored)
        for entry in restored:
            if budget.has_time():
                edited += entry.edited()
            else:
                left += 1
    except (CassetteError, OSError, RecursionError) as error:
        reason = error.reason if isinstance(error, CassetteError) else str(error)
        line = (
            f":{error.line}" if isinstance(error, CassetteError) and error.line is not None else ""
        )
        problems.append(f"{name}{line} cannot be read: {reason}")
        return 0
    notes += [f"{name}: {note}" for note in book.notes]
    if left:
        notes.append(
            f"{name}: not checked in full, for they hold too much: {format_count(left, 'call')}. A replay reads them"
        )
    if edited:
        notes.append(f"{name}: edited by hand: {format_count(edited, 'reply')}")
    return len(own_calls)


def _require_few_records(path: Path) -> None:
    count, rest = 0, b""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            count += (rest + piece).count(_RECORD)
            rest = piece[1 - len(_RECORD) :]
    if count > MOST_RECORDS:
        raise CassetteError(f"it has {count:,} records, at most {MOST_RECORDS:,} are checked")


def _check_lock(it: Bundle, problems: list[str]) -> Iterator[str]:
    """What is odd about the packages; a replay installs none of that unless it is told to."""
    from tape_jupyter.bundle.environment import lock

    for name in it.names("lock"):
        if name.endswith(".toml"):
            try:
                yield from (f"{name}: {each}" for each in lock.oddities(it.read(name)))
            except BundleError as error:
                problems.append(f"{name} cannot be used: {error.reason}")
    if not it.manifest.lock.hashed and it.manifest.lock.why:
        yield f"its maker says why not all packages have digests: {it.manifest.lock.why}"


def _list_left_out(it: Bundle) -> Iterator[str]:
    for each in it.manifest.left_out:
        size = f" ({format_count(each.size, 'byte')})" if each.size else ""
        yield f"{each.path} is not in it{size}: {each.why}"
    if unseen := it.manifest.kit.get("unseen"):
        yield f"its maker could not watch {unseen}: what a cell reads so may be missing"


def _list_claims(it: Bundle) -> Iterator[str]:
    manifest = it.manifest
    different = {each.cell for each in manifest.differences}
    same = sum(1 for each in manifest.cells if each.number not in different)
    yield (
        f"its maker says: {manifest.made_by}; {same} of {format_count(len(manifest.cells), 'cell')} "
        "came out as saved in the proof"
    )
    for each in manifest.differences:
        yield f"its maker says: cell {each.cell} differs: {each.why}"
    for guard in manifest.guards:
        yield f"its maker says, of the proof: {guard}"
    for redaction in manifest.redactions:
        yield f"its maker masked {redaction.count} x {redaction.kind} in {redaction.where}"
