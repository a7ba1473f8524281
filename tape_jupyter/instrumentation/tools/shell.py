"""Command lines of a notebook (`!curl ...`, `%pip install ...`) are calls of kind tool, named
`shell`: what they wrote and their exit code. In replay they do not run, and write the same again.

Commands that are known to stay on the machine (`!ls`, `!mkdir out`) run in replay too: what follows
may need what they do. `x = !cmd` and `%%bash` are not taped.
"""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Self

from tape_jupyter.core import shell_commands
from tape_jupyter.instrumentation.patching import swap, undoing
from tape_jupyter.instrumentation.tools.call import TapedFunction

NAME = "shell"
_COMMAND = inspect.Signature(
    [inspect.Parameter("command", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
)

Undo = Callable[[], None]


def patch(module: ModuleType) -> Undo:
    """Tap `ipykernel.zmqshell`. Returns the undo."""
    if sys.platform == "win32":  # there the shell has a way of its own
        return lambda: None
    shell = vars(module)["ZMQInteractiveShell"]
    return undoing(
        *(
            swap(shell, name, _wrap_system)
            for name in ("system", "system_piped")
            if name in vars(shell)
        )
    )


def _wrap_system(original: Callable[..., Any]) -> Callable[..., Any]:
    def system(self: Any, cmd: str) -> None:
        """Call the given cmd in a subprocess, piping stdout/err."""
        if cmd.rstrip().endswith("&"):
            original(self, cmd)  # refuses it, in its own words
            return
        line = self.var_expand(
            cmd, depth=1
        )  # here: the original would look for names in this frame
        if shell_commands.harmless(["sh", "-c", line]):
            _run_line(self, line)
        else:
            _run_taped(self, line)

    return system


def _run_line(shell: Any, line: str) -> None:
    shell.user_ns["_exit_code"] = code = _run_as_ipython(line)
    _raise_on_error(shell, code, line)


def _run_as_ipython(line: str) -> int:
    """Run it as IPython does: its output goes to sys.stdout as it comes."""
    from IPython.utils import process

    return int(vars(process)["system"](line))


def _raise_on_error(shell: Any, code: int, line: str) -> None:
    if getattr(shell, "system_raise_on_error", False) and code != 0:
        from subprocess import CalledProcessError

        raise CalledProcessError(code, line)


def _run_taped(shell: Any, line: str) -> None:
    """Ask the tape. What it plays is written here; what ran has written it itself."""
    executed: list[str] = []

    def run_live(command: str) -> dict[str, Any]:
        executed.append(command)
        with _TeeStdout(sys.stdout) as capture:
            code = _run_as_ipython(line if command == _build_portable_line(line) else command)
        return {"output": capture.text(), "exit": code}

    done = TapedFunction(NAME, "tool", run_live, _COMMAND, drop_first=False).call(
        _build_portable_line(line)
    )
    if not executed:
        sys.stdout.write(str(done["output"]))
        sys.stdout.flush()
    shell.user_ns["_exit_code"] = code = done["exit"]
    _raise_on_error(shell, code, line)


def _build_portable_line(line: str) -> str:
    """The line without where this interpreter lies, which `%pip` writes out: it is elsewhere on
    another machine.
    """
    return line.replace(shlex.quote(sys.executable), "python").replace(sys.executable, "python")


class _TeeStdout:
    """Stands in for sys.stdout, passes all on, and keeps what was written."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._pieces: list[str] = []

    def __enter__(self) -> Self:
        sys.stdout = self
        return self

    def __exit__(self, *_: object) -> None:
        if sys.stdout is self:
            sys.stdout = self._stream

    def write(self, text: str) -> int:
        self._pieces.append(text)
        return int(self._stream.write(text) or 0)

    def text(self) -> str:
        return "".join(self._pieces)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
