"""`os.environ` answers for variables that are not set: whoever looks one up may be lent a value for
it.

Nothing is set. What lists, copies or inherits the environment (child processes) finds it as it is;
so does what would change it (`setdefault`, `pop`). A variable that is set is read as ever, at no
cost.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Undo = Callable[[], None]
Ask = Callable[[str, FrameType], str | None]
"""The value lent for a variable of this name to the code of this frame; None: it is not set."""
IsLent = Callable[[str, str], bool]
"""Whether a value is one that was lent, and the variable of this name is answered for all the same."""

_PASSING = frozenset({"os", "_collections_abc", "collections.abc"})
_LOOKS = frozenset({"__getitem__", "__contains__", "get", "getenv", "getenvb"})


def patch(lookup: Ask, is_lent: IsLent) -> Undo:
    """Have `lookup` answer for what is missing. Returns the undo."""
    environ: Any = os.environ
    # only what a dict lacks costs anything there
    lending = _Lending(environ._data, lookup, is_lent)  # noqa: SLF001
    _set_environ(lending)

    def undo() -> None:
        if environ._data is lending:  # noqa: SLF001
            _set_environ(dict(lending))

    return undo


def is_set(name: str) -> bool:
    """Whether a variable really is."""
    environ: Any = os.environ
    return environ.encodekey(name) in environ._data  # noqa: SLF001 - `in os.environ` would ask


def _set_environ(data: dict[Any, Any]) -> None:
    environs: list[Any] = [os.environ]
    if hasattr(os, "environb"):  # not on Windows
        environs.append(os.environb)
    for environ in environs:
        environ._data = data  # noqa: SLF001


class _Lending(dict[Any, Any]):
    """What `os.environ` keeps its variables in."""

    def __init__(self, variables: dict[Any, Any], lookup: Ask, is_lent: IsLent) -> None:
        super().__init__(variables)
        self._read_lent, self._is_lent = lookup, is_lent

    def __missing__(self, key: Any) -> Any:
        # inspect.stack() reads source files for every frame
        looker = _find_looker(sys._getframe(1))  # noqa: SLF001
        environ: Any = os.environ
        value = None if looker is None else self._read_lent(environ.decodekey(key), looker)
        if value is None:
            raise KeyError(key)
        return environ.encodevalue(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        """A lent value that the program sets (`os.environ["A"] = os.getenv("A")`) stays lent."""
        environ: Any = os.environ
        name = environ.decodekey(key)
        if key not in self and self._is_lent(name, environ.decodevalue(value)):
            os.unsetenv(name)  # `os.environ` has told the system already
        else:
            super().__setitem__(key, value)


def _find_looker(frame: FrameType | None) -> FrameType | None:
    """The code that looks a variable up; None where it does more than look."""
    while frame is not None and frame.f_globals.get("__name__") in _PASSING:
        if frame.f_code.co_name not in _LOOKS:
            return None
        frame = frame.f_back
    return frame
