"""Which code ran while a cell ran: functions of the notebook, of modules, of C.

A function that is mentioned but not called reads nothing, so what ran says what was read. On Python
3.12 and newer sys.monitoring tells each code object once; on 3.11 a profile function looks at the
first events and then takes itself off. What was not seen to the end is `whole=False`: then whatever
could have run is assumed to have run. What the shell does before the cell's own code begins and after
it ended is not looked at: it goes through the cell's whole syntax tree, and compiles what is left of
the cell. Nor is what sends the cell's output.
"""

from __future__ import annotations

import inspect
import opcode
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import Any

from IPython.core import interactiveshell

from tape_jupyter.core.user_code import MACHINERY, is_users
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.dataflow.static.display import is_plain_display

EVENTS = 3_000
"""Calls looked at one by one, in a cell. Less than a millisecond."""
_DULL = frozenset(
    {
        str,
        bytes,
        bytearray,
        int,
        float,
        complex,
        bool,
        list,
        tuple,
        dict,
        set,
        frozenset,
        type(None),
    }
)
"""Types whose methods say nothing of what was read: looked at first, since most calls are of these."""

_SHELL = vars(interactiveshell)
_SENDERS = frozenset({"ipykernel.iostream", "jupyter_client.session", "jupyter_client.jsonutil"})
"""Modules that send what a cell shows to its page: what they call for that is none of its doing."""
_KNOWN = 50_000
ProfileHook = Callable[[FrameType, str, Any], None]
_PRINTS = bytes(
    [opcode.opmap["PRINT_EXPR"], 0]
    if "PRINT_EXPR" in opcode.opmap
    else [opcode.opmap["CALL_INTRINSIC_1"], 1]
)
"""The instruction that hands a value to the displayhook: since Python 3.12 it is INTRINSIC_PRINT, the
first of dis's `_intrinsic_1_descs`.
"""


@dataclass(slots=True)
class ExecutedCode:
    """`codes`: (module, code) of the user's functions, "" the notebook. `packages`: whose code ran
    besides. `builtins`: functions of C, as "posix.stat". `functions`: names of the libraries'
    functions that ran, as "os._Environ.get".
    """

    codes: set[tuple[str, CodeType]] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    builtins: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    cell_file: str = ""
    """The file name of the cell's own code."""
    complete: bool = True
    """All Python code was seen."""
    whole_builtins: bool = True

    def called_codes(self) -> set[tuple[str, CodeType]]:
        """`codes` without the cell's own statements."""
        return {
            (place, code)
            for place, code in self.codes
            if code.co_name != "<module>" or code.co_filename != self.cell_file
        }


class CodeWatch:
    """Begins and ends looking. One at a time."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._ran = ExecutedCode()
        self._seen: dict[int, CodeType] = {}
        """By identity, which costs less than a code's hash; held here, so that no other code gets
        the id.
        """
        self._known: dict[int, tuple[CodeType, str, str]] = {}
        """Code of libraries, from cell to cell: its package and its name, none of the machinery's."""
        self._builtins: set[Any] = set()
        """Functions of `builtins`."""
        self._left = EVENTS
        self._on = False
        self._done = False
        self._lines = range(0)
        self._top: FrameType | None = None
        """The frame of the cell's code, while that runs."""
        self._display: CodeType | None = None
        self._threads_before: Any = None
        self._first_event = self._build_first_hook()
        self._event = self._build_profile_hook()

    def begin(self, last: range = range(0)) -> None:
        """`last`: the lines of the expression that the cell ends with, if any: the shell shows its
        value.
        """
        self._ran, self._left, self._on, self._done = ExecutedCode(), EVENTS, True, False
        self._lines = last
        self._seen.clear()
        hook: Any = type(sys.displayhook).__call__
        self._display = getattr(hook, "__code__", None)
        if sys.version_info >= (3, 12):
            self._start_monitoring()
        else:
            self._start_profiling()

    def end(self) -> ExecutedCode:
        if not self._on:
            return self._ran
        if sys.version_info >= (3, 12):
            if self._tool is not None:
                sys.monitoring.set_events(self._tool, 0)
        else:
            self._stop_profiling()
        self._on, self._top = False, None
        self._seen.clear()
        return self._ran

    def close(self) -> None:
        """Give the monitoring tool back."""
        if sys.version_info >= (3, 12) and self._tool is not None:
            sys.monitoring.free_tool_id(self._tool)
            self._tool = None

    # ---------------------------------------------------------------- what is seen
    def _record_code(self, code: CodeType, frame: FrameType) -> bool:
        """Whether this code, of whose start nothing was heard, need not be heard of again."""
        if identity(code) in self._seen:
            return True
        above = frame.f_back if frame.f_globals is not self._namespace else None
        if above is not None and above.f_globals.get("__name__") in _SENDERS:
            return False
        self._seen[identity(code)] = code
        self._record_started(code, frame)
        return True

    def _record_started(self, code: CodeType, frame: FrameType) -> None:
        if code is self._display and self._is_only_display_left(frame):
            self._done = True
            self._stop_hearing()
        if (known := self._known.get(identity(code))) is not None:
            _, package, function = known
            if package:
                self._ran.packages.add(package)
                self._ran.functions.add(function)
            return
        names = frame.f_globals
        if names is self._namespace:
            if not self._ran.cell_file and code.co_name == "<module>":
                self._ran.cell_file = code.co_filename
            self._ran.codes.add(("", code))
            return
        module = names.get("__name__")
        if not isinstance(
            module, str
        ):  # globals of its own: exec(text, {}); what holds them is a name of the notebook
            return
        if (
            module == "__main__"
        ):  # a copy of the notebook's names: what IPython expands in a shell line
            self._ran.codes.add(("", code))
            return
        self._record_library_code(code, module)

    def _is_only_display_left(self, display: FrameType) -> bool:
        """Whether all that is left of the cell is that the shell shows a plain value."""
        above = display.f_back
        if (
            above is None
            or above.f_lineno not in self._lines
            or above.f_code.co_filename != self._ran.cell_file
        ):
            return False
        if above.f_code.co_code[above.f_lasti : above.f_lasti + 2] != _PRINTS:
            return False
        try:
            return is_plain_display(display.f_locals["result"], sys.displayhook)
        except Exception:  # a displayhook that is not as we know it
            return False

    def _record_library_code(self, code: CodeType, module: str) -> None:
        package = module.partition(".")[0]
        if package not in MACHINERY and is_users(module):
            self._ran.codes.add((module, code))
            return
        function = "" if package in MACHINERY else f"{module}.{code.co_qualname}"
        if function:
            self._ran.packages.add(package)
            self._ran.functions.add(function)
        if len(self._known) < _KNOWN:
            self._known[identity(code)] = code, package if function else "", function

    def _record_builtin(self, function: Any, caller: CodeType, module: Any) -> None:
        if isinstance(module, str) and (
            module.partition(".")[0] in MACHINERY or _is_import_machinery(module, caller)
        ):
            return
        owner = getattr(function, "__module__", None)
        if owner is None:
            owner = type(getattr(function, "__self__", None)).__module__
        if owner == "builtins":
            if isinstance(getattr(function, "__self__", None), ModuleType):
                self._builtins.add(function)
        elif isinstance(owner, str):
            self._ran.builtins.add(f"{owner}.{function.__qualname__}")
            self._ran.packages.add(owner.partition(".")[0])

    def _stop_hearing(self) -> None:
        if sys.version_info >= (3, 12):
            self._wait_for_code()
        else:
            sys.setprofile(None)

    # ---------------------------------------------------------------- Python 3.11
    def _start_profiling(self) -> None:
        if sys.getprofile() is not None:
            self._ran.complete = self._ran.whole_builtins = False
            self._on = False
            return
        self._threads_before = threading.getprofile()  # type: ignore[attr-defined,unused-ignore]
        threading.setprofile(self._event)
        sys.setprofile(self._first_event)

    def _stop_profiling(self) -> None:
        ours = sys.getprofile() in (self._event, self._first_event)
        if ours:
            sys.setprofile(None)
        threading.setprofile(self._threads_before)
        if ours:
            return
        if self._left > 0 and not self._done:  # somebody else's profiler took our place
            self._ran.complete = self._ran.whole_builtins = False

    def _build_first_hook(self) -> ProfileHook:
        """What is called while the shell works, before the cell's code runs and afterwards."""
        namespace = self._namespace

        def wait_for_cell(frame: FrameType, kind: str, arg: Any) -> None:
            if not self._on:
                sys.setprofile(None)
            elif kind == "call" and (frame.f_globals is namespace or _is_run_by_shell(frame)):
                # a cell that awaits is left and entered many times: others run for it meanwhile
                self._top = None if frame.f_code.co_flags & inspect.CO_COROUTINE else frame
                sys.setprofile(self._event)
                self._event(frame, kind, arg)

        return wait_for_cell

    def _build_profile_hook(self) -> ProfileHook:
        """What is called at each call and return while a cell runs: short, since a cell waits for
        each.
        """
        seen, builtins = self._seen, self._builtins

        def handle_event(frame: FrameType, kind: str, arg: Any) -> None:
            if kind in {"return", "c_return"}:
                if frame is self._top and kind == "return":
                    self._top = None
                    sys.setprofile(self._first_event)
                return
            if not self._on:
                sys.setprofile(None)
                return
            if kind == "call":
                if identity(frame.f_code) not in seen:
                    self._record_code(frame.f_code, frame)
            elif kind == "c_call" and type(arg.__self__) not in _DULL and arg not in builtins:
                self._record_builtin(arg, frame.f_code, frame.f_globals.get("__name__"))
            self._left -= 1
            if self._left <= 0:
                self._ran.complete = self._ran.whole_builtins = False
                sys.setprofile(None)

        return handle_event

    # ---------------------------------------------------------------- Python 3.12 and newer
    _tool: int | None = None
    _has_begun = False
    """Whether the cell's own code runs."""
    _thread = 0
    """The thread of the cell: functions of the notebook that run in others are none of its code."""

    def _start_monitoring(self) -> None:
        monitoring: Any = sys.__dict__["monitoring"]
        if self._tool is None:
            self._tool = next((i for i in (4, 3, 0, 5) if monitoring.get_tool(i) is None), None)
            if self._tool is None:
                self._ran.complete = self._ran.whole_builtins = False
                return
            monitoring.use_tool_id(self._tool, "tape-jupyter")
            events = monitoring.events
            monitoring.register_callback(self._tool, events.PY_START, self._handle_start)
            monitoring.register_callback(self._tool, events.PY_RESUME, self._handle_start)
            monitoring.register_callback(self._tool, events.PY_RETURN, self._handle_return)
            monitoring.register_callback(self._tool, events.CALL, self._handle_call)
        self._thread = threading.get_ident()
        monitoring.restart_events()
        self._wait_for_code()

    def _wait_for_code(self) -> None:
        """Hear when the cell's own code begins, and nothing else."""
        monitoring: Any = sys.__dict__["monitoring"]
        events = monitoring.events
        self._has_begun, self._top = False, None
        monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME)

    def _handle_start(self, code: CodeType, _offset: int) -> Any:
        if self._on:
            frame = sys._getframe(1)  # noqa: SLF001 - the frame that starts
            if not self._has_begun and self._is_of_cell(frame):
                self._hear_code(frame)
            if self._has_begun and not self._record_code(code, frame):
                return None
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]

    def _is_of_cell(self, frame: FrameType) -> bool:
        if self._done or threading.get_ident() != self._thread:
            return False
        return frame.f_globals is self._namespace or _is_run_by_shell(frame)

    def _hear_code(self, frame: FrameType) -> None:
        """The cell's own code begins: what started before may start again in it. Where it ends with
        an error, what follows is heard, too.
        """
        monitoring: Any = sys.__dict__["monitoring"]
        events = monitoring.events
        self._has_begun, self._top = True, frame
        monitoring.restart_events()
        monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME | events.CALL)
        monitoring.set_local_events(self._tool, frame.f_code, events.PY_RETURN)

    def _handle_return(self, _code: CodeType, _offset: int, _value: Any) -> Any:
        if self._on and sys._getframe(1) is self._top:  # noqa: SLF001 - the frame that returns
            self._wait_for_code()
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]

    def _handle_call(self, code: CodeType, _offset: int, function: Any, _first: Any) -> Any:
        disable = sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]
        if hasattr(function, "__code__") or isinstance(function, type) or not self._on:
            return disable
        self._left -= 1
        if self._left <= 0:
            self._ran.whole_builtins = False
            return disable
        if hasattr(function, "__qualname__"):
            self._record_builtin(function, code, sys._getframe(1).f_globals.get("__name__"))  # noqa: SLF001
        return None


def _is_run_by_shell(frame: FrameType) -> bool:
    """Whether it is the code of a cell, of whatever module the shell takes it for (`embed()`)."""
    above = frame.f_back
    if above is None or above.f_globals is not _SHELL:
        return False
    return frame.f_code.co_name == "<module>"


def _is_import_machinery(module: str, caller: CodeType) -> bool:
    """The import system looks at many files that are none of the user's business."""
    return (
        module.startswith("importlib")
        or "importlib" in caller.co_filename
        or module in ("linecache", "inspect")
    )
