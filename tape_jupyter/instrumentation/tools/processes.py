"""What a tool shows past `sys.stdout`: processes that it starts print to the descriptors 1 and 2, and
so may its own code.

In a notebook ipykernel reads both descriptors, each in a thread of its own, and shows what comes. A
body that is about to write there waits until all that was written before has come (`wait_until_read`); what
comes from then on, until it has ended and all has come again, is what it showed. Elsewhere nobody
reads them: that a process prints there is named, or the tool's own `os.write`.
"""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import threading
import weakref
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from tape_jupyter.core.context import BODY
from tape_jupyter.instrumentation.patching import swap, undoing

_MARK = "\x16\x16"
_BITS = str.maketrans("01", "\x17\x1d")
"""A terminal, where ipykernel echoes what it reads, shows none of these characters."""
_STANDARD = (1, 2)
_write = os.write
"""As it is without a tap: a mark is nothing that the program writes."""
_PATIENCE = 1.0
"""Seconds until a mark in a descriptor must have been read."""

_lock = threading.Lock()
_numbers = itertools.count()
_marks: dict[tuple[int, str], threading.Lock] = {}
"""Marks that are not read yet, by the stream (its id) and their text."""
_held: dict[int, str] = {}
"""By stream, the beginning of what may be a mark."""
_read: list[dict[str, Any]] = []
"""What came since, as events, and nobody has recorded yet."""
_writers: list[Any] = []
"""The bodies that may write to the descriptors, as long as they run."""

_PROCESSES: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""Processes that bodies of taped functions started, with what hears of that body."""
_outside = threading.Event()
"""Set where code outside such bodies may have written to the descriptors since it was waited for."""


def patch() -> Callable[[], None]:
    """Tap the starts of processes, and `os.write`. Returns the undo."""
    return undoing(
        swap(subprocess.Popen, "__init__", _wrap_popen),
        swap(os, "system", _wrap_system),
        swap(os, "write", _wrap_write),
    )


def _wrap_popen(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start_taped(process: Any, *args: Any, **kwargs: Any) -> None:
        body = _find_writer()
        if body is None:
            original(process, *args, **kwargs)
            return
        output, errors = (
            kwargs.get(name, args[at] if len(args) > at else None)
            for name, at in (("stdout", 4), ("stderr", 5))
        )
        _begin_printing(body, prints=output is None, prints_errors=errors is None)
        original(process, *args, **kwargs)
        _PROCESSES[process] = body

    return start_taped


def _find_writer() -> Any:
    """The body that is about to write to the descriptors; None, which is noted, where other code is."""
    body = BODY.get()
    if body is None:
        _outside.set()
    return body


def _has_ended(process: Any) -> bool:
    """Whether it has; its status stays for who waits for that."""
    if process.returncode is not None or not hasattr(os, "waitid"):
        return process.returncode is not None or process.poll() is not None
    try:
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    except ChildProcessError:
        return True


def list_running_processes(body: Any) -> list[str]:
    """The names of the processes that a body started and that have not ended."""
    mine = [process for process, by in list(_PROCESSES.items()) if by is body]
    return [_name_program(each.args) for each in mine if not _has_ended(each)]


def _name_program(command: Any) -> str:
    words = [command] if isinstance(command, str | bytes | os.PathLike) else [*command]
    program = os.fsdecode(words[0]) if words else ""
    return Path(program.split()[0] if len(words) == 1 and program else program).name


def _wrap_system(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def system_taped(command: Any) -> int:
        if (body := _find_writer()) is not None:
            _begin_printing(body, prints=True, prints_errors=True)
        return int(original(command))

    return system_taped


def _wrap_write(original: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(original)
    def write(descriptor: int, data: Any, /) -> int:
        if descriptor in _STANDARD and (body := _find_writer()) is not None:
            _begin_writing_itself(body)
        return original(descriptor, data)

    return write


def _begin_writing_itself(body: Any) -> None:
    if not are_descriptors_read():
        what = (
            "what it writes to the descriptors 1 and 2 is not recorded: only a notebook reads that"
        )
        body.record_output({"lost": what})


def _begin_printing(body: Any, *, prints: bool, prints_errors: bool) -> None:
    """A process is about to start that prints where this one does."""
    if are_descriptors_read():
        if prints or prints_errors:
            body.writes_to_descriptors()
    elif prints:
        what = "what a process that it started prints is not recorded: only a notebook reads that"
        body.record_output({"lost": what})


def are_descriptors_read() -> bool:
    """Whether what is written to the descriptors 1 and 2 is shown, as in a notebook."""
    return any(_find_watched_streams())


def may_write(words: AbstractSet[str]) -> bool:
    """Whether code that looks up these names may write to the descriptors itself."""
    return not words.isdisjoint(("__stdout__", "__stderr__", "CDLL")) or {"os", "write"} <= words


def begin_writing(body: Any) -> None:
    """The body may write to the descriptors from now on."""
    if body not in _writers and are_descriptors_read():
        wait_until_read()
        with _lock:
            _writers.append(body)


def end_writing(body: Any) -> list[dict[str, Any]]:
    """It has ended: what came to the descriptors, as events."""
    if body not in _writers:
        return []
    wait_until_read()
    with _lock:
        _writers.remove(body)
    return take_read(body)


def take_read(body: Any) -> list[dict[str, Any]]:
    """What came to the descriptors since it was asked last, as events."""
    if not _read or (_writers and body not in _writers):
        return []
    with _lock:
        events, _read[:] = list(_read), ()
    return events


def wait_for_program_output() -> None:
    """A replay is about to show what a body showed: what the program's own processes printed before
    comes first, as when it was recorded.
    """
    if _outside.is_set():
        _outside.clear()
        wait_until_read()


def wait_until_read() -> None:
    """Wait until what was written to the descriptors has come to the streams."""
    waiting = []
    for stream, descriptor in _find_watched_streams():
        mark = _MARK + f"{next(_numbers) % 256:08b}".translate(_BITS) + _MARK
        _marks[id(stream), mark] = unread = threading.Lock()
        unread.acquire()
        _write(descriptor, mark.encode())
        waiting.append(unread)
    # Not events: who waits at one seems to wait for the program (determinism/idle_detection.py).
    for unread in waiting:
        unread.acquire(timeout=_PATIENCE)


def _find_watched_streams() -> Iterator[tuple[Any, int]]:
    """The streams of ipykernel whose descriptor is read, and that."""
    for thread in threading.enumerate():
        stream: Any = getattr(getattr(thread, "_target", None), "__self__", None)
        if getattr(stream, "watch_fd_thread", None) is not thread:
            continue
        descriptor = 2 if stream.name == "stderr" else 1
        try:
            if os.path.sameopenfile(descriptor, stream._fid):  # noqa: SLF001 - nothing else tells
                yield stream, descriptor
        except (OSError, AttributeError, TypeError):
            continue


def remove_marks(stream: Any, text: str) -> str:
    """A stream of ipykernel is about to show this: the text without marks, which nobody wrote to be
    seen. What came from its descriptor is noted.
    """
    if threading.current_thread() is not getattr(stream, "watch_fd_thread", None):
        return text
    with _lock:
        text = _held.pop(id(stream), "") + text
        shown = ""
        while mark := _find_first_mark(stream, text):
            before, _, text = text.partition(mark)
            shown += _note_read_text(stream, before)
            _marks.pop((id(stream), mark)).release()
        if any(of == id(stream) for of, _ in _marks) and _MARK[0] in text[-_LENGTH:]:
            at = text.index(_MARK[0], max(0, len(text) - _LENGTH))
            text, _held[id(stream)] = text[:at], text[at:]
        return shown + _note_read_text(stream, text)


_LENGTH = 2 * len(_MARK) + 8


def _find_first_mark(stream: Any, text: str) -> str:
    marks = [mark for of, mark in _marks if of == id(stream) and mark in text]
    return min(marks, key=text.index, default="")


def _note_read_text(stream: Any, text: str) -> str:
    if text and _writers:
        _read.append({"err" if stream.name == "stderr" else "out": text})
    return text
