"""How a statement uses its names, from its syntax tree: parts, calls, stores, magics, texts that
are run.

Bodies of functions are left out: what they do, they do when they are called
(dataflow/static/effects.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

_DYNAMIC = frozenset(
    {"exec", "eval", "globals", "locals", "vars", "dir", "compile", "__import__", "get_ipython"}
)
_SPACES = ("globals", "vars", "locals")
_MAGICS = frozenset({"run_line_magic", "run_cell_magic", "system", "getoutput", "magic"})
_PYTHON_CELLS = frozenset({"time", "timeit", "capture", "prun", "debug", "memit", "tape"})
_PYTHON_LINES = frozenset({"time", "timeit", "prun", "memit"})


@dataclass(frozen=True, slots=True)
class Touch:
    """One use of a name that may change its value. `how` is "item" or "attr" (a store or deletion
    below it), "aug", "method" (`what` is called on it), "argument" (it is handed to `what`), "next"
    (it is iterated over).

    `path` is the part that is stored, where it is known by its text: `memo['a']`; "" else. `module`
    attributes keep the dotted path: `os.environ.update`.
    """

    root: str
    how: str
    what: str = ""
    path: str = ""
    dotted: str = ""
    kept: bool = True
    """Whether the call's result is used: a call for its effect alone is one whose result is
    dropped.
    """
    inplace: bool = False


@dataclass(frozen=True, slots=True)
class Magic:
    """A magic or shell line: `name` is "system" or "getoutput" for the shell."""

    name: str
    line: str
    body: str = ""
    constant: bool = True


@dataclass(frozen=True, slots=True)
class Uses:
    """`parts`: by name, the parts of it that are read, where no other use of it is made. `bare`:
    names used whole.
    """

    touches: tuple[Touch, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    bare: frozenset[str] = frozenset()
    magics: tuple[Magic, ...] = ()
    dynamic: frozenset[str] = frozenset()
    """exec, eval, globals ... whose argument is not a text that stands here."""
    python: tuple[str, ...] = ()
    """Texts that are run as Python: bodies of %%time, exec("x = 1")."""
    exists: frozenset[str] = frozenset()
    """Names that are only asked for: 'flag' in globals()."""
    counted: tuple[tuple[str, str], ...] = ()
    """Parts that are asked for their size or keys alone: len(x), sorted(d), d.keys()."""
    binds: frozenset[str] = frozenset()
    """Names that it binds through globals(): globals()["x"] = 1; "*" where the text does not say
    which.
    """
    spaced: frozenset[str] = frozenset()
    """exec, eval that are given a namespace of their own."""
    awaits: bool = False
    called: frozenset[str] = frozenset()

    def joined(self, inner: Uses) -> Uses:
        """With those of a text that it runs."""
        return replace(
            inner, touches=self.touches + inner.touches, parts=self.parts + inner.parts, bare=self.bare | inner.bare,
            magics=self.magics + inner.magics, dynamic=self.dynamic | inner.dynamic, python=(),
            exists=self.exists | inner.exists, called=self.called | inner.called,
        )  # fmt: skip


def statement_uses(node: ast.stmt) -> Uses:
    """Of one top-level statement."""
    visitor = _Visitor()
    visitor.visit(node)
    parts = tuple(sorted((root, path) for root, path in visitor.parts if root not in visitor.bare))
    return Uses(
        tuple(visitor.touches), parts, frozenset(visitor.bare), tuple(visitor.magics), frozenset(visitor.dynamic),
        tuple(visitor.python), frozenset(visitor.exists), tuple(sorted(visitor.counted)), frozenset(visitor.binds),
        frozenset(visitor.spaced), visitor.awaits,
        frozenset(visitor.called),
    )  # fmt: skip


def attribute_chain(node: ast.expr) -> tuple[str, str, str] | None:
    """(root, path, dotted) of `a`, `a.b`, `a['k'].b`, where each key is a text or number that
    stands there.
    """
    steps: list[str] = []
    dots: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            steps.append(f".{node.attr}")
            dots.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript) and (key := _format_constant(node.slice)) is not None:
            steps.append(f"[{key}]")
            node = node.value
        elif isinstance(node, ast.Name):
            return node.id, node.id + "".join(reversed(steps)), ".".join([node.id, *reversed(dots)])
        else:
            return None


def _format_constant(node: ast.expr) -> str | None:
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        return repr(-node.operand.value) if type(node.operand.value) is int else None
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str | int)
        and not isinstance(node.value, bool)
    ):
        return repr(node.value)
    return None


def find_called_name(func: ast.expr) -> str:
    """The last name of what is called: `sum` and `a.b.sum`; "" where it has none."""
    if isinstance(func, ast.Name):
        return func.id
    return func.attr if isinstance(func, ast.Attribute) else ""


def root_name(node: ast.expr) -> str | None:
    """The name at the bottom of an expression of attributes, items and calls."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


class _Visitor(ast.NodeVisitor):
    def __init__(self) -> None:
        self.touches: list[Touch] = []
        self.parts: set[tuple[str, str]] = set()
        self.bare: set[str] = set()
        self.magics: list[Magic] = []
        self.dynamic: set[str] = set()
        self.python: list[str] = []
        self.exists: set[str] = set()
        self.spaced: set[str] = set()
        self.binds: set[str] = set()
        self.counted: set[tuple[str, str]] = set()
        self.called: set[str] = set()
        self.awaits = False
        self._dropped: set[ast.expr] = set()

    # ---------------------------------------------------------------- what is not run here
    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        args = node.args
        for each in [
            *node.decorator_list,
            *args.defaults,
            *(d for d in args.kw_defaults if d is not None),
        ]:
            self.visit(each)
        for decorator in node.decorator_list:
            if root := root_name(decorator):
                called = _format_dotted_name(decorator)
                what = called.rpartition(".")[2] if "." in called else "__call__"
                self.touches.append(Touch(root, "method", what, root, called, kept=False))

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast's name

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for each in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(each)

    # ---------------------------------------------------------------- parts
    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.bare.add(node.id)
            if node.id in _DYNAMIC:
                self.dynamic.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._visit_chain(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._visit_chain(node)

    def _visit_chain(self, node: ast.Attribute | ast.Subscript) -> None:
        chain = attribute_chain(node)
        if chain is not None and isinstance(node.ctx, ast.Load):
            self.parts.add(chain[:2])
            return
        if chain is not None and (
            inner := attribute_chain(node.value)
        ):  # a store: what is above the stored part is looked up
            if inner[0] != inner[1]:
                self.parts.add(inner[:2])
            return
        self.visit(node.value)
        if isinstance(node, ast.Subscript):
            self.visit(node.slice)

    # ---------------------------------------------------------------- stores
    def _add_stores(self, target: ast.expr, how: str = "") -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self._add_stores(each, how)
        elif isinstance(target, ast.Starred):
            self._add_stores(target.value, how)
        elif isinstance(target, ast.Attribute | ast.Subscript):
            kind = "attr" if isinstance(target, ast.Attribute) else "item"
            if isinstance(target, ast.Subscript) and any(
                _is_call_of(target.value, name) for name in _SPACES
            ):
                self.binds.add(
                    str(target.slice.value) if isinstance(target.slice, ast.Constant) else "*"
                )
            if root := root_name(target):
                chain = attribute_chain(target)
                path, dotted = (chain[1], chain[2]) if chain else ("", _format_dotted_name(target))
                self.touches.append(Touch(root, how or kind, "", path, dotted, kept=False))
        elif isinstance(target, ast.Name) and how == "aug":
            self.touches.append(Touch(target.id, "aug"))
            self.bare.add(target.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._add_stores(target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._add_stores(node.target)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add_stores(node.target, "aug")
        chain = attribute_chain(node.target)
        if chain and chain[0] != chain[1]:
            self.parts.add(chain[:2])
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._add_stores(target)
        self.generic_visit(node)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._add_stores(node.target)
        self._add_iteration(node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._add_iteration(node.iter)
        self.generic_visit(node)

    def _add_iteration(self, node: ast.expr) -> None:
        if root := root_name(node):
            self.touches.append(Touch(root, "next"))

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._add_stores(item.optional_vars)
            if root := root_name(item.context_expr):
                self.touches.append(Touch(root, "next"))
        self.generic_visit(node)

    visit_AsyncWith = visit_With  # noqa: N815

    def visit_Await(self, node: ast.Await) -> None:
        self.awaits = True
        if root := root_name(node.value):
            self.touches.append(Touch(root, "next"))
        self.generic_visit(node)

    # ---------------------------------------------------------------- calls
    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        for each in value.values if isinstance(value, ast.BoolOp) else [value]:
            self._dropped.add(each)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        is_lookup = isinstance(node.ops[0], ast.In | ast.NotIn) and _is_call_of(
            node.comparators[0], "globals"
        )
        if (
            is_lookup
            and len(node.ops) == 1
            and isinstance(node.left, ast.Constant)
            and isinstance(node.left.value, str)
        ):
            self.exists.add(node.left.value)
            return
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:  # noqa: C901 - one way to call a branch
        ways = (
            self._visit_count,
            self._visit_magic,
            self._visit_text_run,
            self._visit_globals_get,
            self._visit_inspection,
        )
        if any(way(node) for way in ways):
            return
        func, dropped = node.func, node in self._dropped
        name = find_called_name(func)
        dotted = _format_dotted_name(func)
        self.called.add(dotted or name)
        inplace = any(k.arg == "inplace" and not _is_false(k.value) for k in node.keywords)
        if (
            isinstance(func, ast.Attribute)
            and any(_is_call_of(func.value, name) for name in _SPACES)
            and func.attr != "get"
        ):
            self.binds.add(
                "*" if func.attr in ("update", "setdefault", "pop", "__setitem__") else ""
            )
        if isinstance(func, ast.Attribute) and (root := root_name(func)):
            chain = attribute_chain(func.value)
            path = chain[1] if chain else ""
            self.touches.append(
                Touch(root, "method", func.attr, path, dotted, kept=not dropped, inplace=inplace)
            )
        elif isinstance(func, ast.Name):
            self.touches.append(
                Touch(func.id, "method", "__call__", func.id, dotted, kept=not dropped)
            )
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            if root := _find_argument_root(argument):
                self.touches.append(
                    Touch(root, "argument", dotted or name, kept=not dropped, inplace=inplace)
                )
        if isinstance(func, ast.Attribute):
            chain = attribute_chain(func.value)
            if chain is not None and chain[0] != chain[1]:
                self.parts.add((chain[0], chain[1]))
            elif isinstance(func.value, ast.Name):
                self.parts.add((func.value.id, f"{func.value.id}.{func.attr}()"))
            else:
                self.visit(func.value)
        else:
            self.visit(func)
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            self.visit(argument)

    def _visit_inspection(self, node: ast.Call) -> bool:
        """vars(x), dir(x): of the argument alone."""
        if not (isinstance(node.func, ast.Name) and node.func.id in ("vars", "dir") and node.args):
            return False
        self.called.add(node.func.id)
        for argument in node.args:
            self.visit(argument)
        return True

    def _visit_count(self, node: ast.Call) -> bool:
        """len(x): how it is filled does not matter, where it was only filled in places that are
        there anyway.
        """
        func = node.func
        if (
            isinstance(func, ast.Name)
            and func.id in ("len", "sorted", "list", "set")
            and len(node.args) == 1
            and not node.keywords
        ):
            inner, kind = node.args[0], "len" if func.id == "len" else "keys"
        elif isinstance(func, ast.Attribute) and func.attr == "keys" and not node.args:
            inner, kind = func.value, "keys"
        else:
            return False
        if (chain := attribute_chain(inner)) is None:
            return False
        self.counted.add((chain[0], f"{chain[1]}.{kind}()"))
        if isinstance(func, ast.Name):
            self.visit(func)
        return True

    def _visit_magic(self, node: ast.Call) -> bool:
        func = node.func
        if not (
            isinstance(func, ast.Attribute)
            and func.attr in _MAGICS
            and _is_call_of(func.value, "get_ipython")
        ):
            return False
        texts = [
            a.value if isinstance(a, ast.Constant) and isinstance(a.value, str) else None
            for a in node.args
        ]
        if func.attr in ("run_line_magic", "run_cell_magic"):
            name, line, body = ("", *texts, "", "")[1:4]
        else:
            name, line, body = (func.attr, *texts, "", "")[:3]
        self.magics.append(Magic(name or "", line or "", body or "", None not in texts))
        if name in _PYTHON_CELLS and body:
            self.python.append(body)
        if name in _PYTHON_LINES and line:
            self.python.append(_strip_options(line))
        for argument in node.args:
            if not isinstance(argument, ast.Constant):
                self.visit(argument)
        return True

    def _visit_text_run(self, node: ast.Call) -> bool:
        func = node.func
        if (
            isinstance(func, ast.Name)
            and func.id in ("exec", "eval")
            and len(node.args) == 1
            and not node.keywords
        ):
            text = node.args[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                self.python.append(text.value)
                return True
        elif (
            isinstance(func, ast.Name)
            and func.id in ("exec", "eval")
            and len(node.args) > 1
            and not _is_call_of(node.args[1], "globals")
        ):
            self.spaced.add(func.id)
        return False

    def _visit_globals_get(self, node: ast.Call) -> bool:
        """globals().get("x"): the text names what is read."""
        func = node.func
        if (
            isinstance(func, ast.Attribute)
            and func.attr == "get"
            and _is_call_of(func.value, "globals")
            and node.args
        ):
            key = node.args[0]
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self.exists.add(key.value)
                for other in node.args[1:]:
                    self.visit(other)
                return True
        return False


def _find_argument_root(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Starred):
        return None
    return root_name(node)


def _is_call_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _format_dotted_name(node: ast.expr) -> str:
    return ".".join(reversed(list(_find_dotted_parts(node))))


def _find_dotted_parts(node: ast.expr) -> Iterator[str]:
    while True:
        if isinstance(node, ast.Attribute):
            yield node.attr
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Name):
            yield node.id
            return
        else:
            return


def _strip_options(line: str) -> str:
    parts = line.split(" ")
    while parts and (parts[0].startswith("-") or not parts[0]):
        option = parts.pop(0)
        if option in ("-n", "-r", "-p", "-l", "-s", "-T", "-D") and parts:
            parts.pop(0)
    return " ".join(parts)
