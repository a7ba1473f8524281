"""Whose model a file of a cache is: models and tokenizers are named in a bundle, not carried.

Told by the path alone: each library keeps its files in a layout of its own. Nothing is imported,
nothing is asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Model:
    """A model or tokenizer that a cell read: its `name` with its revision where there is one, and
    `where` from.
    """

    name: str
    where: str


_TIKTOKEN = {
    "9b5ad71b2ce5302211f9c61530b329a4922fc6a4": "cl100k_base",
    "fb374d419588a4632f3f557e76b4b70aebbca790": "o200k_base",
    "ec7223a39ce59f226a68acc30dc1af2788490e15": "p50k_base",
    "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4": "r50k_base",
    "6d1cbeee0f20b3d9449abfede4726ed8212e3aee": "gpt2",
    "6c7ea1a7e38e3a7f062df639a5b80947f075ffe6": "gpt2",
}
"""Names of its cache's files are digests of addresses. What is not listed is named by its digest."""

_LAYOUTS = (
    (
        "huggingface",
        re.compile(
            r"/(?P<kind>models|datasets|spaces)--(?P<name>[^/]+)/snapshots/(?P<rev>[0-9a-f]+)/"
        ),
    ),
    (
        "huggingface",
        re.compile(
            r"/(?P<kind>models|datasets|spaces)--(?P<name>[^/]+)/(?:blobs|refs|\.no_exist)/"
        ),
    ),
    ("sentence-transformers", re.compile(r"/sentence_transformers/(?P<name>[^/]+)/")),
    ("torch hub", re.compile(r"/torch/hub/checkpoints/(?P<name>[^/]+)$")),
    ("torch hub", re.compile(r"/torch/hub/(?P<name>[^/]+_[^/]+)/")),
    ("tiktoken", re.compile(r"/(?:data-gym-cache|tiktoken[^/]*)/(?P<name>[0-9a-f]{40})$")),
    ("nltk", re.compile(r"/nltk_data/(?P<name>[^/]+/[^/.]+)(?:[/.]|$)")),
    (
        "spacy",
        re.compile(
            r"-packages/(?P<name>[a-z]{2,3}_(?:core|dep|ent|sent)_\w+)/(?P=name)-(?P<rev>[^/]+)/"
        ),
    ),
)


def model_of(path: str) -> Model | None:
    """Which model the file at `path` (absolute) belongs to, None where it is none that we know."""
    path = path.replace("\\", "/")
    for where, layout in _LAYOUTS:
        if match := layout.search(path):
            return Model(_format_name(where, match.groupdict()), where)
    return None


def _format_name(where: str, groups: dict[str, str | None]) -> str:
    name = groups["name"] or ""
    if where == "huggingface":
        name = name.replace("--", "/")
        if (kind := groups["kind"]) != "models":
            name = f"{kind}/{name}"
    if where == "tiktoken":
        name = _TIKTOKEN.get(name, name)
    return f"{name}@{groups['rev']}" if groups.get("rev") else name


_PLACES = {
    "HF_HOME": ".cache/huggingface",
    "TORCH_HOME": ".cache/torch",
    "SENTENCE_TRANSFORMERS_HOME": ".cache/torch/sentence_transformers",
    "NLTK_DATA": "nltk_data",
}
_NAMED = (
    *_PLACES,
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "TRANSFORMERS_CACHE",
    "TIKTOKEN_CACHE_DIR",
)


def cache_variables(
    environ: Mapping[str, str] | None = None, home: Path | None = None
) -> dict[str, str]:
    """The variables by which a kernel with another home finds this person's models: where there are
    such folders.
    """
    environ, home = os.environ if environ is None else environ, home or Path.home()
    variables = {name: environ[name] for name in _NAMED if environ.get(name)}
    for name, place in _PLACES.items():
        if name not in variables and (home / place).is_dir():
            variables[name] = str(home / place)
    return variables
