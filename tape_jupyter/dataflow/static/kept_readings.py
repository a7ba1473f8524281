"""What cells keep of the clock and of chance, as far as their text tells for certain.

`started = time.time()` keeps a reading: without the tape it is another one in each run. A cell that
only prints it keeps nothing. So do functions and classes of the notebook that give, keep or are made
with a reading. What a branch may or may not do, and what unknown functions do, is not told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from tape_jupyter.core.user_code import bag
from tape_jupyter.dataflow.static.names import transform

What = Literal["clock", "chance"]
Kept = dict[str, What]
"""By variable, what a reading of is kept in it."""

_CLOCKS = bag(
    "time.time time.time_ns time.monotonic time.monotonic_ns time.perf_counter time.perf_counter_ns "
    "time.localtime time.gmtime time.ctime datetime.datetime.now datetime.datetime.utcnow "
    "datetime.datetime.today datetime.date.today pandas.Timestamp.now pandas.Timestamp.utcnow "
    "pandas.Timestamp.today arrow.now arrow.utcnow pendulum.now"
)
_OF_A_TIME = bag("time.localtime time.gmtime time.ctime")
"""Clocks, unless a time is given."""
_CHANCES = bag(
    "uuid.uuid1 uuid.uuid4 os.urandom secrets.token_hex secrets.token_bytes secrets.token_urlsafe "
    "secrets.randbelow secrets.choice secrets.randbits"
)
_DRAWS = re.compile(
    r"(random|numpy\.random)\."
    r"(random|randint|randrange|choices?|sample|uniform|gauss|normal|normalvariate|rand|randn|permutation|shuffle)"
)
_KEEPS_ITS_ARGUMENT = bag("append add extend update insert setdefault appendleft put put_nowait")
_GIVES_ITS_ARGUMENT = bag("str int float round repr abs list tuple set dict format sorted")
_MAGIC = re.compile(r"\s*%%(time|capture)\b.*\n")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class _Function:
    """A function or class of the notebook: what its result is made of, and what calling it keeps."""

    gives: What | None = None
    keeps: Kept = field(default_factory=dict)


class KeptReadings:
    """Goes through the cells of a notebook in their order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        """Names of libraries and of what is in them, by the names that the notebook has for them."""
        self._functions: dict[str, _Function] = {}
        self._seeded: set[str] = set()

    def of_cell(self, source: str) -> Kept:
        """What the next cell keeps."""
        kept: Kept = {}
        with suppress(SyntaxError, ValueError, RecursionError):
            for statement in ast.parse(transform(_MAGIC.sub("", source, count=1))).body:
                kept |= self._of_statement(statement)
        return kept

    def _of_statement(self, statement: ast.stmt) -> Kept:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._names |= _imported(statement)
            return {}
        if isinstance(statement, _FUNCTION):
            self._functions[statement.name] = self._of_function(statement)
            return {}
        if isinstance(statement, ast.ClassDef):
            self._functions[statement.name] = self._of_class(statement)
            return {}
        if isinstance(statement, ast.If | ast.Match):
            return {}
        self._note_seeds(statement)
        kept = self._of_calls(statement)
        if isinstance(
            statement, ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith | ast.Try
        ):
            for each in statement.body:
                kept |= self._of_statement(each)
            return kept
        return kept | self._of_simple(statement)

    def _of_simple(self, statement: ast.stmt) -> Kept:
        """What one statement that holds no others keeps itself."""
        match statement:
            case ast.Assign(targets=targets, value=ast.Lambda(body=body)):
                self._functions |= {
                    name: _Function(self._reading(body))
                    for each in targets
                    for name in _roots(each)
                }
            case ast.Assign(targets=targets, value=value):
                return self._of_assignment(targets, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
            ):
                return self._of_assignment([target], value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr=name)) as call):
                values = [*call.args, *(each.value for each in call.keywords)]
                what = self._first(values)
                if what and name in _KEEPS_ITS_ARGUMENT:
                    return dict.fromkeys(_roots(held), what)
        return {}

    def _of_assignment(self, targets: Iterable[ast.expr], value: ast.expr) -> Kept:
        kept: Kept = {}
        for target in targets:
            for one, other in _pairs(target, value):
                what = self._reading(other)
                names = set(_roots(one))
                if isinstance(one, ast.Name):
                    self._forget(names)
                if what:
                    kept |= dict.fromkeys(names, what)
        return kept

    def _forget(self, names: Iterable[str]) -> None:
        """They stand for something else from here on."""
        for name in names:
            self._names.pop(name, None)
            self._functions.pop(name, None)

    def _of_calls(self, statement: ast.stmt) -> Kept:
        """What functions of the notebook keep that a statement calls in any case."""
        kept: Kept = {}
        for call in _calls_in(statement):
            if isinstance(call.func, ast.Name) and call.func.id in self._functions:
                kept |= self._functions[call.func.id].keeps
        return kept

    def _note_seeds(self, statement: ast.stmt) -> None:
        for call in _calls_in(statement):
            name = self._dotted(call.func)
            if name.endswith(".seed") and call.args:
                self._seeded.add(name.removesuffix(".seed"))

    # ---------------------------------------------------------------- functions

    def _of_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> _Function:
        found = _Function()
        if any(self._dotted(_called(each)) == "tenacity.retry" for each in function.decorator_list):
            found.keeps[function.name] = "clock"  # its `statistics`
        shared = {
            name for each in function.body if isinstance(each, ast.Global) for name in each.names
        }
        own = {
            argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)
        }
        own |= set(_bound_in(function)) - shared
        for each in function.body:
            if isinstance(each, ast.Return) and each.value is not None:
                found.gives = found.gives or self._reading(each.value)
            elif not isinstance(each, _FUNCTION | ast.ClassDef):
                found.keeps |= self._of_body(each, own)
        return found

    def _of_body(self, statement: ast.stmt, own: set[str]) -> Kept:
        names, functions = dict(self._names), dict(self._functions)
        try:
            kept = self._of_simple(statement)
        finally:
            self._names, self._functions = names, functions
        return {name: what for name, what in kept.items() if name not in own}

    def _of_class(self, made: ast.ClassDef) -> _Function:
        """What an object of the class is made with."""
        for each in made.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.value, ast.Call):
                for keyword in each.value.keywords:
                    if keyword.arg == "default_factory" and (what := self._read_by(keyword.value)):
                        return _Function(what)
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                for one in each.body:
                    if kept := self._of_body(one, set()).get("self"):
                        return _Function(kept)
        return _Function()

    # ---------------------------------------------------------------- expressions

    def _reading(self, value: ast.expr | None) -> What | None:  # noqa: PLR0911 - one line a kind
        """What the value is a reading of, or made of one."""
        match value:
            case ast.Call():
                return self._reading_of_call(value)
            case ast.BinOp(left=left, right=right):
                return self._reading(left) or self._reading(right)
            case ast.UnaryOp(operand=inner) | ast.Await(value=inner) | ast.Starred(value=inner):
                return self._reading(inner)
            case ast.FormattedValue(value=inner) | ast.Attribute(value=inner):
                return self._reading(inner)
            case ast.NamedExpr(value=inner) | ast.Subscript(value=inner):
                return self._reading(inner)
            case ast.JoinedStr(values=items) | ast.Tuple(elts=items) | ast.List(elts=items):
                return self._first(items)
            case ast.Set(elts=items):
                return self._first(items)
            case ast.Dict(values=items):
                return self._first([*(key for key in value.keys if key is not None), *items])
            case ast.ListComp(elt=inner) | ast.SetComp(elt=inner):
                return self._reading(inner)
        return None

    def _first(self, values: Iterable[ast.expr]) -> What | None:
        return next(filter(None, map(self._reading, values)), None)

    def _reading_of_call(self, call: ast.Call) -> What | None:
        if what := self._read_by(call.func, call):
            return what
        if isinstance(call.func, ast.Attribute) and (what := self._reading(call.func.value)):
            return what
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in _GIVES_ITS_ARGUMENT or name[:1].isupper():  # a class is made with it
            return self._first([*call.args, *(each.value for each in call.keywords)])
        return None

    def _read_by(self, function: ast.expr, call: ast.Call | None = None) -> What | None:
        """What calling that gives a reading of."""
        if isinstance(function, ast.Name) and function.id in self._functions:
            return self._functions[function.id].gives
        if isinstance(function, ast.Lambda):
            return self._reading(function.body)
        name = self._dotted(function)
        if name in _CLOCKS:
            return None if call is not None and call.args and name in _OF_A_TIME else "clock"
        if name == "time.strftime":
            return "clock" if call is not None and len(call.args) == 1 else None
        drawn = _DRAWS.fullmatch(name)
        if name in _CHANCES or (drawn is not None and drawn[1] not in self._seeded):
            return "chance"
        return None

    def _dotted(self, expression: ast.expr) -> str:
        """`datetime.datetime.now` of `dt.datetime.now`; "" where it is not known."""
        parts: list[str] = []
        while isinstance(expression, ast.Attribute):
            parts.append(expression.attr)
            expression = expression.value
        root = self._names.get(expression.id, "") if isinstance(expression, ast.Name) else ""
        return ".".join([root, *reversed(parts)]) if root else ""


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(statement, ast.ImportFrom):
        found = {
            each.asname or each.name: f"{statement.module}.{each.name}" for each in statement.names
        }
        return found if statement.level == 0 else {}
    return {
        each.asname or each.name.partition(".")[0]: each.name
        if each.asname
        else each.name.partition(".")[0]
        for each in statement.names
    }


def _called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _bound_in(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _roots(target: ast.expr) -> Iterator[str]:
    """The variables in which something is bound, or held."""
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _roots(each)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`a, b = x, y` binds two."""
    sequence = ast.Tuple | ast.List
    if (
        isinstance(target, sequence)
        and isinstance(value, sequence)
        and len(target.elts) == len(value.elts)
    ):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement itself: not those of functions that it defines, or of what it holds."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        inner = ast.Lambda | ast.IfExp | ast.BoolOp | ast.GeneratorExp
        waiting += [
            each
            for each in ast.iter_child_nodes(node)
            if not isinstance(each, ast.stmt | inner | ast.ExceptHandler)
        ]
