"""Engine room: what each thing that a statement writes depends on, through the functions of the user that it calls.

`answer = ask("hi")`, where `ask` also appends to a log: the answer depends on the reply, not on the log. Read from
syntax trees, with the values that names have after the cell; nothing is run. What is not understood is not told: then
everything that a statement writes depends on everything that it reads. So is a statement in which code of the user ran
that was not read here.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tape_jupyter.flow import parts
from tape_jupyter.flow.effects import CHANGING, MUTATORS, may_change
from tape_jupyter.flow.history import ELEMENT, REPLY, covers
from tape_jupyter.flow.modules import bag, is_users
from tape_jupyter.flow.terms import (
    ATOMS,
    NOTHING,
    NUMBERS,
    Frame,
    Fresh,
    Several,
    Told,
    Unclear,
    Value,
    leaves,
    loading,
    root_of,
    shared_names,
    source_of,
    sum_kind,
)  # fmt: skip
from tape_jupyter.flow.uses import Touch
from tape_jupyter.flow.variables import MISSING, Variables

DEPTH = 8
NODES = 3_000
"""Nodes of syntax trees that are read for one statement."""
_BOXES = (list, dict, set, deque, OrderedDict, defaultdict)
_KEYED = (dict, list, tuple, OrderedDict, defaultdict)
_SURE = bag(
    "strip lstrip rstrip lower upper title split splitlines items keys values get setdefault copy append add extend "
    "update clear appendleft insert"
)
"""Methods of builtin types that do not raise for another text."""
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
_NEVER = bag("setattr delattr getattr exec eval vars globals locals open super")
_Named = dict[str | None, Value]
_LOCKS = bag("lock RLock Lock Semaphore BoundedSemaphore")


def outcome(
    node: ast.stmt, variables: Variables, unsteady: frozenset[str] = NOTHING, moved: frozenset[str] = NOTHING
) -> Told | None:
    """Of a statement at the top of a cell; `unsteady`: names that the cell binds, whose value may have been another;
    `moved`: names whose value the cell changed, so that `log[-1]` may have been another.
    """
    reader = _Reader(variables, unsteady, moved)
    try:
        reader.block([node], Frame("", {}, frozenset(), top=True))
    except (Unclear, RecursionError):
        return None
    return reader.told


class _Reader:
    def __init__(self, variables: Variables, unsteady: frozenset[str], moved: frozenset[str]) -> None:
        self.told = Told()
        self._variables, self._unsteady, self._moved = variables, unsteady, moved
        self._depth = self._count = 0

    # ---------------------------------------------------------------- what happens
    def _raise(self, frame: Frame, *deps: frozenset[str]) -> None:
        self.told.raises |= frame.control.union(*deps)

    def _after(self, frame: Frame, *deps: frozenset[str]) -> frozenset[str]:
        """What something that is done now depends on."""
        return self.told.raises.union(frame.control, *deps)

    def _write(self, frame: Frame, path: str, deps: frozenset[str]) -> None:
        self.told.writes[path] = self.told.writes.get(path, NOTHING) | self._after(frame, deps)

    def _late(self, own: str) -> frozenset[str]:
        return frozenset().union(*(deps for path, deps in self.told.writes.items() if covers(path, own)))

    def _change(self, frame: Frame, value: Value, deps: frozenset[str]) -> None:
        """A value is changed in place, one does not know how."""
        if value.fresh is not None:
            value.fresh.deps |= self._after(frame, deps)
        for path, _ in value.refs | (value.fresh.refs if value.fresh is not None else frozenset()):
            self._write(frame, path, deps | {path})

    # ---------------------------------------------------------------- statements
    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        for node in body:
            self._count += 1
            way = _STATEMENTS.get(type(node))
            if way is None or self._count > NODES:
                raise Unclear
            way(self, node, frame)

    def expression(self, node: ast.Expr, frame: Frame) -> None:
        inner = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(inner, ast.Call):
            self._call(inner, frame, dropped=True)
        else:
            self.value(inner, frame)

    def assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        for target in node.targets:
            self._store(target, value, frame)

    def annotated(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self._store(node.target, self.value(node.value, frame), frame)

    def augmented(self, node: ast.AugAssign, frame: Frame) -> None:
        load = loading(node.target)
        old, new = self.value(load, frame), self.value(node.value, frame)
        if old.kind is None and isinstance(node.target, ast.Name) and type(now := self._now(old)) in (*NUMBERS, str):
            old = replace(old, kind=type(now), refs=frozenset())
        kind = sum_kind(node.op, old, new)
        if kind is None:
            self._raise(frame, old.all, new.all)
        if old.refs or old.fresh is not None:
            self._change(frame, old, new.all)
        self._store(node.target, Value(old.all | new.all, refs=old.refs | new.inside, kind=kind), frame, there=True)

    def _now(self, value: Value) -> Any:
        """What a name holds after the cell."""
        return self._variables.value(value.own) if value.own and value.own.isidentifier() else MISSING

    def _store(self, target: ast.expr, value: Value, frame: Frame, *, there: bool = False) -> None:
        """`there`: the target was there before."""
        if isinstance(target, ast.Name):
            self._bind(target.id, value, frame)
        elif isinstance(target, ast.Tuple | ast.List):
            if not (isinstance(value.kind, type) and value.kind is tuple):
                self._raise(frame, value.all)
            for each in target.elts:
                inner = each.value if isinstance(each, ast.Starred) else each
                self._store(inner, Value(value.all, refs=value.inside), frame)
        elif isinstance(target, ast.Attribute | ast.Subscript):
            self._store_part(target, value, frame, there=there)
        else:
            raise Unclear

    def _bind(self, name: str, value: Value, frame: Frame) -> None:
        if frame.top:
            self.told.binds[name] = self.told.binds.get(name, NOTHING) | self._after(frame, value.all)
            before = (frame.names.get(name) or self._global(name, frame)) if frame.control else Value()
            deps = self._after(frame, value.all, before.all)
            frame.names[name] = replace(value, deps=deps, own="", refs=value.refs | before.refs)
        elif name in frame.shared:
            resource = f"{frame.place}:{name}" if frame.place else name
            self._write(frame, resource, value.all)
        else:
            before = frame.names.get(name, Value())
            if frame.control:  # it may hold what it held before
                deps, refs = value.deps | frame.control | before.all, value.refs | before.refs
                value = replace(value, deps=deps, refs=refs)
            frame.names[name] = value

    def _store_part(self, target: ast.Attribute | ast.Subscript, value: Value, frame: Frame, *, there: bool) -> None:
        base = self._base(target.value, frame)
        key = self.value(target.slice, frame) if isinstance(target, ast.Subscript) else Value()
        if base.fresh is not None:
            base.fresh.deps |= self._after(frame, value.all, key.all)
            base.fresh.refs |= value.inside
        if not base.refs:
            return
        step = self._step(target, key)
        if isinstance(target, ast.Attribute):
            known = base.obj is not MISSING and parts.stores(f"x.{target.attr}", base.obj)
        else:
            frame_ = parts.is_frame(base.obj) and type(key.obj) is str and not key.own
            known = (
                frame_
                or type(base.obj) in (dict, OrderedDict, defaultdict)
                or (type(base.obj) is list and parts.value_at(f"x{step}", base.obj) is not MISSING)
            )
        if isinstance(target, ast.Subscript) and parts.is_array(base.obj) and base.own:
            self._raise(frame, base.deps, value.all, key.all)
            self._write(frame, f"{base.own}{ELEMENT}", value.all | key.all)
            return
        if not known or not base.own:
            if base.obj is not MISSING and isinstance(base.obj, types.ModuleType):
                raise Unclear
            self._raise(frame, base.all, key.all)
            self._change(frame, base, value.all | key.all)
        elif step:
            self._write(frame, f"{base.own}{step}", value.all | base.deps)
            if not there and isinstance(target, ast.Subscript) and not parts.is_frame(base.obj):
                self._write(frame, f"{base.own}.__len__", NOTHING)
        else:
            self._write(frame, base.own, key.all | base.deps)
            self._write(frame, f"{base.own}{ELEMENT}", value.all)

    def _step(self, target: ast.Attribute | ast.Subscript, key: Value) -> str:
        if isinstance(target, ast.Attribute):
            return f".{target.attr}"
        return f"[{key.obj!r}]" if type(key.obj) in (str, int) and not key.own else ""

    def returned(self, node: ast.Return, frame: Frame) -> None:
        value = self.value(node.value, frame) if node.value is not None else Value(kind=type(None))
        frame.returns.append(replace(value, deps=value.all | frame.control, own="", fresh=value.fresh))

    def branch(self, node: ast.If, frame: Frame) -> None:
        test = self.value(node.test, frame).all
        before = frame.control
        frame.control = before | test
        for body in (node.body, node.orelse):
            self.block(body, frame)
        if not leaves(node):
            frame.control = before

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame) -> None:
        before = frame.control
        if node.orelse:
            raise Unclear
        for _ in range(2):
            if isinstance(node, ast.While):
                frame.control |= self.value(node.test, frame).all
            else:
                items = self.value(node.iter, frame)
                self._iterated(items, frame)
                frame.control |= items.all
                self._store(node.target, Value(items.all, refs=items.inside), frame)
            self.block(node.body, frame)
        if not leaves(node):
            frame.control = before

    def within(self, node: ast.With | ast.AsyncWith, frame: Frame) -> None:
        for item in node.items:
            value = self.value(item.context_expr, frame)
            if item.optional_vars is not None or type(value.obj).__name__ not in _LOCKS:
                raise Unclear
        self.block(node.body, frame)

    def asserted(self, node: ast.Assert, frame: Frame) -> None:
        self._raise(frame, self.value(node.test, frame).all)

    def nothing(self, node: ast.stmt, frame: Frame) -> None:
        """pass, global; break and continue, which branch() and loop() know of."""

    # ---------------------------------------------------------------- expressions
    def value(self, node: ast.expr, frame: Frame) -> Value:
        found = self._base(node, frame)
        self.told.reads |= found.all
        return found

    def _base(self, node: ast.expr, frame: Frame) -> Value:
        self._count += 1
        way = _EXPRESSIONS.get(type(node))
        if way is None or self._count > NODES:
            raise Unclear
        found: Value = way(self, node, frame)
        return found

    def constant(self, node: ast.Constant, _frame: Frame) -> Value:
        return Value(obj=node.value, kind=type(node.value))

    def name(self, node: ast.Name, frame: Frame) -> Value:
        if node.id in frame.names:
            return frame.names[node.id]
        if not frame.top and node.id in frame.shared and node.id not in self._variables.namespace:
            raise Unclear
        return self._global(node.id, frame)

    def _global(self, name: str, frame: Frame) -> Value:
        resource = self._variables.resource(frame.place, name)
        if resource is None:
            return Value(obj=getattr(builtins, name, MISSING))
        value = self._variables.value(resource)
        if value is MISSING and hasattr(builtins, name):
            raise Unclear
        if resource in self._unsteady:
            value = MISSING
        if type(value) in ATOMS:
            return Value(own=resource, kind=type(value), late=self._late(resource))
        return Value(own=resource, refs=frozenset({(resource, True)}), obj=value, late=self._late(resource))

    def attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        return self._attribute(self._base(node.value, frame), node.attr, frame)

    def _attribute(self, base: Value, name: str, frame: Frame) -> Value:
        if base.obj is MISSING or base.fresh is not None:
            return Value(base.all, refs=base.inside, bound=base)  # a property that asks a model is a call we do not see
        if isinstance(base.obj, types.ModuleType):
            return self._of_module(base, name, frame)
        if parts.is_array(base.obj) and base.own and name in ("shape", "dtype", "ndim", "size"):
            return Value(base.deps | {f"{base.own}.__len__"})
        found = parts.attribute(base.obj, name)
        if found is not MISSING and base.own:
            own = f"{base.own}.{name}"
            refs = frozenset() if type(found) in ATOMS else frozenset({(own, True)})
            kind = type(found) if not refs else None
            return Value(base.deps, own, refs, found if refs else MISSING, kind, bound=base, late=self._late(own))
        slot = next((vars(c)[name] for c in type(base.obj).__mro__ if name in vars(c)), MISSING)
        users = is_users(str(type(base.obj).__module__))
        if isinstance(slot, types.FunctionType) and users and name not in _inside(base.obj):
            return Value(base.deps, obj=slot, bound=base)
        if users and not (type(slot) in ATOMS or type(slot) is types.MemberDescriptorType):
            raise Unclear
        return Value(base.all, refs=base.inside, bound=base)

    def _of_module(self, base: Value, name: str, _frame: Frame) -> Value:
        found = vars(base.obj).get(name, MISSING)
        if not is_users(base.obj.__name__):
            return Value(base.all, obj=found, refs=frozenset({(f"{base.own}.{name}", False)}))
        resource = self._variables.resource(base.obj.__name__, name)
        if resource is None or found is MISSING:
            raise Unclear
        refs = frozenset() if type(found) in ATOMS else frozenset({(resource, True)})
        return Value(base.all, resource, refs, found if refs else MISSING, late=self._late(resource))

    def subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        base, key = self._base(node.value, frame), self.value(node.slice, frame)
        said = self._key(key)
        if type(said) is int and said < 0 and root_of(base.own) in self._moved:
            said = MISSING
        if type(said) in (str, int) and base.own and (type(base.obj) in _KEYED or parts.is_frame(base.obj)):
            at = said + len(base.obj) if type(said) is int and said < 0 and type(base.obj) in (list, tuple) else said
            if type(base.obj) is defaultdict:
                self._write(frame, f"{base.own}.__len__", NOTHING)
            own = f"{base.own}[{at!r}]"
            found = parts.value_at(f"x[{at!r}]", base.obj)
            if found is not MISSING:
                refs = frozenset() if type(found) in ATOMS else frozenset({(own, True)})
                there = frozenset({f"{base.own}.__len__", f"{base.own}.__class__"})
                self.told.reads |= there
                self._raise(frame, base.deps, there)
                deps = base.deps | key.deps | (there if at != said else NOTHING) | key.all
                kind = None if refs else type(found)
                return Value(deps, own, refs, found if refs else MISSING, kind, late=self._late(own))
        if base.obj is not MISSING and is_users(str(type(base.obj).__module__)):
            raise Unclear
        self._raise(frame, base.all, key.all)
        some = Several(base.obj) if type(base.obj) in (dict, list) else MISSING
        return Value(base.all | key.all, refs=base.inside, obj=some)

    def _key(self, key: Value) -> Any:
        """What a key is, where that is known."""
        if not key.own:
            return key.obj
        return self._now(key) if key.own not in self._unsteady and not key.late else MISSING

    def joined(self, node: ast.expr, frame: Frame, *, kind: type | None = None) -> Value:
        """What depends on all that it is made of: operations, texts, boxes."""
        inner = [self.value(each, frame) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        refs = frozenset(r for each in inner for r in (*each.refs, *each.inside))
        deps = frozenset().union(*(each.all for each in inner))
        return Value(deps, refs=refs if kind is None else frozenset(), kind=kind)

    def text(self, node: ast.JoinedStr | ast.FormattedValue, frame: Frame) -> Value:
        return self.joined(node, frame, kind=str)

    def box(self, node: ast.expr, frame: Frame) -> Value:
        found = self.joined(node, frame)
        kind = tuple if isinstance(node, ast.Tuple) else None
        return replace(found, refs=frozenset(), fresh=Fresh(found.all, found.inside), kind=kind)

    def compared(self, node: ast.Compare, frame: Frame) -> Value:
        left, right = self._base(node.left, frame), self._base(node.comparators[0], frame)
        asks = len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn)
        known = type(left.obj) in (str, int) and not left.own and right.own
        if asks and known and type(right.obj) in (dict, defaultdict, OrderedDict):
            deps = left.deps | right.deps | {f"{right.own}[{left.obj!r}]"}
            self.told.reads |= deps
            return Value(deps, kind=bool)
        found = self.joined(node, frame, kind=bool)
        if not all(isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            self._raise(frame, found.all)
        return found

    def operation(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        kind = sum_kind(node.op, left, right)
        if kind is None:
            self._raise(frame, left.all, right.all)
        return Value(left.all | right.all, refs=left.inside | right.inside, kind=kind)

    def unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        if isinstance(node.operand, ast.Constant) and isinstance(node.op, ast.USub) and type(node.operand.value) is int:
            return Value(obj=-node.operand.value, kind=int)
        inner = self.value(node.operand, frame)
        if not isinstance(node.op, ast.Not):
            self._raise(frame, inner.all)
        return Value(inner.all, kind=bool if isinstance(node.op, ast.Not) else inner.kind)

    def awaited(self, node: ast.Await, frame: Frame) -> Value:
        return self._base(node.value, frame)

    def starred(self, node: ast.Starred, frame: Frame) -> Value:
        inner = self.value(node.value, frame)
        self._iterated(inner, frame)
        return Value(inner.all, refs=inner.inside)

    def walrus(self, node: ast.NamedExpr, frame: Frame) -> Value:
        found = self.value(node.value, frame)
        self._bind(node.target.id, found, frame)
        return found

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Value:
        inner = Frame(frame.place, dict(frame.names), frame.shared, control=frame.control)
        for each in node.generators:
            items = self.value(each.iter, inner)
            self._iterated(items, inner)
            inner.control |= items.all
            self._store(each.target, Value(items.all, refs=items.inside), inner)
            for test in each.ifs:
                inner.control |= self.value(test, inner).all
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        values = [self.value(each, inner) for each in made]
        deps = inner.control.union(*(v.all for v in values))
        return Value(deps, fresh=Fresh(deps, frozenset(r for v in values for r in (*v.refs, *v.inside))))

    def _iterated(self, value: Value, frame: Frame) -> None:
        """To iterate over a list changes nothing; over an iterator it does."""
        if value.obj is MISSING or type(value.obj) in (*_BOXES, tuple, str, range, frozenset):
            for path, _ in value.refs if value.obj is MISSING and value.kind is None else ():
                if path in self._variables.prints and self._variables.prints[path].opaque:
                    raise Unclear
            return
        if is_users(str(type(value.obj).__module__)) or hasattr(type(value.obj), "__next__"):
            raise Unclear
        self._raise(frame, value.all)

    # ---------------------------------------------------------------- calls
    def call(self, node: ast.Call, frame: Frame) -> Value:
        return self._call(node, frame, dropped=False)

    def _call(self, node: ast.Call, frame: Frame, *, dropped: bool) -> Value:
        called = self._base(node.func, frame)
        args = [self._given(each, frame) for each in node.args]
        named = {k.arg: self._given(k.value, frame) for k in node.keywords}
        if None in named or any(isinstance(each, ast.Starred) for each in node.args):
            return self._outside(node, called, [*args, *named.values()], frame, dropped=dropped, on=called.bound)
        function = called.obj
        if isinstance(function, Several) and (several := function.functions()):
            return self._one_of(several, called, args, named, frame)
        if isinstance(function, types.FunctionType | type) and is_users(function.__module__ or ""):
            self._is(called)
            if isinstance(function, type):
                return self._make(function, args, named, frame)
            return self._enter(function, [called.bound, *args] if _is_method(called) else args, named, frame)
        return self._library(node, called, [*args, *named.values()], frame, dropped=dropped)

    def _library(self, node: ast.Call, called: Value, given: list[Value], frame: Frame, *, dropped: bool) -> Value:
        """A call of what is builtin or somebody else's."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name and called.obj is not MISSING and getattr(builtins, name, None) is called.obj:
            return self._builtin(name, node, given, frame)
        if called.bound is not None and isinstance(node.func, ast.Attribute):
            return self._method(node, called.bound, given, frame, dropped=dropped)
        return self._outside(node, called, given, frame, dropped=dropped, on=None)

    def _is(self, called: Value) -> None:
        """That a name holds this function, or an object of this class, is what everything after depends on."""
        for each in (called, called.bound):
            if each is not None:
                same = frozenset({f"{each.own}.__class__"}) if each.own else NOTHING
                self.told.raises |= each.deps | same
                self.told.reads |= each.deps | same

    def _given(self, node: ast.expr, frame: Frame) -> Value:
        """An argument; len(x) and its like look at part of one only."""
        found = self._base(node, frame)
        if not found.own:
            self.told.reads |= found.all
        return found

    def _read(self, values: Iterable[Value]) -> frozenset[str]:
        found = frozenset().union(*(each.all for each in values))
        self.told.reads |= found
        return found

    def _builtin(self, name: str, node: ast.Call, given: list[Value], frame: Frame) -> Value:
        if (
            name == "len"
            and len(given) == 1
            and given[0].own
            and (type(given[0].obj) in (list, dict) or parts.is_frame(given[0].obj) or parts.is_array(given[0].obj))
        ):
            deps = given[0].deps | {f"{given[0].own}.__len__"}
            self.told.reads |= deps
            return Value(deps, kind=int)
        deps = self._read(given)
        if name in _RISKY_CALLS:
            self._raise(frame, deps)
        elif name not in _PLAIN_CALLS or (node.keywords and name != "print"):
            raise Unclear
        for each in given:
            if name not in _GIVE_NOTHING:
                self._iterated(each, frame)
        refs = frozenset() if name in _GIVE_NOTHING else frozenset(r for each in given for r in each.inside)
        return Value(deps, kind=_PLAIN_CALLS.get(name), fresh=Fresh(deps, refs) if refs else None)

    def _method(self, node: ast.Call, base: Value, given: list[Value], frame: Frame, *, dropped: bool) -> Value:
        name, deps = getattr(node.func, "attr", ""), self._read(given)
        if type(base.obj) in _BOXES or (base.fresh is not None and base.obj is MISSING):
            return self._of_box(name, base, given, deps, frame)
        if base.kind in ATOMS or type(base.obj) in ATOMS:
            self.told.reads |= base.all
            if name not in _SURE:
                self._raise(frame, base.all, deps)
            return Value(base.all | deps)
        if base.obj is not MISSING and is_users(str(type(base.obj).__module__)):
            raise Unclear
        return self._outside(node, base, given, frame, dropped=dropped, on=base)

    def _of_box(self, name: str, base: Value, given: list[Value], deps: frozenset[str], frame: Frame) -> Value:
        inner = frozenset(r for each in given for r in (*each.refs, *each.inside))
        if name not in _SURE:
            self._raise(frame, base.all, deps)
        if base.fresh is not None:
            base.fresh.deps |= self._after(frame, deps)
            base.fresh.refs |= inner
        if name == "append" and base.own and type(base.obj) is list:
            self._write(frame, f"{base.own}{ELEMENT}", deps | base.deps)
            self.told.appends[base.own] = self.told.appends.get(base.own, 0) + (2 if frame.control else 1)
            if frame.control or self.told.raises:
                self._write(frame, base.own, NOTHING)
            return Value(kind=type(None))
        if name in MUTATORS:
            self._change(frame, base, deps | base.all)
            if name in ("append", "add", "extend", "update", "clear", "insert", "appendleft"):
                return Value(kind=type(None))
        self.told.reads |= base.all
        return Value(base.all | deps, refs=base.inside | inner)

    def _outside(
        self, node: ast.Call, called: Value, given: list[Value], frame: Frame, *, dropped: bool, on: Value | None
    ) -> Value:
        """A call of what is not the user's: its result depends on what it is handed, and on what it asks."""
        deps = self._read([called, *given])
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        inplace = any(k.arg == "inplace" for k in node.keywords)
        if name in _NEVER:
            raise Unclear
        for each in given if name in CHANGING or inplace else ():
            self._change(frame, each, deps | {REPLY})
        if on is None:
            on, changes = called, not isinstance(called.obj, type | types.FunctionType | types.BuiltinFunctionType)
        elif on.obj is not MISSING:
            changes = may_change(Touch("", "method", name, kept=not dropped, inplace=inplace), on.obj)
        else:
            changes = name in MUTATORS or dropped or inplace
        if changes and not isinstance(on.obj, types.ModuleType):
            self._change(frame, on, deps | {REPLY})
        self._raise(frame, deps)
        within = [on] if changes or not isinstance(on.obj, type | types.FunctionType | types.ModuleType) else []
        return Value(deps | {REPLY}, refs=frozenset(r for each in (*within, *given) for r in each.inside))

    def _one_of(
        self, several: list[types.FunctionType], called: Value, args: list[Value], named: _Named, frame: Frame
    ) -> Value:
        """A call of one of some functions, nobody knows which."""
        before = frame.control
        frame.control = before | called.all
        found = [self._enter(each, args, named, frame) for each in several]
        frame.control = before
        deps = called.all.union(*(each.all for each in found))
        return Value(deps, refs=frozenset(r for each in found for r in (*each.refs, *each.inside)))

    def _make(self, kind: type, args: list[Value], named: _Named, frame: Frame) -> Value:
        """An object of a class of the user's."""
        given = [*args, *named.values()]
        deps = self._read(given)
        made = Value(fresh=Fresh(deps, frozenset(r for each in given for r in (*each.refs, *each.inside))))
        start = next((vars(c)["__init__"] for c in kind.__mro__ if "__init__" in vars(c)), None)
        if isinstance(start, types.FunctionType) and start.__code__.co_filename == "<string>":
            if hasattr(kind, "__post_init__"):
                raise Unclear
            return made
        if isinstance(start, types.FunctionType) and is_users(start.__module__ or ""):
            self._enter(start, [made, *args], named, frame)
            return made
        if (issubclass(kind, tuple) and hasattr(kind, "_fields")) or (start is object.__init__ and not given):
            return made
        raise Unclear

    def _enter(self, function: types.FunctionType, args: Sequence[Any], named: _Named, frame: Frame) -> Value:
        """A call of a function of the user's: what it does is done here."""
        tree = source_of(function.__code__)
        if tree is None or function.__closure__ or self._depth >= DEPTH or hasattr(function, "__wrapped__"):
            raise Unclear
        place = self._place(function)
        names = self._handed(function, tree, args, named)
        inner = Frame(place, names, frozenset(shared_names(tree)), control=frame.control)
        self.told.codes.add(function.__code__)
        self._depth += 1
        if isinstance(tree, ast.Lambda):
            inner.returns.append(self.value(tree.body, inner))
        else:
            bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            for each in bound - inner.shared - names.keys():
                inner.names[each] = Value()
            self.block(tree.body, inner)
        self._depth -= 1
        found = inner.returns or [Value(kind=type(None))]
        if len(found) == 1 and not (inner.control - frame.control):
            return found[0]
        deps = inner.control.union(*(each.all for each in found))
        return Value(deps, refs=frozenset(r for each in found for r in (*each.refs, *each.inside)))

    def _place(self, function: types.FunctionType) -> str:
        if function.__globals__ is self._variables.namespace:
            return ""
        module = function.__globals__.get("__name__")
        if not isinstance(module, str) or not is_users(module) or module == "__main__":
            raise Unclear
        return module

    def _handed(
        self, function: types.FunctionType, tree: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef,
        args: Sequence[Value], named: _Named,
    ) -> dict[str, Value]:  # fmt: skip
        spec = tree.args
        every = [each.arg for each in (*spec.posonlyargs, *spec.args)]
        if spec.vararg or spec.kwarg or len(args) > len(every):
            raise Unclear
        defaults = dict(zip(reversed(every), reversed(function.__defaults__ or ()), strict=False))
        defaults |= function.__kwdefaults__ or {}
        if any(type(each) not in ATOMS for each in defaults.values()):
            raise Unclear
        found = {name: Value(obj=value, kind=type(value)) for name, value in defaults.items()}
        found |= dict(zip(every, args, strict=False))
        found |= {name: value for name, value in named.items() if name is not None}
        if {*every, *(each.arg for each in spec.kwonlyargs)} != found.keys():
            raise Unclear
        return found


def _is_method(called: Value) -> bool:
    """A function found in the class of what it is called on, not in the object itself."""
    return called.bound is not None and not called.own


def _inside(value: Any) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


_Way = Callable[[_Reader, Any, Frame], Any]
_STATEMENTS: dict[type, _Way] = {
    ast.Expr: _Reader.expression, ast.Assign: _Reader.assign, ast.AnnAssign: _Reader.annotated,
    ast.AugAssign: _Reader.augmented, ast.Return: _Reader.returned, ast.If: _Reader.branch, ast.For: _Reader.loop,
    ast.AsyncFor: _Reader.loop, ast.While: _Reader.loop, ast.With: _Reader.within, ast.AsyncWith: _Reader.within,
    ast.Assert: _Reader.asserted, ast.Pass: _Reader.nothing, ast.Global: _Reader.nothing, ast.Break: _Reader.nothing,
    ast.Continue: _Reader.nothing,
}  # fmt: skip
_EXPRESSIONS: dict[type, _Way] = {
    ast.Constant: _Reader.constant, ast.Name: _Reader.name, ast.Attribute: _Reader.attribute,
    ast.Subscript: _Reader.subscript, ast.Call: _Reader.call, ast.JoinedStr: _Reader.text,
    ast.FormattedValue: _Reader.text, ast.List: _Reader.box, ast.Tuple: _Reader.box, ast.Set: _Reader.box,
    ast.Dict: _Reader.box, ast.BinOp: _Reader.operation, ast.BoolOp: _Reader.joined, ast.Compare: _Reader.compared,
    ast.UnaryOp: _Reader.unary, ast.IfExp: _Reader.joined, ast.Slice: _Reader.joined, ast.Await: _Reader.awaited,
    ast.Starred: _Reader.starred, ast.NamedExpr: _Reader.walrus, ast.ListComp: _Reader.comprehension,
    ast.SetComp: _Reader.comprehension, ast.GeneratorExp: _Reader.comprehension, ast.DictComp: _Reader.comprehension,
}  # fmt: skip
