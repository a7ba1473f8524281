"""Which libraries are tapped, and when: those imported already, at once; the others, as they
arrive.

An import hook stands first in `sys.meta_path`. It lets the other finders find a module it watches
for, and taps the module once it has run. Nothing is imported by it, and nothing else is ever
changed by it.

Other packages tap libraries of theirs by the entry-point group `tape_jupyter.instrumentation`: the
module to wait for, and `patch(module) -> undo`.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from types import FunctionType, ModuleType
from typing import Any

from tape_jupyter.core import plugins
from tape_jupyter.core.context import BODY
from tape_jupyter.core.libraries import imported_module, is_library_path
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.determinism import clock, entropy, timers
from tape_jupyter.instrumentation.patching import sweep_patches
from tape_jupyter.instrumentation.tools import output

Undo = Callable[[], None]
Patch = Callable[[ModuleType], Undo]
GROUP = "tape_jupyter.instrumentation"


def watch_imports() -> None:
    """Tap what is imported, and watch for the rest. Idempotent; called again, it taps what it had
    missed.
    """
    with _lock:
        for tap in (threads, entropy, clock, timers, output):
            if tap.__name__ not in _undo:  # one by one: an interrupt may have come between two
                _undo[tap.__name__] = tap.patch()
        for name in _list_watched():
            if (module := imported_module(name)) is not None:
                _tap_module(name, module)
        if _arrivals not in sys.meta_path:
            sys.meta_path.insert(0, _arrivals)


def unwatch() -> None:
    """Take every tap off, the newest first, and stop watching."""
    with _lock:
        if _arrivals in sys.meta_path:
            sys.meta_path.remove(_arrivals)
        while _undo:
            _undo.popitem()[1]()
        sweep_patches()


def _tap_module(name: str, module: ModuleType) -> None:
    for number, patch in enumerate(_list_patches(name)):
        # a module imported anew after `del sys.modules[name]` has new classes
        key = f"{name} {id(module)} {number}"
        if key not in _undo:
            _undo[key] = _try_patch(name, module, patch)


def _try_patch(name: str, module: ModuleType, patch: Patch) -> Undo:
    try:
        return patch(module)
    except Exception as error:
        # A version that is not known here. The import goes on whatever we met; the guard sees what
        # it opens.
        if isinstance(error, AttributeError | KeyError):
            lacks = f"has no {error}"
        else:
            lacks = f"is not known here ({error!r})"
        text = (
            f"{name} is not taped: this version of it {lacks}. What it sends is refused in replay"
        )
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return do_nothing


def _list_patches(name: str) -> list[Patch]:
    """What taps this module: ours, then another package's. They are imported when they are called."""
    ours: list[Patch] = [partial(_load_and_patch, tap) for tap in _TAPS.get(name, "").split()]
    point = plugins.entry_points_of(GROUP).get(name)
    return ours if point is None else [*ours, partial(_patch_added, point)]


def _load_and_patch(tap: str, module: ModuleType) -> Undo:
    undo: Undo = import_module(f"tape_jupyter.instrumentation.{tap}").patch(module)
    return undo


def _patch_added(point: EntryPoint, module: ModuleType) -> Undo:
    undo: Undo = plugins.load_entry_point(point, FunctionType)(module)
    return undo


@cache
def _list_watched() -> frozenset[str]:
    """Names of all modules that something taps."""
    return frozenset({*_TAPS, *plugins.entry_points_of(GROUP)})


_TAPS = {
    "httpx": "http.httpx",
    "httpx2": "http.httpx",
    "aiohttp.client": "http.aiohttp",
    "http.client": "http.http_client",
    "urllib3.connectionpool": "http.urllib3",
    "lm15.transports._sync": "http.lm15",
    "lm15.transports._async": "http.lm15",
    "dspy._vendor.lm15.transports._sync": "http.lm15",
    "dspy._vendor.lm15.transports._async": "http.lm15",
    "websockets.asyncio.client": "websocket.asyncio",
    "websockets.legacy.client": "websocket.legacy",
    "websockets.legacy.protocol": "websocket.open_connections",
    "websockets.protocol": "websocket.open_connections",
    "websockets.sync.client": "websocket.sync",
    "grpc._channel": "http.grpc",
    "grpc.aio._channel": "http.grpc",
    "pycurl": "http.pycurl",
    "multiprocessing.pool": "concurrency.thread_pools",
    "multiprocessing.process": "concurrency.processes",
    "builtins": "tools.prompts",
    "getpass": "tools.prompts",
    "ipykernel.kernelbase": "tools.prompts",
    "ipykernel.zmqshell": "tools.shell tools.output",
    "ipykernel.iostream": "tools.output",
    "IPython.core.displaypub": "tools.output",
    "langgraph.config": "tools.output",
    "langgraph.pregel._messages": "tools.output",
    "workflows.context.context": "tools.output",
    "langchain_core.callbacks.manager": "tools.output",
    "botocore.session": "credentials",
    "botocore.signers": "credentials",
    "google.auth._default": "credentials",
    "azure.identity": "credentials",
    "azure.identity.aio": "credentials",
    "anthropic._client": "credentials",
    "numpy.random": "determinism.library_generators",
    "torch": "determinism.library_generators",
    "mcp.client.session": "mcp.client",
    "mcp.client.stdio": "mcp.transports",
    "mcp.client.streamable_http": "mcp.transports",
    "mcp.client.sse": "mcp.transports",
    "mcp.client._memory": "mcp.transports",
    "mcp.client.client": "mcp.transports",
    "langchain_core.tools.base": "tools.frameworks",
    "llama_index.core.tools.function_tool": "tools.frameworks",
    "pydantic_ai.toolsets.function": "tools.frameworks",
    "agents.tool": "tools.frameworks",
    "anthropic.lib.tools._beta_functions": "tools.frameworks",
    "google.genai._extra_utils": "tools.frameworks",
    "workflows.plugins.basic": "tools.frameworks",
    "smolagents.tools": "tools.frameworks",
    "dspy.adapters.types.tool": "tools.frameworks",
    "haystack.tools.tool": "tools.frameworks",
    "agno.tools.function": "tools.frameworks",
    "strands.tools.decorator": "tools.frameworks",
    "autogen_core.tools._function_tool": "tools.frameworks",
    "semantic_kernel.functions.kernel_function_from_method": "tools.frameworks",
    "google.adk.tools.function_tool": "tools.frameworks",
    "crewai.tools.structured_tool": "tools.frameworks",
    "crewai.tools.base_tool": "tools.frameworks",
    "camel.toolkits.function_tool": "tools.frameworks",
    "griptape.tools.base_tool": "tools.frameworks",
    "sqlite3": "tools.databases",
    "openfeature.client": "openfeature",
    "uuid_utils": "determinism.rust_uuids",
    "uuid_utils.compat": "determinism.rust_uuids",
    "fastuuid": "determinism.rust_uuids",
    "langchain_core.retrievers": "tools.retrievers",
    "llama_index.core.base.base_retriever": "tools.retrievers",
}
"""The taps of each module; a tap is loaded when its library is there."""

_undo: dict[str, Undo] = {}
_lock = threading.RLock()


class _Arrivals(MetaPathFinder):
    """Finds the modules we tap, and while a taped body runs those of the user's, by asking the other
    finders, and puts a loader around theirs.
    """

    def __init__(self) -> None:
        self._state = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        watched = fullname in _list_watched()
        if not (watched or BODY.get() is not None) or getattr(self._state, "now", False):
            return None
        self._state.now = True
        try:
            spec = _ask_others(fullname, path, target)
        finally:
            self._state.now = False
        if spec is None or spec.loader is None:
            return spec
        users = target is None and spec.has_location and not is_library_path(spec.origin or "")
        if watched or users:
            spec.loader = _Tapping(spec.loader)
        return spec


def _ask_others(
    fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None) if finder is not _arrivals else None
        spec: ModuleSpec | None = find(fullname, path, target) if find else None
        if spec is not None:
            return spec
    return None


class _Tapping(Loader):
    """Loads as the real loader does, gives it its place back, then taps the module, or tells the
    body that imported it.
    """

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        spec.loader = self._real
        try:
            return self._real.create_module(spec)  # type: ignore[no-any-return]
        finally:
            spec.loader = self

    def exec_module(self, module: ModuleType) -> None:
        name = module.__spec__.name if module.__spec__ else module.__name__
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        module.__loader__ = self._real
        self._real.exec_module(module)
        with _lock:
            if _arrivals in sys.meta_path:
                _tap_module(name, module)
        body = BODY.get()
        if body is not None and not is_library_path(getattr(module, "__file__", None) or ""):
            body.imported(module)


_arrivals = _Arrivals()
