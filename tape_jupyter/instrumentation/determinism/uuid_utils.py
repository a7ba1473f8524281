"""Uuid-utils, which draws ids in Rust: LangChain and LangSmith name their runs and messages by it.

Versions 4 and 7 come from the cell's seed, the time of version 7 from the cell's clock.
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
    """Tap the package, or its `compat`, whose functions ask for the ids as numbers. Returns the
    undo.
    """
    kind = vars(module).get("UUID", uuid.UUID)
    from_number = lambda number: kind(int=number)  # noqa: E731 - one of two ways to give it
    drawn_functions: dict[str, tuple[Callable[..., int], Callable[[int], Any]]] = {
        "_uuid4_int": (_draw_version_4, int),
        "_uuid7_int": (_draw_version_7, int),
    }
    if not module.__name__.endswith(".compat"):
        drawn_functions |= {
            "uuid4": (_draw_version_4, from_number),
            "uuid7": (_draw_version_7, from_number),
        }
    return undoing(
        *(
            swap(module, name, _build_wrapper(*wrap))
            for name, wrap in drawn_functions.items()
            if name in vars(module)
        )
    )


def _build_wrapper(draw: Callable[..., int], convert: Callable[[int], Any]) -> Callable[[Any], Any]:
    def wrap_original(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def draw_id(*args: Any, **kwargs: Any) -> Any:
            drawn = entropy.drawing()
            if drawn is None:
                return original(*args, **kwargs)
            return convert(draw(drawn, *args, **kwargs))

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
