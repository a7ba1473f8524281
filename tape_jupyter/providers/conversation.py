"""A call as a conversation: who said what, in the order it was said. A pure view; never raises.

A part is known by its own keys and not by its wire: `tool_use`, `functionCall` and `toolUse` are
the same thing in three spellings, so one reader serves all providers, and hosts that mix them. What
is no conversation has no turns.

A turn is {"role": system | user | assistant | tool | thinking, "parts": [...]}, a part one of
{"type": "text" | "thinking", "text"}, {"type": "tool_use", "id", "name", "input"},
{"type": "tool_result", "id", "text", "error"}, {"type": "image", "media", "bytes", "data"},
{"type": "other", "name", "value"}.

The message that a stream amounts to, its text included, told by the shape of its events alone.

Events are of whatever wire: each kind of event is known by its own keys, so no wire needs to be
named. The result is a list of blocks in Anthropic's form (`text`, `thinking`, `tool_use`), which
providers/conversation.py reads like any other message. Nothing here raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.providers import http
from tape_jupyter.providers.bedrock.view import open_event
from tape_jupyter.providers.json_access import as_mapping, as_text, dig, key, maps, parse_arguments

Block = dict[str, Any]


def whole_blocks(events: Iterable[Any]) -> list[Block]:
    """The blocks of the message, in the order in which they began."""
    assembled = AssembledMessage()
    for event in map(open_event, events):
        if isinstance(event, dict):
            assembled.add(event)
    return assembled.message()


class AssembledMessage:
    """A message that grows event by event."""

    def __init__(self) -> None:
        self._blocks: dict[str, Block] = {}
        self._final: list[Block] | None = None

    def message(self) -> list[Block]:
        if self._final is not None:
            return self._final
        blocks = [block for block in self._blocks.values() if block.get("text") != ""]
        return [_finish_block(block) for block in blocks]

    def add(self, event: Mapping[str, Any]) -> None:
        kind = as_text(event.get("type"))
        if kind.startswith("content_block_"):
            self._add_anthropic(kind, event)
        elif kind.startswith("response."):
            self._add_responses(kind, event)
        elif kind.startswith(("content-", "tool-")):
            self._add_cohere(kind, event)
        elif "choices" in event:
            self._add_chat(event)
        elif "candidates" in event:
            self._add_gemini(event)
        elif isinstance(event.get("message"), dict) and not kind:
            self._add_ollama(as_mapping(event.get("message")))
        else:
            self._add_bedrock(event)

    def _add_text(self, name: str, kind: str, more: str) -> None:
        block = self._blocks.setdefault(name, {"type": kind, "text": ""})
        if more:
            block["text"] = as_text(block.get("text")) + more

    def _add_tool_call(self, name: str, identity: Mapping[str, Any], arguments: Any) -> None:
        """A tool call: `identity` has its id and name, once or piece by piece, `arguments` its arguments."""
        block = self._blocks.setdefault(
            name, {"type": "tool_use", "id": "", "name": "", "json": "", "input": None}
        )
        block["id"] = as_text(identity.get("id")) or block.get("id", "")
        block["name"] = as_text(identity.get("name")) or block.get("name", "")
        if isinstance(arguments, str):
            block["json"] = as_text(block.get("json")) + arguments
        elif arguments is not None:
            block["input"] = arguments

    def _add_anthropic(self, kind: str, event: Mapping[str, Any]) -> None:
        name, delta = f"a{key(event.get('index'))}", as_mapping(event.get("delta"))
        if kind == "content_block_start":
            block = dict(as_mapping(event.get("content_block")))
            if block.get("type") == "thinking":
                block = {"type": "thinking", "text": as_text(block.get("thinking"))}
            self._blocks[name] = block
        elif delta.get("type") == "input_json_delta":
            self._add_tool_call(name, {}, as_text(delta.get("partial_json")))
        elif delta.get("type") == "text_delta":
            self._add_text(name, "text", as_text(delta.get("text")))
        elif delta.get("type") == "thinking_delta":
            self._add_text(name, "thinking", as_text(delta.get("thinking")))

    def _add_chat(self, event: Mapping[str, Any]) -> None:
        for choice in maps(event.get("choices")):
            delta = as_mapping(choice.get("delta") or choice.get("message"))
            number = key(choice.get("index"))
            self._add_text(
                f"r{number}",
                "thinking",
                as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning")),
            )
            for part in [{"text": choice.get("text")}, *_list_pieces(delta.get("content"))]:
                if part.get("type") == "thinking":
                    self._add_text(f"r{number}", "thinking", _read_piece_text(part))
                else:
                    self._add_text(f"t{number}", "text", _read_piece_text(part))
            self._add_text(f"t{number}", "text", as_text(delta.get("refusal")))
            for place, call in enumerate(maps(delta.get("tool_calls"))):
                identity = {"id": call.get("id"), "name": dig(call, "function.name")}
                self._add_tool_call(
                    f"c{number}.{_name_call(call, place)}",
                    identity,
                    dig(call, "function.arguments"),
                )

    def _add_responses(self, kind: str, event: Mapping[str, Any]) -> None:
        output = dig(event, "response.output")
        if kind in ("response.completed", "response.incomplete", "response.failed") and output:
            self._final = [dict(item) for item in maps(output)]
        elif kind == "response.output_text.delta":
            self._add_text(
                f"o{key(event.get('output_index'))}", "text", as_text(event.get("delta"))
            )
        elif kind == "response.output_item.added":
            item = as_mapping(event.get("item"))
            if as_text(item.get("type")).endswith("_call"):
                identity = {"id": item.get("call_id"), "name": item.get("name")}
                self._add_tool_call(f"o{key(event.get('output_index'))}", identity, None)
        elif kind.endswith("_arguments.delta"):
            self._add_tool_call(
                f"o{key(event.get('output_index'))}", {}, as_text(event.get("delta"))
            )
        elif kind.startswith("response.reasoning") and kind.endswith(".delta"):
            self._add_text(
                f"o{key(event.get('output_index'))}", "thinking", as_text(event.get("delta"))
            )

    def _add_cohere(self, kind: str, event: Mapping[str, Any]) -> None:
        name, delta = f"c{key(event.get('index'))}", as_mapping(dig(event, "delta.message"))
        call = as_mapping(delta.get("tool_calls"))
        if kind.startswith("tool-call"):
            named = {"id": call.get("id"), "name": dig(call, "function.name")}
            self._add_tool_call(f"u{name}", named, dig(call, "function.arguments"))
        elif kind == "content-delta":
            self._add_text(name, "text", as_text(dig(delta, "content.text")))
        elif kind == "tool-plan-delta":
            self._add_text("plan", "thinking", as_text(delta.get("tool_plan")))

    def _add_gemini(self, event: Mapping[str, Any]) -> None:
        for candidate in maps(event.get("candidates")):
            for part in maps(dig(candidate, "content.parts")):
                last = next(reversed(self._blocks), "")
                kind = "thinking" if part.get("thought") else "text"
                if not isinstance(part.get("text"), str):
                    self._blocks[f"g{len(self._blocks)}"] = dict(part)
                else:
                    same = last.startswith("g") and self._blocks[last].get("type") == kind
                    self._add_text(last if same else f"g{len(self._blocks)}", kind, part["text"])

    def _add_ollama(self, message: Mapping[str, Any]) -> None:
        self._add_text("r", "thinking", as_text(message.get("thinking")))
        self._add_text("t", "text", as_text(message.get("content")))
        for call in maps(message.get("tool_calls")):
            identity = {"id": call.get("id"), "name": dig(call, "function.name")}
            self._add_tool_call(f"c{len(self._blocks)}", identity, dig(call, "function.arguments"))

    def _add_bedrock(self, event: Mapping[str, Any]) -> None:
        for kind, payload in event.items():
            name = f"b{key(dig(payload, 'contentBlockIndex'))}"
            if kind == "contentBlockStart" and dig(payload, "start.toolUse"):
                use = as_mapping(dig(payload, "start.toolUse"))
                self._add_tool_call(
                    name, {"id": use.get("toolUseId"), "name": use.get("name")}, None
                )
            elif kind == "contentBlockDelta" and dig(payload, "delta.toolUse"):
                self._add_tool_call(name, {}, as_text(dig(payload, "delta.toolUse.input")))
            elif kind == "contentBlockDelta":
                self._add_text(name, "text", as_text(dig(payload, "delta.text")))
        # APIs before chat
        self._add_text(
            "t", "text", as_text(event.get("response")) or as_text(event.get("completion"))
        )


def _name_call(call: Mapping[str, Any], place: int) -> str:
    """Some hosts leave a call's index out, and send each whole."""
    index = key(call.get("index"))
    return index or f"{as_text(call.get('id'))}+{place}"


def _list_pieces(content: Any) -> list[Mapping[str, Any]]:
    return [{"text": content}] if isinstance(content, str) else list(maps(content))


def _read_piece_text(part: Mapping[str, Any]) -> str:
    """The text of a piece; Mistral's thinking holds pieces of its own."""
    inner = part.get("thinking")
    return as_text(part.get("text")) or "".join(as_text(piece.get("text")) for piece in maps(inner))


def _finish_block(block: Block) -> Block:
    if block.get("type") != "tool_use" and "json" not in block:
        return block
    arguments = block.pop("json", "")
    return {**block, "input": parse_arguments(arguments) if arguments else block.get("input")}


Part = dict[str, Any]
Turn = dict[str, Any]

_ROLES = {
    "assistant": "assistant", "model": "assistant", "chatbot": "assistant", "ai": "assistant",
    "system": "system", "developer": "system", "tool": "tool", "function": "tool",
}  # fmt: skip
_TEXTS = ("text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text")
_DEEP = 6
_IMAGE_CAP = 1_400_000  # characters of base64: a picture of a megabyte is shown, a larger one named


def conversation_turns(request: Request, reply: Reply | None) -> list[Turn]:
    """What was asked and what was answered; [] for a call that is no conversation."""
    turns = request_turns(http.loads(http.decoded_body(request.headers, request.body) or b""))
    data = None
    if reply is not None and reply.chunks:
        data = http.decoded_body(reply.headers, reply.readable)
    if turns and reply is not None and data:
        return turns + reply_body_turns(reply.headers, data)
    return turns


def request_turns(body: Any) -> list[Turn]:
    """The turns of a request's JSON body."""
    if not isinstance(body, dict):
        return []
    system = [
        body.get(name)
        for name in ("system", "systemInstruction", "system_instruction", "instructions")
    ]
    turns = [_build_turn("system", list(_read_parts(each))) for each in system if each]
    for name in ("messages", "contents", "input", "chat_history"):
        turns += _read_messages(body.get(name))
    if isinstance(body.get("prompt"), str):
        turns.append(_build_turn("user", [_build_text_part(body["prompt"])]))
    if isinstance(body.get("message"), str):  # Cohere v1
        turns.append(_build_turn("user", [_build_text_part(body["message"])]))
    return [turn for turn in turns if turn["parts"]]


def reply_body_turns(headers: Headers, data: bytes) -> list[Turn]:
    """The turns of a reply's body, its content-encoding off."""
    return reply_turns(
        http.loads(data)
        if (events := http.events(headers, data, ())) is None
        else whole_blocks(events)
    )


def reply_turns(body: Any) -> list[Turn]:
    """The turns of a reply's JSON: a message in any wire's form, or the blocks of one."""
    if isinstance(body, list) and any("candidates" in each for each in maps(body)):
        body = whole_blocks(body)
    return [turn for turn in _read_answer(body) if turn["parts"]]


def _read_answer(body: Any) -> list[Turn]:
    if isinstance(body, list):
        return _read_items(body)
    if not isinstance(body, dict):
        return []
    for name in ("choices", "candidates"):
        if isinstance(body.get(name), list):
            return [
                _build_turn("assistant", list(_read_choice_parts(each)))
                for each in maps(body[name])
            ]
    output = body.get("output")
    if isinstance(output, list):
        return _read_items(output)
    message = as_mapping(dig(output, "message")) or as_mapping(body.get("message")) or body
    # APIs before chat
    if plain := as_text(body.get("response")) or as_text(body.get("completion")):
        message = {"content": plain}
    fields = {name: message[name] for name in ("content", *_BESIDE) if name in message}
    if fields:
        return [_build_turn("assistant", list(_read_message_parts(fields)))]
    return []


def gist(turns: list[Turn], size: int = 120) -> str:
    """What an answer comes to, in one line: `→ lookup_order`, `"negative"`; "" where nothing was
    said.
    """
    parts = [part for turn in turns for part in turn["parts"]]
    uses = [part["name"] or "?" for part in parts if part["type"] == "tool_use"]
    if uses:
        return f"→ {', '.join(uses)}"[:size]
    text = next(
        (part["text"] for part in parts if part["type"] == "text" and part["text"].strip()), ""
    )
    line = " ".join(text[: size * 4].split())
    if line:
        return f'"{line}"' if len(line) <= size else f'"{line[: size - 1]}…"'
    return next(
        (f"({part['name'] if part['type'] == 'other' else part['type']})" for part in parts), ""
    )


# ---------------------------------------------------------------- messages


def _read_messages(messages: Any) -> list[Turn]:
    if isinstance(messages, str):
        return [_build_turn("user", [_build_text_part(messages)])]
    return _read_items(messages) if isinstance(messages, list) else []


def _read_items(items: list[Any]) -> list[Turn]:
    """Messages, or OpenAI Responses' items; loose blocks are one turn of the assistant's."""
    turns: list[Turn] = []
    for item in items:
        if isinstance(item, dict) and _is_message(item):
            parts = list(_read_message_parts(item))
            turns.append(_build_turn(_find_role(item, parts), parts))
        elif isinstance(item, dict):
            parts = list(_read_part(item, 0))
            role = _find_role({"role": "assistant"}, parts)
            if turns and turns[-1]["role"] == role == "assistant":
                turns[-1]["parts"] += parts
            else:
                turns.append(_build_turn(role, parts))
    return turns


def _is_message(item: Mapping[str, Any]) -> bool:
    """Gemini's may have no role."""
    return (
        "role" in item
        or item.get("type") == "message"
        or ("type" not in item and bool(_HOLDS & item.keys()))
    )


_HOLDS = {"parts", "content"}


def _find_role(item: Mapping[str, Any], parts: list[Part]) -> str:
    if parts and all(part["type"] == "tool_result" for part in parts):
        return "tool"
    if parts and all(part["type"] == "thinking" for part in parts):
        return "thinking"
    return _ROLES.get(
        as_text(item.get("role")).lower(), "assistant" if item.get("type") == "message" else "user"
    )


_BESIDE = (
    "reasoning_content",
    "reasoning",
    "thinking",
    "tool_plan",
    "parts",
    "refusal",
    "tool_calls",
    "function_call",
)


def _read_message_parts(message: Mapping[str, Any]) -> Iterator[Part]:
    """The parts of a message: its content, and what stands beside it."""
    for name in ("reasoning_content", "reasoning", "thinking", "tool_plan"):
        if isinstance(message.get(name), str) and message[name]:
            yield {"type": "thinking", "text": message[name]}
    if as_text(message.get("role")) in ("tool", "function"):
        call_id = (
            as_text(message.get("tool_call_id"))
            or as_text(message.get("name"))
            or as_text(message.get("tool_name"))
        )
        yield _build_tool_result(call_id, message.get("content"), error=False)
        return
    yield from _read_parts(message.get("content"))
    yield from _read_parts(message.get("parts"))
    if as_text(message.get("refusal")):
        yield _build_text_part(message["refusal"])
    for call in [
        *maps(message.get("tool_calls")),
        *filter(None, [as_mapping(message.get("function_call"))]),
    ]:
        yield _build_tool_call(call)


def _read_choice_parts(choice: Mapping[str, Any]) -> Iterator[Part]:
    if isinstance(choice.get("text"), str):
        yield _build_text_part(choice["text"])
    yield from _read_message_parts(
        as_mapping(choice.get("message")) or as_mapping(choice.get("content"))
    )


def _read_parts(content: Any, deep: int = 0) -> Iterator[Part]:
    """The parts of whatever stands where content stands: a text, a block, or a list of them."""
    if isinstance(content, str):
        if content:
            yield _build_text_part(content)
    elif isinstance(content, dict):
        yield from _read_part(content, deep)
    elif isinstance(content, list):
        for block in content:
            yield from _read_parts(block, deep + 1) if deep < _DEEP else ()


# ---------------------------------------------------------------- parts


def _read_part(block: Mapping[str, Any], deep: int) -> Iterator[Part]:
    kind = as_text(block.get("type"))
    if kind in _TEXTS or (not kind and isinstance(block.get("text"), str)):
        text = as_text(block.get("text")) or as_text(block.get("refusal"))
        yield (
            {"type": "thinking", "text": text} if block.get("thought") else _build_text_part(text)
        )
    elif kind in ("thinking", "reasoning", "redacted_thinking") or "reasoningContent" in block:
        yield {"type": "thinking", "text": _read_thinking(block)}
    elif (use := _find_tool_call(block, kind)) is not None:
        yield _build_tool_call(use)
    elif (tool_result := _find_tool_result(block, kind)) is not None:
        yield tool_result
    elif (image := _find_image(block)) is not None:
        yield image
    elif not kind and isinstance(block.get("parts"), list):
        yield from _read_parts(block["parts"], deep + 1)
    elif (
        block
    ):  # what the provider itself ran is no call of anybody here: it goes by the tool's name
        name = as_text(block.get("name")) if kind == "server_tool_use" else ""
        yield {"type": "other", "name": name or kind or next(iter(block), ""), "value": dict(block)}


def _build_turn(role: str, parts: list[Part]) -> Turn:
    return {"role": role, "parts": parts}


def _build_text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def _read_thinking(block: Mapping[str, Any]) -> str:
    thinking = (
        block.get("thinking")
        or block.get("text")
        or dig(block, "reasoningContent.reasoningText.text")
    )
    if isinstance(thinking, str) and thinking:
        return thinking
    pieces = [*maps(thinking), *maps(block.get("summary")), *maps(block.get("content"))]
    return "\n".join(as_text(piece.get("text")) for piece in pieces)


def _find_tool_call(block: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    if kind in ("tool_use", "function_call", "custom_tool_call", "function"):
        return block
    call = block.get("functionCall") or block.get("function_call") or block.get("toolUse")
    return call if isinstance(call, dict) else None


def _build_tool_call(call: Mapping[str, Any]) -> Part:
    """A tool call in any spelling."""
    function = as_mapping(call.get("function")) or as_mapping(call.get("custom")) or call
    call_id = next(
        (call[name] for name in ("call_id", "toolUseId", "id") if as_text(call.get(name))), ""
    )
    arguments: Any = next(
        (
            function[name]
            for name in ("input", "arguments", "args", "parameters")
            if function.get(name) is not None
        ),
        {},
    )
    return {
        "type": "tool_use",
        "id": call_id,
        "name": as_text(function.get("name")),
        "input": parse_arguments(arguments),
    }


def _find_tool_result(block: Mapping[str, Any], kind: str) -> Part | None:
    if kind == "tool_result":
        return _build_tool_result(
            as_text(block.get("tool_use_id")),
            block.get("content"),
            error=block.get("is_error") is True,
        )
    if kind in ("function_call_output", "custom_tool_call_output"):
        return _build_tool_result(as_text(block.get("call_id")), block.get("output"), error=False)
    function_response = as_mapping(block.get("functionResponse") or block.get("function_response"))
    if function_response:
        return _build_tool_result(
            as_text(function_response.get("id")) or as_text(function_response.get("name")),
            function_response.get("response"),
            error=False,
        )
    tool_result = as_mapping(block.get("toolResult"))
    call_id, failed = as_text(tool_result.get("toolUseId")), tool_result.get("status") == "error"
    if not tool_result:
        return None
    return _build_tool_result(call_id, tool_result.get("content"), error=failed)


def _build_tool_result(call_id: str, content: Any, *, error: bool) -> Part:
    return {
        "type": "tool_result",
        "id": call_id,
        "text": _format_tool_result(content),
        "error": error,
    }


def _format_tool_result(content: Any) -> str:
    """A tool's result as text: its text blocks, else its JSON."""
    if isinstance(content, str | None):
        return content or ""
    blocks = list(maps(content))
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    if blocks and len(texts) == len(blocks):
        return "\n".join(texts)
    try:
        return json.dumps(content, ensure_ascii=False, indent=2)
    except RecursionError:
        return ""


def _find_image(block: Mapping[str, Any]) -> Part | None:
    """A picture: Anthropic's source, OpenAI's data: URL, Gemini's inlineData. One that is elsewhere
    has no data.
    """
    source = (
        as_mapping(block.get("source"))
        or as_mapping(block.get("inlineData"))
        or as_mapping(block.get("inline_data"))
    )
    media = next(
        (
            as_text(source.get(name))
            for name in ("media_type", "mimeType", "mime_type")
            if source.get(name)
        ),
        "",
    )
    data = as_text(source.get("data"))
    url = block.get("image_url")
    link = as_text(url) or as_text(dig(url, "url"))
    if link.startswith("data:"):
        head, _, data = link.partition(",")
        media = head.removeprefix("data:").partition(";")[0]
    if not (data or link) or not (media.startswith("image/") or link):
        return None
    small = data if 0 < len(data) <= _IMAGE_CAP else None
    return {"type": "image", "media": media, "bytes": len(data) * 3 // 4, "data": small}
