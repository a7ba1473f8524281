"""Where a tool's own code raised: kept with the exception, and put back when it is raised again in
replay.

    {"<type>": "exception", ..., "frames": [["__main__:import_row", 5, [8, 5, 30]], ...]}     outermost first

A frame is told by its module and function (`__main__:<lambda>@24`: the one that begins in line 24 of
its file), and by its line counted from the function's first. In
replay it stands where that function stands now. Two things may follow: what Python marks below the
line, as its first column, its last line and the column behind it (null: nothing); and the line at
which the function ended, where it went on after the error. Frames of the tape itself are not kept.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, NamedTuple

from tape_jupyter.core.unlisted_thread import run_unlisted

FRAMES = "frames"
MOST = 100
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
    traces = _iterate_traces(error.__traceback__)
    frames = [_describe_frame(each) for each in traces if not _is_own(each)]
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


def drop_own_frames(error: BaseException) -> None:
    """Let the error have no frames of the tape, where others are left. Its text is then that of a
    program without the tape, recorded and replayed.
    """
    frames = [each for each in _iterate_traces(error.__traceback__) if not _is_own(each)]
    for outer, inner in pairwise(frames):
        outer.tb_next = inner
    if frames:
        frames[-1].tb_next = None
        error.__traceback__ = frames[0]


def _iterate_traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_own(trace: TracebackType) -> bool:
    """Whether it is a frame of the tape's own code, or of code of ours in the place of a tool's."""
    code = trace.tb_frame.f_code
    is_trampoline = any(each is drop_own_frames for each in code.co_consts)
    return is_trampoline or code.co_filename.startswith(_OWN_FOLDER)


_OWN_FOLDER = f"{Path(__file__).parents[2]}{os.sep}"


def _describe_frame(trace: TracebackType) -> list[Any]:
    frame, code = trace.tb_frame, trace.tb_frame.f_code
    first = code.co_firstlineno
    name = f"{frame.f_globals.get('__name__', '')}:{_read_qualname(code)}"
    name += f"@{first}" if _is_nameless(code.co_name) else ""
    entry = [name, trace.tb_lineno - first, _find_columns(trace)]
    ended = frame.f_lineno
    if ended is not None and ended != trace.tb_lineno:
        return [*entry, ended - first]
    return entry if entry[-1] is not None else entry[:-1]


def _find_columns(trace: TracebackType) -> list[int] | None:
    """What Python marks below the line: first column, last line, the column behind it."""
    code = trace.tb_frame.f_code
    places = islice(code.co_positions(), trace.tb_lasti // 2, None)
    line, end, start, stop = next(places, (None, None, None, None))
    if line != trace.tb_lineno or end is None or start is None or stop is None:
        return None
    return [start, end - code.co_firstlineno, stop]


def _read_qualname(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _build_traceback(entry: Any, inner: TracebackType | None) -> TracebackType | None:
    """An entry of a traceback; None where the function is not there any more."""
    # a cassette edited by hand, an object that answers anything: then without this frame
    with suppress(Exception):
        name, line, columns, ended = [*entry, None, None][:4]
        module, _, qualname = str(name).partition(":")
        qualname, _, first = qualname.partition("@")
        space = vars(sys.modules[module])
        code = _find_code(space, qualname.split("."), int(first) if first else None)
        lines = int(line), int(line if ended is None else ended)
        if code is not None and all(0 <= each <= MOST_LINES for each in lines):
            frame = _build_frame(code, space, _Place(*lines, columns))
            return TracebackType(inner, frame, 0, code.co_firstlineno + lines[0])
    return None


class _Place(NamedTuple):
    """Where a frame stood, in lines counted from its function's first."""

    line: int
    ended: int
    columns: list[int] | None


def _find_code(space: Mapping[str, Any], names: list[str], first: int | None) -> CodeType | None:
    """The code of a function by its qualified name: of a module, of a class, or inside of another
    function. `first` is the line that one without a name (a lambda) begins at.
    """
    member: Any = space.get(names[0])
    if _is_nameless(names[0]):
        member = _find_nameless(space, names[0], first)
    for name in names[1:]:
        if name == "<locals>":
            member = _unwrap_code(member)
        elif isinstance(member, CodeType):
            codes = [each for each in member.co_consts if isinstance(each, CodeType)]
            member = _choose(codes, name, first if name == names[-1] else None)
        else:
            member = inspect.getattr_static(member, name, None)
    return _unwrap_code(member)


def _is_nameless(name: str) -> bool:
    """Whether many functions may be called so: `<lambda>`, `<genexpr>`."""
    return name.startswith("<")


def _choose(codes: Iterable[CodeType], name: str, first: int | None) -> CodeType | None:
    alike = [each for each in codes if each.co_name == name]
    exact = [each for each in alike if each.co_firstlineno == first]
    return next(iter(exact or ([] if _is_nameless(name) else alike)), None)


def _find_nameless(space: Mapping[str, Any], name: str, first: int | None) -> CodeType | None:
    """Of a function that stands in a module, in a container of it, or anywhere."""
    near: list[Any] = []
    for each in list(space.values()):
        near += each.values() if isinstance(each, dict) else [each]
        near += each if isinstance(each, list | tuple) else []
    for find_all in (near.copy, gc.get_objects):
        own = (each for each in find_all() if type(each) is FunctionType)
        codes = (_read_code(each) for each in own if each.__globals__ is space)
        if (code := _choose(codes, name, first)) is not None:
            return code
    return None


def _unwrap_code(member: Any) -> CodeType | None:
    if isinstance(member, CodeType):
        return member
    member = inspect.unwrap(getattr(member, "__func__", member))
    return _read_code(member) if isinstance(member, FunctionType) else None


def _read_code(function: FunctionType) -> CodeType:
    """The code that its author wrote: a taped function has ours where it stands."""
    original = getattr(vars(function).get("__tape_swap__"), "original", None)
    return original if isinstance(original, CodeType) else function.__code__


def _build_frame(code: CodeType, space: Mapping[str, Any], place: _Place) -> FrameType:
    """A frame that reads like one of that code at a place: its file, name, parameters. None of the
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
        "co_linetable": _encode_line_table(place, len(shape.co_code) // 2),
    }
    function = FunctionType(shape.replace(**alike), named, None, namespace["stand_in"].__defaults__)
    function.__kwdefaults__ = namespace["stand_in"].__kwdefaults__
    made: list[FrameType] = []
    # in another thread, so that no frame of ours stands behind it, with what the program gave
    run_unlisted(lambda: made.append(function()))()
    return made[0]


def _encode_line_table(place: _Place, units: int) -> bytes:
    """The first of a code's units where it raised, all others where it ended and in no column
    (CPython, Objects/locations.md).
    """
    return _encode_place(place) + _encode_lines(place.ended - place.line, units - 1)


def first_line_only(units: int) -> bytes:
    """A table by which all units of a code stand on its first line: tracebacks show that one."""
    return _encode_lines(0, units)


def _encode_lines(delta: int, units: int) -> bytes:
    """So many units on a line so far below the one before, in no column."""
    most, table = 8, b""  # units of one entry
    for start in range(0, units, most):
        length = min(most, units - start)
        table += _encode_head(_NO_COLUMNS, length) + _encode_varint(_zigzag(delta))
        delta = 0  # the same line
    return table


def _encode_place(place: _Place) -> bytes:
    line = _encode_varint(_zigzag(place.line))
    if place.columns is None:
        return _encode_head(_NO_COLUMNS, 1) + line
    start, end, stop = map(int, place.columns)
    rest = (end - place.line, start + 1, stop + 1)
    return _encode_head(_LONG, 1) + line + b"".join(map(_encode_varint, rest))


_NO_COLUMNS, _LONG = 13, 14
"""Kinds of entries."""


def _encode_head(kind: int, units: int) -> bytes:
    return bytes([0x80 | kind << 3 | units - 1])


def _zigzag(number: int) -> int:
    """With the sign as the lowest bit."""
    return -number << 1 | 1 if number < 0 else number << 1


def _encode_varint(number: int) -> bytes:
    """Six bits a byte, the lowest first; bit 6 says that another byte follows."""
    least, rest = number & 63, number >> 6
    return bytes([least | 64]) + _encode_varint(rest) if rest else bytes([least])
