"""Who wants to know of the first use of the tape in this process: an extension that was loaded and has
only noted cells so far (jupyter/standby.py).
"""

from __future__ import annotations

from collections.abc import Callable

WAKERS: list[Callable[[], object]] = []
"""Each takes itself off once it has done what there was to do; until then others wait in it."""


def wake() -> None:
    """Tell all of them."""
    for waker in tuple(WAKERS):
        waker()
