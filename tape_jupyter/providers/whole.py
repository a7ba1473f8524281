"""Providers room: the message that a stream amounts to, its text included, told by the shape of its events alone.

Events are of whatever wire: each kind of event is known by its own keys, so no wire needs to be named. The result is
a list of blocks in Anthropic's form (`text`, `thinking`, `tool_use`), which turns.py reads like any other message.
Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tape_jupyter.providers.bedrock import opened
from tape_jupyter.providers.look import arguments, dig, key, mapping, maps, text

Block = dict[str, Any]


def whole(events: Iterable[Any]) -> list[Block]:
    """The blocks of the message, in the order in which they began."""
    told = Whole()
    for event in map(opened, events):
        if isinstance(event, dict):
            told.add(event)
    return told.message()


class Whole:
    """A message that grows event by event."""

    def __init__(self) -> None:
        self._blocks: dict[str, Block] = {}
        self._final: list[Block] | None = None

    def message(self) -> list[Block]:
        if self._final is not None:
            return self._final
        blocks = [block for block in self._blocks.values() if block.get("text") != ""]
        return [_finished(block) for block in blocks]

    def add(self, event: Mapping[str, Any]) -> None:
        kind = text(event.get("type"))
        if kind.startswith("content_block_"):
            self._anthropic(kind, event)
        elif kind.startswith("response."):
            self._responses(kind, event)
        elif kind.startswith(("content-", "tool-")):
            self._cohere(kind, event)
        elif "choices" in event:
            self._chat(event)
        elif "candidates" in event:
            self._gemini(event)
        elif isinstance(event.get("message"), dict) and not kind:
            self._ollama(mapping(event.get("message")))
        else:
            self._bedrock(event)

    def _text(self, name: str, kind: str, more: str) -> None:
        block = self._blocks.setdefault(name, {"type": kind, "text": ""})
        if more:
            block["text"] = block.get("text", "") + more

    def _use(self, name: str, told: Mapping[str, Any], given: Any) -> None:
        """A tool call: `told` has its id and name, once or piece by piece, `given` its arguments."""
        block = self._blocks.setdefault(name, {"type": "tool_use", "id": "", "name": "", "json": "", "input": None})
        block["id"] = text(told.get("id")) or block.get("id", "")
        block["name"] = text(told.get("name")) or block.get("name", "")
        if isinstance(given, str):
            block["json"] = block.get("json", "") + given
        elif given is not None:
            block["input"] = given

    def _anthropic(self, kind: str, event: Mapping[str, Any]) -> None:
        name, delta = f"a{key(event.get('index'))}", mapping(event.get("delta"))
        if kind == "content_block_start":
            block = dict(mapping(event.get("content_block")))
            if block.get("type") == "thinking":
                block = {"type": "thinking", "text": text(block.get("thinking"))}
            self._blocks[name] = block
        elif delta.get("type") == "input_json_delta":
            self._use(name, {}, text(delta.get("partial_json")))
        elif delta.get("type") == "text_delta":
            self._text(name, "text", text(delta.get("text")))
        elif delta.get("type") == "thinking_delta":
            self._text(name, "thinking", text(delta.get("thinking")))

    def _chat(self, event: Mapping[str, Any]) -> None:
        for choice in maps(event.get("choices")):
            delta, number = mapping(choice.get("delta") or choice.get("message")), key(choice.get("index"))
            self._text(f"r{number}", "thinking", text(delta.get("reasoning_content")) or text(delta.get("reasoning")))
            for part in [{"text": choice.get("text")}, *_pieces(delta.get("content"))]:
                kind = "thinking" if part.get("type") == "thinking" else "text"
                self._text(f"{kind[0]}{number}", kind, _flat(part))
            self._text(f"t{number}", "text", text(delta.get("refusal")))
            for place, call in enumerate(maps(delta.get("tool_calls"))):
                told = {"id": call.get("id"), "name": dig(call, "function.name")}
                self._use(f"c{number}.{_place(call, place)}", told, dig(call, "function.arguments"))

    def _responses(self, kind: str, event: Mapping[str, Any]) -> None:
        output = dig(event, "response.output")
        if kind in ("response.completed", "response.incomplete", "response.failed") and output:
            self._final = [dict(item) for item in maps(output)]
        elif kind == "response.output_text.delta":
            self._text(f"o{key(event.get('output_index'))}", "text", text(event.get("delta")))
        elif kind == "response.output_item.added":
            item = mapping(event.get("item"))
            if text(item.get("type")).endswith("_call"):
                told = {"id": item.get("call_id"), "name": item.get("name")}
                self._use(f"o{key(event.get('output_index'))}", told, None)
        elif kind.endswith("_arguments.delta"):
            self._use(f"o{key(event.get('output_index'))}", {}, text(event.get("delta")))
        elif kind.startswith("response.reasoning") and kind.endswith(".delta"):
            self._text(f"o{key(event.get('output_index'))}", "thinking", text(event.get("delta")))

    def _cohere(self, kind: str, event: Mapping[str, Any]) -> None:
        name, told = f"c{key(event.get('index'))}", mapping(dig(event, "delta.message"))
        call = mapping(told.get("tool_calls"))
        if kind.startswith("tool-call"):
            named = {"id": call.get("id"), "name": dig(call, "function.name")}
            self._use(f"u{name}", named, dig(call, "function.arguments"))
        elif kind == "content-delta":
            self._text(name, "text", text(dig(told, "content.text")))
        elif kind == "tool-plan-delta":
            self._text("plan", "thinking", text(told.get("tool_plan")))

    def _gemini(self, event: Mapping[str, Any]) -> None:
        for candidate in maps(event.get("candidates")):
            for part in maps(dig(candidate, "content.parts")):
                last = next(reversed(self._blocks), "")
                kind = "thinking" if part.get("thought") else "text"
                if not isinstance(part.get("text"), str):
                    self._blocks[f"g{len(self._blocks)}"] = dict(part)
                else:
                    same = last.startswith("g") and self._blocks[last].get("type") == kind
                    self._text(last if same else f"g{len(self._blocks)}", kind, part["text"])

    def _ollama(self, message: Mapping[str, Any]) -> None:
        self._text("r", "thinking", text(message.get("thinking")))
        self._text("t", "text", text(message.get("content")))
        for call in maps(message.get("tool_calls")):
            told = {"id": call.get("id"), "name": dig(call, "function.name")}
            self._use(f"c{len(self._blocks)}", told, dig(call, "function.arguments"))

    def _bedrock(self, event: Mapping[str, Any]) -> None:
        for kind, payload in event.items():
            name = f"b{key(dig(payload, 'contentBlockIndex'))}"
            if kind == "contentBlockStart" and dig(payload, "start.toolUse"):
                use = mapping(dig(payload, "start.toolUse"))
                self._use(name, {"id": use.get("toolUseId"), "name": use.get("name")}, None)
            elif kind == "contentBlockDelta" and dig(payload, "delta.toolUse"):
                self._use(name, {}, text(dig(payload, "delta.toolUse.input")))
            elif kind == "contentBlockDelta":
                self._text(name, "text", text(dig(payload, "delta.text")))
        self._text("t", "text", text(event.get("response")) or text(event.get("completion")))  # APIs before chat


def _place(call: Mapping[str, Any], place: int) -> str:
    """Some hosts leave a call's index out, and send each whole."""
    index = key(call.get("index"))
    return index or f"{text(call.get('id'))}+{place}"


def _pieces(content: Any) -> list[Mapping[str, Any]]:
    return [{"text": content}] if isinstance(content, str) else list(maps(content))


def _flat(part: Mapping[str, Any]) -> str:
    """The text of a piece; Mistral's thinking holds pieces of its own."""
    inner = part.get("thinking")
    return text(part.get("text")) or "".join(text(piece.get("text")) for piece in maps(inner))


def _finished(block: Block) -> Block:
    if block.get("type") != "tool_use" and "json" not in block:
        return block
    given = block.pop("json", "")
    return {**block, "input": arguments(given) if given else block.get("input")}
