"""What the value of an expression depends on, other than of a call
(dataflow/static/outcomes/__init__.py).

What a target is given: names, attributes, keys; and on what that then depends
(dataflow/static/outcomes/__init__.py).
"""

from __future__ import annotations

import ast
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tape_jupyter.core.user_code import is_users
from tape_jupyter.dataflow.history import COLUMNS, ELEMENT, SIZE, presence
from tape_jupyter.dataflow.static.outcomes.values import (
    ATOMS,
    NOTHING,
    NewObject,
    OutcomeFrame,
    OutcomeValue,
    Reckoning,
    Several,
    Unclear,
    Way,
    part_root,
    put,
    sum_kind,
)
from tape_jupyter.dataflow.tracing import paths
from tape_jupyter.dataflow.tracing.variables import MISSING


def store(
    reckoning: Reckoning,
    target: ast.expr,
    value: OutcomeValue,
    frame: OutcomeFrame,
    *,
    there: bool = False,
) -> None:
    """`there`: the target was there before."""
    if isinstance(target, ast.Name):
        bind(reckoning, target.id, value, frame)
    elif isinstance(target, ast.Tuple | ast.List):
        if not (isinstance(value.kind, type) and value.kind is tuple):
            reckoning.may_raise(frame, value.all)
        apart = _takes_apart(target, value)
        for place, each in enumerate(target.elts):
            inner = each.value if isinstance(each, ast.Starred) else each
            deps = apart[place] | value.deps | value.late if apart else value.all
            one = OutcomeValue(deps, refs=value.inside, within=value.holder)
            store(reckoning, inner, one, frame)
    elif isinstance(target, ast.Attribute | ast.Subscript):
        _store_part(reckoning, target, value, frame, there=there)
    else:
        raise Unclear


def _takes_apart(target: ast.Tuple | ast.List, value: OutcomeValue) -> list[frozenset[str]] | None:
    """What each target of `a, b = ask(), 0` is given."""
    parts = value.fresh.parts if value.fresh is not None else None
    if parts is not None and (around := _find_starred(target)) is not None:
        return _takes_rest(parts, *around)
    steps = [f"[{place}]" for place in range(len(target.elts))]
    if parts is None or [*parts] != steps:
        return None
    return [parts[step] for step in steps]


def _find_starred(target: ast.Tuple | ast.List) -> tuple[int, int] | None:
    """How many targets there are before the one that takes the rest, and after it."""
    places = (place for place, each in enumerate(target.elts) if isinstance(each, ast.Starred))
    before = next(places, None)
    return None if before is None else (before, len(target.elts) - before - 1)


def _takes_rest(
    parts: Mapping[str, frozenset[str]], before: int, after: int
) -> list[frozenset[str]] | None:
    """What each target of `a, *rest = ask(), 0, 1` is given."""
    if [*parts] != [f"[{place}]" for place in range(len(parts))] or len(parts) < before + after:
        return None
    given = list(parts.values())
    end = len(given) - after
    return [*given[:before], NOTHING.union(*given[before:end]), *given[end:]]


def bind(reckoning: Reckoning, name: str, value: OutcomeValue, frame: OutcomeFrame) -> None:
    if frame.top:
        if value.fresh is not None and name not in reckoning.result.binds and not frame.control:
            reckoning.result.made[name] = value
        else:
            reckoning.result.made.pop(name, None)
        reckoning.result.binds[name] = reckoning.result.binds.get(name, NOTHING) | reckoning.after(
            frame, value.all
        )
        if frame.control:
            before = frame.names.get(name) or reckoning.variable(name, frame)
        else:
            before = OutcomeValue()
        deps = reckoning.after(frame, value.all, before.all)
        frame.names[name] = replace(value, deps=deps, part="", refs=value.refs | before.refs)
    elif name in frame.shared:
        resource = f"{frame.place}:{name}" if frame.place else name
        reckoning.write(frame, resource, value.all)
    else:
        before = frame.names.get(name, OutcomeValue())
        if frame.control:  # it may hold what it held before
            deps, refs = value.deps | frame.control | before.all, value.refs | before.refs
            value = replace(value, deps=deps, refs=refs)
        frame.names[name] = value


def _store_part(
    reckoning: Reckoning,
    target: ast.Attribute | ast.Subscript,
    value: OutcomeValue,
    frame: OutcomeFrame,
    *,
    there: bool,
) -> None:
    base = reckoning.base(target.value, frame)
    if isinstance(target, ast.Subscript):
        key = reckoning.value(target.slice, frame)
    else:
        key = OutcomeValue()
    _store_in_made(reckoning, target, base, value, key, frame)
    if not base.refs:
        return
    step = _format_step(target, key)
    if isinstance(target, ast.Attribute):
        known = base.obj is not MISSING and paths.stores(f"x.{target.attr}", base.obj)
    else:
        frame_ = paths.is_frame(base.obj) and type(key.obj) is str and not key.part
        known = (
            frame_
            or type(base.obj) in (dict, OrderedDict, defaultdict)
            or (type(base.obj) is list and paths.value_at(f"x{step}", base.obj) is not MISSING)
        )
    if isinstance(target, ast.Subscript) and paths.is_array(base.obj) and base.part:
        reckoning.may_raise(frame, base.deps, value.all, key.all)
        reckoning.write(frame, f"{base.part}{ELEMENT}", value.all | key.all)
        return
    if not known or not base.part:
        if base.obj is not MISSING and isinstance(base.obj, types.ModuleType):
            raise Unclear
        reckoning.may_raise(frame, base.all, key.all)
        reckoning.change(frame, base, value.all | key.all)
    elif step:
        # a column is a copy, whose elements are no parts
        given = OutcomeValue(value.all) if paths.is_frame(base.obj) else value
        write_whole(reckoning, f"{base.part}{step}", given, base.deps, frame)
        if not there and isinstance(target, ast.Subscript):
            size = COLUMNS if paths.is_frame(base.obj) else SIZE
            reckoning.write(frame, presence(base.part, step, size), NOTHING)
    else:
        reckoning.write(frame, base.part, key.all | base.deps)
        reckoning.write(frame, f"{base.part}{ELEMENT}", value.all)


def write_whole(
    reckoning: Reckoning,
    part: str,
    value: OutcomeValue,
    deps: frozenset[str],
    frame: OutcomeFrame,
    *,
    new: bool = False,
) -> None:
    """A part is given a value: of one that is written down there, each part by itself."""
    parts = value.fresh.parts if value.fresh is not None else None
    if not parts:
        reckoning.write(frame, part, value.all | deps, new=new)
        return
    around = value.deps | value.late | deps
    if not new:
        reckoning.write(frame, part, around)
    for step, needs in parts.items():
        reckoning.write(frame, f"{part}{step}", needs | around, new=new)


def _store_in_made(
    reckoning: Reckoning,
    target: ast.Attribute | ast.Subscript,
    base: OutcomeValue,
    value: OutcomeValue,
    key: OutcomeValue,
    frame: OutcomeFrame,
) -> None:
    """A store into what the statement itself makes: of an attribute by its own `__init__`, or
    anywhere in it.
    """
    made = base.fresh
    if made is not None and made.kind is not None and isinstance(target, ast.Attribute):
        step = f".{target.attr}" if paths.is_plain_to_bind(made.kind, target.attr) else ""
        reckoning.alter(frame, made, value.all, put([value]), step=step)
    elif base.holder is not None:
        reckoning.alter(frame, base.holder, value.all | key.all, put([value]))


def _format_step(target: ast.Attribute | ast.Subscript, key: OutcomeValue) -> str:
    if isinstance(target, ast.Attribute):
        return f".{target.attr}"
    return f"[{key.obj!r}]" if type(key.obj) in (str, int) and not key.part else ""


BOXES = (list, dict, set, deque, OrderedDict, defaultdict)
MAPPINGS = (dict, OrderedDict, defaultdict)
_KEYED = (*MAPPINGS, list, tuple)


def constant(_reckoning: Reckoning, node: ast.Constant, _frame: OutcomeFrame) -> OutcomeValue:
    return OutcomeValue(obj=node.value, kind=type(node.value))


def name(reckoning: Reckoning, node: ast.Name, frame: OutcomeFrame) -> OutcomeValue:
    if node.id in frame.names:
        return frame.names[node.id]
    if not frame.top and node.id in frame.shared and node.id not in reckoning.variables.namespace:
        raise Unclear
    return reckoning.variable(node.id, frame)


def attribute_outcome(
    reckoning: Reckoning, node: ast.Attribute, frame: OutcomeFrame
) -> OutcomeValue:
    return _read_attribute(reckoning, reckoning.base(node.value, frame), node.attr, frame)


def _read_attribute(
    reckoning: Reckoning, base: OutcomeValue, name: str, frame: OutcomeFrame
) -> OutcomeValue:
    if base.obj is MISSING or base.fresh is not None:
        return OutcomeValue(
            base.all, refs=base.inside, bound=base, within=base.holder
        )  # a property that asks a model is a call we do not see
    if isinstance(base.obj, types.ModuleType):
        return _read_module_attribute(reckoning, base, name, frame)
    if paths.is_array(base.obj) and base.part and name in ("shape", "dtype", "ndim", "size"):
        return OutcomeValue(base.deps | {f"{base.part}.__len__"})
    if base.part and (plain := _read_plain_attribute(reckoning, base, name)) is not None:
        return plain
    slot = next((vars(c)[name] for c in type(base.obj).__mro__ if name in vars(c)), MISSING)
    users = is_users(str(type(base.obj).__module__))
    if isinstance(slot, types.FunctionType) and users and name not in _find_instance_dict(base.obj):
        return OutcomeValue(base.deps, obj=slot, bound=base)
    if users and not (type(slot) in ATOMS or type(slot) is types.MemberDescriptorType):
        raise Unclear
    return OutcomeValue(base.all, refs=base.inside, bound=base)


def _read_plain_attribute(
    reckoning: Reckoning, base: OutcomeValue, name: str
) -> OutcomeValue | None:
    """One that no code runs to find; None of others."""
    if name in ("columns", "shape") and paths.is_frame(base.obj):
        size = frozenset({f"{base.part}{SIZE}", f"{base.part}{COLUMNS}"})
        return OutcomeValue(base.deps | size, refs=base.inside)
    attribute = paths.static_attribute(base.obj, name)
    if attribute is MISSING:
        return None
    part = f"{base.part}.{name}"
    of_some_row = ELEMENT in part
    atom = type(attribute) in ATOMS and not of_some_row
    return OutcomeValue(
        base.deps,
        part,
        frozenset() if atom else frozenset({(part, True)}),
        MISSING if atom or of_some_row else attribute,
        type(attribute) if atom else None,
        bound=base,
        late=reckoning.find_later_dependencies(part),
    )


def _read_module_attribute(
    reckoning: Reckoning, base: OutcomeValue, name: str, _frame: OutcomeFrame
) -> OutcomeValue:
    attribute = vars(base.obj).get(name, MISSING)
    if not is_users(base.obj.__name__):
        return OutcomeValue(
            base.all, obj=attribute, refs=frozenset({(f"{base.part}.{name}", False)})
        )
    resource = reckoning.variables.resource(base.obj.__name__, name)
    if resource is None or attribute is MISSING:
        raise Unclear
    refs = frozenset() if type(attribute) in ATOMS else frozenset({(resource, True)})
    return OutcomeValue(
        base.all,
        resource,
        refs,
        attribute if refs else MISSING,
        late=reckoning.find_later_dependencies(resource),
    )


def subscript(reckoning: Reckoning, node: ast.Subscript, frame: OutcomeFrame) -> OutcomeValue:
    base, key = reckoning.base(node.value, frame), reckoning.value(node.slice, frame)
    literal_key = _find_key(reckoning, key)
    if (field := _find_field(base, literal_key)) and not key.part:
        same = f"{base.part}.__class__"
        reckoning.result.reads.add(same)
        reckoning.may_raise(frame, base.deps, frozenset({same}))
        return _read_attribute(reckoning, base, field, frame)
    if type(literal_key) is int and literal_key < 0 and part_root(base.part) in reckoning.moved:
        literal_key = MISSING
    if (
        type(literal_key) in (str, int)
        and base.part
        and (type(base.obj) in _KEYED or paths.is_frame(base.obj))
    ):
        if type(literal_key) is int and literal_key < 0 and type(base.obj) in (list, tuple):
            at = literal_key + len(base.obj)
        else:
            at = literal_key
        if type(base.obj) is defaultdict:
            reckoning.write(frame, presence(base.part, f"[{at!r}]"), NOTHING)
        part = f"{base.part}[{at!r}]"
        item = paths.value_at(f"x[{at!r}]", base.obj)
        if item is not MISSING:
            some_row = ELEMENT in part
            atom = type(item) in ATOMS and not some_row
            refs = frozenset() if atom else frozenset({(part, True)})
            of_key = f"[{at!r}]" if type(base.obj) in MAPPINGS else ""
            there = frozenset({presence(base.part, of_key), f"{base.part}.__class__"})
            reckoning.result.reads |= there
            reckoning.may_raise(frame, base.deps, there)
            deps = base.deps | key.deps | (there if at != literal_key else NOTHING) | key.all
            kind = None if refs else type(item)
            return OutcomeValue(
                deps,
                part,
                refs,
                item if refs and not some_row else MISSING,
                kind,
                late=reckoning.find_later_dependencies(part),
            )
    if base.obj is not MISSING and is_users(str(type(base.obj).__module__)):
        raise Unclear
    reckoning.may_raise(frame, base.all, key.all)
    known = type(base.obj) in (dict, list) and ELEMENT not in base.part
    some = Several(base.obj) if known else MISSING
    return OutcomeValue(base.all | key.all, refs=base.inside, obj=some, within=base.holder)


def _find_field(base: OutcomeValue, key: Any) -> str:
    """The name of an element of a named tuple that is looked up by its place; "" of others."""
    if type(key) is not int or not base.part or base.fresh is not None:
        return ""
    kind = type(base.obj)
    fields: tuple[str, ...] = getattr(kind, "_fields", ()) if is_named_tuple(kind) else ()
    return fields[key] if -len(fields) <= key < len(fields) else ""


def _find_key(reckoning: Reckoning, key: OutcomeValue) -> Any:
    """What a key is, where that is known."""
    if not key.part:
        return key.obj
    return reckoning.now(key) if key.part not in reckoning.unsteady and not key.late else MISSING


def joined_outcome(
    reckoning: Reckoning, node: ast.expr, frame: OutcomeFrame, *, kind: type | None = None
) -> OutcomeValue:
    """What depends on all that it is made of: operations, texts, boxes."""
    inner = [
        reckoning.value(each, frame)
        for each in ast.iter_child_nodes(node)
        if isinstance(each, ast.expr)
    ]
    deps = frozenset().union(*(each.all for each in inner))
    return OutcomeValue(deps, refs=put(inner) if kind is None else frozenset(), kind=kind)


def branched_outcome(
    reckoning: Reckoning, node: ast.IfExp | ast.BoolOp, frame: OutcomeFrame
) -> OutcomeValue:
    """`a if test else b`, `a and b`: what is read later may not be, and does not do what it does."""
    is_choice = isinstance(node, ast.IfExp)
    parts = [node.test, node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
    before, values = frame.control, []
    for place, each in enumerate(parts):
        values.append(reckoning.value(each, frame))
        if not is_choice or place == 0:
            frame.control |= values[-1].all
    frame.control = before
    given = values[1:] if is_choice else values
    return OutcomeValue(frozenset().union(*(each.all for each in values)), refs=put(given))


def text_outcome(
    reckoning: Reckoning, node: ast.JoinedStr | ast.FormattedValue, frame: OutcomeFrame
) -> OutcomeValue:
    return joined_outcome(reckoning, node, frame, kind=str)


def box(reckoning: Reckoning, node: ast.expr, frame: OutcomeFrame) -> OutcomeValue:
    outcome = joined_outcome(reckoning, node, frame)
    made = NewObject(outcome.all, outcome.inside)
    return replace(outcome, refs=frozenset(), fresh=made)


def sequence(reckoning: Reckoning, node: ast.List | ast.Tuple, frame: OutcomeFrame) -> OutcomeValue:
    """Each element that is written down is a part of its own."""
    kind = tuple if isinstance(node, ast.Tuple) else None
    if any(isinstance(each, ast.Starred) for each in node.elts):
        return replace(box(reckoning, node, frame), kind=kind)
    values = [reckoning.value(each, frame) for each in node.elts]
    steps = [f"[{place}]" for place in range(len(values))]
    made = NewObject(reckoning.all_of(values), put(values), _parts_of(steps, values))
    return OutcomeValue(fresh=made, kind=kind)


def dict_outcome(reckoning: Reckoning, node: ast.Dict, frame: OutcomeFrame) -> OutcomeValue:
    keys = [each.value for each in node.keys if isinstance(each, ast.Constant)]
    if len({key for key in keys if type(key) is str}) < len(node.values):
        return box(reckoning, node, frame)
    values = [reckoning.value(each, frame) for each in node.values]
    refs = put(values)
    parts = _parts_of([f"[{key!r}]" for key in keys], values)
    return OutcomeValue(fresh=NewObject(reckoning.all_of(values), refs, parts))


def _parts_of(steps: Iterable[str], values: Iterable[OutcomeValue]) -> dict[str, frozenset[str]]:
    """What each element of a box that is written down depends on."""
    return {step: each.all for step, each in zip(steps, values, strict=True)}


def comparison_outcome(
    reckoning: Reckoning, node: ast.Compare, frame: OutcomeFrame
) -> OutcomeValue:
    left, right = reckoning.base(node.left, frame), reckoning.base(node.comparators[0], frame)
    is_membership = len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn)
    known = type(left.obj) in (str, int) and not left.part and right.part
    if is_membership and known and type(right.obj) in (dict, defaultdict, OrderedDict):
        deps = left.deps | right.deps | {f"{right.part}[{left.obj!r}]"}
        reckoning.result.reads |= deps
        return OutcomeValue(deps, kind=bool)
    outcome = joined_outcome(reckoning, node, frame, kind=bool)
    if not all(
        isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn)
        for op in node.ops
    ):
        reckoning.may_raise(frame, outcome.all)
    return outcome


def operation(reckoning: Reckoning, node: ast.BinOp, frame: OutcomeFrame) -> OutcomeValue:
    left, right = reckoning.value(node.left, frame), reckoning.value(node.right, frame)
    kind = sum_kind(node.op, left, right)
    if kind is None:
        reckoning.may_raise(frame, left.all, right.all)
    return OutcomeValue(left.all | right.all, refs=left.inside | right.inside, kind=kind)


def unary(reckoning: Reckoning, node: ast.UnaryOp, frame: OutcomeFrame) -> OutcomeValue:
    if (
        isinstance(node.operand, ast.Constant)
        and isinstance(node.op, ast.USub)
        and type(node.operand.value) is int
    ):
        return OutcomeValue(obj=-node.operand.value, kind=int)
    inner = reckoning.value(node.operand, frame)
    if not isinstance(node.op, ast.Not):
        reckoning.may_raise(frame, inner.all)
    return OutcomeValue(inner.all, kind=bool if isinstance(node.op, ast.Not) else inner.kind)


def awaited(reckoning: Reckoning, node: ast.Await, frame: OutcomeFrame) -> OutcomeValue:
    return reckoning.base(node.value, frame)


def starred(reckoning: Reckoning, node: ast.Starred, frame: OutcomeFrame) -> OutcomeValue:
    inner = reckoning.value(node.value, frame)
    iterated(reckoning, inner, frame)
    return OutcomeValue(inner.all, refs=inner.inside)


def walrus(reckoning: Reckoning, node: ast.NamedExpr, frame: OutcomeFrame) -> OutcomeValue:
    outcome = reckoning.value(node.value, frame)
    bind(reckoning, node.target.id, outcome, frame)
    return outcome


def comprehension(
    reckoning: Reckoning,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    frame: OutcomeFrame,
) -> OutcomeValue:
    inner = OutcomeFrame(frame.place, dict(frame.names), frame.shared, control=frame.control)
    for each in node.generators:
        take_each(reckoning, each.iter, each.target, inner)
        for test in each.ifs:
            inner.control |= reckoning.value(test, inner).all
    elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    before = dict(reckoning.result.appends)
    values = [reckoning.value(each, inner) for each in elements]
    reckoning.repeat_appends(before)
    deps = inner.control.union(*(v.all for v in values))
    return OutcomeValue(deps, fresh=NewObject(deps, put(values)))


def take_each(
    reckoning: Reckoning, iterable: ast.expr, target: ast.expr, frame: OutcomeFrame
) -> None:
    """`for target in iterable`."""
    items = reckoning.base(iterable, frame)
    if targets := _find_row_targets(reckoning, target, items):
        count = items.deps | {f"{items.part}.__len__", f"{items.part}.__class__"}
        reckoning.result.reads |= count
        frame.control |= count
        for name, step in targets.items():
            part = f"{items.part}{ELEMENT}{step}"
            row = MISSING if step else items.obj[0]
            each = OutcomeValue(count, part, frozenset({(part, True)}), row)
            bind(reckoning, name, each, frame)
            frame.names[name] = each  # a name for that row, or for an element of it
        return
    reckoning.result.reads |= items.all
    iterated(reckoning, items, frame)
    frame.control |= items.all
    store(reckoning, target, OutcomeValue(items.all, refs=items.inside, within=items.holder), frame)


_ROWS = 5_000
"""Elements that are looked at."""


def _find_row_targets(
    reckoning: Reckoning, target: ast.expr, items: OutcomeValue
) -> dict[str, str]:
    """By the name that is bound to each row of a list, or to an element of each, which it is."""
    if isinstance(target, ast.Name):
        known = is_table(reckoning, items) or _is_list_of_tuples(items)
        return {target.id: ""} if known else {}
    if not isinstance(target, ast.Tuple) or not _is_list_of_tuples(items):
        return {}
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    steps = _list_steps(type(items.obj[0]), len(items.obj[0]))
    if len(names) < len(target.elts) or len(names) != len(steps):
        return {}
    return dict(zip(names, steps, strict=True))


def _list_steps(kind: type, count: int) -> list[str]:
    """How the elements of a tuple are called: a named one's by their names."""
    if kind is tuple:
        return [f"[{place}]" for place in range(count)]
    return [f".{name}" for name in getattr(kind, "_fields", ())]


def _is_list_of_tuples(items: OutcomeValue) -> bool:
    """Whether it is a list of tuples of one kind and length, which stays one in this statement."""
    if type(items.obj) is not list or not items.part or not items.obj or len(items.obj) > _ROWS:
        return False
    kind, count = type(items.obj[0]), len(items.obj[0]) if isinstance(items.obj[0], tuple) else 0
    plain = kind is tuple or is_named_tuple(kind)
    return (
        plain
        and not items.late
        and all(type(each) is kind and len(each) == count for each in items.obj)
    )


def is_named_tuple(kind: type) -> bool:
    """Whether a class is one that `namedtuple` made, or that does no more."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and kind.__bases__ == (tuple,)


def is_table(reckoning: Reckoning, items: OutcomeValue) -> bool:
    """Whether it is a list of dicts with the same keys, which stays one in this statement."""
    if type(items.obj) is not list or not items.part or not items.obj or len(items.obj) > _ROWS:
        return False
    row = f"{items.part}{ELEMENT}"
    if items.late and any(  # to give each row a key leaves as many rows
        not path.startswith((f"{row}{SIZE}", f"{row}["))
        for path in reckoning.result.writes
        if part_root(path) == part_root(items.part)
    ):
        return False
    if any(type(each) is not dict for each in items.obj):
        return False
    return all(each.keys() == items.obj[0].keys() for each in items.obj)


def iterated(reckoning: Reckoning, value: OutcomeValue, frame: OutcomeFrame) -> None:
    """To iterate over a list changes nothing; over an iterator it does."""
    if value.obj is MISSING or type(value.obj) in (*BOXES, tuple, str, range, frozenset):
        for path, _ in value.refs if value.obj is MISSING and value.kind is None else ():
            if path in reckoning.variables.prints and reckoning.variables.prints[path].opaque:
                raise Unclear
        return
    if is_users(str(type(value.obj).__module__)) or hasattr(type(value.obj), "__next__"):
        raise Unclear
    reckoning.may_raise(frame, value.all)


def _find_instance_dict(value: Any) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


WAYS: dict[type, Way] = {
    ast.Constant: constant, ast.Name: name, ast.Attribute: attribute_outcome,
    ast.Subscript: subscript, ast.JoinedStr: text_outcome,
    ast.FormattedValue: text_outcome, ast.List: sequence, ast.Tuple: sequence, ast.Set: box, ast.Dict: dict_outcome,
    ast.BinOp: operation, ast.BoolOp: branched_outcome, ast.Compare: comparison_outcome, ast.UnaryOp: unary,
    ast.IfExp: branched_outcome, ast.Slice: joined_outcome,
    ast.Await: awaited, ast.Starred: starred, ast.NamedExpr: walrus, ast.ListComp: comprehension,
    ast.SetComp: comprehension, ast.GeneratorExp: comprehension, ast.DictComp: comprehension,
}  # fmt: skip
