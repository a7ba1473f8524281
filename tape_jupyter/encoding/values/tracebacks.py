"""Where a tool's own code raised: kept with the exception, and put back when it is raised again in
replay.

    {"<type>": "exception", ..., "frames": [["__main__:import_row", 5], ...]}     outermost first

A frame is told by its module and function, and by its line counted from the function's first. In
replay it stands where that function stands now. Frames of installed packages and of the tape itself
are not kept: no comparison counts them. Columns are not kept: Python's own tracebacks show no marks
below such a line, those of IPython have none.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from tape_jupyter.comparison.outputs import INSTALLED
from tape_jupyter.core.unlisted_thread import run_unlisted

FRAMES = "frames"
MOST = 50
"""Frames that are kept of one traceback, the innermost: a recursion may have a thousand."""
MOST_LINES = 10_000
"""Lines of a function in which a frame is placed."""


def with_frames(structure: Mapping[str, Any], error: BaseException) -> dict[str, Any]:
    """A frozen exception, and those that it came from, with their frames."""
    result = with_own_frames(structure, error)
    for name, inner in _errors_behind(error, structure):
        result[name] = with_frames(structure[name], inner)
    if isinstance(error, BaseExceptionGroup) and "exceptions" in structure:
        members = zip(structure["exceptions"], error.exceptions, strict=False)
        result["exceptions"] = [with_frames(each, inner) for each, inner in members]
    return result


def with_own_frames(structure: Mapping[str, Any], error: BaseException) -> dict[str, Any]:
    """A frozen exception with its frames, those behind it as they are."""
    frames = [list(each) for each in _iterate_frames(error.__traceback__)]
    return {**structure, FRAMES: frames[-MOST:]} if frames else dict(structure)


def put_frames(error: BaseException, structure: Mapping[str, Any]) -> BaseException:
    """The thawed exception, raised where it was raised when it was recorded."""
    for name, inner in _errors_behind(error, structure):
        put_frames(inner, structure[name])
    if isinstance(error, BaseExceptionGroup):
        for each, inner in zip(structure.get("exceptions", ()), error.exceptions, strict=False):
            put_frames(inner, each)
    return put_own_frames(error, structure)


def put_own_frames(error: BaseException, structure: Mapping[str, Any]) -> BaseException:
    """The same without those that it came from."""
    trace: TracebackType | None = None
    for frame in reversed(structure.get(FRAMES) or []):
        trace = _build_traceback(frame, trace) or trace
    return error.with_traceback(trace)


def _errors_behind(
    error: BaseException, structure: Mapping[str, Any]
) -> Iterator[tuple[str, BaseException]]:
    """Cause and context, by name, where the structure has them."""
    for name in ("cause", "context"):
        inner = getattr(error, f"__{name}__")
        if inner is not None and isinstance(structure.get(name), Mapping):
            yield name, inner


def _iterate_frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        code = trace.tb_frame.f_code
        if not INSTALLED.search(code.co_filename):
            module = trace.tb_frame.f_globals.get("__name__", "")
            yield f"{module}:{_read_qualname(code)}", trace.tb_lineno - code.co_firstlineno
        trace = trace.tb_next


def _read_qualname(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _build_traceback(entry: Any, inner: TracebackType | None) -> TracebackType | None:
    """An entry of a traceback; None where the function is not there any more."""
    # a cassette edited by hand, an object that answers anything: then without this frame
    with suppress(Exception):
        name, line = entry
        module, _, qualname = str(name).partition(":")
        space = vars(sys.modules[module])
        code = _find_code(space, qualname.split("."))
        if code is not None and 0 <= int(line) <= MOST_LINES:
            frame = _build_frame(code, space, int(line))
            return TracebackType(inner, frame, 0, code.co_firstlineno + int(line))
    return None


def _find_code(space: Mapping[str, Any], names: list[str]) -> CodeType | None:
    """The code of a function by its qualified name: of a module, of a class, or inside of another
    function.
    """
    member: Any = space.get(names[0])
    for name in names[1:]:
        if name == "<locals>":
            member = _unwrap_code(member)
        elif isinstance(member, CodeType):
            member = next(
                (
                    each
                    for each in member.co_consts
                    if isinstance(each, CodeType) and each.co_name == name
                ),
                None,
            )
        else:
            member = inspect.getattr_static(member, name, None)
    return _unwrap_code(member)


def _unwrap_code(member: Any) -> CodeType | None:
    if isinstance(member, CodeType):
        return member
    member = inspect.unwrap(getattr(member, "__func__", member))
    return member.__code__ if isinstance(member, FunctionType) else None


def _build_frame(code: CodeType, space: Mapping[str, Any], line: int) -> FrameType:
    """A frame that reads like one of that code at a line: its file, name, parameters. None of the
    code runs.
    """
    names = [name if name.isidentifier() else "_" for name in code.co_varnames]
    count, only = code.co_argcount, code.co_kwonlyargcount
    rest = names[count + only :]
    parts = [f"{name}=..." for name in names[:count]]
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{rest.pop(0)}")
    elif only:
        parts.append("*")
    parts += [f"{name}=..." for name in names[count : count + only]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{rest.pop(0)}")
    namespace: dict[str, Any] = {}
    # names only
    exec(f"def stand_in({', '.join(parts)}): return __import__('sys')._getframe()", namespace)  # noqa: S102
    shape: CodeType = namespace["stand_in"].__code__
    named = {"__name__": space.get("__name__", "")}
    alike: dict[str, Any] = {"co_filename": code.co_filename, "co_name": code.co_name}
    if hasattr(code, "co_qualname"):
        alike["co_qualname"] = code.co_qualname
    alike |= {
        "co_firstlineno": code.co_firstlineno,
        "co_linetable": _encode_line_table(line, len(shape.co_code) // 2),
    }
    function = FunctionType(shape.replace(**alike), named, None, namespace["stand_in"].__defaults__)
    function.__kwdefaults__ = namespace["stand_in"].__kwdefaults__
    made: list[FrameType] = []
    # in another thread, so that no frame of ours stands behind it, with what the program gave
    run_unlisted(lambda: made.append(function()))()
    return made[0]


def _encode_line_table(line: int, units: int) -> bytes:
    """All of a code's units on one line, counted from its first, and in no column (CPython,
    Objects/locations.md).
    """
    no_columns, most = 13, 8  # kind of an entry; code units of one entry
    delta, table = _encode_varint(line << 1), b""
    for start in range(0, units, most):
        length = min(most, units - start)
        table += bytes([0x80 | no_columns << 3 | length - 1]) + delta
        delta = b"\0"  # the same line
    return table


def _encode_varint(number: int) -> bytes:
    """Six bits a byte, the lowest first; bit 6 says that another byte follows."""
    least, rest = number & 63, number >> 6
    return bytes([least | 64]) + _encode_varint(rest) if rest else bytes([least])
