"""What a function of `functools.cache` or `functools.lru_cache` keeps, read and set again.

CPython shows only how much it is. What is kept is found where the garbage collector finds it, and
set by calls for which the function's code only gives what is to be kept.
"""

from __future__ import annotations

import functools
import gc
from itertools import islice
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from tape_jupyter.core.user_code import is_users

MEMOISED: Any = type(functools.lru_cache(int))
MOST_CALLS = 1_000_000
"""Hits or misses that are counted up again; a function with more of them is not set."""


class CachedCall(NamedTuple):
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    key: Any = None
    """What the function finds it by; None where it was not read from one."""

    def is_entry(self, other: CachedCall) -> bool:
        """Whether it is this very one: the same key, the same result."""
        return self.key is other.key and self.result is other.result


class Kept(NamedTuple):
    """The entries, the one used longest ago first, and how often a call found one, or none."""

    entries: list[CachedCall]
    hits: int
    misses: int

    def count_common(self, other: Kept) -> int:
        """How many entries both begin with."""
        pairs = enumerate(zip(self.entries, other.entries, strict=False))
        different = (n for n, (one, two) in pairs if not one.is_entry(two))
        return next(different, min(len(self.entries), len(other.entries)))

    def is_kept(self, other: Kept) -> bool:
        """Whether the other is the same, entry by entry."""
        return (
            (self.hits, self.misses) == (other.hits, other.misses)
            and len(self.entries) == len(other.entries)
            and self.count_common(other) == len(self.entries)
        )


def read_kept(function: Any) -> Kept:
    """Raises ValueError where it is kept in another way than this module knows."""
    info = function.cache_info()
    referents = gc.get_referents(function)[1:]  # the first is its type
    if info.maxsize is None:
        pairs = list(_find_table(referents, 0, info.currsize).items())
    else:
        links = islice(referents, 3 * info.currsize)
        pairs = [(key, result) for key, result, _ in zip(links, links, links, strict=True)]
        table = _find_table(referents, 3 * info.currsize, info.currsize)
        if any(key not in table for key, _ in pairs):
            raise ValueError("what it keeps is not found")
    typed = bool(function.cache_parameters()["typed"])
    entries = [CachedCall(*_split_key(key, typed=typed), result, key) for key, result in pairs]
    return Kept(entries, info.hits, info.misses)


def _find_table(referents: list[Any], place: int, size: int) -> dict[Any, Any]:
    table = referents[place] if place < len(referents) else None
    if type(table) is not dict or len(table) != size:
        raise ValueError("what it keeps is not found")
    return table


def read_settable(function: Any) -> Kept | None:
    """What it keeps, where that can be set again: where its code is the user's, in Python. What
    libraries keep in caches of their own is theirs.
    """
    try:
        return read_kept(function) if _is_settable(function) else None
    except ValueError:
        return None


def _is_settable(function: Any) -> bool:
    body = getattr(function, "__wrapped__", None)
    return type(body) is FunctionType and is_users(body.__module__ or "")


def set_kept(function: Any, kept: Kept) -> None:
    """Let it keep this and nothing else. Raises ValueError where it cannot."""
    if max(kept.hits, kept.misses) > MOST_CALLS or not _is_settable(function):
        raise ValueError("what it keeps cannot be set")
    body = function.__wrapped__
    code = body.__code__
    results = _Results()
    body.__code__ = _build_answering_code(code, results)
    try:
        function.cache_clear()
        for entry in kept.entries:
            results[:] = [entry.result]
            function(*entry.args, **entry.kwargs)
        results.clear()
        for _ in range(kept.misses - len(kept.entries)):
            _call_unanswered(function)
        for entry in kept.entries[-1:]:
            for _ in range(kept.hits):
                function(*entry.args, **entry.kwargs)
    finally:
        body.__code__ = code


def _call_unanswered(function: Any) -> None:
    """A call for which nothing is to be kept: its code has no result left."""
    try:
        function(object())
    except IndexError:
        return


class _Results(list[Any]):
    """Results to give; a constant of code, which is hashed with it."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def _build_answering_code(code: CodeType, results: _Results) -> CodeType:
    """Code that gives the last of these results and takes it away, for a function that has `code`."""
    template = (lambda *_args, **_kwargs: "results".pop()).__code__  # type: ignore[attr-defined]
    constants = tuple(results if each == "results" else each for each in template.co_consts)
    return template.replace(co_consts=constants, co_freevars=code.co_freevars)


def _split_key(key: Any, *, typed: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that made a key."""
    if type(key) is not tuple:
        return (key,), {}
    count = next((n for n, each in enumerate(key) if each is _MARK), None)
    if count is None:
        return (key[: len(key) // 2] if typed else key), {}
    named = (len(key) - 2 * count - 1) // 3 if typed else (len(key) - count - 1) // 2
    pairs = key[count + 1 : count + 1 + 2 * named]
    return key[:count], dict(zip(pairs[::2], pairs[1::2], strict=True))


def _find_mark() -> Any:
    """What parts positional arguments from named ones in a key."""
    probe: Any = functools.lru_cache(maxsize=None)(dict)
    probe(a=1)
    (key,) = _find_table(gc.get_referents(probe)[1:], 0, 1)
    return key[0]


_MARK = _find_mark()
