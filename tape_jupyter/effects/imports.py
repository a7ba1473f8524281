"""What a file of the user's does to others when it is imported: read from its text, nothing is run.

A body that runs not in replay imports nothing, either. Nearly all modules only define things: where
the body's own code names one, a replay imports it, so that what the body did to it can be done
again. Others do more: they call something for what it does, decorate with what another file of the
user's gives, set what stands in another module, or derive classes that are told so. Those are named.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tape_jupyter.core.libraries import is_library_class
from tape_jupyter.core.user_code import is_users
from tape_jupyter.effects.kinds import functions_of, own_code
from tape_jupyter.effects.scope import Scope, code_names

_SHOWN = frozenset({"print", "display"})
"""Calls of which everything is done again by others."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class ImportEffects(NamedTuple):
    """What importing a module does: `acts` to others, or it cannot be read; `shows` something."""

    acts: bool
    shows: bool


def read_import_effects(module: ModuleType) -> ImportEffects:
    """What importing it does. A replay may import one that neither acts nor shows anything."""
    tree = _read_tree(module)
    if tree is None:
        return ImportEffects(acts=True, shows=False)
    shows = any(_find_root(each.value) in _SHOWN for each in _iterate_calls(tree))
    return ImportEffects(_acts_on_others(tree, module), shows)


def import_again(names: Iterable[str], scope: Scope) -> Iterator[str]:
    """Import what a recorded body imported, as far as its own code names it: a recording decides not
    which code runs. Gives what was not done, in words.
    """
    missing = [name for name in names if name not in sys.modules]
    named = _find_named_imports(scope) if missing else set()
    for name in sorted(missing, key=lambda name: name not in named):
        try:
            if name in named:
                importlib.import_module(name)
            elif name not in sys.modules:
                yield f"it imported {name}, which its code does not name"
        except Exception as why:  # of the module's own code
            yield f"it imported {name}: {type(why).__name__}: {why}"


def _find_named_imports(scope: Scope) -> set[str]:
    """Modules that code imports which the body may run: its own, functions and classes that this
    names, and those of its arguments.
    """
    imports: set[str] = set()
    waiting: list[Any] = [scope.function, *scope.arguments.values()]
    waiting += [type(each) for each in scope.arguments.values()]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type) and not is_library_class(value):
            waiting += [inner for each in vars(value).values() for inner in functions_of(each)]
        for function in functions_of(value):
            named = code_names(own_code(function).__code__)
            imports |= named.imports
            waiting += [function.__globals__.get(name) for name in named.variables]
    return imports


def _read_tree(module: ModuleType) -> ast.Module | None:
    try:
        return ast.parse(Path(str(module.__file__)).read_bytes())
    except (OSError, ValueError, SyntaxError):
        return None


def _acts_on_others(tree: ast.Module, module: ModuleType) -> bool:
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


def _iterate_calls(tree: ast.Module) -> Iterator[ast.Expr]:
    return (each for each in _iterate_statements(tree) if isinstance(each, ast.Expr))


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
    names: dict[str, bool] = {}
    for each in _iterate_statements(tree):
        if isinstance(each, ast.Import):
            for alias in each.names:
                origin = alias.name if alias.asname else alias.name.partition(".")[0]
                names[alias.asname or origin] = is_users(origin)
        elif isinstance(each, ast.ImportFrom):
            origin = "." * each.level + (each.module or "")
            if each.level:
                origin = importlib.util.resolve_name(origin, module.__package__)
            for alias in each.names:
                names[alias.asname or alias.name] = is_users(origin)
    return names


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
