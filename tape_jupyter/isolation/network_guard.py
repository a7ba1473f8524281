"""The socket guard. In replay nothing leaves this process that no tap saw; while recording it is
named.

One audit hook (PEP 578), installed when the first guard is armed. Python cannot remove it, so it is
switched: idle, it costs one set lookup for every audit event of the process. Nothing is patched
here.

What an audit hook cannot see: C libraries with sockets of their own (grpc, pycurl, libpq, zmq,
ctypes, uvloop), sockets connected before, and what a child process does. Child processes are named;
in replay all are refused that are not known to stay on the machine (core/shell_commands.py). A
forked child is guarded like its parent, and tells it (isolation/network_guard.py).

How a forked process tells the one it was forked from what it did. Judges nothing.

A page of memory that both share: it takes no descriptor, so a child that closes all of its own
before `exec` (as pseudo-terminals do) can still write, and nothing leaks. A note that finds no room
is lost; the child has been refused all the same.
"""

from __future__ import annotations

import asyncio
import json
import linecache
import mmap
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from types import FrameType
from typing import Any, Literal

from tape_jupyter.core.context import ORIGIN, PARENT, SENDING
from tape_jupyter.core.real_clock import monotonic
from tape_jupyter.core.user_code import is_cell
from tape_jupyter.errors import BlockedConnection
from tape_jupyter.isolation import audit_events
from tape_jupyter.isolation.audit_events import Target
from tape_jupyter.providers import hosts

_SLOTS = 128
_SIZE = 2048  # bytes of a slot: its state, its length, then JSON
_FREE, _READY, _TAKEN = 0, 1, 2
_TEXT = 1200  # characters of a note
_SHORT = 150  # of one whose characters take up to 12 bytes each


class Board:
    """Notes of the children of the process that made it. One child writes one slot at a time."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._page = mmap.mmap(-1, _SLOTS * _SIZE)

    def post(self, kind: str, text: str, cell: int, *, refused: bool) -> None:
        """Leave a note. `cell` is the `id` of the cell it came from (0: unknown), the same on both
        sides of a fork.
        """
        note = {"kind": kind, "text": text[:_TEXT], "cell": cell, "refused": refused}
        data = json.dumps(note, ensure_ascii=False).encode("utf-8", "replace")
        if len(data) > _SIZE - 3:
            data = json.dumps({**note, "text": text[:_SHORT]}).encode()
        for number in range(_SLOTS):
            at = (os.getpid() + number) % _SLOTS * _SIZE
            if self._page[at] == _FREE:
                self._page[at] = _TAKEN
                self._page[at + 1 : at + 3 + len(data)] = len(data).to_bytes(2, "little") + data
                self._page[at] = _READY
                return

    def take_notes(self) -> list[dict[str, Any]]:
        """The notes left since asked; their slots are free again."""
        notes = []
        for at in range(0, _SLOTS * _SIZE, _SIZE):
            if self._page[at] == _READY:
                length = int.from_bytes(self._page[at + 1 : at + 3], "little")
                notes.append(json.loads(self._page[at + 3 : at + 3 + length]))
                self._page[at] = _FREE
        return notes


_board: list[Board] = []


def open_board() -> None:
    """Give this process a board of its own; it has one only."""
    if not _board or in_child():
        _board[:] = [Board()]


def in_child() -> bool:
    """Whether this process was forked from the one whose board it knows."""
    return bool(_board) and _board[0].pid != os.getpid()


def post(kind: str, text: str, cell: Any = None, *, refused: bool) -> None:
    """Tell the process this one was forked from."""
    if _board:
        _board[0].post(kind, text, 0 if cell is None else id(cell), refused=refused)


def take_notes() -> list[dict[str, Any]]:
    """What children told this process since asked."""
    return _board[0].take_notes() if _board and not in_child() else []


_EVENTS = (
    audit_events.CONNECTIONS
    | audit_events.LOOKUPS
    | frozenset(audit_events.CHILDREN)
    | frozenset({audit_events.FORK, audit_events.PROCESS})
)
_PLUMBING = frozenset(
    {"ipykernel", "IPython", "zmq", "jupyter_client", "debugpy", "_pydevd_bundle", "pydevd"}
)
_KERNEL_THREADS = frozenset({"IOPub", "Heartbeat", "Control", "Shell channel"})
_LIBRARIES = (str(Path(os.__file__).parent) + os.sep, str(Path(__file__).parents[1]) + os.sep)
_REMEMBERED = 100  # refusals: each holds its traceback
_NAME_HOLDS = 5.0  # seconds between looking a name up and connecting to its address


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something that no tap saw. `refusal` is the error raised for it; None: it went on, and is not
    on the tape.

    `what` is host:port or a command line, `where` the user's line, `cell` the cell it came from
    (None: unknown). A 'note' is what a forked child told: `what` is its whole text.
    """

    kind: Literal["connection", "lookup", "child", "fork", "note"]
    what: str
    where: str
    cell: Any = None
    refusal: BlockedConnection | None = None

    def __str__(self) -> str:
        if self.refusal is not None:
            return str(self.refusal)
        if self.kind == "note":
            return self.what
        if self.kind == "fork":
            return f"a forked process ({self.where}): calls that it makes are not on the tape"
        if self.kind == "child":
            return f"child process `{self.what}` ({self.where}) runs live: what it does is not on the tape"
        return f"connection to {self.what} ({self.where}) is not from a recorded library: it is not on the tape"


def _return_false(_: Any) -> bool:
    return False


def _ignore_sighting(_: Sighting) -> None:
    pass


def _ignore_allowed(_what: str, _cell: Any) -> None:
    pass


def _give_no_reason(_: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a guard does while it is armed.

    'replay' refuses, in every thread; 'record' reports to `on_event`; 'off' does neither. Whatever
    the mode, code whose origin is a cell that `replays` is refused: a thread may outlive its
    replay. `allow` holds hosts or host:port (also written `host:NAME`) that user code may reach;
    `on_allowed` is told each that it did. `on_event` is called in the thread that did it, also for
    a refusal, before that is raised. `withheld` says why a child process must not have what it
    would be given ("": it may), whatever the mode. `starts`: whether the code of a cell (None: not
    known whose it is) may start child processes that would be refused.
    """

    mode: Literal["replay", "record", "off"]
    replays: Callable[[Any], bool] = _return_false
    allow: frozenset[str] = frozenset()
    on_event: Callable[[Sighting], None] = _ignore_sighting
    on_allowed: Callable[[str, Any], None] = _ignore_allowed
    withheld: Callable[[str], str] = _give_no_reason
    starts: Callable[[Any], bool] = _return_false


@dataclass(slots=True)
class Guard:
    """Armed with a policy, it judges every connection, name lookup and child process of this
    process.
    """

    policy: Policy = Policy("off")
    refusals: deque[Sighting] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _reported: set[str] = field(default_factory=set)
    _addresses: set[str] = field(default_factory=set)  # of allowed names
    # of other cells
    _notes: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def arm(self, policy: Policy) -> None:
        """From now on, in all threads; replaces an earlier policy."""
        self._reported.clear()
        open_board()
        self.policy = replace(
            policy, allow=frozenset(name.removeprefix("host:") for name in policy.allow)
        )
        _install_guard(self)

    def disarm(self) -> None:
        """All is live again, for code of replay cells too."""
        self.policy = Policy("off")
        _armed[:] = [guard for guard in _armed if guard is not self]

    def take_refusals(self) -> list[Sighting]:
        """The last refusals since asked. User code may have swallowed them: a cell that has any
        must fail.
        """
        taken = list(self.refusals)
        self.refusals.clear()
        return taken

    def take_children(self, cell: Any) -> list[Sighting]:
        """What forked children of this cell told since asked; a refused one must fail the cell."""
        self._notes.extend(take_notes())
        cell_notes = [note for note in self._notes if note["cell"] in (0, id(cell))]
        self._notes = deque(
            (note for note in self._notes if note not in cell_notes), maxlen=_REMEMBERED
        )
        return [_build_sighting(note, cell) for note in cell_notes]

    def judge(self, event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        """Called by the hook. Raises BlockedConnection, or an OSError where that is what the caller
        expects.
        """
        policy, origin = self.policy, ORIGIN.get()
        cell = origin.cell if origin is not None else None
        refuse = policy.mode == "replay" or (cell is not None and policy.replays(cell))
        refuse = refuse and not (event in audit_events.CHILDREN and policy.starts(cell))
        if not refuse and event in audit_events.CHILDREN and (why := policy.withheld(repr(args))):
            self._withhold_child(event, args, frame, cell, why)
        if not refuse and policy.mode != "record":
            return
        try:
            seen = self._find_target(event, args, frame, sure=refuse or origin is not None)
        except Exception as problem:
            if refuse:
                raise BlockedConnection(
                    f"replay: {event} was refused: checking it failed with {problem!r}"
                ) from problem
            return
        if seen is not None:
            self._refuse_or_report(*seen, cell, refuse=refuse, replaced=event == "os.exec")

    def _withhold_child(
        self, event: str, args: tuple[Any, ...], frame: FrameType, cell: Any, why: str
    ) -> None:
        where = _format_place(_find_user_frame(frame))
        refusal = BlockedConnection(f"the child process was not started ({where}): {why}")
        seen = Sighting("child", audit_events.command_line(event, args), where, cell, refusal)
        if in_child():
            _refuse_in_child(seen, leave=event == "os.exec")
        self.policy.on_event(seen)
        raise refusal

    def _find_target(
        self, event: str, args: tuple[Any, ...], frame: FrameType, *, sure: bool
    ) -> tuple[Target, str] | None:
        """What is reached, and from where; None if this is the kernel's, or allowed, or not known
        to be the user's.
        """
        target = audit_events.event_target(event, args)
        if target is None or _is_socketpair(frame):
            return None
        if self._is_allowed(target):
            self._report_allowed(target, frame)
            return None
        user = _find_user_frame(frame)
        if user is None and (_is_in_kernel_thread() or not sure):
            return None
        if target.kind == "lookup":
            _remember_lookup(target.host)
        return target, _format_place(user)

    def _refuse_or_report(
        self, target: Target, where: str, cell: Any, *, refuse: bool, replaced: bool
    ) -> None:
        if target.kind == "fork" and refuse:
            return
        if target.kind not in ("child", "fork") and (
            target.telemetry or hosts.telemetry_host(_find_looked_up_name(target))
        ):
            if refuse:
                raise ConnectionRefusedError(f"{target.what}: telemetry is not sent in a replay")
            return
        if not refuse or not target.networked:
            in_taped_function = bool(PARENT.get())  # its body does not run in replay
            if target.kind != "lookup" and not target.taped and not in_taped_function:
                self._report_once(Sighting(target.kind, _format_target(target), where, cell))
            return
        if target.expected:
            raise socket.herror(1, f"{target.what} is not looked up in a replay")
        sighting = Sighting(
            target.kind, target.what, where, cell, BlockedConnection(_format_refusal(target, where))
        )
        self.refusals.append(sighting)
        if in_child():
            _refuse_in_child(sighting, leave=replaced)
        self.policy.on_event(sighting)
        assert sighting.refusal is not None
        raise sighting.refusal

    def _report_once(self, sighting: Sighting) -> None:
        """Each thing once while the policy lasts: a polling loop is one source, not a thousand."""
        if str(sighting) not in self._reported:
            self._reported.add(str(sighting))
            if in_child():
                post("note", str(sighting), sighting.cell, refused=False)
            self.policy.on_event(sighting)

    def _report_allowed(self, target: Target, frame: FrameType) -> None:
        origin = ORIGIN.get()
        if target.kind == "connection" and _find_user_frame(frame) is not None:
            self.policy.on_allowed(
                _format_target(target), origin.cell if origin is not None else None
            )

    def _is_allowed(self, target: Target) -> bool:
        if target.kind in ("child", "fork") or not self.policy.allow:
            return False
        if target.host in self._addresses:
            return True
        if not any(
            hosts.fits_host(allowed, target.host, target.port) for allowed in self.policy.allow
        ):
            return False
        if target.kind == "lookup":  # the connection that follows names its address only
            self._addresses.update(_resolve_addresses(target.host))
        return True


def _build_sighting(note: dict[str, Any], cell: Any) -> Sighting:
    refusal = BlockedConnection(note["text"]) if note["refused"] else None
    return Sighting(note["kind"], note["text"], "", cell, refusal)


def _refuse_in_child(sighting: Sighting, *, leave: bool) -> None:
    """Tell the parent. Where the child was to become another program it ends: an error would let
    the copy run on.
    """
    post("note", str(sighting), sighting.cell, refused=True)
    if leave:
        with suppress(OSError):
            os.write(2, f"{sighting}\n".encode("utf-8", "replace"))
        os._exit(126)


# ---- the hook

_armed: list[Guard] = []
_installed: list[bool] = []
_inside = threading.local()


def _install_guard(guard: Guard) -> None:
    if not any(guard is other for other in _armed):
        _armed.append(guard)
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_handle_audit_event)


# Defaults instead of globals: the hook outlives this module when the interpreter shuts down.
def _handle_audit_event(
    event: str,
    args: tuple[Any, ...],
    events: frozenset[str] = _EVENTS,
    armed: list[Guard] = _armed,
    sending: Callable[[], bool] = SENDING.get,
    inside: threading.local = _inside,
) -> None:
    if event not in events or not armed or sending() or getattr(inside, "judging", False):
        return
    inside.judging = True
    try:
        for guard in tuple(armed):
            guard.judge(event, args, sys._getframe(1))  # noqa: SLF001  # the only name it has
    finally:
        inside.judging = False


@contextmanager
def unwatched() -> Iterator[None]:
    """For what we do ourselves: connections and children made inside are neither refused nor
    reported.
    """
    token = SENDING.set(True)
    try:
        yield
    finally:
        SENDING.reset(token)


# ---- names of addresses

_looked_up = threading.local()
_lately: list[tuple[str, float]] = [("", 0.0)]


def _remember_lookup(host: str) -> None:
    _looked_up.last = _lately[0] = (host, monotonic())


def _find_looked_up_name(target: Target) -> str:
    """The name an address was looked up by just before: in this thread, or in asyncio's helper
    threads; or ''.
    """
    if target.kind == "lookup" or not audit_events.is_address(target.host):
        return target.host
    # the public one raises where there is none
    in_loop = asyncio._get_running_loop() is not None  # noqa: SLF001
    name, at = getattr(_looked_up, "last", _lately[0] if in_loop else ("", 0.0))
    if monotonic() - at < _NAME_HOLDS and not hosts.loopback(target.host):
        return name
    return ""


def _format_target(target: Target) -> str:
    name = _find_looked_up_name(target) if target.kind == "connection" else ""
    if name and name != target.host:
        return f"{target.what} ({name})"
    return target.what


def _resolve_addresses(host: str) -> set[str]:
    try:
        return {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return set()


# ---- whose code


def _is_socketpair(frame: FrameType) -> bool:
    """Where the system has no socket pairs, the standard library connects one over loopback (event
    loops do).
    """
    return frame.f_code.co_filename == socket.__file__ and frame.f_code.co_name.endswith(
        "socketpair"
    )


def _find_user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the person's own code: no library's, not ours."""
    while frame is not None and not is_user_code(frame):
        frame = frame.f_back
    return frame


def is_user_code(frame: FrameType) -> bool:
    """Whether a frame runs the person's own code: no library's, not ours."""
    name = frame.f_code.co_filename
    # <stdin>, <string>, <ipython-input-1>; libraries generate code with such names as well
    if name.startswith("<"):
        return frame.f_globals.get("__name__") == "__main__" and not name.startswith("<frozen")
    return (
        not name.startswith(_LIBRARIES)
        and "site-packages" not in name
        and "dist-packages" not in name
    )


def _format_place(frame: FrameType | None) -> str:
    if frame is None:
        return f"thread {threading.current_thread().name}"
    path, line = frame.f_code.co_filename, frame.f_lineno
    cell = frame.f_globals.get("__name__") == "__main__" and is_cell(path)
    source = linecache.getline(path, line)
    place = f"cell line {line}" if cell else f"{PurePath(path).name}:{line}"
    return f"{place}: {audit_events.shortened(source)}" if source.strip() else place


def _is_in_kernel_thread() -> bool:
    thread = threading.current_thread()
    return type(thread).__module__.partition(".")[0] in _PLUMBING or thread.name in _KERNEL_THREADS


def _format_refusal(target: Target, where: str) -> str:
    if target.kind == "child":
        return (
            f"replay: the child process `{target.command}` ({where}) was refused, since it may reach the network.\n"
            "Make what starts it a tool (@tape.tool), so that its result is on the tape; or run this with %tape off."
        )
    verb = "looking up" if target.kind == "lookup" else "a connection to"
    return (
        f"replay: {verb} {_format_target(target)} ({where}) was refused: it is not from a recorded library, "
        "so it is not on the tape.\n"
        f"Make what opens it a tool (@tape.tool), so that its result is on the tape; or let it through "
        f"(%%tape replay --live host:{_find_looked_up_name(target) or target.host}); or run the cell with %tape off."
    )
