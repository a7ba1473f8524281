"""Sessions of Gemini CLI, and what its `--record-responses` writes (replies in order, no requests)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tape_jupyter.importers import rebuild, transcript
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import usage_of
from tape_jupyter.importers.rows import listed_field, mapping_field, read_rows, source_rows
from tape_jupyter.importers.source import Broken, Source
from tape_jupyter.importers.trace import Call, Item, Origin, Run, Skipped, each
from tape_jupyter.importers.transcript import ModelAnswer, Transcript

TITLE = "Gemini CLI session"

_METHODS = ("generateContent", "generateContentStream", "embedContent", "countTokens")
_OWN = {"sessionId", "projectHash"}


def recognises(source: Source) -> int:
    if {"method", "response"} == source.top and any(
        f'"{name}"' in source.head_text for name in _METHODS
    ):
        return 90
    if source.keys >= _OWN and source.keys & {"messages", "startTime", "lastUpdated"}:
        return 88
    return 0


def read(source: Source) -> Iterator[Item]:
    if source.top == {"method", "response"}:
        yield from read_rows(source, partial(_read_recorded_reply, source.name))
        return
    talk = Transcript(source.name, "gemini-cli", "gemini", _build_request, _build_reply)
    messages: dict[str, tuple[dict[str, Any], int]] = {}
    for path, row, line in source_rows(source, "messages"):
        if isinstance(row, Broken) or not isinstance(row, dict):
            if isinstance(row, Broken) or not path or path[-1] == "[]":
                text = row.text if isinstance(row, Broken) else str(row)
                yield Skipped(
                    "a record that breaks off or is not a JSON object", line=line, text=text
                )
            elif path == ("sessionId",):
                yield Run("", f"session {str(row)[:40]}")
        elif path == () and row.keys() >= _OWN:
            yield Run("", f"session {str(row['sessionId'])[:40]}")
        elif "$set" in row or path[:1] == ("meta",):
            listing = listed_field(mapping_field(row.get("$set")).get("messages"))
            messages.update(
                {
                    str(m.get("id") or n): (m, line)
                    for n, m in enumerate(listing)
                    if isinstance(m, dict)
                }
            )
            yield Skipped("a change of the session's head", line=line)
        else:
            messages[str(row.get("id") or f"#{line}-{len(messages)}")] = (row, line)
    for row, line in messages.values():
        yield from each(partial(_read_message, talk, row, line), line)
    yield from talk.end()


def _read_message(talk: Transcript, row: Mapping[str, Any], line: int) -> Iterator[Item]:
    kind, time = str(row.get("type") or ""), attribute_seconds(row.get("timestamp"))
    parts = listed_field(row.get("parts")) or listed_field(row.get("content"))
    if not parts and row.get("content"):
        parts = [{"text": str(row["content"])}]
    if kind == "user":
        yield from talk.add_message({"role": "user", "parts": parts}, time, line)
        return
    if kind not in ("gemini", "model", "assistant"):
        yield Skipped(f"a message of kind {kind[:40] or 'none'}: no call", line=line)
        return
    items, answer = transcript.spoken_items(
        talk.open_answer(str(row.get("id") or line), line, time)
    )
    yield from items
    calls = [each for each in listed_field(row.get("toolCalls")) if isinstance(each, Mapping)]
    thoughts = [each for each in listed_field(row.get("thoughts")) if isinstance(each, Mapping)]
    answer.parts += [
        {"text": str(each.get("description") or ""), "thought": True} for each in thoughts
    ]
    answer.parts += parts
    answer.parts += [
        {"functionCall": {"name": use.get("name"), "args": use.get("args") or {}}} for use in calls
    ]
    answer.model, answer.usage = str(row.get("model") or ""), usage_of(row.get("tokens"))
    yield from talk.close()
    answers: list[Any] = []
    for number, use in enumerate(calls):
        yield _build_tool_call(talk, use, f"{use.get('id') or number}", time, line, answers)
    if answers:
        talk.messages.append({"role": "user", "parts": answers})


def _build_tool_call(
    talk: Transcript,
    use: Mapping[str, Any],
    call_id: str,
    time: float,
    line: int,
    answers: list[Any],
) -> Item:
    results = [each for each in listed_field(use.get("result")) if isinstance(each, Mapping)]
    answers += results
    if results:
        result = mapping_field(results[0].get("functionResponse")).get("response")
    else:
        result = use.get("resultDisplay")
    if isinstance(result, Mapping) and result.keys() == {"output"}:
        result = result["output"]
    failed = str(use.get("status")) in ("error", "cancelled")
    error = ""
    if failed:
        message = result.get("error") if isinstance(result, Mapping) else result
        error = str(message or use["status"])
    talk.use(call_id, str(use.get("name") or ""), use.get("args"), time, line)
    item = talk.used(
        call_id, result, attribute_seconds(use.get("timestamp")) or time, line, error=error
    )
    if result is None and isinstance(item, Call):
        item.missing.append("result")
    return item


def _build_request(model: str, contents: list[Any]) -> tuple[str, dict[str, Any]]:
    return rebuild.url_of(rebuild.GEMINI, "gemini", [], model=model or "gemini"), {
        "contents": contents
    }


def _build_reply(answer: ModelAnswer) -> dict[str, Any]:
    usage = {
        "promptTokenCount": answer.usage.get("input", 0),
        "candidatesTokenCount": answer.usage.get("output", 0),
    }
    content = {"role": "model", "parts": answer.parts}
    record: dict[str, Any] = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "modelVersion": answer.model,
    }
    if answer.usage:
        record["usageMetadata"] = usage
    return record


def _read_recorded_reply(file: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    """A reply of `--record-responses`: whole, and to which request is not told."""
    method, raw_reply = str(row.get("method") or ""), row.get("response")
    if method not in ("generateContent", "generateContentStream") or raw_reply is None:
        yield Skipped(f"a reply of {method[:40] or 'no method'}: no model call", line=line)
        return
    stream = isinstance(raw_reply, list)
    first: Any = raw_reply[0] if isinstance(raw_reply, list) and raw_reply else raw_reply
    if isinstance(first, Mapping):
        model = str(first.get("modelVersion") or "gemini")
    else:
        model = "gemini"
    assumed: list[str] = []
    url = rebuild.url_of(rebuild.GEMINI, "gemini", assumed, model=model, stream=stream)
    if stream:
        reply = rebuild.streamed(rebuild.GEMINI, listed_field(raw_reply))
    else:
        reply = rebuild.reply(raw_reply)
    yield Call(
        f"{line}", "model", rebuild.request(url, {"contents": []}), reply, "T",
        Origin("gemini-cli", file, str(line), line), name=method, provider="gemini", model=model,
        missing=["request", "url", "reply headers", "reply bytes"], assumed=assumed,
    )  # fmt: skip
