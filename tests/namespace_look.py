"""Run inside a kernel: the variables of a notebook as JSON, so that two runs can be compared. Looks only.

Objects that are met twice are told by where they were met first, so that a lost alias is a difference.
"""

import dataclasses
import json
import os
import sys

PLAIN = (str, int, float, bool, type(None))


def look(namespace):
    seen = {}
    names = [
        n for n in namespace if not n.startswith("_") and n not in ("In", "Out", "exit", "quit", "get_ipython", "open")
    ]
    return json.dumps({name: told(namespace[name], name, seen, 0) for name in sorted(names)}, default=repr)


def told(value, at, seen, depth):
    kind = type(value)
    if isinstance(value, PLAIN):
        return repr(value)
    if depth > 12:
        return "deep"
    if kind.__module__ in ("numpy", "pandas") or kind.__module__.startswith("pandas."):
        return [kind.__name__, str(getattr(value, "dtype", "")), repr(value)]
    if id(value) in seen:
        return f"same as {seen[id(value)]}"
    seen[id(value)] = at

    def inner(each, key):
        return told(each, f"{at}{key}", seen, depth + 1)

    if isinstance(value, dict):
        return [kind.__name__, [[repr(key), inner(each, f"[{key!r}]")] for key, each in list(value.items())[:500]]]
    if isinstance(value, (list, tuple)) or kind.__name__ == "deque":
        return [kind.__name__, [inner(each, f"[{n}]") for n, each in enumerate(list(value)[:500])]]
    if isinstance(value, (set, frozenset)):
        return [kind.__name__, sorted(map(repr, value))]
    if isinstance(value, (bytes, bytearray)):
        return [kind.__name__, repr(value)]
    if kind.__name__ == "ContextVar":
        return ["ContextVar", repr(value.get(None))]
    if kind.__name__ == "Connection":
        return ["Connection", list(value.iterdump())]
    if kind.__name__ in ("count", "Random"):
        return [kind.__name__, repr(value.getstate())[:200] if kind.__name__ == "Random" else repr(value)]
    if kind.__name__ == "function":
        cells = [cell.cell_contents for cell in value.__closure__ or ()] if value.__module__ == "__main__" else []
        return ["function", value.__qualname__, [inner(each, f"({n})") for n, each in enumerate(cells)]]
    if kind.__name__ == "module":
        own = getattr(value, "__file__", None) or ""
        here = own.startswith(os.getcwd())
        mine = {k: v for k, v in vars(value).items() if not k.startswith("__") and not callable(v)} if here else {}
        return ["module", value.__name__, [[k, inner(v, f".{k}")] for k, v in mine.items()]]
    if isinstance(value, type):
        own = {
            k: v for k, v in vars(value).items() if isinstance(v, (*PLAIN, list, dict, set)) and not k.startswith("__")
        }
        return [
            "class",
            value.__qualname__,
            [[k, inner(v, f".{k}")] for k, v in own.items()] if value.__module__ == "__main__" else [],
        ]
    if kind.__module__ == "__main__" or dataclasses.is_dataclass(kind):
        return [kind.__qualname__, [[k, inner(v, f".{k}")] for k, v in getattr(value, "__dict__", {}).items()]]
    return [f"{kind.__module__}.{kind.__qualname__}"]


assert sys.version_info >= (3, 11)
