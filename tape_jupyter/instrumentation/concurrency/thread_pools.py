"""Carries who is calling into `multiprocessing.pool.ThreadPool`, as
instrumentation/concurrency/threads.py does for executors.

Its module comes as a value: nothing here imports it. Process pools share the patched methods and
pass through. What is carried is instrumentation/concurrency/threads.py's: our own variables, not
the program's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tape_jupyter.core.context import ORIGIN
from tape_jupyter.errors import RefusedInPool, TapeRefusal
from tape_jupyter.instrumentation.concurrency.threads import Strand, create_strand, function_name
from tape_jupyter.instrumentation.patching import swap, undoing


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap what is handed to the ThreadPool of `module` (multiprocessing.pool). Returns the undo."""
    tap, pool = _Tap(module), module.Pool
    return undoing(
        swap(pool, "__init__", tap.wrap_init),
        swap(pool, "apply_async", tap.apply_async),
        swap(pool, "_map_async", tap.map_async),
        swap(pool, "imap", tap.imap),
        swap(pool, "imap_unordered", tap.imap),
    )


class _Tap:
    """The doors for one module: they look for its own ThreadPool and its own way to unpack a
    starmap's items.
    """

    def __init__(self, module: ModuleType) -> None:
        self.threads, self.unpacks = module.ThreadPool, module.starmapstar

    def _make_item_strand(
        self, pool: Any, func: Callable[..., Any], args: tuple[Any, ...] = ()
    ) -> Strand | None:
        if isinstance(pool, self.threads):
            strand = create_strand(function_name(func, args))
        else:
            strand = None
        if strand is not None and (clock := strand.clock) is not None:
            clock.threads.update((*pool._pool, pool._task_handler, pool._result_handler))  # noqa: SLF001
        return strand

    def wrap_init(self, original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        # it stands in for one
        def __init__(pool: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            if not isinstance(pool, self.threads):
                return original(pool, *args, **kwargs)
            # The workers are nobody's, and as many as the machine has processors: they take no
            # numbers.
            token = ORIGIN.set(None)
            try:
                return original(pool, *args, **kwargs)
            finally:
                ORIGIN.reset(token)

        return __init__

    def apply_async(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def apply_async(pool: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            strand = self._make_item_strand(pool, func, *args[:1])
            return original(
                pool,
                func if strand is None else functools.partial(_call_in_strand, strand, func),
                *args,
                **kwargs,
            )

        return apply_async

    def map_async(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def map_async_taped(
            pool: Any,
            func: Callable[..., Any],
            iterable: Iterable[Any],
            mapper: Any,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            strand = self._make_item_strand(pool, func)
            if strand is None:
                return original(pool, func, iterable, mapper, *args, **kwargs)
            # An item may be a row of an array: `list` gives what a `for` loop would.
            items = [(strand.child(), item) for item in list(iterable)]
            call = _call_with_all if mapper is self.unpacks else _call_with_one
            return original(pool, functools.partial(call, func), items, mapper, *args, **kwargs)

        return map_async_taped

    def imap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def imap_taped(
            pool: Any, func: Callable[..., Any], iterable: Iterable[Any], *args: Any, **kwargs: Any
        ) -> Any:
            strand = self._make_item_strand(pool, func)
            if strand is None:
                return original(pool, func, iterable, *args, **kwargs)
            return original(
                pool,
                functools.partial(_call_with_one, func),
                _pair_with_strands(strand, iterable),
                *args,
                **kwargs,
            )

        return imap_taped


def _call_in_strand(strand: Strand, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with strand.activate_strand(), _convert_refusals():
        strand.begins()
        return func(*args, **kwargs)


def _call_with_one(func: Callable[..., Any], item: tuple[Strand, Any]) -> Any:
    return _call_in_strand(item[0], func, item[1])


def _call_with_all(func: Callable[..., Any], strand: Strand, args: Iterable[Any]) -> Any:
    return _call_in_strand(strand, func, *args)


def _pair_with_strands(strand: Strand, iterable: Iterable[Any]) -> Iterator[tuple[Strand, Any]]:
    """Each item with its strand. The pool's own thread reads the program's iterable: it runs in the
    call's strand.
    """
    iterator = iter(iterable)
    while True:
        with strand.activate_strand(), _convert_refusals():
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield strand.child(), item


@contextmanager
def _convert_refusals() -> Iterator[None]:
    """A refusal as an Exception: anything else ends the pool's thread, and whoever waits for the
    result waits on.
    """
    try:
        yield
    except TapeRefusal as refusal:
        raise RefusedInPool(str(refusal)) from refusal
