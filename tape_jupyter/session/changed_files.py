"""What the end mark of a recorded cell says of files: which ones this session changed in the
notebook's folder, and what was there before. A replay starts from that (files/originals.py), so
that what the recording made is no input.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from tape_jupyter.cassette import external_texts
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.errors import CassetteError
from tape_jupyter.files import originals
from tape_jupyter.files.first_contents import First, Firsts
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session.cell import TapedCell

MOST = 200
"""Files that one cell tells of."""


class ChangedFiles:
    """Of one session: each file is told once, with the cell that was recorded next; again where
    that cell is recorded again, since its older run then counts no more.
    """

    def __init__(self) -> None:
        self._writers: dict[str, str] = {}

    def extend_end_mark(
        self,
        cell: TapedCell,
        firsts: Firsts,
        secrets: Secrets,
        start_run: Callable[[TapedCell], None],
    ) -> None:
        """Add to the cell's end mark; its run is started where it made no call. Raises nothing."""
        if (
            cell.replaying
            or cell.mode == "live"
            or cell.request.notebook is None
            or cell.cassette is None
        ):
            return
        cell_key = cell.request.cell_id or cell.request.source
        changed = [
            each
            for each in self._find_changed_files(cell, firsts)
            if self._writers.get(each[0], cell_key) == cell_key
        ]
        if not changed:
            return
        try:
            if not cell.recording.run:
                start_run(cell)
            records = [
                _build_file_record(cell, path, first, secrets) for path, first in changed[:MOST]
            ]
            cell.recording.ends[originals.KEY] = external_texts.put_away(
                records, cell.cassette.path.parent / "assets"
            )
        except (CassetteError, OSError) as problem:
            cell.warn(f"what files were before this cell is not on the tape: {problem}")
            return
        self._writers |= dict.fromkeys((path for path, _ in changed), cell_key)
        if len(changed) > MOST:
            cell.warn(
                f"{format_count(len(changed), 'file')} changed; what {len(changed) - MOST} of them held before "
                "is not on the tape"
            )

    def _find_changed_files(self, cell: TapedCell, firsts: Firsts) -> Iterator[tuple[str, First]]:
        notebook = cell.request.notebook
        assert notebook is not None
        for path, first in firsts.changed(str(originals.top_of(notebook))):
            if path != str(notebook):
                yield path, first


def _build_file_record(
    cell: TapedCell, path: str, first: First, secrets: Secrets
) -> dict[str, Any]:
    assert cell.request.notebook is not None
    record = first.record()
    if first.content is not None and _has_secrets(first.content, secrets):
        record.pop("base64")
        cell.warn(
            f"{os.path.basename(path)} holds a secret: what it was before this cell is not kept"  # noqa: PTH119
        )
    return {
        "path": os.path.relpath(path, cell.request.notebook.parent).replace(os.sep, "/"),
        **record,
    }


def _has_secrets(content: bytes, secrets: Secrets) -> bool:
    text = content.decode("latin-1")
    return secrets.scrub(text)[0] != text
