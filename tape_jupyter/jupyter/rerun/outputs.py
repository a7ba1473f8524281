"""What each cell run showed, kept so that a re-run can be compared with it and taken back. Listens
where IPython hands outputs on; what is shown stays as it is, to the byte. Runs nothing and sends
nothing.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.session.saved_output import MIME

Output = dict[str, Any]
"""One output as notebooks have it: `output_type` stream, display_data, execute_result or error."""

MOST = 400_000
"""Characters of one cell's outputs that are kept; text beyond is cut, a longer image or table left
out.
"""
MOST_OF_ALL = 64_000_000
"""Of all cells; beyond it the oldest are forgotten."""

_CUT = "... (not all that was shown here is kept)\n"
_KEPT = ("text/plain", "text/html", "text/markdown", "text/latex", "image/png", "image/jpeg", "image/svg+xml",
         "application/json", MIME)  # fmt: skip


class CellOutputs:
    """The outputs of one cell run, as they come."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.whole = True
        self.raced = False
        """Whether a child process printed, too: what it prints comes when it comes."""
        self.muted = False  # what is printed now was told already
        self._left = MOST
        self._clear = False
        self._lock = threading.Lock()

    def stream(self, name: str, text: str) -> None:
        if self.muted:
            return
        with self._lock:
            last = self._prepare_last_output()
            if last.get("output_type") != "stream" or last["name"] != name:
                last = self._add_output({"output_type": "stream", "name": name, "text": ""})
            last["text"] += self._cut_text(text)

    def data(
        self,
        data: Mapping[str, Any],
        metadata: Mapping[str, Any],
        *,
        display_id: Any,
        count: int | None,
    ) -> None:
        """A displayed object, or the cell's result (then `count` is its number)."""
        kind = "display_data" if count is None else "execute_result"
        output: Output = {
            "output_type": kind,
            "data": self._cut_bundle(data),
            "metadata": dict(metadata),
        }
        with self._lock:
            self._prepare_last_output()
            self._add_output(
                {
                    **output,
                    **({} if count is None else {"execution_count": count}),
                    **_build_display_id(display_id),
                }
            )

    def update(self, data: Mapping[str, Any], display_id: Any) -> None:
        with self._lock:
            for output in self.outputs:
                if display_id is not None and output.get("display_id") == display_id:
                    self._left += sum(len(_to_text(value)) for value in output["data"].values())
                    output["data"] = self._cut_bundle(data)

    def error(self, kind: str, value: str, lines: Iterable[str]) -> None:
        with self._lock:
            self._prepare_last_output()
            traceback = [self._cut_text(line) for line in lines]
            self._add_output(
                {
                    "output_type": "error",
                    "ename": kind,
                    "evalue": self._cut_text(value),
                    "traceback": traceback,
                }
            )

    def clear(self, *, wait: bool) -> None:
        with self._lock:
            if wait:
                self._clear = True
            else:
                self.outputs.clear()
                self._left = MOST

    def copied(self) -> list[Output]:
        """What is shown now, while it grows; where not all of it was kept, that is said."""
        with self._lock:
            copied = [dict(output) for output in (() if self._clear else self.outputs)]
        if self.whole:
            return copied
        return [*copied, {"output_type": "stream", "name": "stderr", "text": _CUT}]

    @classmethod
    def from_outputs(cls, outputs: Iterable[Output]) -> CellOutputs:
        """A run that showed these."""
        run = cls()
        run.outputs = list(outputs)
        return run

    @property
    def size(self) -> int:
        return MOST - self._left

    def _prepare_last_output(self) -> Output:
        if self._clear:
            self._clear, self._left = False, MOST
            self.outputs.clear()
        return self.outputs[-1] if self.outputs else {}

    def _add_output(self, output: Output) -> Output:
        self.outputs.append(output)
        return output

    def _cut_text(self, text: str) -> str:
        kept = text[: max(0, self._left)]
        self._left -= len(kept)
        self.whole = self.whole and len(kept) == len(text)
        return kept

    def _cut_bundle(self, data: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for kind in _KEPT:
            if (value := data.get(kind)) is None:
                continue
            text = _to_text(value)
            if len(text) <= self._left:
                kept[kind] = value if kind == MIME else text
                self._left -= len(text)
            else:
                self.whole = False
        return kept


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode("ascii")
    return json.dumps(value, default=str)


def _build_display_id(display_id: Any) -> dict[str, Any]:
    return {} if display_id is None else {"display_id": display_id}


class Displayed:
    """Listens to one shell. `last` is what the newest cell run showed, `open` whether a cell runs;
    `keep` puts it by an entry of the history.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
        """As they were when it was made: a program may put others in their place, which show nothing."""
        self.last = CellOutputs()
        self._by_entry: dict[int, CellOutputs] = {}
        self._sizes: dict[int, int] = {}
        self._size = 0
        self._undo: list[Callable[[], None]] = []
        self._echoes: list[Callable[[], None]] = []
        self.open = False
        self.number: int | None = None
        """The number under which what is shown stands, where it is not the shell's next one: that
        of a cell that runs again.
        """

    def install(self) -> None:
        shell = self._shell
        hook, pub = shell.displayhook, shell.display_pub
        self._wrap_method(hook, "write_format_data", self._record_result)
        for around in ("write_output_prompt", "finish_displayhook"):
            self._wrap_method(hook, around, do_nothing)
        self._wrap_method(pub, "publish", self._record_display)
        self._wrap_method(pub, "clear_output", self._record_clear)
        self._wrap_method(shell, "_showtraceback", self._record_error)

    def uninstall(self) -> None:
        self.ended()
        while self._undo:
            self._undo.pop()()

    def find_outputs(self, entry: int) -> list[Output]:
        """What an entry showed; [] where it is not known any more."""
        return self._by_entry[entry].outputs if entry in self._by_entry else []

    def has_all_outputs(self, entry: int) -> bool:
        """Whether all that the entry showed is kept."""
        return entry in self._by_entry and self._by_entry[entry].whole

    def keep_outputs(self, entry: int, run: CellOutputs | None = None) -> None:
        """The newest run's outputs are those of this entry."""
        self._drop_entry(entry)
        kept = self._by_entry[entry] = run or self.last
        self._sizes[entry] = kept.size
        self._size += kept.size
        while self._size > MOST_OF_ALL:
            self._drop_entry(next(iter(self._by_entry)))

    def _drop_entry(self, entry: int) -> None:
        self._by_entry.pop(entry, None)
        self._size -= self._sizes.pop(entry, 0)

    def began(self) -> None:
        """A cell starts."""
        self.ended()
        self.last, self.open = CellOutputs(), True
        for name, stream in self._streams.items():
            self._echoes.append(_echo_stream(name, stream, self.last))

    def ended(self) -> None:
        self.open = False
        while self._echoes:
            self._echoes.pop()()

    def _wrap_method(self, owner: Any, name: str, listener: Callable[..., None]) -> None:
        """Be told of each call of a method, before it is made."""
        method = getattr(owner, name)
        # a terminal shows it on standard output
        prints = getattr(self._shell, "kernel", None) is None

        def call_observed(*args: Any, **kwargs: Any) -> Any:
            try:
                if self.open:
                    listener(*args, **kwargs)
            except Exception:
                self.last.whole = False
            self.last.muted = prints
            try:
                return method(*args, **kwargs)
            finally:
                self.last.muted = False

        is_own = name in vars(owner)
        vars(owner)[name] = call_observed
        self._undo.append(
            lambda: vars(owner).update({name: method}) if is_own else vars(owner).pop(name, None)
        )

    def _record_result(
        self, data: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
    ) -> None:
        hook, count = self._shell.displayhook, self.number
        if count is None:
            count = getattr(hook, "prompt_count", None) or self._shell.execution_count
        elif message := getattr(hook, "msg", None):
            message["content"]["execution_count"] = count
        self.last.data(data, metadata or {}, display_id=None, count=count)

    def _record_display(
        self,
        data: Mapping[str, Any],
        metadata: Mapping[str, Any] | None = None,
        *_: Any,
        **more: Any,
    ) -> None:
        display_id = (more.get("transient") or {}).get("display_id")
        if more.get("update"):
            self.last.update(data, display_id)
        else:
            self.last.data(data, metadata or {}, display_id=display_id, count=None)

    def _record_clear(self, wait: bool = False) -> None:
        self.last.clear(wait=wait)

    def _record_error(self, kind: Any, value: Any, lines: list[str]) -> None:
        self.last.error(str(kind.__name__), str(value), lines)


class _Both:
    """A stream that is written to twice; all else is the first's own."""

    def __init__(
        self, stream: Any, run: CellOutputs, name: str, children: threading.Thread | None = None
    ) -> None:
        self._stream, self._run, self._name = stream, run, name
        self._children = children  # hands on what child processes print

    def write(self, text: str) -> Any:
        if isinstance(text, str):
            self._run.stream(self._name, text)
            if threading.current_thread() is self._children:
                self._run.raced = True
        return self._stream.write(text) if self._stream is not None else len(text)

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _echo_stream(name: str, stream: Any, run: CellOutputs) -> Callable[[], None]:
    """Have what is written to sys.stdout or sys.stderr told to the run too; gives what ends that.

    ipykernel's own streams have an `echo` for it, whatever thread or child process writes: `stream`
    is one. Where it is not, what stands there now is written to twice.
    """
    if hasattr(stream, "echo"):
        children = getattr(stream, "watch_fd_thread", None)
        before, stream.echo = stream.echo, _Both(stream.echo, run, name, children)
        ours = stream.echo
        return lambda: setattr(stream, "echo", before) if stream.echo is ours else None
    stream = getattr(sys, name)
    teed = _Both(stream, run, name)
    setattr(sys, name, teed)
    return lambda: setattr(sys, name, stream) if getattr(sys, name) is teed else None
