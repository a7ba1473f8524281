"""What recorders of agents share: a call of an SDK's method, by its name, its arguments and its
result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PROVIDERS = {
    "openai": "openai", "anthropic": "anthropic", "messages": "anthropic", "gemini": "gemini", "google": "gemini",
    "genai": "gemini", "generate_content": "gemini", "chat.completions": "openai", "responses": "openai",
    "embeddings": "openai", "mistral": "mistral", "groq": "groq", "cohere": "cohere", "bedrock": "bedrock",
}  # fmt: skip


def named_provider(*names: Any) -> str:
    """The provider that one of these names (a method's, an endpoint's) tells of."""
    for name in names:
        for part, provider in _PROVIDERS.items():
            if part in str(name or "").lower():
                return provider
    return ""


def named_arguments(arguments: Any) -> Any:
    """`{args, kwargs}` as one map: positions are names."""
    if not isinstance(arguments, Mapping) or not {"args", "kwargs"} & arguments.keys():
        return arguments
    places = arguments.get("args")
    if isinstance(places, list):
        positional = {str(place): value for place, value in enumerate(places)}
    else:
        positional = {}
    more = arguments.get("kwargs")
    return {**positional, **(more if isinstance(more, Mapping) else {})}


def error_message_and_class(error: Any) -> tuple[str, str]:
    """An error's message and its class."""
    if isinstance(error, Mapping):
        return str(error.get("message") or error.get("type") or "error"), str(
            error.get("type") or ""
        )
    return (str(error), "") if error else ("", "")
