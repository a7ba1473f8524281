"""Which names a function of the user's asks for a value that may be another now. A recorded reply
of such a function may be another, too, although it is called with the same arguments.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Collection

from tape_jupyter.core.user_code import bag
from tape_jupyter.dataflow.static.effects import MUTATORS
from tape_jupyter.dataflow.static.names import code_names
from tape_jupyter.dataflow.static.outcomes.values import source_of
from tape_jupyter.dataflow.tracing.variables import Variables, is_module_of_users

_LOOKING = bag(
    "open read_text read_bytes exists is_file is_dir lexists isfile isdir iterdir glob rglob iglob listdir scandir "
    "walk stat getsize getmtime readlink samefile connect execute load load_workbook fromfile loadtxt genfromtxt "
    "memmap ZipFile run check_output Popen system popen"
)
"""Names in code that looks at files. `read_csv` and its like begin with READ."""
READ = ("read_", "scan_")


_SURROUNDINGS = {
    "environment": bag("environ environb getenv getenvb expandvars expanduser"),
    "cwd": bag("getcwd getcwdb cwd abspath absolute resolve relpath"),
    "decimal": bag("Decimal decimal getcontext localcontext"),
    "locale": bag("locale localeconv format_string currency strftime"),
    "time zone": bag("localtime now today astimezone strftime mktime tzname fromtimestamp"),
    "logging": bag("isEnabledFor getEffectiveLevel hasHandlers getLogger handlers level"),
    "argv": bag("argv parse_args"),
    "calendar": bag("firstweekday monthcalendar calendar"),
    "csv": bag("field_size_limit reader DictReader"),
    "dialects": bag("get_dialect list_dialects reader writer DictReader DictWriter"),
    "file types": bag("guess_type guess_extension mimetypes"),
    "pandas": bag("get_option option_context options"),
    "numpy": bag("get_printoptions geterr"),
}
"""By the part of the process' state, names in code that asks for it."""


def looks_at(name: str, changed: Collection[str], variables: Variables) -> set[str]:
    """Of files and of parts of the process' state (`file:PATH`, `ambient:PART`), those that functions
    of this name, or what they call, may look at.
    """
    codes = _find_all_codes(name, variables) if changed else set()
    words = frozenset().union(*(code_names(code).identifiers for code in codes))
    looking = any(map(_is_looking, codes))
    found = set()
    for each in changed:
        kind, _, rest = each.partition(":")
        of_files = kind == "file" or rest == "cwd"
        attribute = rest.rpartition(" ")[2].rpartition(".")[2] if rest.startswith("module ") else ""
        asked = words & _SURROUNDINGS.get(rest, frozenset()) or (attribute and attribute in words)
        if (looking and of_files) or asked:
            found.add(each)
    return found


def _find_all_codes(name: str, variables: Variables) -> set[types.CodeType]:
    """Of functions of this name, and of what they call."""
    bare, codes = name.rpartition(".")[2], set[types.CodeType]()
    for print_ in list(variables.prints.values()):
        for place, code in print_.codes:
            if code.co_name == bare:
                used = code_names(code)
                named = variables.resources(place, used.reads | used.later_reads)
                named |= _find_module_names(code, named, variables)
                prints = (variables.prints.get(each) for each in variables.closure(named))
                codes |= {code}.union(*({c for _, c in each.codes} for each in prints if each))
    return codes


def _find_module_names(
    code: types.CodeType, named: Collection[str], variables: Variables
) -> set[str]:
    """What code may read of the user's modules that it names: `shop.price()`."""
    modules = [m for each in named if is_module_of_users(m := variables.value(each))]
    words = code_names(code).identifiers
    return set().union(*(variables.resources(m.__name__, words) for m in modules))


def _is_looking(code: types.CodeType) -> bool:
    words = code_names(code).identifiers
    looking = {word for word in words if word in _LOOKING or word.startswith(READ)}
    if looking != {"open"}:
        return bool(looking)
    tree = source_of(code)
    opens = (n for n in ast.walk(tree) if isinstance(n, ast.Call)) if tree is not None else ()
    return tree is None or any(not _only_writes(each) for each in opens if _is_open(each))


def _is_open(call: ast.Call) -> bool:
    return getattr(call.func, "id", getattr(call.func, "attr", "")) == "open"


def _only_writes(call: ast.Call) -> bool:
    """Whether it opens a file to write over it or to add to it."""
    given = call.args[1:] if isinstance(call.func, ast.Name) else call.args
    mode = next((k.value for k in call.keywords if k.arg == "mode"), given[0] if given else None)
    if not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
        return False
    return bool({*"wax"} & {*mode.value}) and "+" not in mode.value


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
    named = variables.resources(place, used.reads | used.later_reads)
    of_modules = _find_module_names(code, named, variables)
    resources |= of_modules & set(differing)
    helpers += of_modules - resources
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
