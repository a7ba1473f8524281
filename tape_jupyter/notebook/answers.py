"""Notebook room: what people type at prompts (`input`, `getpass`). A secret is learned and never written; in replay a
placeholder stands for it, that is scrubbed to the same marker. Asks nobody, prompts nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tape_jupyter.calls import FunctionCall, Value
from tape_jupyter.freezing import Secret, freeze
from tape_jupyter.freezing.effects import frozen_or_type
from tape_jupyter.secrets import Secrets

_ASKS = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)?|secrets?|credentials?|token|pin|otp"
    r"|(?:api|access|secret|private|licen[cs]e|subscription|account|auth\w*|your)[ _-]?key|key(?=\W*$))\b",
    re.IGNORECASE,
)
"""Words of a prompt that asks for a secret. "Enter the key figure" and "max tokens" do not."""

_LOOKS = re.compile(
    r"(?:sk-|AIza|gsk_|hf_|gh[pousr]_|github_pat_|xai-|pplx-|tvly-|lsv2_|AKIA|xox[abp]-|glpat-|eyJ)[\w.\-]{12,}"
    r"|(?=\S*[A-Za-z])(?=\S*\d)(?!\S*[/\\:@])[\w.+=\-]{24,}"
)
"""A key by its prefix, or 24 characters or more of letters and digits in one word that is no path or address."""

_MARKER = re.compile(r"<secret:([\w.\-]+)>")


def is_secret(prompt: str, answer: str) -> bool:
    """Whether an answer may not be written, by what was asked or by how it looks."""
    return _ASKS.search(prompt) is not None or _LOOKS.fullmatch(answer.strip()) is not None


def secret_name(call: FunctionCall) -> str:
    """What the secret is called: `ANTHROPIC_API_KEY` where "Anthropic API key: " was asked."""
    words = re.sub(r"\W+", "_", _prompt(call)).strip("_").upper()
    return words[:60].strip("_") or call.name.upper()


def kept(call: FunctionCall, answer: Any, secrets: Secrets) -> Any:
    """What is written of a secret answer, which is learned; None where the answer is none."""
    telling = call.discreet == "maybe" and is_secret(_prompt(call), str(answer))
    if not (telling or call.discreet == "yes") or not isinstance(answer, str):
        return None
    secrets.learn(secret_name(call), answer)
    known = _MARKER.fullmatch(secrets.scrub(answer)[0])  # it may be known by another name, which then is its marker's
    return freeze(Secret(known[1] if known else secret_name(call)))


def given(value: Value, secrets: Secrets) -> Value:
    """The value as replay gives it: a placeholder for a secret."""
    structure = value.value
    if not isinstance(structure, Mapping) or structure.get("<type>") != "secret":
        return value
    return replace(value, value=secrets.stand_in(str(structure.get("name"))))


def unrecorded(call: FunctionCall, secrets: Secrets) -> Value:
    """The same for a secret that was typed while nothing was taped: it would not be on the tape in any case."""
    return Value(untyped(call, secrets))


def untyped(call: FunctionCall, secrets: Secrets) -> str:
    """The same where a person was asked for a secret and typed none, or nobody could be asked."""
    return secrets.stand_in(secret_name(call), f"the answer to {_prompt(call).strip()!r}")


def asks_a_secret(call: FunctionCall) -> bool:
    """Whether a secret is asked for, by what asks or by its words."""
    return call.discreet == "yes" or (call.discreet == "maybe" and is_secret(_prompt(call), ""))


def _prompt(call: FunctionCall) -> str:
    return str(frozen_or_type(call.arguments.get("prompt", "")))
