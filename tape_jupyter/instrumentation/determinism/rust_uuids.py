"""Packages that draw ids in Rust: uuid-utils (LangChain and LangSmith name their runs and messages by
it) and fastuuid (LiteLLM its replies).

They come from the cell's seed, their times from the cell's clock.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tape_jupyter.instrumentation.determinism import entropy
from tape_jupyter.instrumentation.patching import swap, undoing

_MASK = (1 << 48) - 1


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap a package, or `uuid_utils.compat`, whose functions ask for the ids as numbers. Returns the
    undo.
    """
    kind = vars(module).get("UUID", uuid.UUID)
    from_number = lambda number: kind(int=number)  # noqa: E731 - one of the ways to give it
    wrappers = {
        "_uuid4_int": _build_wrapper(_draw_version_4, int),
        "_uuid7_int": _build_wrapper(_draw_version_7, int),
    }
    if not module.__name__.endswith(".compat"):
        for name, draw in _DRAWS.items():
            wrappers |= {
                name: _build_wrapper(draw, from_number),
                f"{name}_bulk": _build_wrapper(draw, from_number, several=True),
                f"{name}_as_strings_bulk": _build_wrapper(draw, "{:032x}".format, several=True),
            }
    return undoing(
        *(swap(module, name, wrap) for name, wrap in wrappers.items() if name in vars(module))
    )


def _build_wrapper(
    draw: Callable[..., int], convert: Callable[[int], Any], *, several: bool = False
) -> Callable[[Any], Any]:
    """What draws one id, or as many as it is asked for. Time-based ids with a node, a sequence or a
    time of the program's own are left.
    """

    def wrap_original(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def draw_id(*args: Any, **kwargs: Any) -> Any:
            given = (*args, *kwargs.values())
            own = draw in _TIME_BASED and any(each is not None for each in given)
            drawn = None if own else entropy.drawing()
            if drawn is None:
                return original(*args, **kwargs)
            if several:
                return [convert(draw(drawn)) for _ in range(*given)]
            return convert(draw(drawn) if draw in _TIME_BASED else draw(drawn, *args, **kwargs))

        return draw_id

    return wrap_original


def _draw_version_4(drawn: entropy.Draw) -> int:
    return uuid.UUID(bytes=drawn.bytes(16), version=4).int


def _draw_version_7(
    drawn: entropy.Draw, timestamp: int | None = None, nanos: int | None = None
) -> int:
    """RFC 9562: milliseconds, what is left of them in 12 bits (so that ids of one clock rise), 62
    bits of chance.
    """
    now = entropy.now() if timestamp is None else timestamp * 1_000_000_000 + (nanos or 0)
    milliseconds, rest = divmod(now, 1_000_000)
    chance = int.from_bytes(drawn.bytes(8), "big") >> 2
    return (
        (milliseconds & _MASK) << 80
        | 0x7 << 76
        | (rest * 4096 // 1_000_000) << 64
        | 0b10 << 62
        | chance
    )


def _draw_version_1(drawn: entropy.Draw) -> int:
    return entropy.draw_time_based_id(drawn).int


def _draw_version_6(drawn: entropy.Draw) -> int:
    """The fields of version 1 with the time in the order of its weight."""
    first = entropy.draw_time_based_id(drawn)
    time = (first.time >> 12) << 16 | 0x6 << 12 | first.time & 0xFFF
    return time << 64 | first.int & (1 << 64) - 1


_TIME_BASED = (_draw_version_1, _draw_version_6)
_DRAWS: dict[str, Callable[..., int]] = {
    "uuid1": _draw_version_1,
    "uuid_v1mc": _draw_version_1,
    "uuid4": _draw_version_4,
    "uuid6": _draw_version_6,
    "uuid7": _draw_version_7,
}
