"""Takes as files: how they are named, what they are based on, listing, renaming, putting aside.

A take lies in `takes/` beside its cassette, as CASSETTE.TAKE.tape.yaml. Its header names its base
by file, length and digest of that prefix, so the base may grow; a take of a take names that take.
What its records mean is cassette/reader.py's.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from tape_jupyter.cassette.journal import Journal
from tape_jupyter.cassette.paths import SUFFIX, stem
from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import CassetteError, TapeUsageError

FOLDER, DELETED = "takes", "deleted"
DEPTH = 32
"""Takes of takes, at most: each is a file to read."""

_NAME = re.compile(r"[a-z0-9-]{1,64}")
_FILE = re.compile(r"(?:\.\./)?[^/\\\x00-\x1f]{1,255}")
_BLOCK = 1024 * 1024


def require_one_name(word: str | None, option: str | None) -> str:
    """The take that is named, as a word or by `--take`; "" none. Raises TapeUsageError for two."""
    if word and option and word != option:
        raise TapeUsageError(f"two takes are named, {word[:80]!r} and {option[:80]!r}: name one")
    return word or option or ""


def check_take_name(name: str) -> str:
    """The name itself when it can be a take's; TapeUsageError otherwise. Never a path, never
    expanded.
    """
    if _NAME.fullmatch(name):
        return name
    raise TapeUsageError(f"{name[:80]!r} cannot name a take: use 1 to 64 of a-z, 0-9 and '-'")


def require_new_name(cassette: Path, name: str) -> None:
    """Raises TapeUsageError where a new take may not be called so: the cassette's own name stands for
    the recording itself.
    """
    if name == stem(cassette):
        raise TapeUsageError(f"{name!r} is the recording itself: give the take another name")


def path_of(cassette: Path, name: str) -> Path:
    """Where the take of that name of a cassette lies (there or not)."""
    return cassette.parent / FOLDER / f"{stem(cassette)}.{check_take_name(name)}{SUFFIX}"


def take_name(path: Path) -> str:
    """The take's name, of its file."""
    return stem(path).rpartition(".")[2]


def cassette_of(path: Path) -> Path:
    """The cassette that a take's file lies beside, by its name; any other path itself."""
    if path.parent.name != FOLDER or "." not in stem(path):
        return path
    return path.parent.parent / f"{stem(path).rpartition('.')[0]}{SUFFIX}"


def list_take_files(cassette: Path) -> list[Path]:
    """The files of a cassette's takes, by name. Takes of its takes are among them; an empty file,
    which a full disk leaves, is none.
    """
    folder, start = cassette.parent / FOLDER, f"{stem(cassette)}."
    if not folder.is_dir():
        return []
    names = (
        path
        for path in folder.iterdir()
        if path.name.startswith(start) and path.name.endswith(SUFFIX) and _has_content(path)
    )
    return sorted(
        (path for path in names if _NAME.fullmatch(stem(path).removeprefix(start))), key=take_name
    )


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:  # put aside meanwhile
        return False


def take_names(cassette: Path) -> list[str]:
    return [take_name(path) for path in list_take_files(cassette)]


def unused_name(cassette: Path, like: str) -> str:
    """A name that no take of the cassette has: `like` itself where a take may be called so, else
    `like-2`, ...
    """
    taken = set(take_names(cassette))
    number = 1
    name = like
    while name in taken:
        number += 1
        name = f"{like[: 60 - len(str(number))]}-{number}"
    return name


@dataclass(frozen=True, slots=True)
class TakeBase:
    """What a take is based on: the first `size` bytes, with this digest, of a file beside it or one
    folder up.
    """

    file: str
    size: int
    sha256: str

    def record(self) -> dict[str, Any]:
        """Its keys in a take's header."""
        return {"take of": self.file, "base": {"bytes": self.size, "sha256": self.sha256}}

    @classmethod
    def from_file(cls, take: Path, base: Path, size: int) -> TakeBase:
        """A base as it is now, up to `size` bytes (a whole number of records)."""
        file = base.name if base.parent == take.parent else f"../{base.name}"
        return cls(file, *digest_start(base, size))

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TakeBase:
        """Raises CassetteError for a header that does not say what the take is of."""
        file, base = record.get("take of"), record.get("base")
        if isinstance(base, dict):
            size, sha256 = base.get("bytes"), base.get("sha256")
        else:
            size, sha256 = None, None
        if (
            not isinstance(file, str)
            or not _FILE.fullmatch(file)
            or file.rpartition("/")[2] in (".", "..")
        ):
            raise CassetteError(
                f"`take of: {str(file)[:80]}` is not a file of this folder or the one above", line=2
            )
        if (
            type(size) is not int
            or size < 1
            or not isinstance(sha256, str)
            or not re.fullmatch("[0-9a-f]{64}", sha256)
        ):
            raise CassetteError(
                "a take's header needs `base:` with `bytes` and `sha256` of its base", line=2
            )
        return cls(file, size, sha256)

    def find_file(self, take: Path) -> Path:
        """The base's file: the one that is named, else one beside it that begins with these bytes
        (it was renamed).

        Raises CassetteError naming both files.
        """
        named = (
            take.parent.parent if self.file.startswith("../") else take.parent
        ) / self.file.rpartition("/")[2]
        if self.fits(named):
            return named
        others = sorted(named.parent.glob(f"*{SUFFIX}")) if named.parent.is_dir() else []
        for other in others:
            if other not in (named, take) and self.fits(other):
                return other
        raise self.unlike(named, take)

    def fits(self, path: Path) -> int:
        """How many bytes of the file are what the take is based on; 0 where it does not begin with
        that.

        Line ends may have become CRLF (git's autocrlf): then these are more bytes.
        """
        try:
            if not Journal(path).exists() or path.stat().st_size < self.size:
                return 0
            size = _count_stored_bytes(path, self.size)
            return size if digest_start(path, size) == (self.size, self.sha256) else 0
        except (OSError, CassetteError):
            return 0

    def unlike(self, base: Path, take: Path) -> CassetteError:
        """Why a take cannot be read: its base is gone, or is another one now."""
        if not base.exists():
            why = f"is a take of {base}, which is not there; put that file back"
        else:
            why = (
                f"is a take of the first {self.size:,} bytes of {base}, and those were changed since (edited, pruned "
                f"or recorded anew). Put {base.name} back as it was (git, a backup), or make the take again"
            )
        return CassetteError(f"{why}. Nothing was played", path=str(take))


def digest_start(path: Path, size: int) -> tuple[int, str]:
    """Length and sha256 of the first `size` bytes of a file, its line ends read as LF."""
    digest, length = hashlib.sha256(), 0
    with path.open("rb") as file:
        crlf = _is_crlf(file)
        while size > 0 and (block := file.readline() if crlf else file.read(min(_BLOCK, size))):
            block = block[:size]
            size -= len(block)
            plain = block.replace(b"\r\n", b"\n") if crlf else block
            digest.update(plain)
            length += len(plain)
    return length, digest.hexdigest()


def _is_crlf(file: BinaryIO) -> bool:
    is_crlf = file.read(5) == b"---\r\n"
    file.seek(0)
    return is_crlf


def _count_stored_bytes(path: Path, size: int) -> int:
    """How many bytes of the file are `size` bytes with LF line ends."""
    with path.open("rb") as file:
        if not _is_crlf(file):
            return size
        stored = 0
        while size > 0 and (line := file.readline()):
            stored += len(line)
            size -= len(line.replace(b"\r\n", b"\n"))
        return stored


class Prefix(Journal):
    """The first bytes of a take's base, read as if the file ended there. Never written to."""

    def __init__(self, path: Path, base: TakeBase, take: Path) -> None:
        super().__init__(path)
        self.base, self.take, self.extent = base, take, 0

    def changed(self) -> bool:
        """Raises CassetteError where the file no longer begins with these bytes; that it grew is no
        change.
        """
        seen = self._stat_file()
        if self._known and seen == self._seen:
            return False
        self.extent = self.base.fits(self.path)
        if not self.extent:
            raise self.base.unlike(self.path, self.take)
        if self._known:
            self._seen = seen
        return not self._known

    def _open_file(self) -> BinaryIO:
        # as much of one as is read
        return _Beginning(super()._open_file(), self.extent)  # type: ignore[return-value]


class _Beginning:
    """An open file that ends after `size` bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self.seek, self.fileno = file.seek, file.fileno

    def read(self, size: int) -> bytes:
        return self._file.read(max(0, min(size, self._size - self._file.tell())))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


# ---------------------------------------------------------------- what people do with takes


def require_take(cassette: Path, name: str) -> Path:
    """The file of a take that must be there. Raises TapeUsageError naming those that are."""
    path = path_of(cassette, name)
    if path.is_symlink() or path.exists():
        return path
    have = ", ".join(take_names(cassette))
    raise TapeUsageError(
        f"{cassette.name} has no take {name!r}; "
        + (
            f"there are: {have}"
            if have
            else "it has no takes yet (override a reply: tape override)"
        )
    )


def choose_take(cassettes: Sequence[Path], name: str = "") -> tuple[Path, str]:
    """The cassette and the take of it: the named one, else a default, else the newest. Raises
    TapeUsageError.
    """
    if name:
        cassette = next((each for each in cassettes if name in take_names(each)), cassettes[0])
        require_take(cassette, name)
        return cassette, name
    for each in cassettes:
        if chosen := default_take(each):
            return each, chosen
    there = [
        (path.stat().st_mtime_ns, each, path)
        for each in cassettes
        for path in list_take_files(each)
    ]
    if not there:
        raise TapeUsageError(
            f"{cassettes[0].name} has no takes: override a reply first (tape override, %tape override)"
        )
    _, cassette, path = max(there)
    return cassette, take_name(path)


def default_take(cassette: Path) -> str:
    """The take that replays where none is named, "" for the recording itself. A choice that is gone
    is none.
    """
    try:
        name = choice(cassette).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    if _NAME.fullmatch(name) and path_of(cassette, name).is_file():
        return name
    return ""


def choose(cassette: Path, name: str) -> None:
    """Let a take replay where none is named; "" or the cassette's own name: the recording itself.

    The choice is a line in a file beside the takes, CASSETTE.default. Raises TapeUsageError for no
    such take.
    """
    file = choice(cassette)
    if name in ("", stem(cassette)):
        file.unlink(missing_ok=True)
        return
    require_take(cassette, name)
    with replacing(file) as draft:
        draft.write_text(f"{name}\n", encoding="utf-8")


def choice(cassette: Path) -> Path:
    """The file that says which take replays where none is named."""
    return cassette.parent / FOLDER / f"{stem(cassette)}.default"


def rename(cassette: Path, old: str, new: str) -> Path:
    """Give a take another name; takes of it still find it. Raises TapeUsageError where that name is
    taken.
    """
    require_new_name(cassette, new)
    path, goal = require_take(cassette, old), path_of(cassette, new)
    chosen = default_take(cassette) == old
    _move_file(
        path,
        goal,
        f"a take {new!r} exists already; nothing is overwritten: delete or rename that one first",
    )
    if chosen:
        choose(cassette, new)
    return goal


def delete(cassette: Path, name: str) -> Path:
    """Put a take aside, into takes/deleted/; gives the file. Raises TapeUsageError where takes are
    based on it.
    """
    path = require_take(cassette, name)
    if users := [
        take_name(other)
        for other in list_take_files(cassette)
        if other != path and base_file(other) == path
    ]:
        raise TapeUsageError(f"takes are based on {name!r}: {', '.join(users)}; delete those first")
    if default_take(cassette) == name:
        choose(cassette, "")
    folder = path.parent / DELETED
    folder.mkdir(exist_ok=True)
    for goal in _find_free_paths(folder, path):
        try:
            _move_file(path, goal, "")
        except TapeUsageError:  # another process deleted one of that name a moment ago
            continue
        return goal
    raise AssertionError("there is no end of numbers")


def put_aside(cassette: Path, name: str) -> list[Path]:
    """The files of takes of that name that were put aside, in no order."""
    goal = path_of(cassette, name)
    aside = re.compile(rf"{re.escape(stem(goal))}(?:-\d+)?{re.escape(SUFFIX)}")
    folder = goal.parent / DELETED
    if folder.is_dir():
        return [path for path in folder.iterdir() if aside.fullmatch(path.name)]
    return []


def restore_take(cassette: Path, name: str) -> Path:
    """Move the take of that name that was put aside last back. Raises TapeUsageError where there is
    none.
    """
    goal, files = path_of(cassette, name), put_aside(cassette, name)
    if not files:
        raise TapeUsageError(f"{cassette.name} has no take {name!r}, and none was put aside")
    last = max(files, key=lambda path: path.stat().st_ctime_ns)
    _move_file(last, goal, f"a take {name!r} exists already; nothing is overwritten")
    return goal


def _find_free_paths(folder: Path, path: Path) -> Iterator[Path]:
    number = 1
    while True:
        goal = folder / (path.name if number == 1 else f"{stem(path)}-{number}{SUFFIX}")
        if not goal.exists():
            yield goal
        number += 1


def _move_file(path: Path, goal: Path, taken: str) -> None:
    """Rename without ever overwriting: a link fails where the name is taken, whoever took it."""
    try:
        os.link(path, goal, follow_symlinks=False)
    except FileExistsError:
        raise TapeUsageError(taken) from None
    except OSError as error:
        if goal.exists():
            raise TapeUsageError(taken) from None
        try:
            path.rename(goal)  # a file system without hard links
        except OSError:
            raise CassetteError(
                f"cannot be moved: {error.strerror or error}", path=str(path)
            ) from error
    else:
        path.unlink()


def take_base(take: Path) -> TakeBase | None:
    """What a take's file says it is of; None where it says nothing that can be read."""
    journal = Journal(take)
    try:
        first = next(journal.scan(), None)
        text = journal.read(0, first.length).decode("utf-8") if first else ""
        return TakeBase.from_record(emitter.parse_record(text)) if text else None
    except (CassetteError, UnicodeDecodeError):
        return None


def base_file(take: Path) -> Path | None:
    """The file that a take is based on; None where there is none."""
    base = take_base(take)
    try:
        return base.find_file(take) if base else None
    except CassetteError:
        return None


def extent(cassette: Path) -> int:
    """How many bytes of a cassette its takes are based on: that much of it may not change. 0
    without takes.

    Raises CassetteError for a take that does not say what it is of.
    """
    bases = {path: take_base(path) for path in list_take_files(cassette)}
    for path, base in bases.items():
        if base is None:
            raise CassetteError(
                f"does not say how much of {cassette.name} it is based on; repair or move it",
                path=str(path),
            )
    direct_bases = (
        base for base in bases.values() if base is not None and base.file.startswith("..")
    )
    return max((base.fits(cassette) or base.size for base in direct_bases), default=0)
