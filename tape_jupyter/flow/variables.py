"""Engine room: the names of the notebook and of the user's modules, with the last fingerprint of each.

A variable is a resource: "mood" of the notebook, "helpers:STATE" of a module. Only what a cell could have reached is
looked at again, and small values for as long as a little time is left.
"""

from __future__ import annotations

import builtins
import re
import sys
import time
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tape_jupyter.flow.fingerprints import SECONDS, Print, fingerprint
from tape_jupyter.flow.modules import MACHINERY, is_users
from tape_jupyter.flow.names import names_of

SHELLS = re.compile(r"_+|_i+|_ih|_oh|_dh|In|Out|exit|quit|get_ipython|_i?\d+|_exit_code|__\w+__|_ii+|open")
"""Names that the shell itself keeps in the notebook's namespace."""
LEAST = 0.002
"""Seconds that are always spent on a value again."""
SPARE = 0.0003
"""Seconds a cell for values that nothing says were reached."""
MISSING: Any = object()
_STILL = (type(None), bool, int, float, complex, str, bytes, types.ModuleType, types.BuiltinFunctionType)


@lru_cache(maxsize=8192)
def is_shells(name: str) -> bool:
    return SHELLS.fullmatch(name) is not None


class Variables:
    """Prints of one namespace."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self.prints: dict[str, Print] = {}
        self.ever: set[str] = set()
        """Names that some cell bound, whether or not it did: these are no builtins any more."""
        self._ids: dict[str, int] = {}
        self._owners: dict[int, set[str]] = {}
        self._modules: set[str] = set()
        self.now = -1
        """The entry that is being looked at."""
        self.looked: dict[str, int] = {}
        """By variable, the entry after which it was last looked at: a change found later may be older."""
        self._count = 0

    # ---------------------------------------------------------------- looking up
    def value(self, resource: str) -> Any:
        """Of a variable; MISSING where there is none."""
        module, colon, name = resource.rpartition(":")
        if not colon:
            return self.namespace.get(name, MISSING)
        found = sys.modules.get(module)
        return MISSING if found is None else found.__dict__.get(name, MISSING)

    def resource(self, module: str, name: str) -> str | None:
        """What a global `name` of a piece of code is; None where it is a builtin or the shell's."""
        if not module:
            if is_shells(name):
                return None
            return name if name in self.namespace or name in self.ever or name not in builtins.__dict__ else None
        found = sys.modules.get(module)
        if found is None or name not in found.__dict__:
            return None
        return f"{module}:{name}"

    def identity(self, resource: str) -> int | None:
        """id() of the value when it was last looked at."""
        return self._ids.get(resource)

    def used_by(self, module: str, code: types.CodeType) -> set[str]:
        """Variables that a piece of code names."""
        used = names_of(code)
        return {r for n in used.reads | used.later_reads | used.stores if (r := self.resource(module, n)) is not None}

    def globals_of(self, module: str) -> Iterator[str]:
        for name in list(sys.modules[module].__dict__):
            if not name.startswith("__"):
                yield f"{module}:{name}"

    def names(self) -> list[str]:
        return [name for name in list(self.namespace) if isinstance(name, str) and not is_shells(name)]

    def closure(self, resources: Iterable[str]) -> set[str]:
        """With the variables that the code in them uses, and the code in these."""
        found: set[str] = set()
        todo = list(resources)
        while todo:
            each = todo.pop()
            if each in found:
                continue
            found.add(each)
            self._know(each)
            print_ = self.prints.get(each)
            for module, code in print_.codes if print_ else ():
                used = names_of(code)
                names = used.reads | used.later_reads | used.stores | used.later_stores
                todo.extend(r for n in names if (r := self.resource(module, n)) is not None and r not in found)
        return found

    def _know(self, resource: str) -> None:
        """A user's module is looked at when it is first reached."""
        if resource not in self.prints and ":" in resource and (value := self.value(resource)) is not MISSING:
            self._take(resource, value, SECONDS)

    def sharing(self, resources: Iterable[str]) -> set[str]:
        """Variables that hold a changeable object which one of these holds too; these included."""
        found: set[str] = set()
        for each in resources:
            if (print_ := self.prints.get(each)) is not None:
                for one in print_.ids - print_.classes:
                    found |= self._owners.get(one, frozenset())
                if isinstance(value := self.value(each), type | types.FunctionType):
                    found |= self._owners.get(id(value), frozenset())
        return found

    def holding(self, value: Any) -> set[str]:
        """Variables in which this very object is."""
        return set(self._owners.get(id(value), ()))

    def forget(self) -> None:
        """What is known may be wrong: values were put back between two cells. All is looked at again."""
        self._ids = dict.fromkeys(self._ids, 0)

    # ---------------------------------------------------------------- looking again
    def refresh(self, reached: set[str], seconds: float) -> dict[str, Print | None]:
        """Look again at what was reached, what is new or was bound anew, and at small values besides.

        Returns the prints of those that were looked at as they were before (None: not there).
        """
        before = self._new_modules()
        names = self.names()
        elsewhere = {r for r in (*reached, *self.prints) if ":" in r}
        gone = [
            r for r in self.prints if (self.value(r) if r in elsewhere else self.namespace.get(r, MISSING)) is MISSING
        ]
        for each in gone:
            before[each] = self.prints[each]
            self._drop(each)
        later = []
        for each in (*names, *elsewhere):
            value = self.value(each) if each in elsewhere else self.namespace.get(each, MISSING)
            if value is MISSING:
                continue
            anew = self._ids.get(each) != id(value)
            if anew or each in reached:
                before[each] = self.prints.get(each)
                if anew or type(value) not in _STILL:
                    self._take(each, value, seconds)
            elif type(value) not in _STILL:
                later.append(each)
        spare = time.thread_time() + SPARE
        for each in sorted(later, key=lambda r: self.prints[r].seconds if r in self.prints else 0.0):
            if time.thread_time() > spare:
                break
            before[each] = self.prints.get(each)
            self._take(each, self.value(each), seconds)
        self.ever.update(names)
        return before

    def _new_modules(self) -> dict[str, Print | None]:
        """The user's modules that were imported since: all their globals are new."""
        if len(sys.modules) == self._count:
            return {}
        self._count = len(sys.modules)
        new = [name for name in sys.modules.keys() - self._modules if is_users(name) and name != "__main__"]
        self._modules |= set(sys.modules)
        found: dict[str, Print | None] = {}
        for name in new:
            for each in self.globals_of(name):
                if each not in self.prints:
                    self._know(each)
                    found[each] = None
        return found

    def _take(self, resource: str, value: Any, seconds: float) -> None:
        known = self.prints.get(resource)
        if known is not None and self._ids.get(resource) == id(value) and known.seconds > max(seconds, LEAST):
            self.prints[resource] = replace(
                known, opaque=True, vast=True
            )  # effects.py says whether it may have changed
            return
        self._drop(resource)
        self.looked[resource] = self.now
        found = self.prints[resource] = fingerprint(value, self.namespace, seconds=seconds)
        self._ids[resource] = id(value)
        for one in found.ids:
            self._owners.setdefault(one, set()).add(resource)

    def _drop(self, resource: str) -> None:
        known = self.prints.pop(resource, None)
        self._ids.pop(resource, None)
        for one in known.ids if known else ():
            if (owners := self._owners.get(one)) is not None:
                owners.discard(resource)
                if not owners:
                    del self._owners[one]


def is_module_of_users(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and is_users(value.__name__)


def is_library(value: Any) -> str:
    """The package of the library that a value belongs to; "" for the user's and builtins."""
    if isinstance(value, types.ModuleType):
        name = value.__name__
    elif isinstance(value, type) or callable(value):
        name = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
    else:
        name = type(value).__module__
    if not isinstance(name, str) or name in ("__main__", "builtins") or is_users(name):
        return ""
    package = name.partition(".")[0].lstrip("_")
    return "" if package in MACHINERY else package
