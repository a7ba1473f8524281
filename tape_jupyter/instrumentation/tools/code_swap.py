"""Code that stands in for a function's own. Builds code objects and functions; sets nothing.

A trampoline has the same parameters, free variables, name and place in the source as the code it
replaces, so that signatures, `inspect.getsource`, defaults and closures stay right. All it does is
call a door with its arguments; an error that comes out of it has no frame of ours, nor that of the
trampoline.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from tape_jupyter.encoding.values.tracebacks import drop_own_frames, first_line_only

_DOOR, _CLEAN = "tape door", "tape frames"


def clone(function: FunctionType) -> FunctionType:
    """The same function with its own code: same globals, closure cells, defaults."""
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    return copy


def swap_code(
    function: FunctionType, wrapper: Callable[[FunctionType], Callable[..., Any]]
) -> Callable[[], None]:
    """Let a function do what `wrapper(body)` does, wherever it is referenced; `body` does what it did.
    Returns the undo.

    A function that no code can be made for stays as it is. A code that somebody else has put over
    ours is left there.
    """
    original = function.__code__
    ours = trampoline(function, wrapper(clone(function)))
    if ours is None:
        return lambda: None
    function.__code__ = ours

    def undo() -> None:
        if function.__code__ is ours:
            function.__code__ = original

    return undo


def is_generator_function(function: Any) -> bool:
    """Whether it is one, plain or async."""
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def trampoline(function: FunctionType, replacement: Callable[..., Any]) -> CodeType | None:
    """Code for `function` that calls `replacement`, and awaits it if the function is a coroutine function.

    For a generator function, plain or async, the door gives a source that the code relays to
    (instrumentation/tools/generators.py). None where no source could spell it. The door is a
    constant of the code: a name would be looked up in the globals of the user's module. The free
    variables stand in a dead branch, which makes the compiler declare them: setting `__code__` asks
    for the same number.
    """
    code = function.__code__
    wait = (
        "await "
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        else ""
    )
    parameters, passed = _format_parameters(code)
    free = ", ".join(code.co_freevars)
    # an attribute: the compiler warns of a constant that is called
    call = f"{_DOOR!r}.__call__({passed})"
    call += f" if True else ({free},)" if free else ""
    taken = {*code.co_varnames, *code.co_freevars}
    if is_generator_function(function):
        lines = _build_relay_lines(call, wait, taken)
    else:
        lines = [f"return {wait}({call})"]
    error = _find_free_name("raised", taken)
    body = [
        "try:",
        *(f"  {line}" for line in lines),
        f"except BaseException as {error}:",
        f"  {_CLEAN!r}.__call__({error})",
        "  raise",
    ]
    head = f"def outer({free}):\n  {'async ' if wait else ''}def inner({parameters}):"
    try:
        inner = _find_inner_code(compile("\n    ".join([head, *body]), "<tape>", "exec"))
    except SyntaxError:
        return None
    if inner.co_freevars != code.co_freevars:
        return None
    constants: dict[str, Any] = {_DOOR: replacement, _CLEAN: drop_own_frames}
    return inner.replace(
        co_consts=tuple(
            constants.get(const, const) if type(const) is str else const
            for const in inner.co_consts
        ),
        co_linetable=first_line_only(len(inner.co_code) // 2),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )


def _build_relay_lines(source: str, wait: str, taken: set[str]) -> list[str]:
    """The lines of yielding.relay, in names that the function's own parameters have not."""
    source_, step, value, error = (
        _find_free_name(name, taken) for name in ("source", "found", "value", "error")
    )
    return [
        f"{source_} = {source}",
        f"{step} = {wait}{source_}.send(None)",
        f"while {step}:",
        "  try:",
        f"    {value} = yield {step}[0]",
        f"  except BaseException as {error}:",
        f"    {step} = {wait}{source_}.throw({error})",
        "  else:",
        f"    {step} = {wait}{source_}.send({value})",
        *([] if wait else [f"return {source_}.returned"]),
    ]


def _find_free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _find_inner_code(code: CodeType) -> CodeType:
    for _level in range(2):
        code = next(const for const in code.co_consts if isinstance(const, CodeType))
    return code


def _format_parameters(code: CodeType) -> tuple[str, str]:
    """The parameter list of a function, without defaults (they stay with the function), and how to
    pass it on.
    """
    names = iter(code.co_varnames)
    positional = [next(names) for _ in range(code.co_argcount)]
    keywords = [next(names) for _ in range(code.co_kwonlyargcount)]
    rest = next(names) if code.co_flags & inspect.CO_VARARGS else ""
    named_rest = next(names) if code.co_flags & inspect.CO_VARKEYWORDS else ""
    declared = [*positional]
    if code.co_posonlyargcount:
        declared.insert(code.co_posonlyargcount, "/")
    declared += [f"*{rest}"] if rest or keywords else []
    declared += [*keywords, *([f"**{named_rest}"] if named_rest else [])]
    passed = [*positional, *([f"*{rest}"] if rest else []), *(f"{k}={k}" for k in keywords)]
    return ", ".join(declared), ", ".join([*passed, *([f"**{named_rest}"] if named_rest else [])])
