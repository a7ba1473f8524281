"""The tools a request declares are read from the wire form of every provider."""

import pytest

from tape_jupyter.providers.tools import declared_tools

REQUESTS = {
    "anthropic": {
        "tools": [{"name": "a", "input_schema": {}}, {"type": "web_search_20260101", "name": "b"}]
    },
    "openai chat, mistral, ollama": {
        "tools": [
            {"type": "function", "function": {"name": "a"}},
            {"type": "function", "function": {"name": "b"}},
        ]
    },
    "openai responses": {
        "tools": [
            {"type": "function", "name": "a"},
            {"type": "web_search"},
            {"type": "custom", "name": "b"},
        ]
    },
    "gemini": {
        "tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, {"googleSearch": {}}]
    },
    "bedrock": {
        "toolConfig": {"tools": [{"toolSpec": {"name": "a"}}, {"toolSpec": {"name": "b"}}]}
    },
    "old functions": {"functions": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
}


@pytest.mark.parametrize("provider", REQUESTS)
def test_the_declared_names_in_their_order(provider):
    assert declared_tools(REQUESTS[provider]) == ["a", "b"]


@pytest.mark.parametrize(
    "body",
    [None, [], "x", {}, {"tools": None}, {"tools": {"name": "a"}}, {"tools": [1, {"name": 2}]}],
)
def test_what_declares_no_tools_declares_none(body):
    assert declared_tools(body) == []
