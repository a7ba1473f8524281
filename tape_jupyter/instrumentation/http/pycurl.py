"""Pycurl, which cannot be recorded: libcurl opens its sockets in C, and no audit event tells of it.

Each transfer is told to the guard by an event of our own: while recording the guard names it, in
replay it refuses it. pycurl's classes cannot be changed, so others take their names; whoever
imported `Curl` by its name before is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tape_jupyter.instrumentation.http.grpc import EVENT
from tape_jupyter.instrumentation.patching import swap, undoing


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the transfers of `module` (pycurl). Returns the undo."""

    def announce_transfer(curl: Any) -> None:
        sys.audit(EVENT, "pycurl", str(curl.getinfo(module.EFFECTIVE_URL)), "")

    def wrap_easy(original: type[Any]) -> type[Any]:
        def perform(curl: Any) -> Any:
            announce_transfer(curl)
            return original.perform(curl)

        return type("Curl", (original,), {"perform": perform, "__module__": original.__module__})

    def wrap_multi(original: type[Any]) -> type[Any]:
        def add_handle(many: Any, curl: Any) -> Any:
            announce_transfer(curl)
            return original.add_handle(many, curl)

        return type(
            "CurlMulti", (original,), {"add_handle": add_handle, "__module__": original.__module__}
        )

    return undoing(swap(module, "Curl", wrap_easy), swap(module, "CurlMulti", wrap_multi))
