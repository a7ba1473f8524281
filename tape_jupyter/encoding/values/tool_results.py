"""What a tap keeps beside a call's result: what was heard while it was under way, and how chunks
were found.

    Exchange     an MCP request: its result, and what the server sent before it
    Retrieved    a retrieval: its documents, and for each its id and score; the embedding model's name

A parcel is written with a mark of its own, so that a tape can be read where the library behind it
is not installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.encoding.values.walker import At, Codec, Freezer, Thawer, need


@dataclass(slots=True)
class Exchange:
    """`messages` are dicts: a `notification` or what was `asked` of the program, its `params`, seconds
    `at`, `answer`.
    """

    result: Any
    messages: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Retrieved:
    """`documents` are the library's own objects; `chunks` say of each `id` and `score`, as far as
    it is known.
    """

    documents: Any
    chunks: list[dict[str, Any]] = field(default_factory=list)
    embedding: str = ""


def _freeze_exchange(exchange: Exchange, walk: Freezer, at: At) -> dict[str, Any]:
    return {
        "heard": walk.freeze(exchange.messages, (at, "heard")),
        "result": walk.freeze(exchange.result, (at, "result")),
    }


def _thaw_exchange(s: dict[str, Any], walk: Thawer, at: At) -> Exchange:
    events = [
        need(event, dict, (at, "heard")) for event in walk.sequence(s["heard"], (at, "heard"))
    ]
    return Exchange(walk.thaw(s["result"], (at, "result")), events)


def _freeze_retrieved(retrieved: Retrieved, walk: Freezer, at: At) -> dict[str, Any]:
    embedding = {"embedding": retrieved.embedding} if retrieved.embedding else {}
    return {
        **embedding,
        "chunks": walk.freeze(retrieved.chunks, (at, "chunks")),
        "documents": walk.freeze(retrieved.documents, (at, "documents")),
    }


def _thaw_retrieved(s: dict[str, Any], walk: Thawer, at: At) -> Retrieved:
    chunks = [
        need(chunk, dict, (at, "chunks"))
        for chunk in walk.sequence(s.get("chunks", []), (at, "chunks"))
    ]
    embedding = need(s.get("embedding", ""), str, (at, "embedding"))
    return Retrieved(walk.thaw(s["documents"], (at, "documents")), chunks, embedding)


BY_TYPE: dict[type, Codec] = {
    Exchange: Codec("mcp exchange", _freeze_exchange, _thaw_exchange),
    Retrieved: Codec("retrieved", _freeze_retrieved, _thaw_retrieved),
}
