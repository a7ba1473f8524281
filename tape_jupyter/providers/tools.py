"""The tools a model request declares. A pure view of its JSON; knows names, runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def declared_tools(body: Any) -> list[str]:
    """The names of the functions a request offers to the model, in its order, each once.

    Anthropic `tools[].name`; OpenAI chat, Mistral, Ollama, Cohere `tools[].function.name`; OpenAI
    Responses `tools[].name`; Gemini `tools[].functionDeclarations[].name`; Bedrock
    `toolConfig.tools[].toolSpec.name`. What is not such a request declares none. Tools that the
    provider itself runs (web search) have no function here, and are listed all the same where they
    have a name.
    """
    if not isinstance(body, dict):
        return []
    config = body.get("toolConfig") or body.get("tool_config")
    lists = [
        body.get("tools"),
        body.get("functions"),
        config.get("tools") if isinstance(config, dict) else None,
    ]
    tools = [
        tool
        for tool_list in lists
        if isinstance(tool_list, list)
        for tool in tool_list
        if isinstance(tool, dict)
    ]
    return list(dict.fromkeys(name for tool in tools for name in _read_names(tool)))


def _read_names(tool: dict[str, Any]) -> Iterator[str]:
    named = [tool, tool.get("function"), tool.get("toolSpec"), tool.get("custom")]
    declarations = tool.get("functionDeclarations") or tool.get("function_declarations")
    nested = tool.get("tools")  # Responses: a namespace of tools
    for more in (declarations, nested):
        named += more if isinstance(more, list) else []
    for entry in named:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            yield entry["name"]
