"""What a file of the user's does to others when it is imported: read from its text, nothing is run.

A recording imports nothing, so that a module which a body imported for the first time is not there
in replay. Nearly all modules only define things, and lack nothing then: whoever needs one imports
it. This finds those that do more: they call something for what it does, decorate with what another
file of the user's gives, set what stands in another module, or derive classes that are told so.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType

from tape_jupyter.core.user_code import is_users

_SHOWN = frozenset({"print", "display"})
"""Calls of which everything is done again by others."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def find_acting_modules(known: int) -> Iterator[str]:
    """The names of the user's modules that came to the first `known` ones, and that do something to
    others when they are imported.
    """
    for name in [*islice(reversed(list(sys.modules)), max(0, len(sys.modules) - known))]:
        module = sys.modules.get(name)
        if isinstance(module, ModuleType) and is_users(name) and _acts_on_others(module):
            yield name


def _acts_on_others(module: ModuleType) -> bool:
    try:
        tree = ast.parse(Path(str(module.__file__)).read_bytes())
    except (OSError, ValueError, SyntaxError):
        return True
    imported = _find_imported_names(tree, module)
    return any(
        _acts(statement, imported) for statement in _iterate_statements(tree)
    ) or _has_registered_class(module)


def _iterate_statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All that run when the module is imported: none of those inside of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, _DEFINITIONS) and not _is_main_guard(child):
            yield from _iterate_statements(child)


def _is_main_guard(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`"""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def _find_imported_names(tree: ast.AST, module: ModuleType) -> dict[str, bool]:
    """Names that the module's own statements import, and whether they come from the user's."""
    found: dict[str, bool] = {}
    for each in _iterate_statements(tree):
        if isinstance(each, ast.Import):
            for alias in each.names:
                origin = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or origin] = is_users(origin)
        elif isinstance(each, ast.ImportFrom):
            origin = "." * each.level + (each.module or "")
            if each.level:
                origin = importlib.util.resolve_name(origin, module.__package__)
            for alias in each.names:
                found[alias.asname or alias.name] = is_users(origin)
    return found


def _acts(statement: ast.stmt, imported: dict[str, bool]) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call | ast.Await) and (
            _find_root(statement.value) not in _SHOWN
        )
    if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        return any(
            isinstance(each, ast.Attribute | ast.Subscript) and _find_root(each) in imported
            for each in targets
        )
    decorators = getattr(statement, "decorator_list", ())
    return any(imported.get(_find_root(each), False) for each in decorators)


def _find_root(node: ast.AST | None) -> str:
    """`shop` of `shop.items[0].add(1)`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _has_registered_class(module: ModuleType) -> bool:
    """Whether a class of the module is derived of one in another file of the user's that hears of it."""
    classes = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__
    ]
    return any(
        "__init_subclass__" in vars(base) and base.__module__ != module.__name__ and _is_own(base)
        for each in classes
        for base in each.__mro__[1:]
    ) or any(_is_own(type(each)) for each in classes)


def _is_own(kind: type) -> bool:
    return is_users(kind.__module__)
