"""Which files a cell opened, listed, wrote, moved; and whether it started a process.

Seen by an audit hook, inside and outside the working directory; files of installed packages and of
the system are nobody's result. What a process does no hook sees: the folder that it was started in
is compared (dataflow/tracing/folders.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.core.audit_listener import Listener
from tape_jupyter.core.open_file import read_descriptor_path
from tape_jupyter.core.user_code import INSTALLED, bag, is_installed
from tape_jupyter.dataflow.history import Change
from tape_jupyter.dataflow.tracing.folders import WatchedFolder, may_write
from tape_jupyter.dataflow.tracing.handles import OpenHandles, content_of
from tape_jupyter.effects.quiet_connections import OPENS_FILE, is_heard_soon
from tape_jupyter.files.first_contents import Firsts, find_database
from tape_jupyter.files.links import follow_links, link_above
from tape_jupyter.files.stand_ins import DIRECTORY

KEPT_ALL = 128 << 20
TREE = 2_000
"""Paths below a folder that is removed or moved as a whole; beyond that it cannot be put back."""
_UNIX_PARTS = (
    *("bin", "sbin", "lib", "lib32", "lib64", "libexec"),
    *("share", "include", "etc", "ssl"),
)
_WINDOWS_PARTS = ("Lib", "DLLs", "Scripts")


def _list_system_folders() -> tuple[str, ...]:
    """The parts of a system, and not all of /usr or of an environment: people work in /usr/src/app,
    in /share, and in folders that hold their environment.
    """
    folders = ["/proc", "/sys", "/dev", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64"]
    for root in ("/usr", "/usr/local", sys.prefix, sys.base_prefix):
        folders += [f"{root}{os.sep}{part}" for part in _UNIX_PARTS]
    for root in (sys.prefix, sys.base_prefix):
        folders += [f"{root}{os.sep}{part}" for part in _WINDOWS_PARTS]
    return tuple(f"{folder}{os.sep}" for folder in folders)


_SYSTEM = _list_system_folders()
_OWN_FOLDERS = (
    *("/.ipython/", "/.ipy/", "/.ipynb_checkpoints/"),
    *("/.cache/", "/.git/", ".tapes/"),
)
"""Folders of tools: what lies in them is nobody's result."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ONE = {
    "os.remove": 1,
    "os.rmdir": 1,
    "os.mkdir": 2,
    "os.truncate": 9,
    "os.utime": 3,
    "os.chmod": 2,
    "shutil.rmtree": 1,
}
"""Events of one path, and which of their arguments is the open folder that it is below, if any."""
_TWO = {
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 1,
    "shutil.copyfile": 9,
    "shutil.move": 9,
    "shutil.copytree": 9,
    "shutil.copymode": 9,
}
"""Events of two paths, and which of their arguments is the first one's open folder; the second's is
the next.
"""
_NAMES = ("os.link", "os.symlink")
"""Events that give a name, and follow no link that has it."""
_MARKS = frozenset({"os.chown", "os.setxattr", "os.removexattr"})
"""Events of one path that change neither what a file holds nor who may read it."""
_CONNECTED = "sqlite3.connect/handle"
_DATABASES = frozenset({"sqlite3.connect", _CONNECTED, OPENS_FILE})
_PROCESS = (
    "subprocess.Popen",
    "os.system",
    "os.posix_spawn",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
    "os.spawn",
)
_HEARD = frozenset(
    {
        *("open", "os.listdir", "os.scandir", "glob.glob"),
        *_DATABASES,
        *_ONE,
        *_TWO,
        *_MARKS,
        *_PROCESS,
        "import",
    }
)


_NATIVE_WRITERS = bag(
    "polars duckdb h5py netCDF4 cv2 "
    "pyarrow.csv pyarrow.dataset pyarrow.feather pyarrow.orc pyarrow.parquet"
)
"""Modules that open the files they write themselves, where the audit hook hears nothing."""
UNHEARD = frozenset(name.partition(".")[0] for name in _NATIVE_WRITERS)
"""Their packages, which open what they read in the same way."""


def has_native_writers() -> bool:
    """Whether the program has imported a library that may write files unheard."""
    return not sys.modules.keys().isdisjoint(_NATIVE_WRITERS)


@dataclass(slots=True)
class Touched:
    """Absolute paths. `relative`: some path was given relative to the working directory."""

    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    before: dict[str, bytes | None] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    """Of `written`, those of which the program got a handle."""
    replaced: set[str] = field(default_factory=set)
    """Written from the start or removed, whatever stood there before."""
    unknown: set[str] = field(default_factory=set)
    """Written, and what stood there was too large to keep."""
    modes: dict[str, int] = field(default_factory=dict)
    """Of files whose permissions were set: those that they had before."""
    times: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of files whose times were set (`os.utime`): those that they had before, ns."""
    marked: set[str] = field(default_factory=set)
    """Those of which the owner or an attribute of the file system's (xattr) was set."""
    processes: list[str] = field(default_factory=list)
    crowded: str = ""
    """A folder with more in it than is looked at, where a process was started, or that was to be
    looked at: what was written there unheard is not known.
    """
    unheard: bool = False
    """SQL had SQLite open a file whose name it worked out."""
    relative: bool = False

    def changes(self) -> dict[str, Change]:
        """Of the files that are not as they were."""
        changed_files = {}
        home = os.getcwd()  # noqa: PTH109 - as in _note_path
        for path in sorted(self.written):
            now, known = (None, True) if link_above(path, home) else content_of(path)
            before = self.before.get(path)
            if path in self.unknown or not known or now != before:
                changed_files[path] = Change(before, now, known=known and path not in self.unknown)
        return changed_files


def permissions(path: str) -> int | None:
    """Who may read, write and run a file; None where there is none."""
    try:
        return os.stat(path).st_mode & 0o777  # noqa: PTH116 - as in _note_path
    except OSError:
        return None


def file_times(path: str) -> tuple[int, int] | None:
    """When a file was read and written, ns; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - as in _note_path
    except OSError:
        return None
    return status.st_atime_ns, status.st_mtime_ns


def is_watched(path: str) -> bool:
    """Whether a file may be somebody's result."""
    if path.startswith((*_SYSTEM, *_find_ipython_folders())) or is_installed(path):
        return False
    folder = f"{path}/"  # it may be such a folder itself: recording makes one
    return not any(part in folder for part in _OWN_FOLDERS)


def _find_ipython_folders() -> tuple[str, ...]:
    """Where IPython keeps its own files, if it was told a place."""
    folder = os.environ.get("IPYTHONDIR")
    return (os.path.abspath(folder) + os.sep,) if folder else ()  # noqa: PTH100 - as in _note_path


_watching: list[FileWatch] = []
_installed: list[bool] = []


# Defaults instead of globals: the hook outlives this module when the interpreter shuts down.
def _dispatch_event(
    event: str,
    args: tuple[Any, ...],
    events: frozenset[str] = _HEARD,
    watching: list[FileWatch] = _watching,
    installed: tuple[str, ...] = INSTALLED,
    writers: frozenset[str] = _NATIVE_WRITERS,
) -> None:
    if event not in events:  # each id() of the user's comes here, too
        return
    if event == "open" and type(args[0]) is str and args[0].startswith(installed):
        return  # an import opens thousands
    if event == "import" and args[0] not in writers:
        return
    for watch in (*watching,):  # another thread may end one meanwhile
        watch.hear(event, args)


class FileWatch:
    """Hears of files while a cell runs, by one audit hook a process: those cannot be taken away
    again.

    `mine` says whether what happens here and now is to be heard.
    """

    def __init__(self, mine: Callable[[], bool] = lambda: True) -> None:
        self._mine = mine
        self.touched = Touched()
        self.hear = Listener(self._handle_own_event).handle_event
        """An event of the audit hook's. Raises nothing."""
        self.firsts = Firsts(is_watched)
        """What the files that this session changed were before."""
        self._lists = True
        self._kept = 0
        self._folders: dict[str, WatchedFolder] = {}
        self._started: set[str] = set()
        """Folders that are compared when this cell ends."""
        self._handles = OpenHandles()

    def begin(self, *, lists: bool = True) -> None:
        """A cell begins. `lists`: how the notebook's folder lies is compared before and after it."""
        if not _installed:
            _installed.append(True)
            sys.addaudithook(_dispatch_event)
        self.clear()
        if self not in _watching:
            self._lists = lists
            if lists:
                self.firsts.begin()
            _watching.append(self)

    def clear(self) -> None:
        """A cell is about to begin: what the one before it touched is none of its doing, even where
        its own code never runs.
        """
        self.touched = Touched()
        self._started.clear()

    def written(self, path: str) -> None:
        """A file may be written to without being opened: through a database, or a file that is open
        already.
        """
        self._note_path(path, read=True, write=True)

    def end(self) -> Touched:
        if self in _watching:
            _watching.remove(self)
            for where in sorted(self._started):
                self._compare_folder(self._folders[where])
            self._handles.end(self.touched)
            if self._lists:
                self.firsts.end()
        return self.touched

    def _note_process(self, command: str) -> None:
        """A process is about to start."""
        self.touched.processes.append(command)
        if may_write(command):
            self.look_at_folder()

    def look_at_folder(self) -> None:
        """Note how the working directory lies, once a cell: what is written there unheard is seen by
        comparing it.
        """
        where = os.getcwd()  # noqa: PTH109 - as in _note_path
        if where in self._started or not is_watched(where + os.sep):
            return
        folder = self._folders.setdefault(where, WatchedFolder(where, is_watched))
        folder.note_contents()
        self._started.add(where)

    def _compare_folder(self, folder: WatchedFolder) -> None:
        if folder.crowded:
            self.touched.crowded = folder.path
            return
        for path, before in folder.differing():
            if path in self.touched.written:
                continue
            self.touched.written.add(path)
            if before is folder.UNKNOWN:
                self.touched.unknown.add(path)
            else:
                if before != DIRECTORY:
                    self.firsts.changed_by_others(path, before)
                self.touched.before[path] = before

    def _handle_own_event(self, event: str, args: tuple[Any, ...]) -> None:
        if self._mine():
            self._handle_event(event, args)

    def _handle_event(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            self._note_open(*args)
        elif event == "import":
            self.look_at_folder()
        elif event in ("os.listdir", "os.scandir", "glob.glob"):
            self._note_path(args[0] if args[0] is not None else ".", read=True)
        elif event in _ONE:
            self._note_one_path(event, args)
        elif event in _MARKS:
            self.touched.marked.add(_find_full_path(args[0]))
        elif event in _TWO:
            self._note_transfer(event, args)
        elif event in _DATABASES:
            self._note_database(event, args[0])
        elif event.startswith(_PROCESS):
            self._note_process(_format_command(event, args))

    def _note_database(self, event: str, name: Any) -> None:
        """SQLite opens a file; or has made a connection, whose SQL may open others unheard."""
        if event == _CONNECTED:
            if not is_heard_soon():
                self.look_at_folder()
            return
        if name is None:
            self.touched.unheard = True
            self.look_at_folder()
        path, writes = find_database(name)
        if writes:
            self.firsts.connected(path)
        self._note_path(path or None, read=True, write=writes)

    def _note_one_path(self, event: str, args: tuple[Any, ...]) -> None:
        path = _resolve_path_argument(args, 0, _ONE[event])
        if event == "shutil.rmtree":
            self._note_tree(path)
        if event in ("os.chmod", "os.utime"):
            self._note_old_metadata(event, path)
        removes = event in ("os.remove", "os.rmdir", "shutil.rmtree")
        self._note_path(path, write=True, truncates=removes, follows=not removes)

    def _note_old_metadata(self, event: str, path: Any) -> None:
        full = _find_full_path(path)
        if not full or (mode := permissions(full)) is None:
            return
        if event == "os.chmod":
            self.touched.modes.setdefault(full, mode)
        elif times := file_times(full):
            self.touched.times.setdefault(full, times)

    def _note_transfer(self, event: str, args: tuple[Any, ...]) -> None:
        """From one path to another."""
        path, other = (_resolve_path_argument(args, at, _TWO[event] + at) for at in (0, 1))
        if moves := event in ("os.rename", "shutil.move"):
            self._note_tree(path, other)
            self._note_old_metadata("os.chmod", other)
        if event != "os.symlink":  # which may lead to what is not there
            # what is written by either of two names of one file is written to both
            writes = moves or event == "os.link"
            self._note_path(path, read=True, write=writes, follows=not moves)
        self._note_path(other, write=True, follows=not moves and event not in _NAMES)

    def _note_tree(self, path: Any, to: Any = None) -> None:
        """All below a folder that is removed, or moved: keep what it holds."""
        if path is None or isinstance(path, int) or os.path.islink(path) or not os.path.isdir(path):  # noqa: PTH112, PTH114
            return
        root = os.fsdecode(path).rstrip(os.sep)
        for count, each in enumerate(_walk_tree(root)):
            if count >= TREE:
                self.touched.unknown.add(os.path.abspath(root))  # noqa: PTH100 - as in _note_path
                return
            self._note_path(each, read=to is not None, write=True, truncates=True, follows=False)
            if to is not None and not isinstance(to, int):
                self._note_path(
                    os.fsdecode(to).rstrip(os.sep) + each.removeprefix(root),
                    write=True,
                    truncates=True,
                    follows=False,
                )

    def _note_open(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        write = (isinstance(mode, str) and any(c in mode for c in "wax+")) or (
            not isinstance(mode, str) and isinstance(flags, int) and bool(flags & _WRITES)
        )
        if isinstance(mode, str):
            read = any(c in mode for c in "ra+")
        else:
            read = not write or bool(flags & os.O_RDWR)
        truncates = isinstance(mode, str) and mode[:1] in ("w", "x") and "+" not in mode
        noted = self._note_path(path, read=read, write=write, truncates=truncates)
        if write and noted:
            self.touched.opened.add(noted)

    def _note_path(
        self,
        path: Any,
        *,
        read: bool = False,
        write: bool = False,
        truncates: bool = False,
        follows: bool = True,
    ) -> str:
        """Gives the path of the file itself, "" where it is nobody's result. `follows`: it is not a link that
        is meant but what it leads to.
        """
        if path is None or isinstance(path, int):
            return ""
        text = os.fsdecode(path)
        if text == ":memory:" or (text.startswith("<") and text.endswith(">")):
            return ""
        # an audit hook: no objects where none are needed
        full = os.path.abspath(text)  # noqa: PTH100
        if (
            f"{os.sep}__pycache__" in full
        ):  # Python's own copies: whoever reads one reads the source
            if not (read and full.endswith(".pyc")):
                return ""
            full, write, truncates = _find_source_path(full), False, False
        if not is_watched(full):
            return ""
        # the same
        full, links = follow_links(full, os.getcwd(), last=follows)  # noqa: PTH109
        self.touched.read.update(links)
        if links and not is_watched(full):
            return ""
        self.touched.relative = self.touched.relative or not os.path.isabs(text)  # noqa: PTH117
        if read:
            self.touched.read.add(full)
        if truncates and full not in self.touched.read:
            self.touched.replaced.add(full)
        if write and full not in self.touched.written:
            self._keep_content(full)
            self.touched.written.add(full)
        return full

    def _keep_content(self, path: str) -> None:
        self.firsts.note(path)
        content, known = content_of(path)
        if known and self._kept + len(content or b"") <= KEPT_ALL:
            self._kept += len(content or b"")
            self.touched.before[path] = content
        else:
            self.touched.unknown.add(path)


def _resolve_path_argument(args: tuple[Any, ...], at: int, folder: int) -> Any:
    """The path that is the argument `at`; None where it is below an open folder that has no name we
    can find.
    """
    path, handle = args[at], args[folder] if folder < len(args) else None
    if isinstance(path, int) or not isinstance(handle, int) or handle < 0:
        return path
    try:
        return os.path.join(read_descriptor_path(handle), os.fsdecode(path))  # noqa: PTH118
    except OSError:
        return None


def _find_full_path(path: Any) -> str:
    """Of a path, or of an open file; "" where that is nobody's result, or has no name we can find."""
    if isinstance(path, int):
        try:
            path = read_descriptor_path(path)
        except OSError:
            return ""
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    full = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - as in _note_path
    return full if is_watched(full) else ""


def _walk_tree(root: str) -> Iterator[str]:
    """Files and folders below a folder."""
    for folder, folders, files in os.walk(root):
        # as above
        yield from (os.path.join(folder, name) for name in (*folders, *files))  # noqa: PTH118


def _find_source_path(path: str) -> str:
    folder, name = os.path.split(path)
    # the same
    return os.path.join(os.path.dirname(folder), name.partition(".")[0] + ".py")  # noqa: PTH118, PTH120


def _format_command(event: str, args: tuple[Any, ...]) -> str:
    if event == "subprocess.Popen" and len(args) > 1:
        command = args[1]
    elif args:
        command = args[0]
    else:
        command = ""
    if isinstance(command, list | tuple):
        command = " ".join(
            os.fsdecode(each) if isinstance(each, bytes | str) else str(each) for each in command
        )
    return os.fsdecode(command) if isinstance(command, bytes | str) else str(command)
