"""The classes of asyncio's futures: that of C, and that of Python, which nest_asyncio puts in its place."""

from __future__ import annotations

import _asyncio
from asyncio import futures
from typing import Any

FUTURES: tuple[type[Any], ...] = (_asyncio.Future, futures._PyFuture)  # type: ignore[attr-defined]  # noqa: SLF001  # no stub has it
