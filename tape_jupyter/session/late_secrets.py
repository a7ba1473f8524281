"""Secrets that were known as such only after a call that tells them was on the tape: a login's
answer, which the next request carries. What is written is not written again: the call is named, and
what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.secrets.registry import Secrets


def told_before(cassette: Cassette, runs: Collection[str], secrets: Secrets) -> Iterator[str]:
    """A line for each call of these runs that holds a value which is known as a secret by now."""
    for entry in cassette.calls:
        if (
            entry.run in runs
            and entry.book is cassette
            and (names := _find_secret_names(cassette, entry, secrets))
        ):
            place = f"{cassette.path.name}:{entry.line}"
            yield (
                f"call {entry.id} ({place}) was written before {names} was known as a secret, and holds it: "
                "mask it there by hand, or name its shape (%tape set redact=REGEX) and record again"
            )


def _find_secret_names(cassette: Cassette, entry: Entry, secrets: Secrets) -> str:
    text = cassette.text(entry.offset, entry.length)
    if not secrets.suspicious(text):
        return ""
    return ", ".join(
        dict.fromkeys(name for *_, name, by_field in secrets.find_matches(text) if not by_field)
    )
