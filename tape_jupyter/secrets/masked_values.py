"""How masked values take part in a match: two that differ are two calls, and nothing of them is
given away.

A cassette is handed on, so a key that stands in it, or that everybody has, is no secret: whoever
has the cassette can try values. What protects a value is that it cannot be guessed. So:

    a value of 80 bits or more, by an estimate that takes words and years for what they are, takes
    part by a digest,
        keyed with the place it stood at: equal values at two places do not look equal
    a weaker one (a password) takes no part: two such calls are told apart by their order, which is
    said a credential (an API key by its variable or header, an OAuth token, a signature) takes no
    part: who runs it varies

A key that only this machine has would protect weak values too, and nobody else could replay them.
"""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tape_jupyter.secrets.registry import Secrets

BITS = 80
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|.", re.DOTALL)
_WORD, _NUMBER = 14.0, 14.0
"""Bits of a word of four letters or more, however long, and of a number: less than a random one
has.
"""
_HEX = re.compile(r"[0-9a-fA-F-]{24,}")
_SIGNED_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]*")
_MOST = 20
"""Secrets in one text that are told one by one."""
_MARKER = re.compile(r"<secret:([\w.\-]+)>")


@lru_cache(maxsize=512)
def strength(value: str) -> float:
    """How many bits it takes at least to guess a value."""
    if len(set(value)) < 8:
        return 0.0
    if _HEX.fullmatch(value) is not None:
        return len(value.replace("-", "")) * math.log2(10)
    return sum(map(_estimate_bits, _PIECES.findall(value)))


def _estimate_bits(piece: str) -> float:
    if piece.isdecimal():
        return min(len(piece) * math.log2(10), _NUMBER)
    if not piece.isalpha():
        return 1.0
    return _WORD if len(piece) >= 4 else len(piece) * math.log2(26)


def is_signed_token(value: str) -> bool:
    """Whether it is a JSON web token: it says when it was made, and by whom."""
    return _SIGNED_TOKEN.fullmatch(value) is not None


def keyed_digest(place: str, value: str) -> str:
    """What stands for a strong value at a place; "" for one that could be guessed by it."""
    if strength(value) < BITS or is_signed_token(value):
        return ""
    key = f"tape-jupyter masked value at {place}".encode("utf-8", "surrogatepass")
    return hmac.new(key, value.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:32]


class MaskedValues:
    """The masked values of one call at its `place` (its address, its name), as they are met.

    `parts` are what those that can take part count as, `weak` the places of those that cannot, with
    their values, `given` the places where the program has a marker itself: a replay gave it that,
    `keyed` those of which a digest is among the parts. `asking` says who asks, by place: two in one
    program are told apart by their order.
    """

    def __init__(self, place: str, secrets: Secrets) -> None:
        self.place, self.secrets = place, secrets
        self.parts: list[str] = []
        self.weak: dict[str, str] = {}
        self.given: dict[str, None] = {}
        self.asking: dict[str, str] = {}
        self.keyed: dict[str, None] = {}

    def add(self, name: str, value: str) -> str:
        """A value that is held back, at this place of the call; gives what it counts as."""
        credential = self.secrets.credential(value)
        identity = credential or keyed_digest(f"{self.place} {name}", value)
        if identity:
            self.parts.append(f"{name}={identity}")
            if credential:
                self.asking[name] = value
            else:
                self.keyed[name] = None
        elif _MARKER.search(value):
            self.given[name] = None
        elif value:
            self.weak[name] = value
        return identity

    def include(self, other: MaskedValues) -> None:
        """Add what was met in a part of the call."""
        self.parts += other.parts
        self.weak |= other.weak
        self.given |= other.given
        self.keyed |= other.keyed
        self.asking |= other.asking

    def compare(self, before: Any, after: Any, path: str = "") -> None:
        """Add what was masked between a structure and its scrubbed copy. Keys that were masked
        count by their order.
        """
        if before is after:
            return
        if isinstance(before, str) and isinstance(after, str):
            self._compare_texts(before, after, path)
        elif isinstance(before, dict) and isinstance(after, dict):
            for (key, one), other in zip(before.items(), after.values(), strict=False):
                if not self.secrets.is_login_field(key):
                    self.compare(one, other, f"{path}.{key}" if path else str(key))
        elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
            for index, (one, other) in enumerate(zip(before, after, strict=False)):
                self.compare(one, other, f"{path}[{index}]")

    def _compare_texts(self, before: str, after: str, path: str) -> None:
        personal = {name for _, name in self.secrets.patterns}
        for name, value in hidden_in(before, after):
            if name in personal:  # lists of people can be tried, however long each entry is
                self.weak[f"what `redact` masks ({path})"] = value
            elif not value:
                self.weak[path] = before
            elif self.secrets.credential(value):  # the marker that stands there names it
                self.asking[path] = value
            else:
                self.add(path, value)


def hidden_in(text: str, scrubbed: str) -> Iterator[tuple[str, str]]:
    """The values in a text that markers stand for in its scrubbed copy, each after its marker's
    name; "" unknown.
    """
    if text == scrubbed:
        return
    parts = _MARKER.split(scrubbed)
    names = parts[1::2]
    kept = [re.escape(part) for part in parts[::2]]
    match = re.fullmatch("(.*?)".join(kept), text, re.DOTALL) if len(names) <= _MOST else None
    if match is None:  # it was masked inside of base64, say: what of it is secret is not known
        yield from ((name, "") for name in names[:1])
    else:
        pairs = zip(names, match.groups(), strict=True)
        yield from ((name, value) for name, value in pairs if not _MARKER.fullmatch(value))
