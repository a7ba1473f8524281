"""Providers room: what follows from a changed message: how it ends, signatures that no longer hold, stale log
probabilities. Whatever a person said themselves stays as they said it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tape_jupyter.providers.look import dig, mapping, maps
from tape_jupyter.providers.recut.events import same_json

Message = dict[str, Any]

TAPE_ONLY: Final = "tape only"
"""How the sentence begins that says a live API would refuse this message in a later request."""


def settle(wire: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Message, list[str]]:
    """The new message with what follows from its differences, and a sentence for each thing that did."""
    settled = copy.deepcopy(dict(new))
    notes: list[str] = []
    if wire == "anthropic":
        _stop(old, settled, ("tool_use", "end_turn"), notes)
        _thinking(old, settled, notes)
    elif wire == "openai_responses":
        _reasoning(old, settled, notes)
        _output_text(old, settled)
    else:
        _choices(old, settled, notes)
    if not same_json(old.get("usage"), None) and same_json(old.get("usage"), settled.get("usage")):
        notes.append("usage stale: token counts are those of the recorded reply")
    return settled, notes


def _stop(old: Mapping[str, Any], new: Message, words: tuple[str, str], notes: list[str]) -> None:
    """A reply that calls a tool ends so, one that does not, not; unless the person said how it ends."""
    before, after = (_calls(message) for message in (old, new))
    if before == after or new.get("stop_reason") != old.get("stop_reason"):
        return
    if after and not before:
        new["stop_reason"] = words[0]
    elif before and not after and new.get("stop_reason") == words[0]:
        new["stop_reason"] = words[1]
    if new.get("stop_reason") != old.get("stop_reason"):
        notes.append(f"stop_reason is {new['stop_reason']} now")


def _dicts(value: Any) -> Iterator[Message]:
    """The mappings in a list, to be changed in place."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _calls(message: Mapping[str, Any]) -> bool:
    return any(block.get("type") == "tool_use" for block in maps(message.get("content")))


def _thinking(old: Mapping[str, Any], new: Message, notes: list[str]) -> None:
    """A signature is for the thinking and what follows it: up to the last block that changed none holds."""
    before, after = list(_dicts(old.get("content"))), list(_dicts(new.get("content")))
    same = 0
    while same < min(len(before), len(after)) and same_json(before[-1 - same], after[-1 - same]):
        same += 1
    if same == len(before) == len(after):
        return
    touched = after[: len(after) - same]
    dropped = [block for block in touched if block.get("type") == "thinking" and block.get("signature")]
    for block in dropped:
        block["signature"] = ""
    sealed = [block for block in touched if block.get("type") == "redacted_thinking"]
    if dropped or sealed:
        notes.append(f"{TAPE_ONLY}: thinking lost its signature, and the API refuses it without one")


def _reasoning(old: Mapping[str, Any], new: Message, notes: list[str]) -> None:
    """Reasoning items are paired with what follows them, by id or by their encrypted content."""
    before, after = list(_dicts(old.get("output"))), list(_dicts(new.get("output")))
    same = 0
    while same < min(len(before), len(after)) and same_json(before[-1 - same], after[-1 - same]):
        same += 1
    if same == len(before) == len(after):
        return
    touched = [item for item in after[: len(after) - same] if item.get("type") == "reasoning"]
    for item in touched:
        if item.get("encrypted_content"):
            item["encrypted_content"] = None
    if touched:
        notes.append(f"{TAPE_ONLY}: reasoning no longer belongs to what follows it, and the API refuses it")


def _output_text(old: Mapping[str, Any], new: Message) -> None:
    """Log probabilities are of the recorded tokens."""
    known = {_key(item, part): part for item in maps(old.get("output")) for part in maps(item.get("content"))}
    for item in _dicts(new.get("output")):
        for part in _dicts(item.get("content")):
            was = known.get(_key(item, part))
            if part.get("logprobs") and was is not None and was.get("text") != part.get("text"):
                part["logprobs"] = []


def _key(item: Mapping[str, Any], part: Mapping[str, Any]) -> tuple[str, int]:
    listed = item.get("content")
    at = next((n for n, each in enumerate(listed) if each is part), -1) if isinstance(listed, list) else -1
    return str(item.get("id")), at


def _choices(old: Mapping[str, Any], new: Message, notes: list[str]) -> None:
    before = {choice.get("index", 0): choice for choice in maps(old.get("choices"))}
    for choice in maps(new.get("choices")):
        was = mapping(before.get(choice.get("index", 0)))
        if was:
            _choice(was, choice, notes)


def _choice(old: Mapping[str, Any], new: Any, notes: list[str]) -> None:
    called, calls = (bool(dig(choice, "message.tool_calls")) for choice in (old, new))
    ended = old.get("finish_reason")
    if called != calls and same_json(ended, new.get("finish_reason")) and ended is not None:
        if calls:
            new["finish_reason"] = "tool_calls"
        elif ended == "tool_calls":
            new["finish_reason"] = "stop"
        if new["finish_reason"] != ended:
            notes.append(f"finish_reason is {new['finish_reason']} now")
    if called and dig(new, "message.tool_calls") == []:
        del new["message"]["tool_calls"]  # no host sends an empty list
    texts = [dig(choice, "message.content") for choice in (old, new)]
    if new.get("logprobs") and same_json(old.get("logprobs"), new.get("logprobs")) and texts[0] != texts[1]:
        new["logprobs"] = None
