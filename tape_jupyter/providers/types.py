"""What can be told of a model call, as values. Nothing here reads bytes or knows a provider.

`RequestView` is what a request says, `ReplyView` what a reply says; `Facts` is both with what headers and the
address add.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ABSENT = "absent"
PINNABLE = ("temperature", "top_p", "top_k", "seed", "max_tokens")
"""Sampling settings that are always listed: `absent` says that a request left them to the provider."""


class Tool(NamedTuple):
    """A tool that a request declares; `digest` is 16 hex of the sha256 of its declaration as
    canonical JSON.
    """

    name: str
    digest: str


class ToolResult(NamedTuple):
    """A tool result that a request hands back. Either may be "": Gemini has names, the others ids."""

    id: str
    name: str


class ToolCall(NamedTuple):
    """A tool call that a reply asks for; `arguments` parsed, or the text as it came when it is not
    JSON.
    """

    id: str
    name: str
    arguments: Any


class Usage(NamedTuple):
    """Tokens. `input` counts all of them, those read from (`cached`) and written to a prompt cache
    included.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class RequestView:
    """What a request says. `results` are in the order of the conversation, so the newest come last."""

    model: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    streamed: bool = False
    tools: tuple[Tool, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyView:
    """What a reply says; `stop` in the provider's own word."""

    model: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    stop: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that could be told of one call; "" , () and None stand for what could not.

    `wire` is the shape of the messages (openai_chat, anthropic, ...), `api` the operation
    (messages, chat, embeddings, ...), `provider` who serves it: told by the host, else the wire's
    own. `sampling` always has the keys of PINNABLE. `user` is whom the request says it serves.
    `error` is what an error body or an error event says, `limits` the rate-limit headers.
    """

    provider: str = ""
    wire: str = ""
    api: str = ""
    model: str = ""
    answered: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    results: tuple[ToolResult, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    stop: str = ""
    user: str = ""
    error: str = ""
    request_id: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)
    streamed: bool = False

    def record(self) -> dict[str, Any]:
        """What a call record keeps of it for listings, as plain structure; `recalled` reads it
        back.

        The rest stands in the request and the reply already, and is read from there (`call_facts`).
        """
        if self.usage:
            usage = {name: count for name, count in self.usage._asdict().items() if count}
        else:
            usage = {}
        kept = {
            "provider": self.provider,
            "model": self.model,
            "answered": self.answered if self.answered != self.model else "",
            "usage": usage,
        }
        return {key: value for key, value in kept.items() if value}
