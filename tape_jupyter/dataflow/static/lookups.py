"""Which names a function of the user's asks for a value that may be another now. A recorded reply
of such a function may be another, too, although it is called with the same arguments.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Collection

from tape_jupyter.dataflow.static.effects import MUTATORS
from tape_jupyter.dataflow.static.names import code_names
from tape_jupyter.dataflow.static.outcomes.values import source_of
from tape_jupyter.dataflow.tracing.variables import Variables


def asks_for(name: str, differing: Collection[str], variables: Variables) -> set[str]:
    """Of the variables `differing`, those that functions of this name (`price`, `Shop.price`) read.
    One that they only add to, `todo.append(item)`, is not read.
    """
    bare = name.rpartition(".")[2]
    resources: set[str] = set()
    for holder, print_ in list(variables.prints.items()):
        for place, code in print_.codes:
            if code.co_name == bare:
                resources |= _find_asked_variables(place, code, holder, differing, variables)
    return resources


def _find_asked_variables(
    place: str, code: types.CodeType, holder: str, differing: Collection[str], variables: Variables
) -> set[str]:
    used = code_names(code)
    resources, helpers = set[str](), list[str]()
    for name in used.reads | used.later_reads:
        resource = variables.resource(place, name)
        if resource is None:
            continue
        print_ = variables.prints.get(resource)
        if resource not in differing and print_ and print_.codes:
            helpers.append(resource)
        elif resource in differing and _is_name_read(code, name):
            resources.add(resource)
    resources |= variables.closure(helpers) & set(differing)
    if holder in differing and any(_is_name_read(code, n) for n in code.co_freevars):
        resources.add(holder)
    return resources


def _is_name_read(code: types.CodeType, name: str) -> bool:
    """Whether it does more with a name than to add to what it holds."""
    tree = source_of(code)
    if tree is None:
        return True
    adding = {
        id(target) for node in ast.walk(tree) if (target := _find_inplace_target(node)) is not None
    }
    uses = (
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    )
    return any(id(use) not in adding for use in uses) or any(
        isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id == name
        for n in ast.walk(tree)
    )


def _find_inplace_target(node: ast.AST) -> ast.expr | None:
    """Of a statement that only changes something in place: what."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    ):
        return node.value.func.value if node.value.func.attr in MUTATORS else None
    if (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Subscript)
    ):
        return node.targets[0].value
    return None
