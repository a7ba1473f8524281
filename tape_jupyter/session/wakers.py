"""Who wants to know of the first use of the tape in this process: an extension that was loaded and has
only noted cells so far (jupyter/standby.py).
"""

from __future__ import annotations

from collections.abc import Callable

WAKERS: list[Callable[[], object]] = []


def wake() -> None:
    """Tell all of them, once each."""
    while WAKERS:
        WAKERS.pop()()
