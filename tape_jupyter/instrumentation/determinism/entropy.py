"""The sources of chance: `os.urandom`, unseeded generators, uuid1, names of temporary files.

Inside a taped cell whose chance is held (core/seeded_random.py), what the person's code and
libraries draw comes from the cell's seed; everything else is real: other threads, other cells,
forked children, what a tap sends live, and the plumbing of the kernel (ids of messages and comms).
Who draws is the first frame above uuid, secrets, random and tempfile: uuid4, secrets, SystemRandom,
`numpy.random.default_rng()` and `RandomState()` all end in `os.urandom`.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import tempfile
import time
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from tape_jupyter.core.context import ORIGIN, PARENT, SENDING
from tape_jupyter.core.seeded_random import Chance
from tape_jupyter.instrumentation.concurrency.threads import settle_origin
from tape_jupyter.instrumentation.patching import Substitute, swap, undoing

_THROUGH = frozenset({
    "uuid", "uuid_utils", "uuid_utils.compat", "fastuuid", "secrets", "random", "tempfile", "functools",
    "importlib._bootstrap", "importlib._bootstrap_external",
    *(
        f"tape_jupyter.instrumentation.{tap}"
        for tap in (
            "determinism.entropy", "determinism.rust_uuids", "import_hook", "concurrency.threads",
            "concurrency.thread_pools", "tools.decorators", "tools.call",
        )
    ),
})  # fmt: skip
"""Modules that draw for whoever called them."""

_PLUMBING = frozenset({
    "ipykernel", "jupyter_client", "IPython", "comm", "zmq", "tornado", "traitlets", "ipywidgets", "anywidget",
    "matplotlib_inline", "debugpy", "multiprocessing", "tape_jupyter", "anthropic", "openai",
})  # fmt: skip
"""Packages whose draws are real: two kernels, or a cell run twice, must not give out the same ids.
The SDKs draw an idempotency key a request, which no program sees and no match counts.
"""

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"  # tempfile's
# of RFC 9562's versions 1 and 6: 100 ns intervals from 1582-10-15 to 1970-01-01
_EPOCH = 0x01B21DD213814000


def patch() -> Callable[[], None]:
    """Tap every source. Returns the undo."""
    time_safe = vars(uuid)["_generate_time_safe"]
    return undoing(
        *_swap_everywhere("urandom", "getrandom"),
        swap(type(random._inst), "seed", _wrap_seed_method),  # noqa: SLF001  # Python's own Random
        swap(random, "seed", _wrap_seed),
        swap(tempfile, "_get_candidate_names", _wrap_candidate_names),
        swap(uuid, "_generate_time_safe", _wrap_time_safe)
        if time_safe
        else swap(uuid, "uuid1", _wrap_uuid1),
    )


def _swap_everywhere(*names: str) -> list[Callable[[], None]]:
    """Put a stand-in for those functions of `os` into each module that holds them: many say `from os
    import urandom`.
    """
    stand_ins = {name: _build_stand_in(name) for name in names if hasattr(os, name)}
    by_name = {
        each: stand_in for name, stand_in in stand_ins.items() for each in (name, f"_{name}")
    }
    undos = []
    for module in list(sys.modules.values()):
        if type(module) is not types.ModuleType or module.__name__ == os.name:
            continue  # `posix` is where `os` has it from
        for name in by_name.keys() & module.__dict__.keys():
            if vars(module)[name] is by_name[name].original:
                put_stand_in = functools.partial(_return_replacement, by_name[name])
                undos.append(swap(module, name, put_stand_in))
    return undos


def _build_stand_in(name: str) -> _Urandom:
    function = vars(os)[name]
    # after an interrupt amid the patches it is there already
    return function if isinstance(function, _Urandom) else _Urandom(function, name)


def _return_replacement(stand_in: _Urandom, _original: Any) -> _Urandom:
    return stand_in


_REMEMBERED: Mapping[str, Mapping[str, int | None]] = {
    "uuid": {
        "_last_timestamp": None,
        "_last_timestamp_v6": None,
        "_last_timestamp_v7": None,
        "_last_counter_v7": 0,
    },
    "uuid6": dict.fromkeys(("_last_v6_timestamp", "_last_v7_timestamp", "_last_v8_timestamp")),
    "langgraph.checkpoint.base.id": {"_last_v6_timestamp": None},
    "pydantic_ai._uuid": {"_last_timestamp_v7": None, "_last_counter_v7": 0},
}
"""By module, what it remembers of the newest time-based id, and what that was before the first."""


def forget_time_ids() -> None:
    """Forget what this process remembers of earlier time-based ids: they would make the next ones
    differ.
    """
    for module, kept in _REMEMBERED.items():
        namespace = vars(sys.modules.get(module, types.ModuleType(module)))
        namespace.update({name: first for name, first in kept.items() if name in namespace})


# ---- who draws


def held_chance() -> Chance | None:
    """The chance of the cell that this code belongs to; None where chance is real."""
    if SENDING.get():
        return None
    origin = settle_origin()
    chance: Chance | None = getattr(origin.pins, "chance", None) if origin is not None else None
    return None if chance is None or chance.forked else chance


class Draw:
    """One draw that the tape answers: of which chance, by whom, on which strand."""

    __slots__ = ("chance", "drawer", "strand")

    def __init__(self, chance: Chance, drawer: str, lineage: str) -> None:
        self.chance, self.drawer, self.strand = chance, drawer, lineage

    def bytes(self, count: int) -> bytes:
        return self.chance.draw(count, self.drawer, self.strand)


def drawing() -> Draw | None:
    """The draw that is being made; None where it is real."""
    chance, origin = held_chance(), ORIGIN.get()
    if chance is None or origin is None:
        return None
    drawer, frame, secret = _find_drawer(sys._getframe(2))  # noqa: SLF001  # the only name it has
    if drawer.partition(".")[0] in _PLUMBING:
        return None
    if frame is not None and frame.f_code.co_name == "<module>" and drawer != chance.home:
        drawer = f"import of {drawer}"  # in another kernel it may be imported already
    else:
        chance.seen.add("drawn")
    if secret and drawer == chance.home:
        chance.seen.add("secrets")
    return Draw(chance, drawer, f"{origin.lineage} {PARENT.get()}")


def _find_drawer(frame: FrameType | None) -> tuple[str, FrameType | None, bool]:
    """The module that draws, its frame, and whether it asked the `secrets` module."""
    secret, name = False, ""
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name not in _THROUGH:
            break
        secret = secret or name == "secrets"
        frame = frame.f_back
    return name, frame, secret


# ---- the doors


class _Urandom(Substitute):
    """Stands in for `os.urandom` and `os.getrandom`: no method where a class keeps it, and pickled
    by its name.
    """

    def __init__(self, original: Callable[..., bytes], name: str) -> None:
        self.original = original
        self.__module__ = "os"
        self.__name__ = name
        self.__qualname__ = name
        self.__doc__ = original.__doc__

    def __call__(self, size: Any, *flags: Any, **named: Any) -> bytes:
        draw = drawing() if type(size) is int and size >= 0 else None
        if draw is None:
            return self.original(size, *flags, **named)
        return draw.bytes(size)

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<built-in function {self.__name__}>"


def _wrap_seed_method(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def seed_taped(self: random.Random, a: Any = None, version: int = 2) -> None:
        original(self, _draw_seed(a), version)

    return seed_taped


def _wrap_seed(original: Callable[..., None]) -> Callable[..., None]:
    """`random.seed` is the method of one generator, bound before it was tapped."""

    @functools.wraps(original)
    def seed_default_taped(a: Any = None, version: int = 2) -> None:
        original(_draw_seed(a), version)

    return seed_default_taped


def _draw_seed(a: Any) -> Any:
    """What a generator is seeded with: without a seed it would take one in C, where nobody sees it."""
    draw = drawing() if a is None else None
    return a if draw is None else int.from_bytes(draw.bytes(32), "big")


def _wrap_candidate_names(original: Callable[[], Iterator[str]]) -> Callable[[], Iterator[str]]:
    @functools.wraps(original)
    def find_candidates() -> Iterator[str]:
        draw = drawing()
        return original() if draw is None else _draw_candidates(draw)

    return find_candidates


def _draw_candidates(draw: Draw) -> Iterator[str]:
    draw.drawer += " tempfile"
    for attempt in range(tempfile.TMP_MAX):
        if attempt == 1:
            draw.chance.seen.add("taken")
        yield "".join(_LETTERS[byte % len(_LETTERS)] for byte in draw.bytes(8))


def _wrap_time_safe(original: Callable[[], tuple[bytes, Any]]) -> Callable[[], tuple[bytes, Any]]:
    """What uuid1 asks the system for: a whole id, of time and hardware address. Another asks it for
    the address.
    """

    @functools.wraps(original)
    def generate_time_safe() -> tuple[bytes, Any]:
        # getnode() keeps what it gets for ever
        if sys._getframe(1).f_code.co_name != "uuid1":  # noqa: SLF001
            return original()
        draw = drawing()
        if draw is None:
            return original()
        return draw_time_based_id(draw).bytes, None

    return generate_time_safe


def _wrap_uuid1(original: Callable[..., uuid.UUID]) -> Callable[..., uuid.UUID]:
    @functools.wraps(original)
    def uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
        draw = drawing() if node is None and clock_seq is None else None
        if draw is None:
            return original(node, clock_seq)
        return draw_time_based_id(draw)

    return uuid1


def draw_time_based_id(draw: Draw) -> uuid.UUID:
    """A version 1 id with the time of the cell's clock; instead of this machine's address a random
    one, marked so.

    An address of a machine does not belong on a tape that is passed on.
    """
    stamp = now() // 100 + _EPOCH
    sequence = int.from_bytes(draw.bytes(2), "big")
    node = int.from_bytes(draw.chance.fixed(6, "node"), "big") | 1 << 40
    low, middle, high = stamp & 0xFFFFFFFF, stamp >> 32 & 0xFFFF, stamp >> 48 & 0x0FFF
    return uuid.UUID(
        fields=(low, middle, high, sequence >> 8 & 0x3F, sequence & 0xFF, node), version=1
    )


def _read_clock() -> int:
    return time.time_ns()


now = types.FunctionType(_read_clock.__code__, {**vars(uuid), "time": time})
"""Reads the clock as uuid.py does, by a frame of that module: the clock's pin looks at who reads
it.
"""
