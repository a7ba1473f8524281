"""What people type: `input()` and `getpass()` are calls of kind tool. In replay nobody is asked.

In a kernel both are methods of the kernel, put into `builtins` and `getpass` anew for every cell:
their code is swapped, so that `from getpass import getpass` of an earlier cell is taped too, and a
replay asks no front end whether it has a stdin. What a debugger or IPython itself asks is none of
the program's calls.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

from tape_jupyter import instrumentation
from tape_jupyter.core.call import FunctionCall
from tape_jupyter.instrumentation.patching import swap, undoing
from tape_jupyter.instrumentation.tools.call import Discreet, TapedFunction
from tape_jupyter.instrumentation.tools.code_swap import swap_code

_OURS = frozenset({"tape_jupyter", "getpass"})
_KERNEL = "ipykernel.kernelbase"
_PLUMBING = frozenset({"IPython", "ipykernel", "pdb", "bdb", "cmd", "code", "debugpy", "pydevd"})
_PROMPT = inspect.Signature([inspect.Parameter("prompt", inspect.Parameter.POSITIONAL_OR_KEYWORD)])

Undo = Callable[[], None]


def patch(module: ModuleType) -> Undo:
    """Tap `builtins`, `getpass` or `ipykernel.kernelbase`. Returns the undo."""
    if module.__name__ == "builtins":
        return _patch_builtin(module)
    if module.__name__ == "getpass":
        return _swap_codes(
            [(vars(module).get(name), "getpass", "yes") for name in ("unix_getpass", "win_getpass")]
        )
    kernel = vars(module)["Kernel"]
    return _swap_codes([(kernel.raw_input, "input", "maybe"), (kernel.getpass, "getpass", "yes")])


def _patch_builtin(module: ModuleType) -> Undo:
    if not isinstance(vars(module)["input"], BuiltinFunctionType):  # a front end's own
        return lambda: None

    def wrap_input(original: Callable[..., Any]) -> Callable[..., Any]:
        taped_prompt = _build_taped_prompt(original, "input", "maybe")
        return functools.wraps(original)(lambda prompt="", /: taped_prompt(prompt))

    return swap(module, "input", wrap_input)


def _swap_codes(functions: list[tuple[Any, str, Discreet]]) -> Undo:
    return undoing(
        *(
            swap_code(
                function, functools.partial(_build_taped_prompt, name=name, discreet=discreet)
            )
            for function, name, discreet in functions
            if isinstance(function, FunctionType)
        )
    )


def _build_taped_prompt(
    body: Callable[..., Any], name: str, discreet: Discreet
) -> Callable[..., Any]:
    """What asks the tape before it asks a person."""
    signature = None if isinstance(body, BuiltinFunctionType) else inspect.signature(body)

    def ask_tape(*args: Any, **kwargs: Any) -> Any:
        # inspect.stack() reads source files for every frame
        if _is_plumbing(sys._getframe(1)):  # noqa: SLF001
            return body(*args, **kwargs)
        prompt: Sequence[Any] = args[:1]
        if signature is not None:
            prompt = [signature.bind(*args, **kwargs).arguments.get("prompt", "")]
        live = functools.partial(
            _ask_person, functools.partial(body, *args, **kwargs), name, discreet, prompt
        )
        taped = TapedFunction(
            name, "tool", lambda _prompt: live(), _PROMPT, drop_first=False, discreet=discreet
        )
        return taped.call(*map(str, prompt))

    return ask_tape


def _ask_person(
    body: Callable[[], Any], name: str, discreet: Discreet, prompt: Sequence[Any]
) -> Any:
    """What a person types; in a notebook that replays, a placeholder for a secret where that is
    nothing.
    """
    call = FunctionCall(name, {"prompt": "".join(map(str, prompt))}, "tool", discreet)
    try:
        answer = body()
    except (
        EOFError,
        NotImplementedError,
    ):  # nobody is there to be asked (IPython's StdinNotImplementedError)
        if (stand_in := instrumentation.untyped_stand_in(call)) is None:
            raise
        return stand_in
    return answer or instrumentation.untyped_stand_in(call) or answer


def _is_plumbing(frame: FrameType | None) -> bool:
    """Whether the asker is a debugger or the shell: the first module that only passes nothing on."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _OURS and name != _KERNEL:
            return name.partition(".")[0] in _PLUMBING
        frame = frame.f_back
    return False
