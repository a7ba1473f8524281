"""In replay, SDKs still refuse to build a request without a key: placeholders stand in, for replay
only.

A placeholder is scrubbed to the same marker as the real key, so that requests match; settings that
were told by the environment while recording (a region, a base URL) come from the run's kit where
they are absent now.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from tape_jupyter.audit import environment as kit
from tape_jupyter.dataflow.tracing.ambient import LENT
from tape_jupyter.instrumentation import environment
from tape_jupyter.providers import hosts, registry
from tape_jupyter.secrets.registry import Secrets, names_a_secret, placeholder

USUAL = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MISTRAL_API_KEY", "GEMINI_API_KEY", "CO_API_KEY", "GROQ_API_KEY",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
)  # fmt: skip
"""Supplied in every replay, besides the keys that were there while recording."""
GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
"""Two names of one key, the usual one first: google-genai warns when both are set."""
SETTINGS = ("_BASE_URL", "_REGION", "_ENDPOINT", "_API_VERSION", *kit.CLOUD)


def supply(secrets: Secrets, runs: Iterable[Mapping[str, Any]]) -> Callable[[], None]:
    """Put what is missing into the environment; gives what takes it out again."""
    recorded: dict[str, str] = {}
    for run in runs:
        recorded |= recorded_placeholders(run)
    values = {name: placeholder(name) for name in USUAL} | recorded
    lent: dict[str, str] = {}
    for name in _list_needless_names(recorded):
        values.pop(name, None)
        # for the session, when nobody knew what was recorded
        if name in LENT and LENT[name] == os.environ.get(name):
            lent[name] = LENT.pop(name)
            del os.environ[name]
    missing = {name: value for name, value in values.items() if not environment.is_set(name)}
    for name in missing:
        if names_a_secret(name):
            secrets.create_placeholder(name)
    os.environ.update(missing)
    LENT.update(missing)
    return lambda: _withdraw_placeholders(secrets, missing, lent)


def _list_needless_names(recorded: Mapping[str, str]) -> list[str]:
    """Google's other name, where one of the two is there already or was there while recording."""
    present = {name for name in GOOGLE if os.environ.get(name, LENT.get(name)) != LENT.get(name)}
    for known in (present, recorded):
        here = [name for name in GOOGLE if name in known]
        if here:
            return [name for name in GOOGLE if name not in here]
    return []


def _withdraw_placeholders(
    secrets: Secrets, missing: Mapping[str, str], lent: dict[str, str]
) -> None:
    """Take out what was put in, and put in again what it stood in the way of; once. A placeholder
    that the program has put in its place (what a prompt gave in replay) goes as well.
    """
    for name, value in missing.items():
        LENT.pop(name, None)
        there = os.environ.get(name) if environment.is_set(name) else None
        if there is not None and (there == value or secrets.is_placeholder(there)):
            del os.environ[name]
    for name, value in lent.items():
        if not environment.is_set(name):
            LENT[name] = os.environ[name] = value
    lent.clear()


def recorded_placeholders(run: Mapping[str, Any]) -> dict[str, str]:
    """Settings with their recorded values, keys (of which only names were kept) with a placeholder."""
    kit = run.get("kit")
    recorded = kit if isinstance(kit, Mapping) else {}
    environment, variables = recorded.get("environment"), recorded.get("variables")
    settings = environment.items() if isinstance(environment, Mapping) else ()
    keys = _build_key_placeholders(variables) if isinstance(variables, str) else {}
    return dict(keys) | {
        str(name): value
        for name, value in settings
        if isinstance(value, str) and name.endswith(SETTINGS) and _is_trusted_value(value)
    }


def _is_trusted_value(value: str) -> bool:
    """A cassette may come from anybody: an address in it is used only where a known provider or
    this machine answers.

    A client that is built in replay may live on into an untaped cell, and then sends its key there.
    """
    if not is_endpoint_setting(value):
        return True  # a region, a version
    host = urlsplit(value if "://" in value else f"//{value}").hostname or ""
    return hosts.loopback(host) or bool(registry.find_host_provider(host))


def is_endpoint_setting(value: str) -> bool:
    """Whether a setting says where a client sends to."""
    return bool(set(value) & set(".:/"))


def is_kept_by_a_key(setting: str) -> bool:
    """Whether a key of the same maker is set: who has one goes where that person's own settings
    say.
    """
    maker = setting.partition("_")[0]
    return any(name.startswith(f"{maker}_") and names_a_secret(name) for name in list(os.environ))


@lru_cache(maxsize=64)
def _build_key_placeholders(variables: str) -> Mapping[str, str]:
    """Placeholders for the keys among these names (split by blanks); most runs of a cassette have
    the same ones.
    """
    return {name: placeholder(name) for name in variables.split() if names_a_secret(name)}
