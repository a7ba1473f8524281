"""What a cell is called, and its source: from its run's record, else from the notebook beside the
tapes.

A record keeps a title and a digest of the source, never the source: the notebook has that. One that
was changed or is gone leaves a cell without a source, and nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tape_jupyter.cassette.takes import files
from tape_jupyter.core.saved_cells import load_saved_cells

TITLE = 60
"""Characters of a title, at most."""

_CAP = 64 * 1024 * 1024
_DULL = re.compile(r"(?:import |from \S+ import |%|!|@|\"\"\"|'''|[)\]}]|global |pass$)")
_DEFINES = re.compile(r"(?:async )?def (\w+)|class (\w+)")
_GIVES = re.compile(r"([A-Za-z_]\w*) *(?::[^=]+)?= *(?:await )?([A-Za-z_][\w.]*)\(")


def title_of(source: str) -> str:
    """A few words for a cell: its heading comment, what it defines, the call it makes, else its
    first telling line.
    """
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    if lines and lines[0].startswith("%%tape"):
        del lines[0]
    if lines and lines[0].startswith("#") and (heading := lines[0].strip("#! ")):
        return _shorten_title(heading)
    code = [line for line in lines if not line.startswith("#")]
    title_line = next((line for line in code if not _DULL.match(line)), code[0] if code else "")
    if match := _DEFINES.match(title_line):
        return _shorten_title(match[1] or match[2])
    if match := _GIVES.match(title_line):
        return _shorten_title(f"{match[1]} = {match[2].rpartition('.')[2]}(…)")
    return _shorten_title(title_line)


def _shorten_title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"


def cell_of(record: Mapping[str, Any]) -> str:
    """What its spans name a cell by: the front end's id, else the first 12 digits of its source's
    hash.
    """
    return str(record.get("cell") or str(record.get("source") or "")[:12])


def source_hash(source: str) -> str:
    """16 hex digits of a cell's source, blank ends aside."""
    return hashlib.sha256(source.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def notebook_of(cassette: Path) -> Path:
    """Where the notebook of a cassette or take lies: `churn.tapes/main.tape.yaml` is
    `churn.ipynb`'s.
    """
    folder = files.cassette_of(cassette).absolute().parent
    if folder.suffix == ".tapes":
        return folder.with_suffix(".ipynb")
    return folder / ".ipynb"


@dataclass
class Sources:
    """The sources of a notebook's cells by their hash; read when first asked for, and again when
    the file changed.

    `known` are sources of this session, which the file may not hold yet; `numbers` say how often the
    kernel had run something when it ran a cell last, as the notebook shows it beside the cell.
    """

    notebook: Path
    known: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    _by_digest: dict[str, str] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)
    _seen: tuple[int, int] = (0, 0)

    def find_source(self, record: Mapping[str, Any]) -> str | None:
        """The source of the cell of a run; None where nothing holds it as it was."""
        digest = str(record.get("source") or "")
        if digest in self.known:
            return self.known[digest]
        self._refresh_sources()
        return self._by_digest.get(digest)

    def of_cell(self, cell: str) -> str | None:
        """The source of a cell by what its spans name it by: as it stands in the notebook now."""
        for sources in (self.known, self._read_sources()):
            for digest, source in sources.items():
                if cell and digest.startswith(cell):
                    return source
        return self._ids.get(cell)

    def title(self, record: Mapping[str, Any]) -> str:
        """`[2] classify`: the number is the one beside the cell in this session, else of its recording."""
        count = self.number(record)
        number = f"[{count}] " if isinstance(count, int) else ""
        recorded_title = record.get("title")
        if isinstance(recorded_title, str) and recorded_title:
            title = recorded_title
        else:
            title = title_of(self.find_source(record) or "")
        return f"{number}{_shorten_title(title) or 'cell'}"

    def number(self, record: Mapping[str, Any]) -> Any:
        """The number beside the cell of a run, as far as it is known."""
        return self.numbers.get(cell_of(record), record.get("count"))

    def _read_sources(self) -> Mapping[str, str]:
        self._refresh_sources()
        return self._by_digest

    def _refresh_sources(self) -> None:
        try:
            file_stat = self.notebook.stat()
            seen = (file_stat.st_mtime_ns, file_stat.st_size)
            if seen == self._seen or file_stat.st_size > _CAP:
                return
            self._seen = seen
            cells = load_saved_cells(self.notebook.read_bytes())
        except OSError:
            return
        if not cells:  # it is being saved
            return
        self._by_digest = {digest: cell.source for cell in cells for digest in digests(cell.source)}
        self._ids = {cell.id: cell.source for cell in cells if cell.id}


def digests(source: str) -> Iterator[str]:
    """A run's hash is of the source without its `%%tape` line; an untaped cell's of all of it."""
    first, _, rest = source.lstrip("\n").partition("\n")
    if first.startswith("%%tape"):
        yield source_hash(rest)
    yield source_hash(source)
