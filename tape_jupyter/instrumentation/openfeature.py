"""OpenFeature's client: which feature flags were evaluated, and to what. What it gives is not
changed.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from tape_jupyter import instrumentation
from tape_jupyter.instrumentation.patching import swap, undoing


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the one method that every evaluation goes through, and its async twin. Returns the undo."""
    client = module.OpenFeatureClient
    return undoing(
        swap(client, "evaluate_flag_details", _wrap_evaluate),
        swap(client, "evaluate_flag_details_async", _wrap_evaluate_async),
    )


def _wrap_evaluate(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def evaluate_flag_details(*args: Any, **kwargs: Any) -> Any:
        return _record_flag(original(*args, **kwargs))

    return evaluate_flag_details


def _wrap_evaluate_async(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(original)
    async def evaluate_flag_details_async(*args: Any, **kwargs: Any) -> Any:
        return _record_flag(await original(*args, **kwargs))

    return evaluate_flag_details_async


def _record_flag(details: Any) -> Any:
    if (tape := instrumentation.current()) is not None:
        tape.flag(str(getattr(details, "flag_key", "")), getattr(details, "value", None))
    return details
