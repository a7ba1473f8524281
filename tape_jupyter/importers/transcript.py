"""Sessions of coding agents: what was said and which tools ran, without the requests that were
sent.

Tool calls are whole. Of a model call there are its answer and what was new in its request since the
call before it: it is for viewing (grade T), and `missing` says what a session leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tape_jupyter.importers import rebuild
from tape_jupyter.importers.trace import Call, Item, Origin, Skipped

PROMPT = "a prompt or a tool's answer: it stands in the request of the model call after it"
LEFT_OUT = (
    "system prompt", "tool schemas", "parameters", "earlier messages of the conversation", "url", "request headers",
    "reply headers", "chunks",
)  # fmt: skip


class _Use(NamedTuple):
    name: str
    arguments: Any
    start: float
    line: int


@dataclass(slots=True)
class ModelAnswer:
    """An answer of the model, as it is read: its parts may stand in several lines."""

    key: str
    line: int
    start: float = 0.0
    end: float = 0.0
    model: str = ""
    error: str = ""
    parts: list[Any] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Transcript:
    """One conversation. `request` makes a request's JSON of a model and the new messages, `reply`
    one of an answer.
    """

    file: str
    system: str
    provider: str
    request: Callable[[str, list[Any]], tuple[str, dict[str, Any]]]
    reply: Callable[[ModelAnswer], dict[str, Any]]
    trace: str = ""
    last: float = 0.0
    messages: list[Any] = field(default_factory=list)
    _open: ModelAnswer | None = None
    _uses: dict[str, list[_Use]] = field(default_factory=dict)
    _count: int = 0

    def _assign_number(self) -> int:
        """Ids are not told, or told twice: calls are numbered."""
        self._count += 1
        return self._count

    def add_message(self, message: Any, time: float, line: int) -> Iterator[Item]:
        """A message that goes into the next request."""
        yield from self.close()
        self.messages.append(message)
        self.last = time or self.last
        yield Skipped(PROMPT, line=line)

    def open_answer(self, key: str, line: int, time: float) -> Iterator[Item | ModelAnswer]:
        """The answer of this key: the one that is being read, or a new one; another one ends there."""
        if self._open is not None and self._open.key == key:
            yield Skipped("a further part of an answer", line=line)
        else:
            yield from self.close()
            self._open = ModelAnswer(key, line, self.last or time)
        self._open.end = time or self._open.end
        yield self._open

    def close(self) -> Iterator[Call]:
        """The model call that was being read."""
        done, self._open = self._open, None
        if done is None:
            return
        url, body = self.request(done.model, self.messages)
        if done.error:
            reply, assumed = rebuild.failed("", done.error)
        else:
            reply = rebuild.reply(self.reply(done), seconds=max(done.end - done.start, 0.0))
            assumed = []
        yield Call(
            f"answer {self._assign_number()} line {done.line}", "model", rebuild.request(url, body), reply, "T",
            Origin(self.system, self.file, done.key, done.line), self.trace, provider=self.provider, model=done.model,
            start=done.start, end=done.end, missing=list(LEFT_OUT), assumed=[*assumed, f"url {url}"],
            usage=done.usage, error=done.error, rebuilt=True,
        )  # fmt: skip
        self.messages, self.last = [], done.end or self.last

    def use(self, call_id: str, name: str, arguments: Any, time: float, line: int) -> None:
        """A tool call that the model asked for."""
        self._uses.setdefault(call_id, []).append(_Use(name, arguments, time, line))

    def used(
        self, call_id: str, result: Any, time: float, line: int, *, error: str = "", name: str = ""
    ) -> Item:
        """What it gave."""
        waiting = self._uses.get(call_id)
        pending = waiting.pop(0) if waiting else None
        self.last = time or self.last
        missing = ["arguments"] if pending is None else []
        use = pending or _Use(name or "tool", None, 0.0, line)
        seconds = max(time - use.start, 0.0) if time and use.start else 0.0
        value = rebuild.tool_error(error) if error else rebuild.tool_value(result, seconds)
        return Call(
            f"tool {self._assign_number()} line {line} {call_id}",
            "tool",
            rebuild.tool_call(use.name, use.arguments),
            value,
            "J",
            Origin(self.system, self.file, call_id, use.line),
            self.trace,
            name=use.name,
            start=use.start or time,
            end=time,
            missing=missing,
            error=error,
        )

    def end(self) -> Iterator[Item]:
        """The rest, at the end of the file."""
        yield from self.close()
        unanswered = sum(map(len, self._uses.values()))
        if unanswered:
            yield Skipped("a tool call that got no answer", unanswered)


def spoken_items(parts: Iterator[Item | ModelAnswer]) -> tuple[list[Item], ModelAnswer]:
    """What `open_answer` gives: the items to pass on, and the answer."""
    items = list(parts)
    answer = items.pop()
    assert isinstance(answer, ModelAnswer)
    return [each for each in items if not isinstance(each, ModelAnswer)], answer


def tool_answer_text(blocks: Any) -> Any:
    """A tool's answer: the text of its one block, or the blocks as they are."""
    if isinstance(blocks, Mapping) and isinstance(blocks.get("text"), str):
        return blocks["text"]
    if not isinstance(blocks, list):
        return blocks
    texts = [each.get("text") for each in blocks if isinstance(each, Mapping)]
    all_text = len(texts) == len(blocks) and all(isinstance(each, str) for each in texts)
    return "\n".join(map(str, texts)) if all_text else blocks
