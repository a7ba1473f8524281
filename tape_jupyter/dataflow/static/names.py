"""The names that a cell's text reads, binds and deletes. Pure: nothing is run, nothing imported.

The compiler decides what is a name of the notebook (bytecode of each top-level statement and of all
code nested in it); the syntax tree adds how each is used: `memo['a']`, `log.append(x)`,
`os.environ[k] = v`, magics, exec of a text.
"""

from __future__ import annotations

import ast
import opcode
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import CodeType

from IPython.core.inputtransformer2 import TransformerManager

from tape_jupyter.core.user_code import bag
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.dataflow.static.uses import (
    Touch,
    Uses,
    attribute_chain,
    find_called_name,
    statement_uses,
)

_WORD = re.compile(r"[^\W\d]\w*")
_NEW_LOCALS = 0x2
"""CO_NEWLOCALS: a function's code; a class's or module's has none."""
_AT_ONCE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_KINDS = {
    "LOAD_NAME": "read", "LOAD_GLOBAL": "read", "LOAD_FROM_DICT_OR_GLOBALS": "read", "STORE_GLOBAL": "store",
    "STORE_NAME": "bind", "DELETE_GLOBAL": "delete", "DELETE_NAME": "unbind", "IMPORT_NAME": "import",
    "IMPORT_STAR": "star", "CALL_INTRINSIC_1": "intrinsic", "EXTENDED_ARG": "extend",
}  # fmt: skip
_OPS = {op: _KINDS[name] for name, op in opcode.opmap.items() if name in _KINDS}
_GLOBAL = opcode.opmap["LOAD_GLOBAL"]
_STAR = 2
"""The intrinsic that `import *` calls from Python 3.12 on."""


@dataclass(frozen=True, slots=True)
class Code:
    """Names that one code object and what is nested in it use. `later`: in functions that it
    defines.
    """

    reads: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()
    later_reads: frozenset[str] = frozenset()
    later_stores: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()
    """Every name and attribute in it."""
    imports: bool = False
    star: bool = False


@lru_cache(8)
def parse_cell(transformed: str) -> ast.Module:
    return ast.parse(transformed)


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """A statement of a cell's text, as the shell's input transformers gave it. Its tree is made when
    it is asked for: trees of all cells that ever ran would be many objects for the collector.
    """

    text: str
    index: int

    def parse(self) -> ast.stmt:
        return parse_cell(self.text).body[self.index]


@dataclass(frozen=True, slots=True)
class Statement:
    """One top-level statement of a cell."""

    line: int
    end: int
    code: Code
    uses: Uses
    always: frozenset[str] = frozenset()
    """Names that it binds or deletes whatever happens, if it does not raise."""
    nested: frozenset[tuple[str, int]] = frozenset()
    """Functions and comprehensions in it that may run as it runs: (co_name, co_firstlineno)."""
    defines: frozenset[tuple[str, int]] = frozenset()
    texts: frozenset[str] = frozenset()
    """Texts that stand in it."""
    bound_first: frozenset[str] = frozenset()
    """Names that it only reads where it has bound them itself just before: `for x in xs: f(x)`."""
    caught: frozenset[str] = frozenset()
    """Names that `except ... as e` binds and removes again, and nothing else in it binds."""
    sets: str = ""
    """The part that it binds, and does nothing else: `math.pi` of `math.pi = 3`."""
    calm: bool = False
    """No other reply that it reads makes it raise."""
    calm_call: bool = False
    """No other reply that it asks for makes it raise."""
    repeats: bool = False
    """It holds a loop, a condition or a function."""
    writes_files: bool = False
    """It opens a file for writing, on some way through it."""
    displayed: bool = False
    """It is the last expression of its cell: the shell shows and keeps its value."""
    place: StatementPlace | None = None
    """None where it stands in a text that its cell runs."""

    def parse(self) -> ast.stmt | None:
        """Its syntax tree; None where it stands in a text that its cell runs."""
        return None if self.place is None else self.place.parse()

    @property
    def touches(self) -> tuple[Touch, ...]:
        return self.uses.touches


@dataclass(frozen=True, slots=True)
class ParsedCell:
    """A cell's statements; none, with `broken`, where the text is no Python."""

    statements: tuple[Statement, ...] = ()
    broken: bool = False
    text: str = ""
    dynamic: bool = field(default=False)
    """It holds exec, eval, globals() or a magic: more names may be used than its text tells."""


_KNOWN: dict[int, tuple[CodeType, Code]] = {}
"""By identity: the hash of a code object is computed anew each time, from all constants in it."""


def code_names(code: CodeType) -> Code:
    """Names of the notebook (or module) that a code object uses. A function's own code counts as
    running.
    """
    known = _KNOWN.get(identity(code))
    if known is None:
        if len(_KNOWN) >= _MANY:
            _KNOWN.clear()
        known = _KNOWN[identity(code)] = (
            code,
            _collect_names(code, top_level=bool(code.co_flags & _NEW_LOCALS)),
        )
    return known[1]


_MANY = 4096


def used_names(code: CodeType) -> Iterator[tuple[str, str]]:
    """(how, name) of each instruction that uses a name which is no local one: "read", "store",
    "bind" (in a module or class), "delete", "unbind", "import", "star".
    """
    names, bytecode, extended = code.co_names, code.co_code, 0
    for op, arg in zip(bytecode[::2], bytecode[1::2], strict=True):
        kind = _OPS.get(op)
        if kind is None:
            extended = 0
            continue
        if kind == "extend":
            extended = (extended | arg) << 8
            continue
        index, extended = extended | arg, 0
        if op == _GLOBAL:  # its lowest bit says whether a call follows
            yield kind, names[index >> 1]
        elif kind in ("star", "intrinsic"):
            if kind == "star" or index == _STAR:
                yield "star", "*"
        else:
            yield kind, names[index]


def _collect_names(code: CodeType, *, top_level: bool) -> Code:
    reads: set[str] = set()
    stores: set[str] = set()
    deletes: set[str] = set()
    imports = star = False
    in_class = not top_level and code.co_name != "<module>" and not code.co_flags & _NEW_LOCALS
    for kind, name in used_names(code):
        if kind == "read":
            reads.add(name)
        elif kind == "store" or (kind == "bind" and not in_class):
            stores.add(name)
        elif kind == "delete" or (kind == "unbind" and not in_class):
            deletes.add(name)
        elif kind == "import":
            imports = True
        elif kind == "star":
            star = True
    identifiers = set(code.co_names)
    if not identifiers.isdisjoint(_ASKED_BY_TEXT):
        reads.update(*(_AT_NAME.findall(text) for text in code_texts(code)))
    later_reads: set[str] = set()
    later_stores: set[str] = set()
    for inner in _find_nested_codes(code):
        nested_names = _collect_names(inner, top_level=False)
        identifiers |= nested_names.identifiers
        imports, star = imports or nested_names.imports, star or nested_names.star
        at_once = inner.co_name in _AT_ONCE or not inner.co_flags & _NEW_LOCALS
        (reads if at_once else later_reads).update(nested_names.reads)
        (stores if at_once else later_stores).update(
            nested_names.stores | (frozenset() if at_once else nested_names.deletes)
        )
        later_reads |= nested_names.later_reads
        later_stores |= nested_names.later_stores
    return Code(
        frozenset(reads), frozenset(stores), frozenset(deletes), frozenset(later_reads), frozenset(later_stores),
        frozenset(identifiers), imports, star,
    )  # fmt: skip


_ASKED_BY_TEXT = frozenset({"query", "eval"})
"""Methods of a frame whose text may ask for variables: `df.query("x > @least")`."""
_AT_NAME = re.compile(r"@([A-Za-z_]\w*)")


def _find_nested_codes(code: CodeType) -> Iterator[CodeType]:
    return (const for const in code.co_consts if isinstance(const, CodeType))


def all_nested(code: CodeType) -> Iterator[CodeType]:
    for inner in _find_nested_codes(code):
        yield inner
        yield from all_nested(inner)


@lru_cache(4096)
def code_texts(code: CodeType) -> frozenset[str]:
    """Texts that stand in a piece of code."""
    return frozenset(const for const in code.co_consts if isinstance(const, str))


_PLAIN = TransformerManager()  # type: ignore[no-untyped-call]


@lru_cache(2048)
def cell_names(transformed: str) -> ParsedCell:
    """The statements of a cell's text, as the shell's input transformers gave it (`transform`)."""
    try:
        statements = tuple(_parse_statements(transformed))
    except (SyntaxError, ValueError, RecursionError):
        return ParsedCell(broken=True, text=transformed)
    dynamic = any(s.uses.dynamic or s.uses.magics for s in statements)
    return ParsedCell(statements, text=transformed, dynamic=dynamic)


def replaced_names(cell: ParsedCell) -> set[str]:
    """Names that a cell binds anew before it reads them, if it binds them at all: it does nothing
    to the values that they had, by these names.
    """
    if cell.broken or cell.dynamic:
        return set()
    named: Counter[str] = Counter()
    replaced: set[str] = set()
    for statement in cell.statements:
        code = statement.code
        before = code.reads | code.later_reads | code.later_stores | statement.uses.exists
        replaced |= {name for name in statement.always - before if not named[name]}
        named.update(before | code.stores | code.deletes)
    for statement in cell.statements:
        replaced |= {name for name in statement.bound_first if named[name] == 1}
    return replaced


def assigned_names(transformed: str) -> set[str]:
    """Names that a cell's own text binds, or sets an item or attribute of."""
    statements = cell_names(transformed).statements
    bound = {name for each in statements for name in each.code.stores | each.uses.binds}
    touches = (touch for each in statements for touch in each.uses.touches)
    return bound | {touch.root for touch in touches if touch.how in ("item", "attr", "aug")}


def transform(source: str) -> str:
    """Magics and shell lines as the Python that IPython makes of them. Takes off a `%%tape` line
    first.
    """
    lead = ""
    if re.match(r"\s*%%tape\b(?!\s+override\b)", source):
        source = source.partition("\n")[2]
        rest = source.lstrip("\n")
        if not rest.startswith(
            "%%"
        ):  # the lines keep their numbers, as they do when the cell is run
            lead = "\n" * (1 + len(source) - len(rest))
        source = rest
    try:
        return lead + _PLAIN.transform_cell(source)
    except (SyntaxError, ValueError, RecursionError):
        return lead + source


def _parse_statements(transformed: str) -> Iterator[Statement]:
    body = parse_cell(transformed).body
    for index, node in enumerate(body):
        shown = node is body[-1] and isinstance(node, ast.Expr)
        yield from _parse_statement(node, StatementPlace(transformed, index), shown=shown)


def _parse_statement(node: ast.stmt, place: StatementPlace, *, shown: bool) -> Iterator[Statement]:
    module = ast.Module([node], [])
    code = compile(module, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    names, used = code_names(code), statement_uses(node)
    line, end = node.lineno, node.end_lineno or node.lineno
    bodies = [inner for inner in used.python if inner.strip()]
    if (
        bodies
    ):  # %%time and its like, and exec of a text that stands here: what it says is said by the cell
        for text in bodies:
            inner_cell = cell_names(transform(text))
            for each in inner_cell.statements:
                code_ = _merge_codes(names, each.code)
                yield replace(
                    each, line=line, end=end, code=code_, uses=used.joined(each.uses), always=frozenset(),
                    nested=frozenset(), defines=frozenset(), displayed=shown, sets="", calm=False, calm_call=False,
                    place=None,
                )  # fmt: skip
        return
    nodes = list(ast.walk(node))
    kinds = set(map(type, nodes))
    inside = frozenset((c.co_name, c.co_firstlineno) for c in all_nested(code))
    defined = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    defines = frozenset(
        (c.co_name, c.co_firstlineno)
        for c in _find_nested_codes(code)
        if defined and c.co_name == getattr(node, "name", "")
    )
    always = frozenset(_find_bound_always(node)) & (names.stores | names.deletes)
    calls = _count_unsure_calls(node, nodes)
    yield Statement(
        line, end, names, used, always, inside - defines, defines, frozenset(_find_texts(nodes)),
        frozenset(_find_bound_first(node)), frozenset(_find_caught_names(nodes) if ast.ExceptHandler in kinds else ()),
        _find_set_attribute(node), calls == 0, calls is not None and calls <= 1,
        not kinds.isdisjoint(_REPEATING), _may_write_files(nodes), shown, place,
    )  # fmt: skip


def _merge_codes(one: Code, other: Code) -> Code:
    return Code(
        one.reads | other.reads, one.stores | other.stores, one.deletes | other.deletes,
        one.later_reads | other.later_reads, one.later_stores | other.later_stores,
        one.identifiers | other.identifiers, one.imports or other.imports, one.star or other.star,
    )  # fmt: skip


def _find_bound_always(node: ast.stmt) -> Iterator[str]:
    """Names that this statement binds (or deletes) on every way through it that does not raise."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (name for target in node.targets for name in _find_target_names(target))
    elif isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.AnnAssign) and node.value is not None
    ):
        yield from _find_target_names(node.target)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Delete):
        yield from (name for target in node.targets for name in _find_target_names(target))
    elif isinstance(node, ast.With | ast.AsyncWith):
        yield from _find_bound_in_context(node)
    elif isinstance(node, ast.If):
        yield from set(_find_bound_in(node.body)) & set(_find_bound_in(node.orelse))
    elif isinstance(node, ast.Try):
        yield from _find_bound_in(node.finalbody)


def _find_bound_in_context(node: ast.With | ast.AsyncWith) -> Iterator[str]:
    for item in node.items:
        if item.optional_vars:
            yield from _find_target_names(item.optional_vars)
    if all(_is_open_call(item.context_expr) for item in node.items):
        yield from _find_bound_in(node.body)


def _is_open_call(node: ast.expr) -> bool:
    """Whether a context is a file's: it catches no error that its body raises, as others may."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"


def _find_bound_in(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Return | ast.Break | ast.Continue):
            return
        yield from _find_bound_always(node)


def _find_target_names(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Starred):
        yield from _find_target_names(node.value)
    elif isinstance(node, ast.Tuple | ast.List):
        for each in node.elts:
            yield from _find_target_names(each)


def find_identifiers(text: str) -> frozenset[str]:
    """Identifiers in a magic's or the shell's text: each may be a name that is read."""
    return frozenset(_WORD.findall(text))


def _find_texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _find_set_attribute(node: ast.stmt) -> str:
    if (
        isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Attribute)
    ):
        return found[1] if (found := attribute_chain(node.targets[0])) else ""
    return ""


def _find_caught_names(nodes: Sequence[ast.AST]) -> set[str]:
    caught = {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}
    return caught - {
        n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }


def _find_bound_first(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.For | ast.AsyncFor):
        used = {n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)}
        used |= {n.id for each in node.orelse for n in ast.walk(each) if isinstance(n, ast.Name)}
        yield from set(_find_target_names(node.target)) - used
    elif isinstance(node, ast.With | ast.AsyncWith):
        used = {
            n.id
            for item in node.items
            for n in ast.walk(item.context_expr)
            if isinstance(n, ast.Name)
        }
        yield from {
            n for i in node.items if i.optional_vars for n in _find_target_names(i.optional_vars)
        } - used


_SURE = bag(
    "print len str repr list tuple set dict bool type display append add strip lstrip rstrip lower upper title "
    "split splitlines items keys values get setdefault isinstance id format_map"
)
_PLAIN_NODES = frozenset(
    {ast.Expr, ast.Assign, ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.JoinedStr, ast.FormattedValue, ast.Dict,
     ast.List, ast.Tuple, ast.Load, ast.Store, ast.Await, ast.keyword, ast.Import, ast.ImportFrom, ast.alias, ast.Pass}
)  # fmt: skip


def _count_unsure_calls(node: ast.stmt, nodes: Iterable[ast.AST]) -> int | None:
    """How many calls in a plain statement may raise for another value; None where it is no plain
    statement.
    """
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
        return 0
    count = 0
    for each in nodes:
        if (
            isinstance(each, ast.Subscript)
            and isinstance(each.ctx, ast.Store)
            and isinstance(each.slice, ast.Constant)
        ):
            continue
        if type(each) not in _PLAIN_NODES or (
            isinstance(each, ast.Tuple) and isinstance(each.ctx, ast.Store)
        ):
            return None
        if isinstance(each, ast.Call):
            count += find_called_name(each.func) not in _SURE
    return count


_REPEATING = (
    ast.For, ast.While, ast.AsyncFor, ast.If, ast.Try, ast.IfExp, ast.BoolOp, ast.comprehension, ast.Lambda, ast.With,
)  # fmt: skip


def _may_write_files(nodes: Iterable[ast.AST]) -> bool:
    for each in nodes:
        if isinstance(each, ast.Call) and find_called_name(each.func) == "open":
            named = [keyword.value for keyword in each.keywords if keyword.arg == "mode"]
            if any(map(_is_writing_mode, [*each.args[:2], *named])):
                return True
    return False


def _is_writing_mode(node: ast.expr) -> bool:
    """Whether an argument of `open` is a mode that writes. `Path.open` has it first, `open` second:
    a file's name of three letters is taken for one at worst.
    """
    mode = node.value if isinstance(node, ast.Constant) else None
    return isinstance(mode, str) and len(mode) < 4 and not set("wax+").isdisjoint(mode)
