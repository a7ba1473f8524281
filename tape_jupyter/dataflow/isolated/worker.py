"""The fresh process of a hermetic replay (dataflow/isolated/process.py starts it): a new shell runs
the whole history.

It reads a job as one JSON line from standard input and tells one JSON line an entry on the
descriptor it is given. What it runs has no network; it may write into the copies only, or the write
is refused and named.
"""

from __future__ import annotations

import base64
import contextvars
import hashlib
import io
import json
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TextIO

from IPython.core.async_helpers import get_asyncio_loop
from IPython.core.displayhook import CapturingDisplayHook, DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets import Type
from traitlets.config import Config

from tape_jupyter.core.changed_paths import changed_paths
from tape_jupyter.core.plain_text import end_line
from tape_jupyter.dataflow.isolated import end_state

_ALWAYS = ("/dev/", "/proc/self/")
# bound now, with their own ways: cells patch what they like later
_ENCODE, _DECODE = json.JSONEncoder(default=str).encode, json.JSONDecoder().decode


class _Hook(DisplayHook):
    """The value of a cell's last expression is displayed like any other."""

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(
        self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None
    ) -> None:
        shell: Any = self.shell
        shell.display_pub.publish(format_dict, md_dict)


class _Printed(io.StringIO):
    """What is printed, with the encoding that a kernel's streams have: `%timeit` asks for it."""

    encoding = "UTF-8"


class FreshShell(InteractiveShell):
    """An IPython shell without a terminal, a history file or a window system."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(DisplayPublisher)

    outputs: Any = None
    """What the running cell shows."""
    printed: tuple[_Printed, _Printed] | None = None
    """Where all cells print, as a kernel's do: what keeps `sys.stdout` writes on in later cells."""
    streams: tuple[Any, Any] | None = None
    """`sys.stdout` and `sys.stderr` as the last cell left them."""
    collect_extras: Callable[[], Mapping[str, Any]] = dict
    """What is told of each cell that ran; a job's setup sets it."""

    def enable_gui(self, gui: str | None = None) -> None:
        """Figures are displayed, not shown in a window."""

    def should_run_async(self, *_: Any, **__: Any) -> bool:
        """Every cell runs in an event loop, as in a kernel: `asyncio.create_task(...)` needs no
        `await` beside it.
        """
        return not get_asyncio_loop().is_running()  # type: ignore[no-untyped-call]

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        if self.outputs is not None:
            self.outputs.error(str(etype.__name__), str(evalue), stb)


def shell(*, in_kernel: bool = False) -> FreshShell:
    """`in_kernel`: the shell that kernels have, by which libraries choose how they show things."""
    config = Config()
    config.HistoryManager.enabled = False
    kind: Any = FreshShell
    if in_kernel:
        from ipykernel.zmqshell import ZMQInteractiveShell

        config.IPKernelApp = Config()
        kind = type(ZMQInteractiveShell.__name__, (FreshShell, ZMQInteractiveShell), {})
    FreshShell.clear_instance()
    fresh_shell: FreshShell = kind.instance(config=config)
    if in_kernel:
        fresh_shell.run_line_magic("load_ext", "storemagic")  # as IPython's applications do
    fresh_shell.loop_runner = _build_runner()
    formatter: Any = fresh_shell.display_formatter
    formatter.active_types = formatter.format_types
    return fresh_shell


def _build_runner() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs every cell in one context, as a kernel does: what a cell sets in it is there for the
    next.
    """
    context = contextvars.copy_context()

    def run_in_context(cell: Coroutine[Any, Any, Any]) -> Any:
        loop = get_asyncio_loop()  # type: ignore[no-untyped-call]
        return loop.run_until_complete(loop.create_task(cell, context=context))

    return run_in_context


def execute_in_shell(shell: FreshShell, source: str, cell_id: str | None = None) -> dict[str, Any]:
    """Run a cell. `text`: standard output, the text of each display, the error's line; `images`:
    digests; `outputs`: all that it showed, in its order, as notebooks have it.
    """
    streams = shell.printed = shell.printed or (_Printed(), _Printed())
    with capture_output():
        sys.stdout, sys.stderr = shell.streams or streams
        collector = _CellOutputs(dict(zip(("stdout", "stderr"), streams, strict=True)))
        shell.display_pub, sys.displayhook = _Publisher(collector), _Results(shell, collector)
        shell.outputs = collector
        result: Any = shell.run_cell(source, store_history=True, cell_id=cell_id)  # type: ignore[no-untyped-call]
        collector.printed()
        shell.streams = sys.stdout, sys.stderr
    error = result.error_in_exec or result.error_before_exec
    outputs = [each for each in collector.outputs if not _is_summary(each)]
    printed = "".join(each["text"] for each in outputs if each.get("name") == "stdout")
    bundles: list[dict[str, Any]] = [each["data"] for each in outputs if "data" in each]
    images = []
    for bundle in bundles:
        kinds = sorted(kind for kind in bundle if kind.startswith("image/"))
        images += [_digest_data(bundle[kind]) for kind in kinds]
    return {
        "text": output_text(printed, bundles, error),
        "images": images,
        "outputs": collector.outputs,
        "error": None if error is None else type(error).__name__,
        "stderr": "".join(each["text"] for each in outputs if each.get("name") == "stderr"),
    }


class _CellOutputs:
    """The outputs of one cell as they come; what it prints is in `streams`."""

    def __init__(self, streams: Mapping[str, io.StringIO]) -> None:
        self.outputs: list[dict[str, Any]] = []
        self._streams, self._sent_lengths, self._clear = streams, dict.fromkeys(streams, 0), False
        for stream in streams.values():
            stream.seek(0)
            stream.truncate()

    def printed(self) -> None:
        """Take in what was printed since."""
        for name, at in self._sent_lengths.items():
            text = self._streams[name].getvalue()
            self._sent_lengths[name] = len(text)
            if len(text) > at:
                self._add_output({"output_type": "stream", "name": name, "text": text[at:]})

    def data(
        self, data: Mapping[str, Any], metadata: Any, *, named: Any = None, count: int | None = None
    ) -> None:
        self.printed()
        output: dict[str, Any] = {
            "output_type": "display_data",
            "data": _to_json_types(data),
            "metadata": dict(metadata or {}),
        }
        output |= (
            {} if count is None else {"output_type": "execute_result", "execution_count": count}
        )
        self._add_output(output | ({} if named is None else {"display_id": named}))

    def update(self, data: Mapping[str, Any], named: Any) -> None:
        for output in self.outputs:
            if named is not None and output.get("display_id") == named:
                output["data"] = _to_json_types(data)

    def error(self, kind: str, value: str, lines: Iterable[str]) -> None:
        self.printed()
        self._add_output(
            {"output_type": "error", "ename": kind, "evalue": value, "traceback": list(lines)}
        )

    def clear(self, *, wait: bool) -> None:
        self.printed()
        self._clear = wait
        if not wait:
            self.outputs.clear()

    def _add_output(self, output: dict[str, Any]) -> None:
        if self._clear:
            self.outputs.clear()
            self._clear = False
        self.outputs.append(output)


class _Publisher(DisplayPublisher):
    """Where IPython hands on what is displayed."""

    def __init__(self, collector: _CellOutputs) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._outputs = collector

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        source: Any = None,  # noqa: ARG002 - IPython's
        *,
        transient: Any = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        named = (transient or {}).get("display_id")
        if update:
            self._outputs.update(data, named)
        else:
            self._outputs.data(data, metadata, named=named)

    def clear_output(self, wait: bool = False) -> None:
        self._outputs.clear(wait=wait)


class _Results(CapturingDisplayHook):
    """Where IPython hands on the value of a cell's last expression."""

    def __init__(self, shell: InteractiveShell, collector: _CellOutputs) -> None:
        super().__init__(shell)  # type: ignore[no-untyped-call]
        self._outputs = collector

    def __call__(self, result: Any = None) -> None:
        if result is not None:
            data, metadata = self.shell.display_formatter.format(result)
            if data:
                self._outputs.data(data, metadata, count=self.shell.execution_count)


def _to_json_types(data: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON has it."""
    encoded = {
        kind: base64.b64encode(each).decode() if isinstance(each, bytes) else each
        for kind, each in data.items()
    }
    plain: dict[str, Any] = _DECODE(_ENCODE(encoded))
    return plain


def _is_summary(output: Mapping[str, Any]) -> bool:
    """Whether it is what the tape says below a taped cell: how long it took is in it."""
    return bool((output.get("metadata") or {}).get("tape"))


def output_text(
    printed: str, bundles: Iterable[Mapping[str, Any]], error: BaseException | None
) -> str:
    """Standard output, then the text/plain of each display, then `Type: message` of the error, a
    line each.
    """
    parts = [printed] if printed else []
    parts += [end_line(str(bundle["text/plain"])) for bundle in bundles if "text/plain" in bundle]
    if error is not None:
        parts.append(f"{type(error).__name__}: {error}")
    return "".join(parts)


def _digest_data(data: Any) -> str:
    return hashlib.sha256(data if isinstance(data, bytes) else str(data).encode()).hexdigest()[:16]


class _Guard:
    """Refuses what would leave the copies, by audit events, and remembers it."""

    def __init__(self, roots: Iterable[str], *, network: bool) -> None:
        self._network = network
        self._roots = tuple(os.path.realpath(root) + os.sep for root in roots)
        self.refused: list[str] = []
        self.on = False

    def handle_event(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        for path in changed_paths(event, args):
            self._check_path(path)
        if event in {"socket.connect", "socket.sendto"} and args[0].family != socket.AF_UNIX:
            if self._network:
                return
            self._refuse_action(f"connects to {args[1]}")

    def _check_path(self, path: str | bytes | os.PathLike[Any]) -> None:
        place = os.path.realpath(os.fsdecode(path))
        if not (place + os.sep).startswith((*self._roots, *_ALWAYS)) and "__pycache__" not in place:
            self._refuse_action(f"writes {place}, outside the notebook's folder")

    def _refuse_action(self, what: str) -> None:
        self.refused.append(what)
        raise PermissionError(
            f"a proof {what.replace('writes', 'may not write', 1).replace('connects', 'may not connect', 1)}"
        )


def main() -> None:
    """`python -m tape_jupyter.dataflow.isolated.worker FD`."""
    pipe = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    job = json.loads(sys.stdin.readline())
    sys.stdin = io.StringIO()
    _put_files(job["files"])
    os.chdir(job["cwd"])
    sys.path[:], sys.argv[:] = job["path"], job["argv"]
    guard = _Guard(job["roots"], network=job["network"])
    sys.addaudithook(guard.handle_event)
    live = shell(in_kernel=job.get("in_kernel", False))
    if job["setup"]:
        # ours, not a recording's
        exec(compile(job["setup"], "<setup>", "exec"), live.user_ns)  # noqa: S102
    from tape_jupyter.dataflow.tracing.tracker import Tracker

    tracker = Tracker(live)
    tracker.install()
    for number, source in enumerate(job["sources"]):
        _send_message(pipe, {"starting": number})
        guard.refused.clear()
        guard.on = True
        outcome = execute_in_shell(live, source)
        guard.on = False
        entry = tracker.history[number]
        outcome |= {
            "after": entry.after,
            "changed": sorted(entry.changed),
            "opaque": sorted(entry.opaque),
        }
        outcome |= {
            "files": {
                path: end_state.digest_content(change.after) for path, change in entry.files.items()
            }
        }
        outcome |= {
            "index": number,
            "refused": list(guard.refused),
            "extras": dict(live.collect_extras()),
        }
        _send_message(pipe, outcome)
    names = {name for entry in tracker.history for name in entry.changed} | set(
        job.get("names", ())
    )
    files = {path for entry in tracker.history for path in entry.files} | set(job["files"])
    _send_message(pipe, {"end": end_state.look_at_end(live.user_ns, names, files).record()})
    pipe.flush()
    os._exit(0)  # threads that a cell left running do not hold us


def _send_message(pipe: TextIO, what: Mapping[str, Any]) -> None:
    pipe.write(_ENCODE(what) + "\n")
    pipe.flush()


def _put_files(files: Mapping[str, str | None]) -> None:
    from tape_jupyter.dataflow.restore.restore import put_file

    for path in sorted(files, reverse=True):
        content = files[path]
        put_file(path, None if content is None else base64.b64decode(content))


if __name__ == "__main__":
    main()
