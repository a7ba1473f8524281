"""Libraries with random generators of their own (numpy, torch): that one arrives within a taped
cell is told to the cell's chance, which lets its generators begin where they did in the recording.
Nothing is patched.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.instrumentation.determinism.entropy import held_chance


def patch(module: ModuleType) -> Callable[[], None]:
    """Called once the module has run."""
    chance = held_chance()
    if chance is not None:
        chance.arrived(module.__name__)
    return do_nothing
