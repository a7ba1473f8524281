"""Engine room: which environment variables, and which options of pandas, a statement's text is about. Pure.

The environment is one thing only for what asks for it as a whole: `os.environ["A"]` and `os.environ["B"]` are two.
"""

from __future__ import annotations

import ast
import os
import re
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

ENVIRONMENT = "ambient:environment"
PANDAS = "ambient:pandas"
_SHOWING = re.compile(r"(display|styler)\.\w+")
_OPTION = re.compile(r"(display|styler|mode|compute|io|plotting|future|string)\.\w+")
_SHOWN_BY = ("pandas.io.formats", "pandas._config.config")


def variables_of(node: ast.AST | None, value_of: Callable[[str], Any]) -> tuple[set[str], set[str]] | None:
    """(those that a statement reads, those that it sets), as resources; None where its text does not say which."""
    if node is None:
        return None
    reads: set[str] = set()
    writes: set[str] = set()
    told: set[int] = set()
    for each in ast.walk(node):
        key, store = _asked(each, value_of)
        if key is not None:
            told.update(id(inner) for inner in ast.walk(each.func if isinstance(each, ast.Call) else each))
            (writes if store else reads).add(f"{ENVIRONMENT}[{key!r}]")
    if any(id(each) not in told for each in ast.walk(node) if _is_environment(each, value_of) or _gets(each, value_of)):
        return None
    return reads, writes


def _asked(node: ast.AST, value_of: Callable[[str], Any]) -> tuple[str | None, bool]:
    """(the variable that this expression is about, whether it sets it)."""
    if isinstance(node, ast.Subscript) and _is_environment(node.value, value_of):
        return _text(node.slice), not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        inside = _is_environment(node.comparators[0], value_of)
        return (_text(node.left) if inside else None), False
    if isinstance(node, ast.Call) and node.args:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr == "get" and _is_environment(func.value, value_of):
            return _text(node.args[0]), False
        if _gets(func, value_of):
            return _text(node.args[0]), False
    return None, False


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_environment(node: ast.AST, value_of: Callable[[str], Any]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("environ", "environb") or _of(node, value_of) is os.environ
    return isinstance(node, ast.Name) and value_of(node.id) is os.environ


def _gets(node: ast.AST, value_of: Callable[[str], Any]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("getenv", "putenv", "unsetenv")
    return isinstance(node, ast.Name) and value_of(node.id) is os.getenv


def _of(node: ast.Attribute, value_of: Callable[[str], Any]) -> Any:
    base = value_of(node.value.id) if isinstance(node.value, ast.Name) else None
    return vars(base).get(node.attr) if isinstance(base, types.ModuleType) else None


def options_set(texts: Iterable[str]) -> str:
    """The options of pandas that a statement with these texts sets: those of how things are shown, or any."""
    named = [text for text in texts if _OPTION.fullmatch(text)]
    return f"{PANDAS}['display']" if named and all(map(_SHOWING.fullmatch, named)) else PANDAS


def options_read(functions: Iterable[str]) -> Iterator[str]:
    """The options of pandas that code with these functions may have looked at."""
    yield f"{PANDAS}['mode']"
    if any(name.startswith(_SHOWN_BY) for name in functions):
        yield f"{PANDAS}['display']"
