"""Replays a whole history in a fresh process, away from the world: nobody's side effects are
repeated.

Where the system allows it (Linux with user namespaces), the process has no network, sees the same
paths, and whatever it writes goes into a layer of its own that is thrown away. Elsewhere it works
in a copy of the folder, and a hook refuses what would leave it. A replay that needs more than it
may have ends as "not provable", with cell and reason.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.dataflow.history import Execution, History
from tape_jupyter.dataflow.isolated.end_state import End
from tape_jupyter.isolation import overlays
from tape_jupyter.isolation.namespaces import AWAY, program

SECONDS = 120.0
COPIED = 200 << 20
"""Bytes of a folder that are copied where it cannot be layered over."""
_LAYER = 1 << 30
_UNSHARE = ("--user", "--map-root-user", "--mount", "--kill-child", "--fork")

_SCRIPT = r"""
set -e
path=$PATH; PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin
layers=$1; shift; size=$1; shift; kept=$1; shift
mount -t tmpfs -o "size=$size" tmpfs "$layers"
if [ -n "$kept" ]; then mkdir "$layers/kept"; mount --bind "$kept" "$layers/kept"; exec 9<"$layers/kept"; fi
while read -r _ _ _ _ place _; do
  case $place in
    /proc*|/sys*|/dev*|"$layers"|"$layers"/*) ;;
    *) mount -o remount,bind,ro "$place" 2>/dev/null || true ;;
  esac
done < /proc/self/mountinfo
n=0
while [ "$1" != -- ]; do
  n=$((n+1)); mkdir "$layers/u$n" "$layers/w$n"
  mount -t overlay overlay -o "lowerdir=$1,upperdir=$layers/u$n,workdir=$layers/w$n,userxattr" "$1"
  shift
done
shift
if [ -n "$kept" ]; then mount -c --bind /proc/self/fd/9 "$kept"; exec 9<&-; fi
cd "$1"; shift
PATH=$path
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """What to replay. `setup` is Python that runs in the shell's namespace first (load the
    extension, choose the take); `files` are put before it starts: as they were before the history,
    None where they were not there.
    """

    sources: tuple[str, ...]
    cwd: str
    setup: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    seconds: float = SECONDS
    names: tuple[str, ...] = ()
    """Names that are looked at in the end, besides those that its cells change."""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """Variables that the history changed, as they were before it; None: not there. `env` wins."""
    path: tuple[str, ...] | None = None
    """`sys.path` before the history; None: as it is here."""
    argv: tuple[str, ...] | None = None
    """The same of `sys.argv`."""
    in_kernel: bool = False
    """Whether its cells run in a kernel's shell."""
    kept: str = ""
    """The folder whose writes stay, where there is one: that of the take."""
    network: bool = False
    """Whether calls may go live. Else it has no network."""


@dataclass(frozen=True, slots=True)
class EntryOutcome:
    """What one entry did in the replay; `after` are fingerprints of names, `files` digests ("" :
    gone).
    """

    index: int
    text: str
    images: tuple[str, ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    """All that it showed, in its order, as notebooks have it."""
    error: str | None = None
    stderr: str = ""
    after: Mapping[str, str] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    opaque: frozenset[str] = frozenset()
    files: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What the job's setup says of it (`worker.FreshShell.tells`)."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """As far as it came. `failed`: why it is no proof, naming the cell; None where every entry ran."""

    ran: tuple[EntryOutcome, ...]
    failed: str | None = None
    away: str = "layers"
    """How it was kept from the world: "layers" (by the system) or "copy" (by a hook)."""
    end: End | None = None
    """What was there in the end, where it came to that."""


class Leash:
    """Ends a replay from another thread, whenever: also before it has begun."""

    def __init__(self) -> None:
        self.pulled = False
        self._ends: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def pull(self) -> None:
        with self._lock:
            self.pulled = True
            if self._ends is not None:
                self._ends()

    def tie(self, ends: Callable[[], None] | None) -> None:
        """What `pull` does from now on; None: nothing any more."""
        with self._lock:
            self._ends = ends
            if self.pulled and ends is not None:
                ends()


def _never_end(_: EntryOutcome) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ReplayListener:
    """What goes on meanwhile. `starts` hears the index of each entry that starts; `ends` says of
    each that ran whether the replay ends there; `leash` ends it at any time.
    """

    starts: Callable[[int], object] = int
    ends: Callable[[EntryOutcome], bool] = _never_end
    leash: Leash = field(default_factory=Leash)


def job(
    history: History,
    *,
    cwd: str | None = None,
    setup: str = "",
    env: Mapping[str, str] = MappingProxyType({}),
    seconds: float = SECONDS,
) -> ReplayJob:
    """The job that runs the whole history again, from files as they were before it."""
    return ReplayJob(
        sources=tuple(entry.source for entry in history),
        cwd=cwd or _find_first_folder(history),
        setup=setup,
        env=env,
        files=_find_first_files(history),
        seconds=seconds,
        names=tuple(sorted({name for entry in history for name in entry.changed})),
        environment=_find_first_environment(history),
        path=_find_first_list(history, "path"),
        argv=_find_first_list(history, "argv"),
        in_kernel=_is_kernel(),
    )


def _is_kernel() -> bool:
    """Whether this process runs cells in the shell that kernels have."""
    from IPython.core.getipython import get_ipython

    kernels = sys.modules.get("ipykernel.zmqshell")
    return kernels is not None and isinstance(get_ipython(), kernels.ZMQInteractiveShell)


def _find_first_list(history: History, part: str) -> tuple[str, ...] | None:
    """A list of `sys` before the first entry; None where no entry changed it."""
    return next((tuple(e.ambient[part].before) for e in history if part in e.ambient), None)


def _find_first_folder(history: History) -> str:
    """The working directory before the first entry."""
    for entry in history:
        if "cwd" in entry.ambient:
            return str(entry.ambient["cwd"].before)
    return str(Path.cwd())


def _find_first_environment(history: History) -> dict[str, str | None]:
    first: dict[str, str | None] = {}
    for change in (e.ambient["environment"] for e in history if "environment" in e.ambient):
        was, now = change.before, change.after
        for name in {*was, *now}:
            if was.get(name) != now.get(name):
                first.setdefault(name, was.get(name))
    return first


def _find_first_files(history: History) -> dict[str, bytes | None]:
    first: dict[str, bytes | None] = {}
    for entry in history:
        for path, change in entry.files.items():
            if path not in first and change.known:
                first[path] = change.before
    return first


def impossible(history: Iterable[Execution]) -> str | None:
    """Why a history cannot be replayed from its beginning, whatever is done; None where it can be
    tried.
    """
    seen: set[str] = set()
    for entry in history:
        for path, change in entry.files.items():
            if path not in seen and not change.known:
                return f"{path} as it was before {entry.title} was not kept"
            seen.add(path)
    return None


def replay_job(job: ReplayJob, hearer: ReplayListener | None = None) -> Replayed:
    """Run the job to its end, or to where the hearer ends it. Blocks; call it from a thread."""
    listener = hearer or ReplayListener()
    with scratch("proof") as folder:
        tops = _find_tops(job, folder) if _can_use_layers() else []
        if tops:
            command = _build_layered_command(job, folder, tops)
            if not overlays.are_covered([Path(tempfile.gettempdir())], tops):
                job = replace(job, env={**job.env, "TMPDIR": str(folder)})
            job = _set_ipython_folder(job, folder)
            return _run_worker(job, command, list(map(str, tops)), listener, "layers")
        copy = folder / Path(job.cwd).name
        if _measure_folder(job.cwd) > COPIED:
            return Replayed(
                (),
                f"not provable: {job.cwd} is larger than {COPIED >> 20} MiB, and cannot be layered here",
                "copy",
            )
        shutil.copytree(job.cwd, copy, symlinks=True)
        moved = _set_ipython_folder(_move_job(job, str(copy)), folder)
        return _run_worker(moved, _keep_command, [str(folder)], listener, "copy")


def _build_layers_command(*, network: bool = False) -> list[str]:
    network_option = () if network else ("--net",)
    return [program("unshare"), *_UNSHARE, *network_option, program("sh"), "-c", _SCRIPT, "sh"]


@functools.cache
def _can_use_layers() -> bool:
    """Whether this system gives us a network and mounts of our own."""
    if sys.platform != "linux" or not program("unshare"):
        return False
    with scratch("proof") as folder:
        low, layers = folder / "low", folder / "layers"
        low.mkdir()
        layers.mkdir()
        command_line = [
            *_build_layers_command(),
            str(layers),
            "1m",
            "",
            str(low),
            "--",
            str(low),
            program("true"),
        ]
        # ours
        return subprocess.run(command_line, check=False, capture_output=True).returncode == 0  # noqa: S603


def _find_tops(job: ReplayJob, folder: Path) -> list[Path]:
    """The folders to layer over; none where the job's own, or that of a file which is put back,
    cannot be.
    """
    needed = [Path(job.cwd), *(Path(path).parent for path in job.files)]
    tops = overlays.select_tops([*needed, folder, Path(tempfile.gettempdir()), Path.home()])
    return tops if overlays.are_covered(needed, tops) else []


Command = Callable[[list[str]], list[str]]


def _build_layered_command(job: ReplayJob, folder: Path, tops: list[Path]) -> Command:
    layers = folder / "layers"
    layers.mkdir()
    what_hides_the_layers_last = sorted(tops, key=layers.is_relative_to)
    layered = [str(layers), str(_LAYER), job.kept, *map(str, what_hides_the_layers_last)]
    before = [*_build_layers_command(network=job.network), *layered, "--", job.cwd]
    return lambda command: [*before, *command]


def _keep_command(command: list[str]) -> list[str]:
    return command


def _move_job(job: ReplayJob, copy: str) -> ReplayJob:
    """The job in a copy of its folder. Files outside the folder cannot be put back there: they are
    left out.
    """
    inside = {p: c for p, c in job.files.items() if (p + os.sep).startswith(job.cwd + os.sep)}
    files = {
        str(Path(copy) / Path(path).relative_to(job.cwd)): content
        for path, content in inside.items()
    }
    env = {**job.env, "TMPDIR": str(Path(copy).parent)}
    return replace(job, cwd=copy, env=env, files=files)


def _set_ipython_folder(job: ReplayJob, scratch: Path) -> ReplayJob:
    """The job with settings of IPython that nobody wrote: those in a folder that others may write
    to (`%store`) are theirs.
    """
    folder = scratch / f"{Path(job.cwd).name}.ipython"
    return replace(job, env={"IPYTHONDIR": str(folder), **job.env})


def _measure_folder(folder: str) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with_path = Path(root, name)
            total += with_path.lstat().st_size
            if total > COPIED:
                return total
    return total


def _run_worker(
    job: ReplayJob, command: Command, roots: list[str], listener: ReplayListener, away: str
) -> Replayed:
    reading, writing = os.pipe()
    command_line = command(
        [sys.executable, "-P", "-m", "tape_jupyter.dataflow.isolated.worker", str(writing)]
    )
    child = subprocess.Popen(  # noqa: S603 - this interpreter, and the history of this kernel
        command_line,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(writing,),
        cwd=job.cwd,
        env={
            **{k: v for k, v in os.environ.items() if k not in job.environment},
            **{k: v for k, v in job.environment.items() if v is not None},
            **({AWAY: "1"} if away == "layers" and not job.network else {}),
            **job.env,
        },
        start_new_session=True,
        text=True,
    )
    os.close(writing)
    late = threading.Event()

    def stop_late() -> None:
        late.set()
        _kill_child(child)

    timer = threading.Timer(job.seconds, stop_late)
    timer.name = "tape proof"
    timer.daemon = True
    timer.start()
    stderr_lines: list[str] = []
    drain = threading.Thread(
        target=lambda: stderr_lines.extend(child.stderr or ()), name="tape proof", daemon=True
    )
    drain.start()
    listener.leash.tie(lambda: _kill_child(child))
    try:
        _send_job(child, job, roots)
        with os.fdopen(reading, encoding="utf-8") as lines:
            progress = _read_outcomes(lines, listener)
    finally:
        timer.cancel()
        listener.leash.tie(None)
        _kill_child(child)
        child.wait()
        drain.join(1)
        if child.stdin is not None:
            child.stdin.close()
        if child.stderr is not None:
            child.stderr.close()
    ended = progress.ended or listener.leash.pulled
    failed = _explain_failure(
        job, progress.ran, progress.started, stderr_lines, late=late.is_set(), ended=ended
    )
    return Replayed(tuple(progress.ran), failed, away, progress.end)


def _send_job(child: subprocess.Popen[str], job: ReplayJob, roots: list[str]) -> None:
    message = {
        "sources": job.sources,
        "cwd": job.cwd,
        "setup": job.setup,
        "roots": [*roots, *([job.kept] if job.kept else [])],
        "network": job.network,
        "names": job.names,
        "in_kernel": job.in_kernel,
        "path": [each for each in (sys.path if job.path is None else job.path) if each is not None],
        "argv": list(sys.argv if job.argv is None else job.argv),
        "files": {
            p: None if c is None else base64.b64encode(c).decode() for p, c in job.files.items()
        },
    }
    if child.stdin is not None:
        with suppress(BrokenPipeError):  # it says on standard error why it ended
            child.stdin.write(json.dumps(message) + "\n")
            child.stdin.flush()


@dataclass(slots=True)
class _WorkerEvents:
    ran: list[EntryOutcome] = field(default_factory=list)
    started: int = -1
    ended: bool = False
    """By the hearer, before its time."""
    end: End | None = None


def _read_outcomes(lines: Iterable[str], listener: ReplayListener) -> _WorkerEvents:
    progress = _WorkerEvents()
    for line in lines:
        message: dict[str, Any] = json.loads(line)
        if "end" in message:
            progress.end = End.from_record(message["end"])
            continue
        if "starting" in message:
            progress.started = message["starting"]
            listener.starts(progress.started)
            continue
        for key in ("images", "refused", "outputs"):
            message[key] = tuple(message[key])
        for key in ("changed", "opaque"):
            message[key] = frozenset(message[key])
        progress.ran.append(EntryOutcome(**message))
        if listener.ends(progress.ran[-1]):
            progress.ended = True
            break
    return progress


def _explain_failure(
    job: ReplayJob,
    outcomes: list[EntryOutcome],
    started: int,
    stderr_lines: list[str],
    *,
    late: bool,
    ended: bool,
) -> str | None:
    for each in outcomes:
        if each.refused:
            return f"not provable: cell {each.index + 1} {each.refused[0]}"
    if ended or len(outcomes) == len(job.sources):
        return None
    cell = f"cell {started + 1}" if started >= 0 else "starting"
    if late:
        return f"not provable: {cell} took longer than {job.seconds:g} s"
    last = next((f" ({line.strip()})" for line in reversed(stderr_lines) if "Error" in line), "")
    return f"not provable: {cell} ended the process{last}"


def _kill_child(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
