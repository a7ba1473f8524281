"""What a person did to a take, taken back. Nothing is lost: what a take was is put aside.

A take without its last override is what it was before that: what ran live after it goes with it. A
take of which nothing is left is put aside whole, and the recorded replies answer again; one that
was put aside comes back.
"""

from __future__ import annotations

import os
from pathlib import Path

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files
from tape_jupyter.errors import TapeUsageError


def undo(cassette: Path, name: str) -> str:
    """Take back the last thing that was done to a take; gives a sentence that says what. Raises
    TapeUsageError.

    `cassette` is the file that the take lies beside. Raises CassetteError for a take that cannot be
    read.
    """
    path = files.path_of(cassette, name)
    if not path.exists():
        files.restore_take(cassette, name)
        return f"take {name} is back"
    take = Cassette.open(cassette, check="marks").take(name)
    by_hand = [override for override in take.overrides if not override.by]
    if not by_hand:
        raise TapeUsageError(
            f"nobody changed a reply in take {name}: `tape takes ... discard {name}` puts it aside"
        )
    chosen = files.default_take(cassette) == name
    last = by_hand[-1]
    kept = path.read_bytes()[: last.offset]
    aside = files.delete(cassette, name)
    if len(by_hand) == 1:
        return f"call {last.id} answers as recorded again; take {name} was moved to {aside}"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
        file.write(kept)
    if chosen:
        files.choose(cassette, name)
    return (
        f"call {last.id} answers in take {name} as it did before; what the take was is in {aside}"
    )
