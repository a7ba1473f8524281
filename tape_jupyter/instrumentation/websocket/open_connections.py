"""Connections of `websockets` that are open before a cell begins: made untaped, or live in an
earlier one.

No socket is opened when such a connection is spoken on, so the guard is told of every message that
really goes out, by an event of its own: in replay it refuses it; while recording it names a
connection that is not being recorded.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tape_jupyter.instrumentation.http.grpc import EVENT
from tape_jupyter.instrumentation.patching import swap
from tape_jupyter.instrumentation.websocket.capture import (
    BINARY,
    CONTINUED,
    LIVE,
    PLAYED,
    TEXT,
    marked_way,
)

_DATA = (CONTINUED, TEXT, BINARY)


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap what goes out through `module` (websockets.protocol, websockets.legacy.protocol). Returns
    the undo.
    """
    if hasattr(module, "WebSocketCommonProtocol"):
        return swap(module.WebSocketCommonProtocol, "write_frame_sync", _wrap_write_frame)
    return swap(module.Protocol, "send_frame", _wrap_send_frame)


def _wrap_send_frame(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    @functools.wraps(original)
    def send_frame(protocol: Any, frame: Any) -> None:
        if frame.opcode in _DATA and protocol.side.name == "CLIENT":
            where = protocol.uri if hasattr(protocol, "uri") else protocol.wsuri  # to websockets 14
            _announce_message(protocol, where.host, where.port)
        original(protocol, frame)

    return send_frame


def _wrap_write_frame(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def write_frame_sync(protocol: Any, fin: bool, opcode: int, data: Any) -> None:
        if opcode in _DATA and protocol.is_client:
            _announce_message(protocol, *(protocol.remote_address or ("", 0))[:2])
        original(protocol, fin, opcode, data)

    return write_frame_sync


def _announce_message(protocol: Any, host: str, port: int) -> None:
    way = marked_way(protocol)
    if way != PLAYED:
        sys.audit(
            EVENT,
            "websockets",
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            "",
            way == LIVE,
        )
