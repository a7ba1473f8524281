"""What the real SDKs of Anthropic and OpenAI make of a reply's body: the object a program would hold, as plain JSON.

Streams: what the SDK's own accumulator ends up with (Anthropic), the response of the last event (Responses), the
chunks as the SDK parses them, added up (Chat, whose accumulator turns a repeated role into "assistantassistant").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import httpx2

TEXTS = ("content", "refusal", "reasoning", "reasoning_content", "arguments", "input")


def sees(wire: str, body: bytes, *, streamed: bool, status: int = 200, beta: bool = False) -> Any:
    """The object; where the SDK raises, its error and what had come before."""
    look = {"anthropic": _anthropic, "openai_responses": _responses}.get(wire, _chat)
    kind = "text/event-stream" if streamed else "application/json"
    answer = httpx2.Response(status, headers={"content-type": kind}, content=body)
    before: list[Any] = []
    try:
        return look(answer, streamed, beta, before)
    except Exception as error:
        return {"raised": type(error).__name__, "text": str(error), "before": before}


def digest(seen: Any) -> str:
    """sha256 of the object as canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(seen, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ---------------------------------------------------------------- clients that get one answer


_ANSWER: list[httpx2.Response] = []


def _http() -> httpx2.Client:
    return httpx2.Client(transport=httpx2.MockTransport(lambda _: _ANSWER[-1]))


@lru_cache(maxsize=1)
def _claude() -> Any:
    import anthropic

    return anthropic.Anthropic(api_key="x", http_client=_http(), max_retries=0)


@lru_cache(maxsize=1)
def _openai() -> Any:
    import openai

    return openai.OpenAI(api_key="x", http_client=_http(), max_retries=0)


def _asked(answer: httpx2.Response, method: Callable[..., Any], **asked: Any) -> Any:
    _ANSWER[:] = [answer]
    return method(**asked)


def _anthropic(answer: httpx2.Response, streamed: bool, beta: bool, before: list[Any]) -> Any:
    messages = _claude().beta.messages if beta else _claude().messages
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    if not streamed:
        return _asked(answer, messages.create, **asked).to_dict()
    with _asked(answer, messages.stream, **asked) as stream:
        for _ in stream:
            before[:] = [stream.current_message_snapshot.to_dict()]
        return stream.get_final_message().to_dict()


def _responses(answer: httpx2.Response, streamed: bool, _: bool, before: list[Any]) -> Any:
    if not streamed:
        return _asked(answer, _openai().responses.create, model="m", input="?").to_dict()
    last = None
    told: dict[str, str] = {}
    for event in _asked(answer, _openai().responses.create, model="m", input="?", stream=True):
        last = event
        data = event.to_dict()
        if event.type.endswith(".delta") and isinstance(data.get("delta"), str):
            name = "/".join(
                str(data.get(key)) for key in ("output_index", "content_index", "summary_index")
            )
            told[f"{event.type} {name}"] = told.get(f"{event.type} {name}", "") + data["delta"]
        before[:] = [told]
    whole = getattr(last, "response", None)
    return {
        "response": whole.to_dict() if whole is not None else last and last.to_dict(),
        "told": told,
    }


def _chat(answer: httpx2.Response, streamed: bool, _: bool, before: list[Any]) -> Any:
    if not streamed:
        return _asked(answer, _openai().chat.completions.create, model="m", messages=[]).to_dict()
    whole: dict[str, Any] = {}
    for chunk in _asked(
        answer, _openai().chat.completions.create, model="m", messages=[], stream=True
    ):
        _add_up(whole, chunk.to_dict())
        before[:] = [whole]
    return whole


def accumulated(body: bytes) -> Any:
    """What openai's own accumulator makes of a Chat stream."""
    from openai.lib.streaming.chat import ChatCompletionStreamState

    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    state = ChatCompletionStreamState()
    for chunk in _asked(
        answer, _openai().chat.completions.create, model="m", messages=[], stream=True
    ):
        state.handle_chunk(chunk)
    return bare(state.get_final_completion().to_dict())


def bare(value: Any) -> Any:
    """Without what is empty."""
    if isinstance(value, dict):
        told = {key: bare(part) for key, part in value.items() if key != "index"}
        return {key: part for key, part in told.items() if part not in (None, [], {}, "")}
    return [bare(part) for part in value] if isinstance(value, list) else value


def _add_up(whole: dict[str, Any], chunk: dict[str, Any]) -> None:
    for key, value in chunk.items():
        if key == "choices":
            for choice in value or ():
                _add_choice(
                    whole.setdefault("choices", {}).setdefault(str(choice.get("index")), {}), choice
                )
        elif key != "obfuscation" and value not in (None, ""):
            whole[key] = value


def _add_choice(whole: dict[str, Any], choice: dict[str, Any]) -> None:
    for key, value in choice.items():
        if key == "delta":
            _add_delta(whole.setdefault("message", {}), value or {})
        elif key == "logprobs" and value:
            mine = whole.setdefault(key, {})
            for name, part in value.items():
                mine[name] = [*(mine.get(name) or []), *part] if isinstance(part, list) else part
        elif value is not None:
            whole[key] = value


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            for number, call in enumerate(value or ()):
                calls = message.setdefault(key, {})
                name = str(call.get("index", len(calls) + number))
                _add_delta(
                    calls.setdefault(name, {}), {k: v for k, v in call.items() if k != "index"}
                )
        elif key in ("function", "custom", "function_call") and value:
            _add_delta(message.setdefault(key, {}), value)
        elif key in TEXTS and isinstance(value, str):
            message[key] = message.get(key, "") + value
        elif isinstance(value, list) and isinstance(message.get(key), list):
            message[key] = list(_extended(message[key], value))
        elif value is not None:
            message[key] = value


def _extended(before: list[Any], more: list[Any]) -> Iterator[Any]:
    """Parts of a kind that follow each other are one: how a list is cut into deltas is not what it says."""
    out = [dict(part) if isinstance(part, dict) else part for part in before]
    for part in more:
        last = out[-1] if out else None
        alike = (
            isinstance(last, dict)
            and isinstance(part, dict)
            and last.get("type") == part.get("type")
        )
        if alike and isinstance(part.get("text"), str) and last.get("index") == part.get("index"):
            out[-1] = {
                **last,
                **{k: v for k, v in part.items() if v is not None},
                "text": last.get("text", "") + part["text"],
            }
        else:
            out.append(part)
    yield from out
