"""The stack of a strand that stands at a call, as the person who wrote the code knows it: frames of
cells and of own modules, with the source around the line; frames of libraries and of ours are left
out and counted.

Values are told by their type where their text would be a person's code: no `__repr__` of a user's
class is run, nothing is iterated that is not a builtin container, nothing blocks. What redaction
would hide is hidden.
"""

from __future__ import annotations

import itertools
import linecache
import os
import re
import reprlib
import sysconfig
import types
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.core.user_code import is_cell, is_installed, is_users
from tape_jupyter.secrets.registry import names_a_secret

AROUND = 5
"""Lines of source above and below."""
MOST_FRAMES = 50
MOST_VARIABLES = 200
MOST_TEXT = 2_000
_WIDE = 300

_LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_NOT_THEIRS = (
    *(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *_LIBRARIES)),
    "<frozen ",
    "<string>",
)
_ALWAYS_LEFT_OUT = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open"})

Scrub = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A frame of the user's. `file` is a path, or "cell [3]" where the code is a cell's; `cell` is
    that cell's id.

    `left_out` counts the frames between this one and the next inner one that is shown.
    """

    index: int
    file: str
    cell: str
    function: str
    line: int
    first: int
    source: tuple[str, ...]
    left_out: int

    def record(self) -> dict[str, Any]:
        """As protocol.ts has it (StepFrame)."""
        return {**asdict(self), "source": list(self.source)}


def is_theirs(frame: types.FrameType) -> bool:
    """Whether the frame is a cell's or of a module of the user's."""
    name = frame.f_code.co_filename
    if frame.f_globals.get("__name__") == "__main__" and is_cell(name):
        return True
    return not name.startswith(_NOT_THEIRS) and not is_installed(name)


Walked = list[tuple[types.FrameType, int]]
"""The user's frames of a stack, innermost first, each with the number of frames that were left out
before it.
"""


def walk_stack(innermost: types.FrameType | None) -> Walked:
    """Taken while the strand runs: a coroutine that is suspended does not know who awaits it."""
    frames: Walked = []
    left_out, frame = 0, innermost
    while frame is not None and len(frames) < MOST_FRAMES:
        if is_theirs(frame):
            frames.append((frame, left_out))
            left_out = 0
        else:
            left_out += 1
        frame = frame.f_back
    return frames


CellOf = Callable[[str], tuple[str, str]]
"""The cell whose code has that file name: "cell [3]" and its id; two empty texts where it is no
cell's.
"""


def stack(walked: Walked, cell_of: CellOf = lambda _: ("", "")) -> list[StackFrame]:
    """The user's frames as they are told."""
    return [
        _build_stack_frame(index, frame, left_out, cell_of)
        for index, (frame, left_out) in enumerate(walked)
    ]


def _build_stack_frame(
    index: int, frame: types.FrameType, left_out: int, cell_of: CellOf
) -> StackFrame:
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    line = frame.f_lineno or code.co_firstlineno
    first = max(1, line - AROUND)
    source = tuple(each.rstrip("\n")[:_WIDE] for each in lines[first - 1 : line + AROUND])
    label, cell = cell_of(code.co_filename) if is_cell(code.co_filename) else ("", "")
    file_label = label or code.co_filename
    if code.co_name in ("<module>", "<cell>") or code.co_name.startswith("<cell line"):
        name = ""
    else:
        name = code.co_qualname
    return StackFrame(index, file_label, cell, name, line, first, source, left_out)


# ---------------------------------------------------------------- variables


class _Short(reprlib.Repr):
    """Texts of builtin values; of any other only its type, since its text would be a person's code."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = MOST_TEXT
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = (
            self.maxdeque
        ) = 30
        self.maxlevel = 4

    def repr1(self, x: Any, level: int) -> str:
        """A subclass of a builtin type may have a `__repr__` or `__iter__` of its own: by exact
        type only.
        """
        if type(x) in _CONTAINERS or type(x) in (str, int):
            return super().repr1(x, level)
        return self.repr_instance(x, level)

    def repr_instance(self, x: Any, level: int) -> str:  # noqa: ARG002 - reprlib's
        kind = type(x)
        if kind in (float, complex, bool, type(None), range, slice, type(Ellipsis)):
            return repr(x)
        if kind in (bytes, bytearray):
            return repr(bytes(x[:MOST_TEXT]))
        if kind is types.ModuleType:
            return f"<module {x.__name__}>"
        if kind in (types.FunctionType, types.BuiltinFunctionType):
            return f"<function {x.__qualname__}>"
        if kind is type:
            return f"<class {x.__qualname__}>"
        return f"<{kind.__qualname__}{_format_size(x)}>"


_HIDDEN = "(hidden: a secret by its name)"
_FIELD = re.compile(r"""((?:['"]|\b)([A-Za-z_][\w-]*)['"]?\s*[:=]\s*)(?:'[^']*'|"[^"]*")""")
_MADE_BY_A_CLASS_STATEMENT = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_CONTAINERS = (list, tuple, dict, set, frozenset)
_SIZED = frozenset({"numpy", "pandas", "polars", "torch"})
_short = _Short()


def _format_size(value: Any) -> str:
    """Rows and columns of an array or a table."""
    if type(value).__module__.partition(".")[0] not in _SIZED:
        return ""
    shape = getattr(value, "shape", None)
    return f" {'x'.join(map(str, shape))}" if isinstance(shape, tuple) else ""


def value_text(value: Any) -> tuple[str, bool]:
    """A value as a line or a few, and whether that is all of it. Runs none of the user's code."""
    text = _format_fields(value) or _short.repr(value)
    complete = len(text) <= MOST_TEXT and "..." not in text
    return text[:MOST_TEXT], complete


def _format_fields(value: Any) -> str:
    """An instance of a plain class of the user's: its attributes, as they lie in its `__dict__`."""
    kind = type(value)
    if (
        not kind.__flags__ & _MADE_BY_A_CLASS_STATEMENT
        or not is_users(kind.__module__)
        or issubclass(kind, type)
    ):
        return ""
    attributes = own_attributes(value)
    if not attributes:
        return ""
    fields = ", ".join(
        f"{name}={_short.repr(attributes[name])}" for name in itertools.islice(attributes, 12)
    )
    more = ", ..." if len(attributes) > 12 else ""
    return f"{kind.__qualname__}({fields}{more})"


def own_attributes(value: Any) -> Mapping[str, Any] | None:
    """The object's `__dict__`, no property or `__getattr__` of its class being asked; None where it
    has none.
    """
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    if type(attributes) is dict and all(type(name) is str for name in attributes):
        return attributes
    return None


def frame_variables(frame: types.FrameType, scrub: Scrub = str) -> dict[str, Any]:
    """The local variables of a frame (of a cell's own: the notebook's), as protocol.ts'
    StepVariables.
    """
    values = {name: value for name, value in list(frame.f_locals.items()) if is_visible_name(name)}
    descriptions = [
        describe_variable(name, values[name], scrub)
        for name in itertools.islice(values, MOST_VARIABLES)
    ]
    return {"variables": descriptions, "total": len(values)}


def is_visible_name(name: str) -> bool:
    return not name.startswith(("_", "@")) and name not in _ALWAYS_LEFT_OUT and name.isidentifier()


def describe_variable(name: str, value: Any, scrub: Scrub = str) -> dict[str, Any]:
    """A variable as protocol.ts has it. One that is named like a key is not told."""
    if type(value) is str and names_a_secret(name):
        return {"name": name, "type": "str", "text": _HIDDEN, "whole": False}
    text, complete = value_text(value)
    return {
        "name": name,
        "type": type(value).__qualname__,
        "text": mask_named_keys(scrub(text)),
        "whole": complete,
    }


def mask_named_keys(text: str) -> str:
    """The text without the values of fields that are named like keys: `'api_key': '...'`,
    `token='...'`.
    """
    return _FIELD.sub(
        lambda match: f"{match[1]}{_HIDDEN}" if names_a_secret(match[2]) else match[0], text
    )


def namespace_texts(namespace: Mapping[str, Any], scrub: Scrub = str) -> dict[str, str]:
    """The variables of a namespace as texts, for comparing two stops; functions, classes and
    modules left out.
    """
    values = [
        (name, value)
        for name, value in list(namespace.items())
        if isinstance(name, str)
        and is_visible_name(name)
        and not isinstance(value, types.ModuleType | types.FunctionType | type)
    ]
    return {name: describe_variable(name, value, scrub)["text"] for name, value in values}
