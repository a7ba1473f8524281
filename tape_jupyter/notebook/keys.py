"""Notebook room: in replay, SDKs still refuse to build a request without a key: placeholders stand in, for replay only.

A placeholder is scrubbed to the same marker as the real key, so that requests match; settings that were told by the
environment while recording (a region, a base URL) come from the run's kit where they are absent now.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tape_jupyter.secrets import Secrets, placeholder

USUAL = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MISTRAL_API_KEY", "GEMINI_API_KEY", "CO_API_KEY", "GROQ_API_KEY",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
)  # fmt: skip
"""Supplied in every replay; GOOGLE_API_KEY is not, since google-genai warns when both of its names are set."""
SETTINGS = ("_BASE_URL", "_REGION", "_ENDPOINT", "_API_VERSION")


def supply(secrets: Secrets, runs: Iterable[Mapping[str, Any]]) -> Callable[[], None]:
    """Put what is missing into the environment; gives what takes it out again."""
    wanted = {name: placeholder(name) for name in USUAL}
    for run in runs:
        wanted |= _recorded(run)
    if "GOOGLE_API_KEY" in wanted or "GOOGLE_API_KEY" in os.environ:
        wanted.pop("GEMINI_API_KEY", None)
    missing = {name: value for name, value in wanted.items() if name not in os.environ}
    for name, value in missing.items():
        secrets.learn(name, value)
    os.environ.update(missing)
    return lambda: _withdraw(missing)


def _withdraw(missing: Mapping[str, str]) -> None:
    for name, value in missing.items():
        if os.environ.get(name) == value:
            del os.environ[name]


def _recorded(run: Mapping[str, Any]) -> dict[str, str]:
    kit = run.get("kit")
    environment = kit.get("environment", {}) if isinstance(kit, Mapping) else {}
    if not isinstance(environment, Mapping):
        return {}
    told = {str(name): value for name, value in environment.items() if isinstance(value, str)}
    return {name: value for name, value in told.items() if name.endswith(SETTINGS)}
