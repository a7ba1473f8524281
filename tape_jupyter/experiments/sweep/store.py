"""Where a sweep's rows are kept: a file a row, by the digest of what it is of, written by whoever
made it as soon as it is there. A folder, or a URL through fsspec.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.bundle.archive import locations
from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.sweep.places import store_of

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RowStore:
    """`place` is a folder or a URL. `rows/` in it holds rows, `takes/` answers that were paid for,
    `pages/` pages of the viewer.
    """

    place: str

    def prepare(self) -> None:
        """Raises TapeUsageError where nothing can be written there."""
        probe = f"rows/.{os.getpid()}"
        try:
            self.write_file(probe, b"{}")
            self._remove_file(probe)
        except TapeUsageError:
            raise
        except Exception as error:
            raise TapeUsageError(
                f"{locations.shown_place(self.place)}: results cannot be written there: {_describe_error(error)}"
            ) from error

    def put_row(self, key: str, row: Row) -> None:
        self.write_file(f"rows/{key}.json", json.dumps(row, ensure_ascii=False).encode())

    def rows(self) -> Iterator[tuple[str, Row]]:
        """Each row with its key, read one by one; what is no whole row is passed over."""
        for name in self._list_rows():
            with suppress(ValueError, OSError):
                row = json.loads(self.get(f"rows/{name}"))
                if isinstance(row, dict):
                    yield name.removesuffix(".json"), row

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all."""
        if locations.is_url(self.place):
            files, path = store_of(f"{self.place.rstrip('/')}/{name}")
            with suppress(NotImplementedError):
                files.makedirs(path.rpartition("/")[0], exist_ok=True)
            files.pipe_file(path, data)
            return
        path_ = Path(self.place, name)
        path_.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path_) as draft:
            draft.write_bytes(data)

    def get(self, name: str) -> bytes:
        """Raises OSError where there is none."""
        if locations.is_url(self.place):
            files, path = store_of(f"{self.place.rstrip('/')}/{name}")
            data: bytes = files.cat_file(path)
            return data
        return Path(self.place, name).read_bytes()

    def has(self, name: str) -> bool:
        if locations.is_url(self.place):
            files, path = store_of(f"{self.place.rstrip('/')}/{name}")
            return bool(files.exists(path))
        return Path(self.place, name).is_file()

    def _list_rows(self) -> list[str]:
        if locations.is_url(self.place):
            files, path = store_of(f"{self.place.rstrip('/')}/rows")
            row_paths = files.find(path) if files.exists(path) else []
            names = [name.rpartition("/")[2] for name in row_paths]
        else:
            folder = Path(self.place, "rows")
            names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 - 100,000 names
        return sorted(name for name in names if name.endswith(".json") and name[0] != ".")

    def _remove_file(self, name: str) -> None:
        if locations.is_url(self.place):
            files, path = store_of(f"{self.place.rstrip('/')}/{name}")
            files.rm_file(path)
        else:
            Path(self.place, name).unlink()


def _describe_error(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__).splitlines()[0]
