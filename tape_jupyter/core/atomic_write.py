"""A file is written beside its place and put there in one step, so that nobody ever meets half of
it.
"""

from __future__ import annotations

import os
import secrets as entropy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, *, private: bool = False, lasting: bool = False) -> Iterator[Path]:
    """An empty file that takes the place of `path` when the block ends; where the block raises,
    `path` is as it was and the file is gone.

    `private`: only the user may read it, whatever the umask says (change its mode in the block, if
    others may in the end). `lasting`: what is in it is on the disk before it has the name. Raises
    OSError.
    """
    draft = path.with_name(f".{path.name}-{entropy.token_hex(4)}.tmp")
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        try:
            yield draft
            if lasting:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
