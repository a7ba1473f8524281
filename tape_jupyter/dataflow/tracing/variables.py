"""The names of the notebook and of the user's modules, with the last fingerprint of each.

A variable is a resource: "mood" of the notebook, "helpers:STATE" of a module. Only what a cell
could have reached is looked at again, and small values for as long as a little time is left.
"""

from __future__ import annotations

import builtins
import os
import sys
import time
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tape_jupyter.core.user_code import MACHINERY, is_registered, is_users
from tape_jupyter.dataflow.fingerprint.fingerprint import SECONDS, Print, fingerprint
from tape_jupyter.dataflow.identity import Bindings, identity, is_shells
from tape_jupyter.dataflow.static.names import code_names

LEAST = 0.002
"""Seconds that are always spent on a value again."""
SPARE = 0.00005
"""Seconds a cell for values that nothing says were reached; what a cell leaves of them is the next
one's.
"""
MISSING: Any = object()
_STILL = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
)


@dataclass(slots=True)
class VariableLook:
    """What looking again found."""

    before: dict[str, Print | None] = field(default_factory=dict)
    """By variable that was looked at, its print until now (None: it was not there)."""
    rebound: set[str] = field(default_factory=set)
    """Of these, those whose value is another object, or gone."""
    last_examined: dict[str, int] = field(default_factory=dict)
    """By variable, the entry after which it was last looked at: a change may be older than this
    entry.
    """


class Replaced(NamedTuple):
    """What a cell's text binds before it reads it, and how to find the code besides it that ran."""

    names: set[str]
    find_codes: Callable[[], AbstractSet[tuple[str, types.CodeType]]]


class Variables:
    """Prints of one namespace."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self.prints: dict[str, Print] = {}
        self.ever: set[str] = set()
        """Names that some cell bound, whether or not it did: these are no builtins any more."""
        self._ids: dict[str, int] = {}
        self._owners: dict[int, set[str]] = {}
        self.elsewhere: set[str] = set()
        """Of `prints`, the globals of modules."""
        self.now = -1
        """The entry that is being looked at."""
        self._bindings = Bindings(namespace)
        self._changeable: OrderedDict[str, None] = OrderedDict()
        """Variables whose value may change, first the one that was not looked at for longest."""
        self._purse = LEAST
        """Seconds left for these."""
        self._last_examined: dict[str, int] = {}
        self._modules: set[str] = set()
        """Names of `sys.modules` as it was when it had `_count` of them."""
        self._count = 0
        self._own_modules = {"__main__"}
        """Those of the user's, whether or not they are imported still."""

    # ---------------------------------------------------------------- looking up
    def value(self, resource: str) -> Any:
        """Of a variable; MISSING where there is none."""
        if ":" not in resource:
            return self.namespace.get(resource, MISSING)
        module, _, name = resource.rpartition(":")
        loaded = sys.modules.get(module)
        return MISSING if loaded is None else loaded.__dict__.get(name, MISSING)

    def resource(self, module: str, name: str) -> str | None:
        """What a global `name` of a piece of code is; None where it is a builtin or the shell's."""
        if not module or self._is_notebook(module):
            if is_shells(name):
                return None
            if name in self.namespace or name in self.ever or name not in builtins.__dict__:
                return name
            return None
        loaded = sys.modules.get(module)
        if loaded is None or name not in loaded.__dict__:
            return None
        return f"{module}:{name}"

    def used_by(self, module: str, code: types.CodeType) -> set[str]:
        """Variables that a piece of code names."""
        used = code_names(code)
        return self.resources(module, used.reads | used.later_reads | used.stores)

    def _find_named_by_code(
        self, names: set[str], ran: AbstractSet[tuple[str, types.CodeType]]
    ) -> set[str]:
        """Of these names of the notebook, those that code which ran, or that any variable holds,
        names.
        """
        found = set[str]()
        for place, code in set(ran).union(*(print_.codes for print_ in self.prints.values())):
            if not place:
                used = code_names(code)
                for named in used.reads, used.later_reads, used.stores:
                    found |= names & named
        return found

    def resources(self, module: str, names: Iterable[str]) -> set[str]:
        """The variables that these names are in a module's code."""
        found = (self.resource(module, name) for name in names)
        return {resource for resource in found if resource is not None}

    def globals_of(self, module: str) -> Iterator[str]:
        for name in list(sys.modules[module].__dict__):
            if not name.startswith("__") and (resource := self.resource(module, name)) is not None:
                yield resource

    def _is_notebook(self, module: str) -> bool:
        """Whether it is the notebook, as `import __main__` gives it."""
        loaded = sys.modules.get(module)
        return loaded is not None and loaded.__dict__ is self.namespace

    def closure(self, resources: Iterable[str]) -> set[str]:
        """With the variables that the code in them uses, and the code in these."""
        reached: set[str] = set()
        todo = list(resources)
        while todo:
            each = todo.pop()
            if each in reached:
                continue
            reached.add(each)
            self._fingerprint_if_new(each)
            print_ = self.prints.get(each)
            for module, code in print_.codes if print_ else ():
                used = code_names(code)
                names = used.reads | used.later_reads | used.stores | used.later_stores
                todo.extend(self.resources(module, names) - reached)
        return reached

    def _fingerprint_if_new(self, resource: str) -> None:
        """A user's module is looked at when it is first reached."""
        if (
            resource not in self.prints
            and ":" in resource
            and (value := self.value(resource)) is not MISSING
        ):
            self._fingerprint_variable(resource, value, SECONDS)

    def sharing(self, resources: Iterable[str]) -> set[str]:
        """Variables that hold a changeable object which one of these holds too; these included."""
        owners: set[str] = set()
        for each in resources:
            if (print_ := self.prints.get(each)) is not None:
                owners |= self._find_owners(print_.ids - print_.classes)
                if isinstance(value := self.value(each), type | types.FunctionType):
                    owners |= self._owners.get(identity(value), frozenset())
        return owners

    def holding(self, value: Any) -> set[str]:
        """Variables in which this very object is."""
        return set(self._owners.get(identity(value), ()))

    def forget(self) -> None:
        """What is known may be wrong: values were put back between two cells. All is looked at
        again.
        """
        self._ids = dict.fromkeys(self._ids, 0)
        self._bindings.forget()

    # ---------------------------------------------------------------- looking again
    def refresh(
        self, reached: set[str], seconds: float, replaced: Replaced | None = None
    ) -> VariableLook:
        """Look again at what was reached, at what may have changed with it, at what is new or was
        bound anew, and at other values while a little time is left.

        `seconds` is what all of them may take; each gets LEAST, whatever the others took.
        `replaced` names were given another value before anything was done to the one they had.
        """
        new = self._add_new_modules()
        scan = VariableLook(dict(new), set(new), {})
        try:
            until = time.thread_time() + seconds
            bound, removed = self._bindings.read_changes()
            self.ever.update(bound)
            for each in self.elsewhere:
                value = self.value(each)
                if value is MISSING:
                    removed.append(each)
                elif self._ids.get(each) != identity(value):
                    bound[each] = value
            self._drop_removed_variables(scan, removed)
            bound |= {r: v for r in reached - bound.keys() if (v := self.value(r)) is not MISSING}
            for each in sorted(bound, key=self._find_last_seconds):
                self._refingerprint_variable(scan, each, bound[each], until)
            touched = reached - self._find_untouched(scan, replaced)
            self._refingerprint_suspects(scan, touched, until)
            known = set(scan.before)
            self._refingerprint_unreached(scan)
            self._refingerprint_suspects(scan, self._find_changed(scan) - known, until)
        except BaseException:
            self.forget()  # interrupted midway: nothing may pass for known that was not looked at
            raise
        return scan

    def _find_untouched(self, scan: VariableLook, replaced: Replaced | None) -> set[str]:
        """Names that got another value before anything was done to the one they had, which held
        what others may have, too.
        """
        names = set() if replaced is None else replaced.names & scan.rebound
        names = {name for name in names if (was := scan.before[name]) is not None and was.ids}
        if replaced is not None and names:
            names -= self._find_named_by_code(names, replaced.find_codes())
        return names

    def _refingerprint_suspects(self, scan: VariableLook, reached: set[str], until: float) -> None:
        for each in sorted(self._find_suspects(scan, reached), key=self._find_last_seconds):
            self._refingerprint_variable(scan, each, self.value(each), until)

    def _find_changed(self, scan: VariableLook) -> set[str]:
        """The variables that were looked at again and hold something else than before."""
        return {
            name
            for name, was in scan.before.items()
            if (was and was.digest) != ((now := self.prints.get(name)) and now.digest)
        }

    def _find_suspects(self, scan: VariableLook, reached: set[str]) -> set[str]:
        """Variables that were not looked at, and may have changed with what was reached.

        They share an object with a variable that was, unless one whose print is as before, and
        would be another had the object changed, has it too.
        """
        shared: set[int] = set()
        unchanged: set[int] = set()
        for name in reached & scan.before.keys():
            was, now = scan.before[name], self.prints.get(name)
            if was is None:
                continue
            shared |= was.ids - was.classes
            if now is not None and was.digest == now.digest and was.is_whole and now.is_whole:
                unchanged |= (was.ids & now.ids) - was.dim - now.dim
            elif isinstance(value := self.value(name), type | types.FunctionType):
                shared.add(identity(value))
        suspects = self._find_owners(shared - unchanged)
        suspects |= {each for each in self._find_owners(shared) if self.prints[each].opaque}
        return suspects - scan.before.keys()

    def _find_owners(self, ids: Iterable[int]) -> set[str]:
        """Variables in which one of these objects is."""
        return set().union(*(self._owners.get(each, ()) for each in ids))

    def _find_last_seconds(self, resource: str) -> float:
        return self.prints[resource].seconds if resource in self.prints else 0.0

    def _drop_removed_variables(self, scan: VariableLook, resources: Iterable[str]) -> None:
        for each in resources:
            if each in self.prints:
                scan.before[each] = self.prints[each]
                scan.rebound.add(each)
                self._drop_variable(each)

    def _refingerprint_unreached(self, scan: VariableLook) -> None:
        """Nothing says that these were reached: each in turn, the dear ones when enough was saved
        for them.
        """
        self._purse = min(self._purse + SPARE, LEAST)
        began = time.thread_time()
        for _ in range(len(self._changeable)):
            spent = time.thread_time() - began
            if spent >= self._purse:
                break
            each = next(iter(self._changeable))
            self._changeable.move_to_end(each)
            if each not in scan.before and self.prints[each].seconds <= max(
                self._purse - spent, SPARE
            ):
                self._refingerprint_variable(scan, each, self.value(each), 0.0)
        self._purse = max(0.0, self._purse - (time.thread_time() - began))

    def _refingerprint_variable(
        self, scan: VariableLook, resource: str, value: Any, until: float
    ) -> None:
        if resource in scan.before:
            return
        scan.before[resource] = self.prints.get(resource)
        scan.last_examined[resource] = self._last_examined.get(resource, self.now)
        is_rebound = self._ids.get(resource) != identity(value)
        if is_rebound:
            scan.rebound.add(resource)
        if not is_rebound and _is_unchangeable(value):
            return
        self._fingerprint_variable(
            resource, value, min(SECONDS, max(LEAST, until - time.thread_time()))
        )

    def find_imported(self) -> set[str]:
        """The user's modules that are imported now."""
        own = self._own_modules.union(self._find_new_modules())
        return {name for name in own if name in sys.modules}

    def _find_new_modules(self) -> list[str]:
        """The user's modules that were imported since all were last looked through."""
        if len(sys.modules) == self._count:
            return []
        new = sys.modules.keys() - self._modules
        return [name for name in new if is_users(name) and name != "__main__"]

    def _add_new_modules(self) -> dict[str, Print | None]:
        """Of the user's modules that were imported since, all globals are new."""
        new = self._find_new_modules()
        if len(sys.modules) != self._count:
            self._modules |= set(sys.modules)
            self._own_modules |= set(new)
            self._count = len(sys.modules)
        added: dict[str, Print | None] = {}
        for name in new:
            for each in self.globals_of(name):
                if each not in self.prints:
                    self._fingerprint_if_new(each)
                    added[each] = None
        return added

    def _fingerprint_variable(self, resource: str, value: Any, seconds: float) -> None:
        known = self.prints.get(resource)
        if (
            known is not None
            and known.large
            and self._ids.get(resource) == identity(value)
            and known.seconds > max(seconds, LEAST)
        ):
            self.prints[resource] = replace(
                known, opaque=True, vast=True
            )  # dataflow/static/effects.py says whether it may have changed
            return
        self._drop_variable(resource)
        self._last_examined[resource] = self.now
        if not _is_unchangeable(value):
            self._changeable[resource] = None
        if ":" in resource:
            self.elsewhere.add(resource)
            self._own_modules.add(resource.rpartition(":")[0])
        print_ = self.prints[resource] = fingerprint(value, self.namespace, seconds=seconds)
        self._ids[resource] = identity(value)
        for one in print_.ids:
            self._owners.setdefault(one, set()).add(resource)

    def _drop_variable(self, resource: str) -> None:
        known = self.prints.pop(resource, None)
        self._ids.pop(resource, None)
        self._changeable.pop(resource, None)
        self.elsewhere.discard(resource)
        for one in known.ids if known else ():
            if (owners := self._owners.get(one)) is not None:
                owners.discard(resource)
                if not owners:
                    del self._owners[one]


def _is_unchangeable(value: Any) -> bool:
    """Whether nobody can change it, or what it holds is looked at by other names."""
    if isinstance(value, types.BuiltinFunctionType):  # `add = items.append` changes with items
        owner = value.__self__
        return owner is None or isinstance(owner, types.ModuleType | type)
    if value is os.environ:  # a part of the process: dataflow/tracing/ambient.py
        return True
    return type(value) in _STILL or (type(value) is types.ModuleType and is_registered(value))


def is_module_of_users(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and is_users(value.__name__)


def is_library(value: Any) -> str:
    """The package of the library that a value belongs to; "" for the user's and builtins."""
    if isinstance(value, types.ModuleType):
        name = value.__name__
    elif isinstance(value, type) or callable(value):
        name = (
            getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
        )
    else:
        name = type(value).__module__
    if not isinstance(name, str) or name in ("__main__", "builtins") or is_users(name):
        return ""
    package = name.partition(".")[0].lstrip("_")
    return "" if package in MACHINERY else package
