"""Files that the body of a tool made, changed or removed: seen while it runs, put back in replay.

Only files in the notebook's folder are put back, and never over what a person made of one since: a
file that is not as the recording left it at any moment is left as it is. Files elsewhere are named.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.core.moved_folders import MovedFolders
from tape_jupyter.dataflow.history import Change
from tape_jupyter.dataflow.tracing.ambient import umask
from tape_jupyter.dataflow.tracing.files import (
    FileWatch,
    Touched,
    file_times,
    has_native_writers,
    permissions,
)
from tape_jupyter.dataflow.tracing.handles import content_of
from tape_jupyter.effects import descriptors
from tape_jupyter.effects.descriptors import Descriptors
from tape_jupyter.effects.scope import OPEN_FOLDER
from tape_jupyter.encoding.values.stdlib import freeze_bytes, thaw_bytes
from tape_jupyter.errors import CassetteError, TapeError
from tape_jupyter.files.databases import SQLITE, dump_rows, is_kept_beside, read_whole, without_log
from tape_jupyter.files.links import build_link_record, link_above, make_link
from tape_jupyter.files.stand_ins import DIRECTORY, stand_in, target_of

ABSENT, FOLDER, OTHER = "absent", "folder", "no file"
LINKED = "link to "
"""Before where a link leads: its state, as a digest is a file's."""

_OURS = re.compile(r"\.tape\.yaml(\.torn)?$|[/\\]assets[/\\][0-9a-f]{64}$")
"""What is recorded inside of a body is written by us."""


Metadata = TypeVar("Metadata")
"""Permissions, or times, of a file."""


_UNNAMED = OPEN_FOLDER | {"mkfifo", "mknod"}
"""Names in code that makes files of which no hook hears, or not where."""


def _writes_unheard(words: AbstractSet[str]) -> bool:
    """Whether code that looks up these names may write files without a hook hearing of it."""
    runs_duckdb = "execute" in words and "duckdb" in sys.modules
    return runs_duckdb or any(map(_NATIVE_WRITES.match, words))


_NATIVE_WRITES = re.compile(
    r"(to|write|sink|save|export)_(parquet|feather|ipc|csv|json|ndjson|avro|orc|hdf|excel|delta|database|table"
    r"|dataset|stream)|imwrite$|create_dataset|VideoWriter"
)
"""What methods are called by which libraries write files without Python."""


class ToolFiles:
    """What one body does to files. `folder` is the notebook's; None where it is not known: nothing
    can be put back. `notebook` may be saved by an editor meanwhile, which is none of its doing.
    """

    def __init__(
        self, folder: Path | None, mine: Callable[[], bool], notebook: Path | None = None
    ) -> None:
        self._folder = folder
        self._notebook = str(notebook.absolute()) if notebook is not None else ""
        self._watch = FileWatch(mine)
        self._words: AbstractSet[str] = frozenset()
        self._descriptors: Descriptors | None = None

    def begin(
        self,
        open_files: Iterable[str],
        words: AbstractSet[str] = frozenset(),
        numbers: Iterable[int] | None = None,
    ) -> None:
        """The body is about to run; `open_files` it may write to without opening them. `words` are all
        names that code within its reach looks up, `numbers` what may be descriptors (None: it uses none).
        """
        self._words = words
        if numbers is not None:
            self._descriptors = Descriptors(numbers)
            open_files = [*open_files, *self._descriptors.paths()]
        self._watch.begin()
        if has_native_writers() or not words.isdisjoint(_UNNAMED):
            self._watch.look_at_folder()
        for path in open_files:
            self._watch.written(path)

    def end(self) -> tuple[list[dict[str, Any]], list[str]]:
        """The changed files as structure; and in words, what is not kept."""
        touched = self._watch.end()
        kept: list[dict[str, Any]] = []
        lost = self._describe_unheard(touched)
        modes = _find_changed(touched.modes, permissions)
        times = _find_changed(touched.times, file_times)
        changes = {**_read_unchanged_files({*modes, *times}), **touched.changes()}
        modes |= _find_unusual_modes(changes)
        for path, change in changes.items():
            if _OURS.search(path) or is_kept_beside(path) or self._is_saved_notebook(path, touched):
                continue
            name = _find_name(self._folder, path, change)
            if name is None or self._folder is None:
                lost += _describe_outside(path, changes, touched)
                continue
            now = _describe_change(path, name, change, self._folder)
            if isinstance(now, str):
                lost.append(f"it {now}")
                continue
            record = {
                "file": name,
                "was": _describe_state(path, change.before, self._folder),
                **now,
            }
            if path in modes and "link" not in now:
                record["mode"] = f"{modes[path]:o}"
            if path in times and "link" not in now:
                record["times"] = list(times[path])
            kept.append(record)
        return kept, lost

    def end_descriptors(self, numbers: Iterable[int]) -> tuple[list[dict[str, Any]], list[str]]:
        """Where files stand now that are open by a number, as structure; and in words, what of it is
        not kept. `numbers` are those that stand in what the body changed.
        """
        records: list[dict[str, Any]] = []
        lost: list[str] = []
        if self._descriptors is None:
            return records, lost
        for opened, became in self._descriptors.changed():
            name = name_inside(self._folder, opened.path) if opened.path else None
            if opened.is_pipe:
                lost.append("it wrote to a pipe that was open, or read from it")
            elif name is None:
                lost.append(
                    f"where its descriptor of {opened.path or 'a file without a name'} stands"
                )
            elif not _OURS.search(opened.path):
                records.append({"file": name, **became})
        for opened in self._descriptors.opened(numbers):
            what = "a pipe" if opened.is_pipe else Path(opened.path).name
            lost.append(f"it left {what} open by its descriptor, which a replay does not open")
        return records, lost

    def _describe_unheard(self, touched: Touched) -> list[str]:
        """In words, what a body did to files that is neither seen nor put back."""
        lost = [
            f"it set the owner or an attribute of {Path(path).name}, which is not put back"
            for path in sorted(touched.marked)
            if path and os.path.lexists(path)
        ]
        if touched.crowded and touched.processes:
            lost.append(
                f"it started a process in {touched.crowded}, where too many files lie to compare them: "
                "what that wrote is not known"
            )
        elif touched.crowded and (touched.unheard or _writes_unheard(self._words)):
            lost.append(
                f"it may have written files that no hook hears of in {touched.crowded}, where too many lie to "
                "compare them"
            )
        return lost

    def _is_saved_notebook(self, path: str, touched: Touched) -> bool:
        return path == self._notebook and path not in touched.opened


def name_inside(folder: Path | None, path: str, *, is_link: bool = False) -> str | None:
    """Relative to the notebook's folder, with `/`; None where it is elsewhere. `is_link`: the name of the
    link itself, not of what it leads to.
    """
    if folder is None:
        return None
    try:
        return (
            _find_real_path(path, is_link=is_link).relative_to(os.path.realpath(folder)).as_posix()
        )
    except ValueError:
        return None


def _find_name(folder: Path | None, path: str, change: Change) -> str | None:
    """As `name_inside`; what is gone has the name that it had, whatever link is on the way there now."""
    if folder is not None and change.after is None and link_above(path, os.getcwd()):  # noqa: PTH109
        root = os.path.realpath(folder)
        inside = PurePath(path).is_relative_to(root)
        return PurePath(path).relative_to(root).as_posix() if inside else None
    return name_inside(folder, path, is_link=target_of(change.after) is not None)


def _find_real_path(path: str | Path, *, is_link: bool) -> Path:
    if is_link:
        return Path(os.path.realpath(Path(path).parent), Path(path).name)
    return Path(os.path.realpath(path))


def _find_changed(
    before: Mapping[str, Metadata], read: Callable[[str], Metadata | None]
) -> dict[str, Metadata]:
    """What is otherwise now of the files of which it was set."""
    now = {path: read(path) for path in before}
    return {path: each for path, each in now.items() if each is not None and each != before[path]}


def _describe_change(path: str, name: str, change: Change, folder: Path) -> dict[str, Any] | str:
    """What a path of the folder is now, as it is kept; or in words, what the body did and is not."""
    if (target := target_of(change.after)) is not None:
        link = build_link_record(path, target, folder)
        if link is None:
            return f"made {name} a link that leads out of the notebook's folder"
        return {"now": LINKED + link["link"], **link}
    if not change.known:
        if os.path.lexists(path) and not Path(path).is_file():
            return f"made {name}, a pipe or a socket, which no recording makes"
        return f"wrote {name}, which is too large to be kept"
    return _build_content_record(change.before, change.after)


def _describe_state(path: str, content: bytes | None, folder: Path) -> str:
    """What a path of the folder is, or was: a digest, or where a link leads."""
    if (target := target_of(content)) is None:
        return file_digest(content)
    link = build_link_record(path, target, folder)
    return OTHER if link is None else LINKED + link["link"]


def _describe_outside(path: str, changes: Mapping[str, Change], touched: Touched) -> list[str]:
    """In words, what a body did to a path that is not in the notebook's folder."""
    if changes[path].after is not None:
        return [f"it wrote {path}, which is not in the notebook's folder"]
    if _is_removed(path, changes, touched):
        return [f"it removed {path}, which is not in the notebook's folder"]
    return []


def _find_unusual_modes(changes: Mapping[str, Change]) -> dict[str, int]:
    """Permissions of new files and folders that were made with others than new ones get."""
    made = {path: each.after for path, each in changes.items() if each.before is None}
    new = {path: content for path, content in made.items() if content is not None}
    mask = umask() if new else 0
    usual = {path: (0o777 if new[path] is DIRECTORY else 0o666) & ~mask for path in new}
    return _find_changed(usual, permissions)


def _is_removed(path: str, changes: Mapping[str, Change], touched: Touched) -> bool:
    """Whether the body removed what others had made there; of a folder and what was in it, of the
    folder. A process that it started may have made it.
    """
    above = str(Path(path).parent)
    return not touched.processes and above not in changes and os.path.isdir(above)  # noqa: PTH112


def _read_unchanged_files(paths: Iterable[str]) -> dict[str, Change]:
    """Files whose content nobody changed."""
    contents = {path: content_of(path) for path in paths}
    return {path: Change(now, now, known=known) for path, (now, known) in contents.items()}


def file_digest(content: bytes | None) -> str:
    if content is None:
        return ABSENT
    if content is DIRECTORY:
        return FOLDER
    return hashlib.sha256(dump_rows(content) if content.startswith(SQLITE) else content).hexdigest()


def _build_content_record(before: bytes | None, content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {"now": ABSENT}
    if content is DIRECTORY:
        return {"now": FOLDER}
    if content == before:
        return {"now": file_digest(content)}
    written: dict[str, Any] = {"now": file_digest(content), "content": freeze_bytes(content)}
    if (
        before
        and before is not DIRECTORY
        and content.startswith(before)
        and not content.startswith(SQLITE)
    ):
        written["appended"] = len(content) - len(before)
    return written


@dataclass(frozen=True, slots=True)
class ReplayedFolder:
    """The notebook's folder where a replay makes files; `moved`: the folders that have another path
    here, which texts in files name as they are here.
    """

    folder: Path | None
    cassette: Cassette | None = None
    moved: MovedFolders = field(default_factory=partial(MovedFolders, {}))

    def digest(self, path: Path) -> str:
        """What lies there, as the recording tells of it."""
        if path.is_file() and self.moved:
            return file_digest(self.moved.content_recorded(read_whole(path)))
        return _digest_file(path)


def redo_files(
    files: Sequence[Mapping[str, Any]], place: ReplayedFolder, *, rerun: bool = False
) -> Iterator[str]:
    """Make files as the recorded body did. Gives what was not done, in words.

    `rerun`: each file is as its cell found it, but for what changed since: what was
    appended is appended to that, and what was written over it is the recording's.
    """
    folder = place.folder
    removed = [each for each in files if each.get("now") == ABSENT]
    links = [each for each in files if "link" in each]
    present = [each for each in files if each.get("now") != ABSENT and "link" not in each]
    # a folder after what was in it, a link after the folder in whose place it is
    for each in (*present, *reversed(removed), *links):
        name = str(each.get("file"))
        try:
            problem = _restore_file(each, name, place, rerun=rerun)
            if not problem and folder is not None and "mode" in each:
                resolve_inside(folder, name).chmod(int(each["mode"], 8) & 0o777)
            if not problem and folder is not None and "times" in each:
                read, written = each["times"]
                os.utime(resolve_inside(folder, name), ns=(int(read), int(written)))
        except (OSError, TapeError, KeyError, TypeError, ValueError, sqlite3.Error) as why:
            problem = str(why)
        if problem:
            yield f"the file {name}: {problem}"


def redo_descriptors(records: Sequence[Mapping[str, Any]], folder: Path | None) -> Iterator[str]:
    """Let files that are open by a number stand where they stood. Gives what was not done, in words."""
    paths: dict[str, Path] = {}
    for each in records:
        name = str(each.get("file"))
        if folder is not None:
            with suppress(CassetteError):
                paths[name] = resolve_inside(folder, name)
    return descriptors.redo(records, paths)


def found_otherwise(files: Sequence[Mapping[str, Any]], place: ReplayedFolder) -> list[str]:
    """The names of the files that the recorded body wrote over and that do not hold now what it
    found: it may have read them.
    """
    return [str(each["file"]) for each in files if _is_different_now(each, place)]


def _is_different_now(each: Mapping[str, Any], place: ReplayedFolder) -> bool:
    try:
        if place.folder is None or each["now"] in (ABSENT, FOLDER) or _find_appended_bytes(each):
            return False
        now = place.digest(resolve_inside(place.folder, str(each["file"])))
        return "link" not in each and now not in (each["was"], each["now"])
    except (OSError, TapeError, KeyError, TypeError, ValueError):  # which putting it back says
        return False


def _restore_file(each: Mapping[str, Any], name: str, place: ReplayedFolder, *, rerun: bool) -> str:
    if place.folder is None:
        return "the notebook's folder is not known here"
    path = resolve_inside(place.folder, name, is_link="link" in each)
    now, is_link = _read_state(path, each, place), path.is_symlink()
    if (
        rerun
        and not is_link
        and now != each["was"]
        and path.is_file()
        and (added := _find_appended_bytes(each))
    ):
        with path.open("ab") as file:
            file.write(place.moved.content_here(added))
        return ""
    if now == each["now"]:
        return ""
    if each["was"] == each["now"]:
        return "it is another one than when its permissions or times were set, and is left as it is"
    if now not in (each["was"], ABSENT) and now not in _collect_recorded_states(
        place.cassette, name
    ):
        return "it was changed since it was recorded, and is left as it is"
    return _put_back(path, each, place.folder, place.moved, is_link=is_link)


def _put_back(
    path: Path, each: Mapping[str, Any], folder: Path, moved: MovedFolders, *, is_link: bool
) -> str:
    if "link" in each:
        return make_link(path, each, folder)
    if is_link:  # what it leads to is another file
        path.unlink()
    if each["now"] == ABSENT:
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    elif each["now"] == FOLDER:
        path.mkdir(parents=True, exist_ok=True)
    else:
        content = moved.content_here(thaw_bytes(each["content"], None))
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_content(path, content)
    return ""


def _find_appended_bytes(each: Mapping[str, Any]) -> bytes:
    """What the recorded body added to what the file held; nothing where it wrote otherwise, or a
    secret is masked.
    """
    content = thaw_bytes(each["content"], None) if "appended" in each else b""
    if content and file_digest(content) == each["now"]:
        return content[-int(each["appended"]) :]
    return b""


def _write_content(path: Path, content: bytes) -> None:
    """In place: the program may have the file open."""
    if content.startswith(SQLITE) and path.exists():
        recorded, live = sqlite3.connect(":memory:"), sqlite3.connect(path)
        try:
            recorded.deserialize(without_log(content))
            recorded.backup(live)
        finally:
            recorded.close()
            live.close()
    else:
        path.write_bytes(content)


def resolve_inside(folder: Path, name: str, *, is_link: bool = False) -> Path:
    """The file of that name; `is_link`: the link itself. Raises CassetteError where that leads out of the
    folder.
    """
    root = Path(os.path.realpath(folder))
    path = root / name
    if (
        not name
        or name.startswith(("/", "~"))
        or not _find_real_path(path, is_link=is_link).is_relative_to(root)
        or path == root
    ):
        raise CassetteError(f"{name[:80]!r} is not a file of the notebook's folder")
    if ".tapes" in name or path.suffix == ".ipynb" or _OURS.search(str(path)):
        raise CassetteError("a recording writes neither notebooks nor cassettes")
    return path


def _read_state(path: Path, each: Mapping[str, Any], place: ReplayedFolder) -> str:
    """What lies there, as the recording would say it: where a link leads if it knows of a link there,
    else what it leads to.
    """
    if each["now"] == ABSENT and os.path.realpath(path.parent) != str(path.parent):
        return ABSENT  # what lies behind a link that was none there is another file
    is_known_link = "link" in each or str(each["was"]).startswith(LINKED)
    if place.folder is not None and is_known_link:
        content = stand_in(path)
        if target_of(content) is not None:
            return _describe_state(str(path), content, place.folder)
    return place.digest(path)


def _digest_file(path: Path) -> str:
    if path.is_dir():
        return FOLDER
    if not path.exists():
        return ABSENT
    return file_digest(read_whole(path)) if path.is_file() else OTHER


def _collect_recorded_states(cassette: Cassette | None, name: str) -> set[str]:
    """What the recordings of this cassette made of that file, at any time."""
    states: set[str] = set()
    for entries in cassette.tools.values() if cassette is not None else ():
        for entry in entries:
            for each in entry.did().get("files", ()):
                if each.get("file") == name:
                    states |= {str(each.get("was")), str(each.get("now"))}
                    if "content" in each:  # a secret in it was masked
                        states.add(file_digest(thaw_bytes(each["content"], None)))
    return states
