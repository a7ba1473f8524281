"""GRPC (`grpcio`), which cannot be recorded: C code opens its sockets, and no audit event tells of
it.

Each call is told to the guard by an event of our own, where the program makes it and whatever
channel it goes through, made before or not: while recording the guard names it, in replay it
refuses it. Vertex AI's older clients, Google Cloud's, and xAI's speak gRPC; most take another
transport (`transport="rest"`), which is recorded.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tape_jupyter.instrumentation.patching import swap, undoing

EVENT = "tape_jupyter.client"
_CALLS = ("__call__", "with_call", "future")


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the calls of `module` (grpc._channel, grpc.aio._channel). Returns the undo."""
    undos = []
    for kind in list(vars(module).values()):
        if not isinstance(kind, type) or kind.__module__ != module.__name__:
            continue
        if kind.__name__.endswith("MultiCallable"):  # UnaryUnaryMultiCallable and its like
            undos += [swap(kind, name, _wrap_call) for name in _CALLS if name in vars(kind)]
    return undoing(*undos)


def _wrap_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call_announced(callable_: Any, *args: Any, **kwargs: Any) -> Any:
        sys.audit(
            EVENT, "grpc", _find_target(callable_), _decode_text(getattr(callable_, "_method", b""))
        )
        return original(callable_, *args, **kwargs)

    return call_announced


def _find_target(callable_: Any) -> str:
    """Where it goes. The asyncio classes keep it with their channel."""
    target = getattr(callable_, "_target", None)
    if target is None:
        channel_target = getattr(getattr(callable_, "_channel", None), "target", b"")
        target = channel_target() if callable(channel_target) else channel_target
    return _decode_text(target)


def _decode_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)
