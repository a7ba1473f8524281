"""Taps room: what a framework hands to a tool beside the model's arguments. Only looks.

A run's context, its callback managers, its state with the whole history: none of it is what was asked, much of it is
new in every run (ids, times), so none of it is part of a call.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

_CLASSES = {
    "pydantic_ai": {"RunContext"},
    "agents": {"RunContextWrapper", "ToolContext", "AgentHookContext"},
    "langchain_core": {
        "CallbackManager",
        "AsyncCallbackManager",
        "CallbackManagerForToolRun",
        "AsyncCallbackManagerForToolRun",
        "CallbackManagerForRetrieverRun",
        "AsyncCallbackManagerForRetrieverRun",
    },
    "langgraph": {"ToolRuntime", "Runtime", "BaseStore", "InMemoryStore"},
    "workflows": {"Context"},
    "llama_index": {"Context"},
    "mcp": {"Context"},
}
"""By library, the classes whose instances (subclasses too) are plumbing."""

_CONFIG = frozenset(
    ["tags", "metadata", "callbacks", "run_name", "max_concurrency", "recursion_limit", "configurable", "run_id"],
)
"""Keys of LangChain's RunnableConfig, a TypedDict."""


def without_plumbing(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were asked for."""
    return {name: value for name, value in arguments.items() if not is_plumbing(value)}


def is_plumbing(value: Any) -> bool:
    """Whether a framework handed this in on its own account."""
    kind = type(value)
    if kind is dict:
        return _is_config(value) or _is_state(value.get("messages"))
    if kind.__module__ in ("builtins", "__main__"):
        return False
    return any(base.__name__ in _CLASSES.get(base.__module__.partition(".")[0], ()) for base in kind.__mro__)


def _is_config(value: dict[Any, Any]) -> bool:
    return "callbacks" in value and _CONFIG.issuperset(value)


def _is_state(messages: Any) -> bool:
    """Whether these are the messages of a LangGraph state."""
    base = getattr(sys.modules.get("langchain_core.messages.base"), "BaseMessage", None)
    return base is not None and isinstance(messages, list) and any(isinstance(message, base) for message in messages)
