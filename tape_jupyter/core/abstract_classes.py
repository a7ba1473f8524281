"""What was registered with an abstract class (`Abstract.register(...)`), read and set again.

CPython keeps it in `_abc`, and shows it nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

_ABC: Any = sys.modules["_abc"]


def registered(abstract: type) -> list[type]:
    """The classes that an abstract one was told to take for its own."""
    return [kind for ref in _ABC._get_dump(abstract)[0] if (kind := ref()) is not None]  # noqa: SLF001


def set_registered(abstract: type, classes: Sequence[type]) -> None:
    """Let it be these and no others."""
    _ABC._reset_registry(abstract)  # noqa: SLF001
    _ABC._reset_caches(abstract)  # noqa: SLF001
    for each in classes:
        _ABC._abc_register(abstract, each)  # noqa: SLF001
