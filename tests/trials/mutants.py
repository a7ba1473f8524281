"""How many small faults the tests see: change one place of a module, run the tests that reach it, count who fails.

    python tests/trials/mutants.py map                        # which test runs which line (20 minutes)
    python tests/trials/mutants.py run --count 400 --seed 1   # mutants drawn at random; prints those that lived

The operators are cosmic-ray's: a comparison, `and`/`or`, arithmetic, a number, True and False, a condition negated,
a loop that ends at once or never begins, an `except` that catches nothing; and a statement left out and a result lost.
`map` needs the package `coverage`, which no other test does. A mutant is a fork of a process that has imported what tests import from elsewhere; its module is compiled from the
changed tree. Programs that a test starts import the unchanged module, so that kernels and browsers count for nothing.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGETS = (
    "tape_jupyter/cassette",
    "tape_jupyter/replay",
    "tape_jupyter/providers",
    "tape_jupyter/session/interceptor.py",
)
TESTS = ("tests/unit", "tests/hostile/test_cassettes.py")
MAP = ROOT / ".mutants" / "map.json"
_IMPORTED_BEFORE = (
    "pytest",
    "hypothesis",
    "httpx",
    "anthropic",
    "openai",
    "numpy",
    "pandas",
    "IPython",
)
_MOST_SECONDS = 60.0
_ENDS = {0: "lived", -signal.SIGXCPU: "hung", -signal.SIGKILL: "hung"}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change: `number` counts the places of a file that an operator fits, in the order of the tree."""

    file: str
    number: int
    line: int
    what: str


# --- changing a tree


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _walk(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Every place below a node that holds one, annotations left out: its parent, the field, and the index there."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        items = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, item in items:
            if isinstance(item, ast.AST):
                yield node, name, index
                yield from _walk(item)


def _changes(parent: ast.AST, name: str, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may stand instead of a node: a sentence and the other node."""
    match node:
        case ast.Compare(ops=[operator]):
            other = copy.deepcopy(node)
            other.ops = [_COMPARISONS[type(operator)]()]
            yield f"{type(operator).__name__} -> {type(other.ops[0]).__name__}", other
        case ast.BoolOp():
            other_op = copy.deepcopy(node)
            other_op.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and <-> or", other_op
        case ast.UnaryOp(op=ast.Not()):
            yield "not left out", node.operand
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            if _is_text(node.left) or _is_text(node.right) or isinstance(node.left, ast.JoinedStr):
                return
            other_sum = copy.deepcopy(node)
            other_sum.op = _ARITHMETIC[type(node.op)]()
            yield f"{type(node.op).__name__} -> {type(other_sum.op).__name__}", other_sum
        case ast.Constant(value=bool()):
            yield f"{node.value} -> {not node.value}", ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield f"{node.value} -> {node.value + 1}", ast.Constant(node.value + 1)
        case ast.If() | ast.IfExp() | ast.While():
            negated = copy.deepcopy(node)
            negated.test = ast.UnaryOp(ast.Not(), negated.test)
            yield "condition negated", negated
        case ast.Break():
            yield "break -> continue", ast.Continue()
        case ast.Continue():
            yield "continue -> break", ast.Break()
        case ast.For() if not isinstance(parent, ast.Module):
            never = copy.deepcopy(node)
            never.iter = ast.List([], ast.Load())
            yield "loop that never begins", never
        case ast.ExceptHandler(type=ast.AST()):
            nothing = copy.deepcopy(node)
            nothing.type = ast.Tuple([], ast.Load())
            yield "except that catches nothing", nothing
        case ast.Expr(value=ast.Call()):
            yield "call left out", ast.Pass()
        case ast.Return(value=ast.AST()) if not _returns_none(node):
            yield "returns None", ast.Return(ast.Constant(None))


def _returns_none(node: ast.Return) -> bool:
    return isinstance(node.value, ast.Constant) and node.value.value is None


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, str, ast.AST]]:
    for parent, name, index in _walk(tree):
        value = getattr(parent, name)
        node = value if index is None else value[index]
        for what, other in _changes(parent, name, node):
            yield parent, name, index, what, other


def mutants_of(file: str) -> list[Mutant]:
    tree = ast.parse((ROOT / file).read_text())
    found = []
    for number, (parent, name, index, what, _) in enumerate(_places(tree)):
        value = getattr(parent, name)
        node = value if index is None else value[index]
        line = getattr(node, "lineno", None) or getattr(parent, "lineno", 0)
        found.append(Mutant(file, number, line, what))
    return found


def mutated(mutant: Mutant) -> ast.Module:
    tree = ast.parse((ROOT / mutant.file).read_text())
    for number, (parent, name, index, _, other) in enumerate(_places(tree)):
        if number != mutant.number:
            continue
        old = getattr(parent, name)
        ast.copy_location(other, old if index is None else old[index])
        if index is None:
            setattr(parent, name, other)
        else:
            old[index] = other
        return ast.fix_missing_locations(tree)
    raise LookupError(mutant)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the changed module to whoever imports it."""

    def __init__(self, mutant: Mutant) -> None:
        self.path = ROOT / mutant.file
        parts = Path(mutant.file).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.code = compile(mutated(mutant), str(self.path), "exec")

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        where = [str(self.path.parent)] if self.is_package else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=where
        )

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        exec(self.code, module.__dict__)


# --- running


def _fork(mutant: Mutant | None, tests: Sequence[str], seconds: int) -> str:
    """ "killed", "lived" or "hung": how the tests ended in a fork with the changed module. It hangs where it takes so
    many seconds of the processor, or ten times as long without: a busy machine is slow, and no fault.
    """
    pid = os.fork()
    if not pid:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        quiet = os.open(os.devnull, os.O_RDWR)
        for each in (0, 1, 2):
            os.dup2(quiet, each)
        if mutant is not None:
            sys.meta_path.insert(0, _Finder(mutant))
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--timeout=300"]
        code = pytest.main([*options, *tests])
        os._exit(int(code))
    end = time.monotonic() + 10 * seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return _ENDS.get(code, "killed")
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


def _spread(tests: Sequence[str], seconds: dict[str, float], most: float) -> list[str]:
    """The fastest tests, function by function in turn, up to so many seconds."""
    by_function: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda each: seconds.get(each, 1.0)):
        by_function[test.split("[")[0]].append(test)
    chosen, total = [], 0.0
    for turn in range(max(map(len, by_function.values()), default=0)):
        for each in by_function.values():
            if turn < len(each) and total + seconds.get(each[turn], 1.0) <= most:
                chosen.append(each[turn])
                total += seconds.get(each[turn], 1.0)
    return chosen


def _find_tests(mutant: Mutant, reach: dict[str, Any]) -> list[str]:
    """Who runs its line. What stands outside functions runs as the module is imported, under whichever test does that
    first: there, who runs anything of the module, else of its folder.
    """
    lines = reach["lines"].get(mutant.file, {})
    for node in ast.walk(ast.parse((ROOT / mutant.file).read_text())):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and node.body[0].lineno <= mutant.line <= (node.end_lineno or 0):
            return lines.get(str(mutant.line)) or _find_tests_of_statement(node, mutant.line, lines)
    folder = Path(mutant.file).parent
    beside = [each for file, each in reach["lines"].items() if Path(file).parent == folder]
    for modules in ([lines], beside):
        tests = dict.fromkeys(test for each in modules for found in each.values() for test in found)
        if tests:
            break
    return list(tests)


def _find_tests_of_statement(
    function: ast.AST, line: int, lines: dict[str, list[str]]
) -> list[str]:
    """Who runs a statement that is written on several lines: what begins or ends it counts as none of them."""
    around = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.stmt) and each.lineno <= line <= (each.end_lineno or 0)
    ]
    inner = max(around, key=lambda each: each.lineno)
    header = inner.test if isinstance(inner, ast.If | ast.While) else inner
    numbers = range(header.lineno, (header.end_lineno or header.lineno) + 1)
    return list(dict.fromkeys(test for number in numbers for test in lines.get(str(number), [])))


def _judge(mutant: Mutant, reach: dict[str, Any]) -> str:
    tests = _find_tests(mutant, reach)
    if not tests:
        return "not reached"
    quick = _spread(tests, reach["seconds"], 4.0)[:60]
    end = _fork(mutant, quick, 30) if quick else "lived"
    if end != "lived":
        return end
    rest = [each for each in _spread(tests, reach["seconds"], _MOST_SECONDS) if each not in quick]
    return _fork(mutant, rest[:600], 180) if rest else "lived"


def run(count: int, seed: int, only: str, control: int) -> int:
    reach = json.loads(MAP.read_text())
    for name in _IMPORTED_BEFORE:
        importlib.import_module(name)
    files = sorted(reach["lines"])
    every = [mutant for file in files if only in file for mutant in mutants_of(file)]
    drawn = random.Random(seed).sample(every, min(count, len(every)))
    print(f"{len(every)} places in {len(files)} files; {len(drawn)} drawn", flush=True)
    ends: Counter[str] = Counter()
    for position, mutant in enumerate(drawn):
        if position < control:
            tests = _find_tests(mutant, reach)
            clean = (
                _fork(None, _spread(tests, reach["seconds"], 4.0)[:60], 30) if tests else "lived"
            )
            if clean != "lived":
                print(f"control: tests of {mutant.file}:{mutant.line} fail unchanged", flush=True)
        end = _judge(mutant, reach)
        ends[end] += 1
        if end in {"lived", "not reached"}:
            print(f"{end}: {mutant.file}:{mutant.line}: {mutant.what}", flush=True)
        if position % 25 == 24:
            print(f"  {position + 1} of {len(drawn)}: {dict(ends)}", flush=True)
    dead = ends["killed"] + ends["hung"]
    print(json.dumps({**ends, "share": round(dead / max(1, len(drawn)), 3)}))
    return 0


# --- which test runs which line


class _Contexts:
    """A pytest plugin: coverage files each line under the test that runs it, and how long the test took is kept."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}

    def pytest_runtest_setup(self, item: Any) -> None:
        self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


def make_map(tests: Sequence[str]) -> int:
    import coverage
    import pytest

    MAP.parent.mkdir(exist_ok=True)
    watched = coverage.Coverage(
        data_file=str(MAP.parent / "coverage"),
        source_pkgs=None,
        include=[f"{ROOT}/{each}{'' if each.endswith('.py') else '/*'}" for each in TARGETS],
        config_file=False,
    )
    contexts = _Contexts(watched)
    watched.start()
    code = pytest.main(["-q", "--timeout=0", "-p", "no:cacheprovider", *tests], plugins=[contexts])
    watched.stop()
    data = watched.get_data()
    lines: dict[str, dict[str, list[str]]] = {}
    for target in TARGETS:
        where = ROOT / target
        for path in [where] if where.is_file() else sorted(where.rglob("*.py")):
            by_line = data.contexts_by_lineno(str(path))
            name = path.relative_to(ROOT).as_posix()
            lines[name] = {str(line): [t for t in found if t] for line, found in by_line.items()}
    MAP.write_text(json.dumps({"lines": lines, "seconds": contexts.seconds}))
    return int(code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["map", "run"])
    parser.add_argument("tests", nargs="*", default=list(TESTS))
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="files whose path has this in it")
    parser.add_argument("--control", type=int, default=10, help="so many are tried unchanged first")
    args = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    if args.what == "map":
        return make_map(args.tests)
    return run(args.count, args.seed, args.only, args.control)


if __name__ == "__main__":
    sys.exit(main())
