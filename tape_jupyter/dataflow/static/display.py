"""Whether showing a value, as the last line of a cell does, may run code of the user's.

For a number, a text or a list of these it is the shell's machinery alone: two thousand calls, at
none of which there is anything to see.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tape_jupyter.core.user_code import MACHINERY, is_users, root_module

_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
_BOXES = frozenset({list, tuple, set, frozenset, dict})
MANY = 1_000
"""The shell shows no more items of a box."""


def is_plain_display(value: Any, hook: Any) -> bool:
    """Whether `hook`, the shell's displayhook, shows the value without asking anybody: of builtin
    types only, for which nobody registered a printer, written to where none of the user's classes
    listens.
    """
    kinds = _find_types(value)
    if kinds is None or is_users(type(sys.stdout).__module__):
        return False
    formatter = getattr(getattr(hook, "shell", None), "display_formatter", None)
    if formatter is None:
        return False
    formatters = (
        *formatter.formatters.values(),
        formatter.ipython_display_formatter,
        formatter.mimebundle_formatter,
    )
    return all(_is_shells_formatter(each, {*kinds, object}) for each in formatters)


def _find_types(value: Any) -> set[type] | None:
    """The types in a value of builtin ones; None for any other."""
    kind = type(value)
    if kind in _ATOMS:
        return {kind}
    if kind not in _BOXES or len(value) > MANY:
        return None
    inner = set(map(type, value))
    if kind is dict:
        inner.update(map(type, value.values()))
    return {kind, *inner} if inner <= _ATOMS else None


def _is_shells_formatter(formatter: Any, kinds: Iterable[type]) -> bool:
    """Whether what a formatter has for these types is the shell's own."""
    of_type = [formatter.type_printers[kind] for kind in kinds if kind in formatter.type_printers]
    by_name = [
        printer
        for (module, _), printer in formatter.deferred_printers.items()
        if module == "builtins"
    ]
    printers = (*of_type, *by_name, *formatter.singleton_printers.values())
    return all(root_module(each) in MACHINERY for each in printers)
