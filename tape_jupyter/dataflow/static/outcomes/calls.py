"""What a call depends on and what it changes: functions of the user's are read on the spot,
builtins and methods are known, of others the arguments count
(dataflow/static/outcomes/__init__.py).
"""

from __future__ import annotations

import ast
import builtins
import types
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from tape_jupyter.core.user_code import bag, is_users
from tape_jupyter.dataflow.fingerprint.unwrapped import code_of
from tape_jupyter.dataflow.history import ELEMENT, REPLY, presence
from tape_jupyter.dataflow.static.effects import CHANGING, MUTATORS, may_change
from tape_jupyter.dataflow.static.outcomes.expressions import BOXES, MAPPINGS, iterated, write_whole
from tape_jupyter.dataflow.static.outcomes.objects import (
    has_written_init,
    new_of_parts,
    parts_of_class,
    parts_of_new,
)
from tape_jupyter.dataflow.static.outcomes.values import (
    ATOMS,
    NOTHING,
    NUMBERS,
    UNSURE,
    NewObject,
    OutcomeFrame,
    OutcomeValue,
    Reckoning,
    Several,
    Unclear,
    put,
    shared_names,
    source_of,
)
from tape_jupyter.dataflow.static.uses import Touch
from tape_jupyter.dataflow.tracing import paths
from tape_jupyter.dataflow.tracing.variables import MISSING

DEPTH = 8
"""Functions of the user's that call each other, at most."""
_SURE = bag(
    "strip lstrip rstrip lower upper title split splitlines items keys values get setdefault copy append add extend "
    "update clear appendleft insert"
)
"""Methods of builtin types that do not raise for another text."""
_ELEMENTS_ONLY = bag("append insert sort reverse")
"""Methods of lists after which there are as many elements whatever they are handed."""
_PLAIN_CALLS: dict[str, type | None] = {
    "print": type(None), "len": int, "str": str, "repr": str, "bool": bool, "isinstance": bool, "type": None,
    "list": list, "tuple": tuple, "dict": dict, "set": set, "id": int, "display": type(None), "callable": bool,
}  # fmt: skip
_RISKY_CALLS = bag(
    "int float sum min max abs round sorted range enumerate zip any all reversed ord chr format divmod pow frozenset"
)
_GIVE_NOTHING = bag(
    "len str repr bool isinstance id callable int float abs round ord chr format print display divmod pow range"
)
_OF_NUMBERS = bag("int float")
_NEVER = bag("setattr delattr getattr exec eval vars globals locals open super")
_Named = dict[str | None, OutcomeValue]


def call_outcome(
    reckoning: Reckoning, node: ast.Call, frame: OutcomeFrame, *, dropped: bool = False
) -> OutcomeValue:
    """`dropped`: nobody takes its result."""
    called = reckoning.base(node.func, frame)
    args = [_read_argument(reckoning, each, frame) for each in node.args]
    named = {k.arg: _read_argument(reckoning, k.value, frame) for k in node.keywords}
    function = called.obj
    if None in named or any(isinstance(each, ast.Starred) for each in node.args):
        arguments = [*args, *named.values()]
        known = function.functions() if isinstance(function, Several) else [function]
        if known and all(_is_users_function(each) for each in known):
            return _call_with_spread(reckoning, known, called, arguments, frame)
        return _call_outside_code(
            reckoning, node, called, arguments, frame, dropped=dropped, on=called.bound
        )
    if isinstance(function, Several) and (several := function.functions()):
        return _call_one_of(reckoning, several, called, args, named, frame)
    if isinstance(function, types.FunctionType | type) and is_users(function.__module__ or ""):
        _depend_on_identity(reckoning, called)
        if isinstance(function, type):
            return _construct_object(reckoning, called, args, named, frame)
        return _enter_function(
            reckoning, function, [called.bound, *args] if _is_method(called) else args, named, frame
        )
    return _call_library(reckoning, node, called, args, named, frame, dropped=dropped)


def _is_users_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and is_users(value.__module__ or "")


def _call_with_spread(
    reckoning: Reckoning,
    functions: Sequence[types.FunctionType],
    called: OutcomeValue,
    arguments: list[OutcomeValue],
    frame: OutcomeFrame,
) -> OutcomeValue:
    """A call of one of some functions of the user's with `*args` or `**options`: any of its
    parameters may be any of what is handed.
    """
    _depend_on_identity(reckoning, called)
    deps = reckoning.all_of(arguments)
    whatever = OutcomeValue(deps, refs=put(arguments))
    before = frame.control
    frame.control = before | called.all
    reckoning.may_raise(frame, deps | called.all)
    results = []
    for function in functions:
        tree = source_of(code_of(function))
        spec = tree.args if tree is not None else None
        if spec is None or _is_method(called):
            raise Unclear
        every = [
            *spec.posonlyargs,
            *spec.args,
            *spec.kwonlyargs,
            *filter(None, (spec.vararg, spec.kwarg)),
        ]
        handed = {each.arg: whatever for each in every}
        results.append(_enter_function(reckoning, function, (), {}, frame, handed=handed))
    frame.control = before
    return _merge_results(called, results)


def _merge_results(called: OutcomeValue, results: Sequence[OutcomeValue]) -> OutcomeValue:
    """What one of some functions gave."""
    deps = called.all.union(*(each.all for each in results))
    return OutcomeValue(deps, refs=put(results))


def _call_library(
    reckoning: Reckoning,
    node: ast.Call,
    called: OutcomeValue,
    args: list[OutcomeValue],
    named: _Named,
    frame: OutcomeFrame,
    *,
    dropped: bool,
) -> OutcomeValue:
    """A call of what is builtin or somebody else's."""
    if (made := new_of_parts(reckoning, node, called, args, named)) is not None:
        return made
    if getattr(node.func, "attr", "") == "update" and named and not args:
        arguments = [_make_dict(named)]
    else:
        arguments = [*args, *named.values()]
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name and called.obj is not MISSING and getattr(builtins, name, None) is called.obj:
        return _call_builtin(reckoning, name, node, arguments, frame)
    if called.bound is not None and isinstance(node.func, ast.Attribute):
        return _call_method(reckoning, node, called.bound, arguments, frame, dropped=dropped)
    return _call_outside_code(reckoning, node, called, arguments, frame, dropped=dropped, on=None)


def _depend_on_identity(reckoning: Reckoning, called: OutcomeValue) -> None:
    """That a name holds this function, or an object of this class, is what everything after depends
    on.
    """
    for each in (called, called.bound):
        if each is not None:
            same = frozenset({f"{each.part}.__class__"}) if each.part else NOTHING
            reckoning.result.raises |= each.deps | same
            reckoning.result.reads |= each.deps | same


def _read_argument(reckoning: Reckoning, node: ast.expr, frame: OutcomeFrame) -> OutcomeValue:
    """An argument; len(x) and its like look at part of one only."""
    outcome = reckoning.base(node, frame)
    if not outcome.part:
        reckoning.result.reads |= outcome.all
    return outcome


def _call_builtin(
    reckoning: Reckoning,
    name: str,
    node: ast.Call,
    arguments: list[OutcomeValue],
    frame: OutcomeFrame,
) -> OutcomeValue:
    if (
        name == "len"
        and len(arguments) == 1
        and arguments[0].part
        and (
            type(arguments[0].obj) in (list, dict)
            or paths.is_frame(arguments[0].obj)
            or paths.is_array(arguments[0].obj)
        )
    ):
        deps = arguments[0].deps | {f"{arguments[0].part}.__len__"}
        reckoning.result.reads |= deps
        return OutcomeValue(deps, kind=int)
    deps = reckoning.all_of(arguments)
    if name in _OF_NUMBERS and all(each.kind in NUMBERS for each in arguments):
        return OutcomeValue(deps, kind=float if name == "float" else int)
    if name in _RISKY_CALLS:
        reckoning.may_raise(frame, deps)
    elif name not in _PLAIN_CALLS or (node.keywords and name != "print"):
        raise Unclear
    for each in arguments:
        if name not in _GIVE_NOTHING:
            iterated(reckoning, each, frame)
    fresh = None
    if name not in _GIVE_NOTHING:
        refs = frozenset(r for each in arguments for r in each.inside)
        fresh = NewObject(deps, refs) if refs else None
    return OutcomeValue(deps, kind=_PLAIN_CALLS.get(name), fresh=fresh)


def _call_method(
    reckoning: Reckoning,
    node: ast.Call,
    base: OutcomeValue,
    arguments: list[OutcomeValue],
    frame: OutcomeFrame,
    *,
    dropped: bool,
) -> OutcomeValue:
    name, deps = getattr(node.func, "attr", ""), reckoning.all_of(arguments)
    if type(base.obj) in BOXES or (base.fresh is not None and base.obj is MISSING):
        return _call_box_method(reckoning, name, base, arguments, deps, frame)
    if base.kind in ATOMS or type(base.obj) in ATOMS:
        reckoning.result.reads |= base.all
        if name not in _SURE:
            reckoning.may_raise(frame, base.all, deps)
        return OutcomeValue(base.all | deps)
    if base.obj is not MISSING and is_users(str(type(base.obj).__module__)):
        raise Unclear
    return _call_outside_code(reckoning, node, base, arguments, frame, dropped=dropped, on=base)


def _call_box_method(
    reckoning: Reckoning,
    name: str,
    base: OutcomeValue,
    arguments: list[OutcomeValue],
    deps: frozenset[str],
    frame: OutcomeFrame,
) -> OutcomeValue:
    inner = put(arguments)
    if (found := _call_with_key(reckoning, name, base, arguments, deps, frame)) is not None:
        return found
    if name not in _SURE:
        reckoning.may_raise(frame, base.all, deps)
    if base.fresh is not None:
        reckoning.alter(frame, base.fresh, deps, inner)
    if name in _ELEMENTS_ONLY and base.part and type(base.obj) is list:
        of_others = base.deps if name == "append" else base.all
        if name == "append" and len(arguments) == 1:
            write_element(reckoning, base, arguments[0], frame)
        else:
            reckoning.write(frame, f"{base.part}{ELEMENT}", deps | of_others)
        surely = name == "append" and not frame.control
        count = reckoning.result.appends.get(base.part, 0)
        reckoning.result.appends[base.part] = count + (1 if surely else UNSURE)
        if frame.control or reckoning.result.raises:
            reckoning.write(frame, base.part, NOTHING)
        return OutcomeValue(kind=type(None))
    if name in MUTATORS:
        reckoning.change(frame, base, deps | base.all)
        if name in ("append", "add", "extend", "update", "clear", "insert", "appendleft"):
            return OutcomeValue(kind=type(None))
    reckoning.result.reads |= base.all
    return OutcomeValue(base.all | deps, refs=base.inside | inner, within=base.holder)


def _call_with_key(
    reckoning: Reckoning,
    name: str,
    base: OutcomeValue,
    arguments: list[OutcomeValue],
    deps: frozenset[str],
    frame: OutcomeFrame,
) -> OutcomeValue | None:
    """`get`, `setdefault` and `update` of keys that are written down; None of any other call."""
    if name == "setdefault":
        return _set_default(reckoning, base, arguments, frame)
    if name == "update" and _update_keys(reckoning, base, arguments, frame):
        return OutcomeValue(kind=type(None))
    key = arguments[0] if name == "get" and base.part and arguments else OutcomeValue()
    if type(base.obj) not in (dict, OrderedDict) or type(key.obj) not in (str, int) or key.part:
        return None
    part = f"{base.part}[{key.obj!r}]"
    item = paths.value_at(f"x[{key.obj!r}]", base.obj)
    late = reckoning.find_later_dependencies(part)
    refs = frozenset() if item is MISSING or type(item) in ATOMS else frozenset({(part, True)})
    reckoning.result.reads |= base.deps | {part}
    return OutcomeValue(base.deps | deps | {part}, refs=refs | put(arguments), late=late)


def _set_default(
    reckoning: Reckoning, base: OutcomeValue, arguments: list[OutcomeValue], frame: OutcomeFrame
) -> OutcomeValue | None:
    """`groups.setdefault("x", [])`: it binds that key, where there is none; None where the text does
    not say which.
    """
    key = arguments[0] if arguments else OutcomeValue()
    if type(base.obj) is not dict or not base.part or type(key.obj) not in (str, int) or key.part:
        return None
    part = f"{base.part}[{key.obj!r}]"
    item = paths.value_at(f"x[{key.obj!r}]", base.obj)
    if item is MISSING:
        return None
    given = reckoning.all_of(arguments[1:])
    reckoning.result.reads |= base.deps | {part}
    reckoning.write(frame, part, base.deps | given | {part})
    reckoning.write(frame, presence(base.part, f"[{key.obj!r}]"), base.deps | {part})
    refs = frozenset() if type(item) in ATOMS else frozenset({(part, True)})
    return OutcomeValue(
        base.deps | given, part, refs, item if refs else MISSING,
        late=reckoning.find_later_dependencies(part),
    )  # fmt: skip


def _update_keys(
    reckoning: Reckoning, base: OutcomeValue, arguments: list[OutcomeValue], frame: OutcomeFrame
) -> bool:
    """`d.update({"a": r})`: it binds these keys; False where the text does not say which."""
    if type(base.obj) not in MAPPINGS or not base.part or len(arguments) != 1:
        return False
    given = arguments[0].fresh
    if given is None or not given.parts or not all(map(_is_key, given.parts)):
        return False
    around = arguments[0].deps | arguments[0].late | base.deps
    for step, needs in given.parts.items():
        reckoning.write(frame, f"{base.part}{step}", needs | around)
        reckoning.write(frame, presence(base.part, step), around)
    return True


def _make_dict(named: _Named) -> OutcomeValue:
    """The dict that `update(a=r)` takes its values from."""
    parts = {f"[{name!r}]": each.all for name, each in named.items()}
    return OutcomeValue(fresh=NewObject(NOTHING.union(*parts.values()), put(named.values()), parts))


def _is_key(step: str) -> bool:
    """Whether a part is what stands at a text: `['role']`."""
    return step.startswith(("['", '["'))


def write_element(
    reckoning: Reckoning, base: OutcomeValue, new: OutcomeValue, frame: OutcomeFrame
) -> None:
    """A list gets one more element: of a dict that is written down there, key by key."""
    write_whole(reckoning, f"{base.part}{ELEMENT}", new, base.deps, frame, new=True)


def _call_outside_code(
    reckoning: Reckoning,
    node: ast.Call,
    called: OutcomeValue,
    arguments: list[OutcomeValue],
    frame: OutcomeFrame,
    *,
    dropped: bool,
    on: OutcomeValue | None,
) -> OutcomeValue:
    """A call of what is not the user's: its result depends on what it is handed, and on what it
    asks.
    """
    deps = reckoning.all_of([called, *arguments])
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    inplace = any(k.arg == "inplace" for k in node.keywords)
    if name in _NEVER:
        raise Unclear
    for each in arguments if name in CHANGING or inplace else ():
        reckoning.change(frame, each, deps | {REPLY})
    if on is None:
        on = called
        changes = not isinstance(
            called.obj, type | types.FunctionType | types.BuiltinFunctionType
        ) and not (isinstance(called.obj, Several) and called.obj.are_of_atoms())
    elif on.obj is not MISSING:
        changes = may_change(Touch("", "method", name, kept=not dropped, inplace=inplace), on.obj)
    else:
        changes = name in MUTATORS or dropped or inplace
    if changes and not isinstance(on.obj, types.ModuleType):
        reckoning.change(frame, on, deps | {REPLY})
    reckoning.may_raise(frame, deps)
    if changes or not isinstance(on.obj, type | types.FunctionType | types.ModuleType):
        within = [on]
    else:
        within = []
    return OutcomeValue(
        deps | {REPLY}, refs=frozenset(r for each in (*within, *arguments) for r in each.inside)
    )


def _call_one_of(
    reckoning: Reckoning,
    several: list[types.FunctionType],
    called: OutcomeValue,
    args: list[OutcomeValue],
    named: _Named,
    frame: OutcomeFrame,
) -> OutcomeValue:
    """A call of one of some functions, nobody knows which."""
    before = frame.control
    frame.control = before | called.all
    results = [_enter_function(reckoning, each, args, named, frame) for each in several]
    frame.control = before
    return _merge_results(called, results)


def _construct_object(
    reckoning: Reckoning,
    called: OutcomeValue,
    args: list[OutcomeValue],
    named: _Named,
    frame: OutcomeFrame,
) -> OutcomeValue:
    """An object of a class of the user's: what it does not hold itself, it has from its class."""
    kind: type = called.obj
    arguments = [*args, *named.values()]
    deps = reckoning.all_of(arguments) | called.all
    instance = OutcomeValue(fresh=NewObject(deps, put(arguments)))
    start = next((vars(c)["__init__"] for c in kind.__mro__ if "__init__" in vars(c)), None)
    if has_written_init(start) and hasattr(kind, "__post_init__"):
        raise Unclear
    of_class = parts_of_class(kind, called.part)
    if (parts := parts_of_new(kind, start, args, named)) is not None:
        return OutcomeValue(fresh=NewObject(deps, put(arguments), {**of_class, **parts}))
    if has_written_init(start):
        return instance
    if isinstance(start, types.FunctionType) and is_users(start.__module__ or ""):
        made = NewObject(called.all, put(arguments), of_class, kind)
        _enter_function(reckoning, start, [OutcomeValue(fresh=made), *args], named, frame)
        return OutcomeValue(fresh=made)
    if (issubclass(kind, tuple) and hasattr(kind, "_fields")) or (
        start is object.__init__ and not arguments
    ):
        return instance
    raise Unclear


def _enter_function(
    reckoning: Reckoning,
    function: types.FunctionType,
    args: Sequence[Any],
    named: _Named,
    frame: OutcomeFrame,
    *,
    handed: dict[str, OutcomeValue] | None = None,
) -> OutcomeValue:
    """A call of a function of the user's: what it does is done here. `handed`: what its parameters
    are, where the call does not say it one by one.
    """
    tree = source_of(code_of(function))
    if (
        tree is None
        or function.__closure__
        or reckoning.depth >= DEPTH
        or hasattr(function, "__wrapped__")
    ):
        raise Unclear
    place = _find_place(reckoning, function)
    names = _bind_arguments(function, tree, args, named) if handed is None else handed
    inner = OutcomeFrame(place, names, frozenset(shared_names(tree)), control=frame.control)
    reckoning.result.codes.add(code_of(function))
    reckoning.depth += 1
    if isinstance(tree, ast.Lambda):
        inner.returns.append(reckoning.value(tree.body, inner))
    else:
        bound = {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for each in bound - inner.shared - names.keys():
            inner.names[each] = OutcomeValue()
        reckoning.block(tree.body, inner)
    reckoning.depth -= 1
    results = inner.returns or [OutcomeValue(kind=type(None))]
    if len(results) == 1 and not (inner.control - frame.control):
        return results[0]
    deps = inner.control.union(*(each.all for each in results))
    return OutcomeValue(deps, refs=put(results))


def _find_place(reckoning: Reckoning, function: types.FunctionType) -> str:
    if function.__globals__ is reckoning.variables.namespace:
        return ""
    module = function.__globals__.get("__name__")
    if not isinstance(module, str) or not is_users(module) or module == "__main__":
        raise Unclear
    return module


def _bind_arguments(
    function: types.FunctionType, tree: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef,
    args: Sequence[OutcomeValue], named: _Named,
) -> dict[str, OutcomeValue]:  # fmt: skip
    spec = tree.args
    every = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    rest = _gather_rest(spec, args[len(every) :], named)
    expected = {*every, *(each.arg for each in spec.kwonlyargs)}
    defaults = dict(zip(reversed(every), reversed(function.__defaults__ or ()), strict=False))
    defaults |= function.__kwdefaults__ or {}
    if any(type(each) not in ATOMS for each in defaults.values()):
        raise Unclear
    bindings = {name: OutcomeValue(obj=value, kind=type(value)) for name, value in defaults.items()}
    bindings |= dict(zip(every, args, strict=False))
    bindings |= {name: value for name, value in named.items() if name in expected}
    if expected != bindings.keys():
        raise Unclear
    return bindings | rest


def _gather_rest(
    spec: ast.arguments, args: Sequence[OutcomeValue], named: _Named
) -> dict[str, OutcomeValue]:
    """What `*args` and `**options` of a function are handed. Raises Unclear."""
    known = {each.arg for each in (*spec.args, *spec.kwonlyargs)}
    options = [value for name, value in named.items() if name not in known]
    if (args and not spec.vararg) or (options and not spec.kwarg):
        raise Unclear
    rest = {}
    for parameter, values in (spec.vararg, args), (spec.kwarg, options):
        if parameter is not None:
            deps = NOTHING.union(*(each.all for each in values))
            rest[parameter.arg] = OutcomeValue(fresh=NewObject(deps, put(values)))
    return rest


def _is_method(called: OutcomeValue) -> bool:
    """A function found in the class of what it is called on, not in the object itself."""
    return called.bound is not None and not called.part
