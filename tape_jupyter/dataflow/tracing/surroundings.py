"""What a statement has to do with the world around the names: files, processes, state of the
process and of libraries, results that the shell keeps, tasks that run on.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import sys
import types
from collections.abc import Iterable
from functools import partial
from typing import Any

from tape_jupyter.core.user_code import MACHINERY, bag
from tape_jupyter.dataflow.static.effects import MUTATORS, code_changes
from tape_jupyter.dataflow.static.names import Statement, code_names, code_texts
from tape_jupyter.dataflow.static.outcomes.values import source_of
from tape_jupyter.dataflow.static.uses import Touch
from tape_jupyter.dataflow.tracing.ambient import (
    ENVIRONMENT,
    PANDAS,
    names_environment,
    options_read,
    options_set,
    variables_of,
)
from tape_jupyter.dataflow.tracing.files import UNHEARD
from tape_jupyter.dataflow.tracing.folders import may_write
from tape_jupyter.dataflow.tracing.observations import Draft, ExecutionFacts
from tape_jupyter.dataflow.tracing.variables import MISSING, is_library, is_module_of_users

SETTING: dict[str, frozenset[str]] = {
    "environment": frozenset({"putenv", "unsetenv", "load_dotenv", "set_env", "env"}),
    "cwd": frozenset({"chdir", "fchdir", "cd", "pushd", "popd"}),
    "random": bag("seed setstate shuffle choice choices sample randint uniform gauss randrange"),
    "decimal": frozenset({"getcontext", "DefaultContext", "setcontext", "prec", "localcontext"}),
    "locale": frozenset({"setlocale"}),
    "csv": frozenset({"field_size_limit"}),
    "umask": frozenset({"umask"}),
    "calendar": frozenset({"setfirstweekday"}),
    "time zone": frozenset({"tzset"}),
    "logging": bag(
        "addLevelName setLevel basicConfig disable addHandler removeHandler dictConfig fileConfig"
    ),
    "warnings": frozenset({"filterwarnings", "simplefilter", "resetwarnings"}),
    "process": frozenset(
        {
            "signal",
            "setrecursionlimit",
            "setswitchinterval",
            "setdefaulttimeout",
            "excepthook",
            "displayhook",
        }
    ),
    "numpy": frozenset({"set_printoptions", "seterr"}),
    "pandas": frozenset({"set_option", "reset_option", "options"}),
    "matplotlib": frozenset({"rcParams", "rc", "rcdefaults", "style"}),
}
"""Words of a text that may change a part of the ambient state, whether it did so this time or not."""

_SEEDS = {"random": ("random.seed",), "numpy random": ("np.random.seed", "numpy.random.seed")}
_WRITERS = bag(
    "write_text write_bytes to_csv to_json to_parquet to_pickle to_excel savefig savez savetxt mkdir makedirs "
    "remove unlink rename rmtree copyfile copytree touch symlink_to writefile dump"
)
_LOOKERS = bag(
    "exists isfile isdir is_file is_dir stat getsize getmtime glob rglob iglob listdir scandir walk iterdir"
)
_STATS = bag(
    "posix.stat posix.lstat posix.access nt.stat nt.lstat posix._path_exists nt._path_exists"
)
_QUIET = bag(
    "time json os posix nt shutil asyncio pprint random tqdm sys gc subprocess threading functools dataclasses "
    "typing abc contextlib collections itertools enum pathlib io tempfile glob copy string re math operator queue "
    "concurrent pandas numpy matplotlib decimal warnings sqlite3 csv pickle textwrap datetime types contextvars "
    "heapq bisect statistics hashlib base64 struct"
)
"""Libraries whose calls for their effect alone change no state of their own that is not looked at
elsewhere.
"""
_OPTIONED = bag("pandas numpy warnings")
"""Libraries whose settings are looked at after each cell."""
_SETS = re.compile(
    r"(un)?register|set|add_|install|patch|enable|disable|use|filter|reset|clear|init|configure|push|mount"
)
_SAYING = bag("debug info warning warn error critical exception log")
_SHELL_CALLS = bag(
    "push run_cell run_line_magic run_cell_magic ev ex system getoutput set_next_input user_ns"
)
_SHELL_MAGICS = bag(
    "precision config load_ext reload_ext unload_ext alias unalias macro autoreload colors pprint xmode autocall "
    "automagic pdb"
)
_WAITING = bag(
    "sleep join result get wait gather shutdown as_completed set put send release recv run_until_complete "
    "is_alive done communicate poll acquire empty qsize"
)
_PURE = bag(
    "math cmath json re collections itertools functools string textwrap statistics dataclasses typing operator "
    "copy heapq bisect enum abc types contextlib hashlib base64 struct fractions numbers html unicodedata difflib "
    "pprint ast uuid zlib csv asyncio queue threading concurrent sre_compile sre_parse keyword reprlib codecs "
    "encodings inspect weakref annotationlib tapestub decimal random io genericpath posixpath stat "
    "codeop bdb linecache tokenize distutils_hack tapereplies select selectors contextvars time weakrefset"
)

_OF_TABLES = bag(
    "pandas numpy dateutil pytz os posix nt pathlib mmap bz2 lzma gzip zipfile tarfile warnings abc sys platform "
    "urllib zstandard zipimport importlib pyarrow"
)
"""With those of _PURE, the packages whose code runs where pandas reads or writes a file."""


class Surroundings:
    """Adds to each draft of one execution; a thing that nobody's text claims goes to every
    statement that calls.
    """

    def __init__(self, seen: ExecutionFacts) -> None:
        self.seen = seen
        self._reached_whole = seen.ran.whole_builtins
        self._claimants: dict[str, list[Statement]] = {}
        self._identifiers = frozenset[str]()
        """Every name and attribute in the draft that is added now, and in the code that it reaches."""
        self._impure = _find_impure_packages(seen.ran.packages)
        """Packages that ran and may look at anything."""
        self._differs = _find_different_names(seen) if seen.background else frozenset[str]()
        """Names that hold something else than before."""

    def add(self, draft: Draft) -> None:
        self._identifiers = self._find_identifiers(draft)
        self._add_files(draft)
        self._add_libraries(draft)
        self._add_ambient(draft)
        self._add_shell(draft)
        self._narrow_environment(draft)
        if self.seen.background and self._may_wait(draft):
            draft.reads.add("ambient:background")
        if self.seen.leaves_background and self._may_act(draft):
            draft.weak.add("ambient:background")

    def _may_act(self, draft: Draft) -> bool:
        used = draft.statement.uses
        return bool(
            used.called or used.magics or draft.codes or used.awaits or draft.statement.code.imports
        )

    def _may_wait(self, draft: Draft) -> bool:
        """Whether tasks or threads that run on may show in it: it waits for them, or something
        changed by itself.
        """
        if draft.statement.uses.awaits or not self._identifiers.isdisjoint(_WAITING):
            return True
        return bool(self._differs - draft.reach - self.seen.variables.sharing(draft.reach))

    def _is_finished(self, draft: Draft) -> bool:
        failed = self.seen.failed_at
        return failed is None or (failed > 0 and draft.statement.end < failed)

    def _find_identifiers(self, draft: Draft) -> frozenset[str]:
        reached = map(self.seen.variables.prints.get, draft.reach)
        codes = [draft.codes, *(known.codes for known in reached if known is not None)]
        return draft.statement.code.identifiers.union(
            {m.name for m in draft.statement.uses.magics},
            *(code_names(code).identifiers for some in codes for _, code in some),
        )

    # ---------------------------------------------------------------- files
    def _add_files(self, draft: Draft) -> None:
        touched = self.seen.touched
        drafts_by = self._may_act(draft)
        searched = self._find_searched_folders(draft)
        for path in touched.read - searched:
            if self._may_touch_file(draft, path):
                draft.reads.add(f"file:{path}")
        for path in touched.written:
            if not self._may_touch_file(draft, path):
                continue
            literal = self._is_literal_path(path)
            sole_claimant = (
                len(self._find_claimants(path)) == 1 or len(self.seen.cell.statements) == 1
            )
            if path in touched.replaced and sole_claimant and literal and self._is_finished(draft):
                draft.strong.add(f"file:{path}")
            else:
                draft.weak.add(f"file:{path}")
            # a text, as the audit hook gave it
            draft.weak.add(f"file:{os.path.dirname(path)}")  # noqa: PTH120
            if not literal:
                draft.weak.add("file:*")
        identifiers = self._identifiers
        if (
            not touched.written
            and drafts_by
            and (identifiers & _WRITERS or draft.statement.writes_files)
        ):
            draft.weak.add("file:*")
        if self._reached_whole:
            inspects_files = bool(self.seen.ran.builtins & _STATS)
        else:
            inspects_files = bool(identifiers & _LOOKERS)
        inspects_files = inspects_files and not self._is_lookup_by_tables(identifiers)
        if inspects_files and drafts_by and not self._is_printing_statement(draft):
            draft.reads.add("file:*")
        self._add_processes(draft)
        self._add_unheard(draft)

    def _find_searched_folders(self, draft: Draft) -> set[str]:
        """Where an import that found its modules looked for them: what it found are files, which it
        opened.
        """
        imports = isinstance(draft.statement.parse(), ast.Import | ast.ImportFrom)
        if not imports or not self._is_finished(draft):
            return set()
        return {os.path.abspath(each) for each in sys.path}  # noqa: PTH100 - "" is the current one

    def _is_lookup_by_tables(self, identifiers: frozenset[str]) -> bool:
        """Whether only a library of tables asked whether files are there: those that it then
        opened.
        """
        touched = self.seen.touched
        return (
            self._reached_whole
            and self.seen.failed_at is None
            and bool(touched.read or touched.written)
            and not identifiers & _LOOKERS
            and "pandas" in self.seen.ran.packages
            and not self._impure - _OF_TABLES
        )

    @staticmethod
    def _is_printing_statement(draft: Draft) -> bool:
        """A shell line that only prints: what looked for the shell's program is none of its doing."""
        used = draft.statement.uses
        commands = [m for m in used.magics if m.name in ("system", "getoutput", "sx")]
        return (
            bool(commands)
            and commands == list(used.magics)
            and not used.called
            and all(m.constant and _is_printing_command(m.line) for m in commands)
        )

    def _add_processes(self, draft: Draft) -> None:
        if not self.seen.touched.processes or not self._may_act(draft):
            return
        commands = [
            m.line for m in draft.statement.uses.magics if m.name in ("system", "getoutput", "sx")
        ]
        processes = commands or self.seen.touched.processes
        draft.reads |= {"ambient:environment", "ambient:cwd"}
        if any(not _is_printing_command(command) for command in processes):
            draft.reads.add("file:*")
        if any(may_write(command) for command in processes):
            draft.weak.add("file:*")

    def _add_unheard(self, draft: Draft) -> None:
        """Of a library that opens files itself nobody hears which ones it reads."""
        if not self._may_act(draft):
            return
        modules = {is_library(self.seen.variables.value(name)) for name in draft.mention}
        if not UNHEARD.isdisjoint(modules | self._find_packages(draft)):
            draft.reads.add("file:*")

    def _may_touch_file(self, draft: Draft, path: str) -> bool:
        """Whether a statement names this file; every one that acts, where none does."""
        if self._is_named_in(draft.statement.texts, path):
            return True
        return self._may_act(draft) and not self._find_claimants(path)

    def _find_claimants(self, path: str) -> list[Statement]:
        """The statements of the cell that name this file."""
        claimants = self._claimants.get(path)
        if claimants is None:
            statements = self.seen.cell.statements
            claimants = [each for each in statements if self._is_named_in(each.texts, path)]
            self._claimants[path] = claimants
        return claimants

    @staticmethod
    def _is_named_in(texts: frozenset[str], path: str) -> bool:
        name = os.path.basename(path)  # noqa: PTH119 - a text
        return bool(name) and any(name in text for text in texts)

    def _is_literal_path(self, path: str) -> bool:
        """Whether the path stands in the text of the cell, or of a function that ran."""
        texts = (code_texts(code) for _, code in self.seen.ran.codes)
        return bool(self._find_claimants(path)) or any(self._is_named_in(t, path) for t in texts)

    # ---------------------------------------------------------------- libraries
    def _add_libraries(self, draft: Draft) -> None:
        used, variables = draft.statement.uses, self.seen.variables
        for name in sorted(draft.mention):
            value = variables.value(name)
            if value is MISSING or ":" in name:
                continue
            package = is_library(value)
            if isinstance(value, types.ModuleType) and package:
                paths = [path for root, path in used.parts if root == name]
                if name in used.bare or name in self._find_names_in_code(draft):
                    draft.reads.add(f"library:{value.__name__}")
                draft.reads |= {
                    f"library:{value.__name__}{_find_attribute_path(path)}" for path in paths
                }
            elif package:
                draft.reads.add(f"library:{package}")
        draft.reads |= self._find_own_builtins(draft)
        for package in self._find_packages(draft):
            draft.reads.add(f"library:{package}")
        for touch in used.touches:
            self._add_library_write(draft, touch)
        for attribute in self.seen.attributes:
            if self._may_act(draft) or used.touches:
                draft.weak.add(f"library:{attribute}")
        draft.weak -= draft.strong

    def _find_own_builtins(self, draft: Draft) -> set[str]:
        """Names of the notebook that it looks up as `builtins.name`."""
        variables, parts = self.seen.variables, draft.statement.uses.parts
        found = (
            _find_attribute_path(path) for root, path in parts if variables.value(root) is builtins
        )
        return {each.removeprefix(".") for each in found} & variables.ever

    def _find_names_in_code(self, draft: Draft) -> set[str]:
        """Names of the notebook in the functions that ran."""
        return {n for place, code in draft.codes if not place for n in code_names(code).reads}

    def _find_packages(self, draft: Draft) -> set[str]:
        """Libraries whose code ran, or is of the types that the statement reached."""
        prints = self.seen.variables.prints
        names = draft.mention if self.seen.ran.complete else draft.reach
        packages: set[str] = set()
        for name in names:
            print_ = prints.get(name)
            if print_ and not isinstance(self._find_value(name), types.ModuleType):
                packages.update(print_.kinds)
        if self._may_act(draft):
            packages |= self.seen.ran.packages
        return {p.lstrip("_") for p in packages} - MACHINERY - {"builtins", "", "main__"}

    def _find_value(self, name: str) -> Any:
        return self.seen.variables.value(name)

    def _add_library_write(self, draft: Draft, touch: Touch) -> None:
        variables = self.seen.variables
        value = variables.value(touch.root)
        if value is MISSING or touch.how == "next":
            return
        if touch.how == "argument":
            patched = touch.what in ("setattr", "delattr") and isinstance(
                value, types.ModuleType | type
            )
            if patched and (package := is_library(value)):
                draft.weak.add(f"library:{package}")
            return
        below = (touch.dotted or touch.root).partition(".")[2]
        certain = (
            draft.statement.sets == touch.path and bool(touch.path) and self._is_finished(draft)
        )
        if (
            isinstance(value, types.ModuleType)
            and value.__name__ == "builtins"
            and touch.how != "method"
        ):
            variables.ever.add(below)
            (draft.strong if certain else draft.weak).add(below)
        elif is_module_of_users(value) and touch.how != "method" and below:
            first = below.partition(".")[0]
            name = variables.resource(value.__name__, first) or f"{value.__name__}:{first}"
            (draft.strong if certain and "." not in below else draft.weak).add(name)
        elif package := is_library(value):
            self._add_library_change(draft, touch, value, package, below if certain else "")

    def _add_library_change(
        self, draft: Draft, touch: Touch, value: Any, package: str, certain: str
    ) -> None:
        """A store below a library's module or class, or a call for its effect; `certain`: the
        attribute, if any.
        """
        if ".environ" in touch.dotted and (touch.how != "method" or touch.what in MUTATORS):
            draft.weak.add("ambient:environment")
            return
        if touch.how == "method":
            if self._is_for_effect(touch, package):
                draft.weak.add(f"library:{package}")
        elif isinstance(value, types.ModuleType) and certain:
            draft.strong.add(f"library:{value.__name__}.{certain}")
        elif isinstance(value, types.ModuleType | type):
            draft.weak.add(f"library:{package}")

    @staticmethod
    def _is_for_effect(touch: Touch, package: str) -> bool:
        if (
            touch.kept
            or touch.what in _SAYING
            or package == "contextvars"  # that is looked at in the variables
            or (package in _OPTIONED and touch.what in SETTING[package])
        ):
            return False
        return package not in _QUIET or _SETS.match(touch.what) is not None

    # ---------------------------------------------------------------- ambient state
    def _add_ambient(self, draft: Draft) -> None:
        shows = draft.statement.displayed and self.seen.displayed
        draft.reads |= self._find_plain_reads(draft)
        if not self._may_act(draft) and not draft.statement.uses.touches and not shows:
            return
        draft.reads |= {f"ambient:{part}" for part in self._find_ambient_reads(draft)}
        if PANDAS in draft.reads and self.seen.ran.complete and self._reached_whole and not shows:
            draft.reads = draft.reads - {PANDAS} | set(options_read(self.seen.ran.functions))
        identifiers = self._identifiers
        several = [d for d in self.seen.cell.statements if d is not draft.statement]
        for part in self.seen.ambient:
            claimed = SETTING.get(part, frozenset())
            if (
                several
                and claimed
                and not identifiers & claimed
                and any(s.code.identifiers & claimed for s in several)
            ):
                continue
            if self._is_finished(draft) and draft.statement.uses.called & set(_SEEDS.get(part, ())):
                draft.strong.add(f"ambient:{part}")
                draft.reads.discard(f"ambient:{part}")
            else:
                draft.weak.add(f"ambient:{part}")
        for part, setting in SETTING.items():
            if (
                identifiers & setting
                and f"ambient:{part}" not in draft.strong
                and self._is_plausible_part(part, draft)
            ):
                draft.weak.add(f"ambient:{part}")
        if PANDAS in draft.weak and not draft.statement.uses.magics:
            texts = (text for _, code in draft.codes for text in code_texts(code))
            draft.weak = draft.weak - {PANDAS} | {options_set((*draft.statement.texts, *texts))}
        if "environ" in identifiers and any(code_changes(c) for _, c in draft.codes):
            draft.weak.add("ambient:environment")

    def _find_plain_reads(self, draft: Draft) -> set[str]:
        """What a statement reads of the process without a call: `os.environ["X"]`, `sys.path[0]`."""
        near = [each for each in draft.reads if each.startswith(_LOOKED_UP_AT)]
        reads = {
            part
            for place, part in _LOOKED_UP.items()
            if any(each == place or each.startswith(f"{place}.") for each in near)
        }
        node = draft.statement.parse()
        defines = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        value_of = self.seen.variables.value
        if (
            defines
            or self._may_act(draft)
            or not names_environment(draft.statement.code.identifiers, value_of)
        ):
            return reads
        accesses = variables_of(node, value_of)
        return reads | ({ENVIRONMENT} if accesses is None else accesses[0])

    def _narrow_environment(self, draft: Draft) -> None:
        """The variables that it is about, where it is about these alone."""
        if ENVIRONMENT not in draft.reads and ENVIRONMENT not in draft.weak:
            return
        packages = self._impure - {"os", "posix", "nt", "importlib"}
        if draft.statement.uses.magics:
            self._narrow_environment_of_magic(draft)
            return
        if packages or not self._reached_whole:
            return
        own = variables_of(draft.statement.parse(), self.seen.variables.value)
        inner = self._find_variables_of_codes(draft)
        if own is None or inner is None:
            return
        if ENVIRONMENT in draft.reads:
            draft.reads = draft.reads - {ENVIRONMENT} | own[0] | inner[0]
        if ENVIRONMENT in draft.weak and (own[1] or inner[1]):
            draft.weak = draft.weak - {ENVIRONMENT} | own[1] | inner[1]
            if _removes_in_any_case(draft.statement.parse()) and self._is_finished(draft):
                draft.strong |= own[1]
                draft.needs = {**draft.needs, **dict.fromkeys(own[1] - inner[1], frozenset())}

    def _find_variables_of_codes(self, draft: Draft) -> tuple[set[str], set[str]] | None:
        """The variables that functions of the user's, which ran, read and set; None where their
        texts do not say which.
        """
        reads: set[str] = set()
        writes: set[str] = set()
        for place, code in draft.codes:
            if not {"environ", "getenv", "environb"} & code_names(code).identifiers:
                continue
            accesses = variables_of(source_of(code), partial(self._find_global, place))
            if accesses is None:
                return None
            reads |= accesses[0]
            writes |= accesses[1]
        return reads, writes

    def _find_global(self, place: str, name: str) -> Any:
        resource = self.seen.variables.resource(place, name)
        return MISSING if resource is None else self.seen.variables.value(resource)

    def _narrow_environment_of_magic(self, draft: Draft) -> None:
        """`%env MODE=fast` sets that variable, and what that is depends on its words alone."""
        magics = draft.statement.uses.magics
        told = _SETS_VARIABLE.fullmatch(magics[0].line) if len(magics) == 1 else None
        if told is None or magics[0].name not in ("env", "set_env") or not magics[0].constant:
            return
        variable = f"{ENVIRONMENT}[{told[1]!r}]"
        draft.weak = draft.weak - {ENVIRONMENT} | {variable}
        if "$" not in told[2]:
            draft.needs = {**draft.needs, variable: frozenset()}

    def _is_plausible_part(self, part: str, draft: Draft) -> bool:
        """`random` and `sample` are common words: their library must be at hand."""
        if part not in ("random", "pandas", "matplotlib", "logging", "decimal"):
            return True
        return f"library:{part}" in draft.reads or any(
            r.startswith(f"library:{part}") for r in draft.reads
        )

    def _find_ambient_reads(self, draft: Draft) -> set[str]:  # noqa: C901 - one rule a line
        executed, seen = self.seen.ran, self.seen
        packages = {
            r.removeprefix("library:").partition(".")[0]
            for r in draft.reads
            if r.startswith("library:")
        }
        parts = {"process", "umask"} if self._may_act(draft) else set()
        parts |= {part for part in ("random", "numpy random", "torch") if part in seen.ambient}
        if draft.statement.code.imports or "importlib" in packages:
            parts |= {"path", "finders"}
        for part, owners in _READERS.items():
            drew = (
                part != "matplotlib"
                or not executed.complete
                or bool(executed.packages & {"matplotlib", "seaborn"})
            )
            if packages & owners and drew:
                parts.add(part)
        if not self._may_act(draft):
            return parts
        if packages - _PURE:
            parts |= {"warnings"}
        if self._reached_whole:
            if (
                seen.touched.relative
                or seen.touched.processes
                or executed.builtins & (_STATS | {"posix.getcwd", "nt.getcwd"})
            ):
                parts.add("cwd")
            if any(
                f.startswith(("os._Environ", "os.getenv", "os.MutableMapping"))
                for f in executed.functions
            ):
                parts.add("environment")
            if any(b.startswith("random.") for b in executed.builtins):
                parts.add("random")
        elif packages - _PURE:
            parts |= {"cwd", "environment", "random", "numpy random", "torch"}
        return parts

    # ---------------------------------------------------------------- the shell
    def _add_shell(self, draft: Draft) -> None:
        statement, seen = draft.statement, self.seen
        magics = {m.name for m in statement.uses.magics}
        if (
            magics
            or (statement.displayed and seen.displayed)
            or statement.code.identifiers & {"display", "get_ipython"}
        ):
            draft.reads.add("ambient:shell")
        if statement.displayed and seen.number is not None:
            draft.weak.add(f"output:{seen.number}")
            (draft.strong if seen.displayed and self._is_finished(draft) else draft.weak).add(
                "output:newest"
            )
        if magics & _SHELL_MAGICS:
            draft.weak.add("ambient:shell")
        for magic, part in (
            ("cd", "cwd"),
            ("env", "environment"),
            ("set_env", "environment"),
            ("matplotlib", "matplotlib"),
        ):
            if magic in magics:
                draft.weak.add(f"ambient:{part}")
        for touch in statement.touches:
            value = self.seen.variables.value(touch.root)
            if touch.root == "get_ipython" or type(value).__name__.endswith("InteractiveShell"):
                called = touch.what if touch.how == "method" else ""
                if (
                    called not in _SHELL_CALLS
                    and "user_ns" not in touch.dotted
                    and called != "__call__"
                ):
                    draft.weak.add("ambient:shell")


_LOOKED_UP = {
    "library:sys.path": "ambient:path",
    "library:sys.argv": "ambient:argv",
    "library:warnings.filters": "ambient:warnings",
    "library:matplotlib.rcParams": "ambient:matplotlib",
    "library:matplotlib.pyplot.rcParams": "ambient:matplotlib",
    "library:pandas.options": PANDAS,
}
"""By the place in its library, the state that an expression without a call looks up there."""
_LOOKED_UP_AT = tuple(_LOOKED_UP)
_READERS: dict[str, frozenset[str]] = {
    "argv": bag("absl argparse click fire getopt optparse tyro typer"),
    "decimal": frozenset({"decimal"}),
    "csv": frozenset({"csv"}),
    "calendar": frozenset({"calendar"}),
    "locale": frozenset({"locale", "time", "datetime", "calendar", "pandas"}),
    "time zone": frozenset({"time", "datetime", "calendar", "zoneinfo", "pandas"}),
    "logging": frozenset({"logging"}),
    "numpy": frozenset({"numpy", "pandas"}),
    "pandas": frozenset({"pandas"}),
    "matplotlib": frozenset({"matplotlib", "pandas", "seaborn"}),
    "figures": frozenset({"matplotlib", "seaborn"}),
    "numpy random": frozenset(),
}


def _find_impure_packages(packages: Iterable[str]) -> frozenset[str]:
    ran = {package.lstrip("_") for package in packages if not package.startswith("namedtuple_")}
    return frozenset(ran - _PURE)


def _find_different_names(seen: ExecutionFacts) -> frozenset[str]:
    prints = seen.variables.prints
    both = ((name, was, prints.get(name)) for name, was in seen.before.items())
    return frozenset(name for name, was, now in both if was and now and now.digest != was.digest)


_SETS_VARIABLE = re.compile(r"\s*([A-Za-z_]\w*)\s*=([^{}=]*)")
"""`MODE=fast`, where no expression is filled in."""


def _removes_in_any_case(node: ast.stmt | None) -> bool:
    """`del os.environ["X"]`, `os.environ.pop("X")`: it is not there afterwards."""
    if isinstance(node, ast.Delete):
        return all(
            isinstance(each, ast.Subscript) and _is_of_os(each.value) for each in node.targets
        )
    called = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    return (
        isinstance(called, ast.Call)
        and isinstance(called.func, ast.Attribute)
        and called.func.attr == "pop"
        and _is_of_os(called.func.value)
        and all(isinstance(each, ast.Constant) for each in called.args)
    )


def _is_of_os(node: ast.expr) -> bool:
    """`os.environ`"""
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def _find_attribute_path(path: str) -> str:
    """`.pi` of `math.pi`; up to the first item or call."""
    rest = path.partition(".")[2].partition("[")[0].removesuffix("()")
    return f".{rest}" if rest else ""


_LOOKING = re.compile(r"[*?\[<|;&`]|\$\(")
"""Signs by which the shell looks at files or runs something else."""
_PRINTERS = frozenset(
    {"echo", "pwd", "date", "env", "printenv", "printf", "sleep", "true", "whoami"}
)


def _is_printing_command(command: str) -> bool:
    return not _LOOKING.search(command) and command.strip().partition(" ")[0] in _PRINTERS
