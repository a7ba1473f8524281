"""Doors room: cassettes told again without secrets, record by record, through the store's own writer: bytes, digests,
match keys and references hold, and takes know their base again. A record that held none keeps its bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tape_jupyter import assets, bodies, matching, records, tapetext
from tape_jupyter.book import Book
from tape_jupyter.bundle.masking import Masking
from tape_jupyter.calls import FunctionCall, Request
from tape_jupyter.entry import Entry
from tape_jupyter.errors import BundleError, CassetteError
from tape_jupyter.matching import IgnorePath

SUFFIX = ".tape.yaml"
_COMMIT = re.compile(r"(?<=\n)\.\.\.\n")
_KEPT = ("call", "run", "match", "override", "more", "kit", "end", "like", "by", "parent")


class Folder:
    """The cassettes of one notebook (`churn.tapes/`), copied to `folder`: told again in place.

    `sources`: digests of cells' sources, old to new, where the notebook's cells were masked as well.
    """

    def __init__(self, folder: Path, masking: Masking, sources: Mapping[str, str]) -> None:
        self.folder, self.masking, self.sources = folder, masking, sources
        self._texts: dict[Path, tuple[str, str]] = {}  # what was, and what is told, line ends LF

    def tell(self) -> list[Path]:
        """Tell every cassette again, a take after its base; those that changed. Raises BundleError."""
        try:
            for path in sorted(self.folder.rglob(f"*{SUFFIX}"), key=lambda path: (len(path.parts), path)):
                self._tell(path)
            changed = [path for path, (old, new) in self._texts.items() if old != new]
            for path in changed:
                path.write_text(self._texts[path][1], encoding="utf-8", newline="\n")
            self._drop_assets()
            for path in changed:
                Book.open(path, check="whole")
        except CassetteError as error:
            raise BundleError(
                f"a cassette cannot be told without its secrets: {error}; record the cell again"
            ) from error
        return changed

    def _tell(self, path: Path) -> None:
        if path in self._texts:
            return
        old = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
        self._texts[path] = old, old
        book = Book.open(path, check="marks")
        if book.base is not None and (base := self._base(path)) is not None:
            self._tell(base)
        self._texts[path] = old, _Cassette(self, path, book).told(old)

    def _base(self, path: Path) -> Path | None:
        from tape_jupyter import takes

        return takes.base_file(path)

    def base_record(self, path: Path, size: int) -> dict[str, Any] | None:
        """`base:` of a take of the first `size` bytes of what that file was; None where it did not change."""
        old, new = self._texts.get(path, ("", ""))
        if old == new:
            return None
        head = old.encode()[:size].decode("utf-8", "ignore")
        count = len(_COMMIT.findall(head))
        ends = [found.end() for found in _COMMIT.finditer(new)]
        told = new[: ends[count - 1]].encode() if 0 < count <= len(ends) else b""
        return {"bytes": len(told), "sha256": hashlib.sha256(told).hexdigest()}

    def _drop_assets(self) -> None:
        """Long texts that no cassette speaks of any more: they held what was masked."""
        said = "".join(new for _, new in self._texts.values())
        for file in self.folder.glob("assets/*"):
            if file.name not in said:
                file.unlink()


class _Cassette:
    def __init__(self, folder: Folder, path: Path, book: Book) -> None:
        self.folder, self.path, self.book = folder, path, book
        self.masking = folder.masking

    def told(self, text: str) -> str:
        return "".join(self._record(piece) for piece in _pieces(text))

    def _record(self, piece: str) -> str:
        if not piece.startswith("---\n"):
            return self.masking.scrub(piece)[0]
        record = tapetext.parse(piece)
        kind = next(iter(record))
        whole = assets.bring_back(record, self.book.assets) if assets.MARK in piece else record
        clean = self._clean(kind, whole)
        if clean == whole:
            return piece
        told = {
            key: value if key in _KEPT else assets.put_away(value, self.book.assets) for key, value in clean.items()
        }
        new = tapetext.emit(told)
        if tapetext.parse(new) != told:
            raise CassetteError("a masked record did not survive being written and read; please report this")
        return new

    def _clean(self, kind: str, record: dict[str, Any]) -> dict[str, Any]:
        if kind == "tape":
            return self._header(record)
        if kind in ("run", "kit", "end"):
            clean = records.masked(record, self.masking)
            source = self.folder.sources.get(str(record.get("source", "")))
            return {**clean, "source": source} if source else clean
        clean = self._told(record)
        if kind == "call":
            return self._call(record, clean)
        if kind == "more":
            body = {key: value for key, value in record.items() if key not in ("more", "run")}
            return {"more": record["more"], "run": record["run"], **self._response(body)}
        if isinstance(record.get("response"), dict):
            return {**clean, "response": self._response(record["response"])}
        return clean

    def _header(self, record: dict[str, Any]) -> dict[str, Any]:
        clean: dict[str, Any] = {
            key: value if key in ("tape", "take of", "base") else self.masking.scrub_structure(value)[0]
            for key, value in record.items()
        }
        base = self.folder._base(self.path) if "take of" in record else None  # noqa: SLF001 - one module, one class
        told = self.folder.base_record(base, record["base"]["bytes"]) if base is not None else None
        return {**clean, "base": told} if told else clean

    def _told(self, record: dict[str, Any]) -> dict[str, Any]:
        """What a record says above its request and reply."""
        return {
            key: value if key in (*_KEPT, "request", "response") else self.masking.scrub_structure(value)[0]
            for key, value in record.items()
        }

    def _response(self, section: dict[str, Any]) -> dict[str, Any]:
        clean = records.scrubbed(section, self.masking)
        if clean is not section and section.get("sha256") and bodies.restore(section)[1]:
            return {**clean, "sha256": section["sha256"]}  # it was edited by hand, and stays marked as that
        return clean

    def _call(self, record: dict[str, Any], clean: dict[str, Any]) -> dict[str, Any]:
        request, response = record.get("request"), record.get("response")
        if not isinstance(request, dict) or not isinstance(response, dict):
            raise CassetteError("a cassette of an older format cannot be masked; migrate it first")
        clean = {**clean, "response": self._response(response)}
        entry = self.book.call(str(record["run"]), str(record["call"]))
        if entry is None:
            return {**clean, "request": records.scrubbed(request, self.masking)}
        whole = self.book.request_section(_recorded(entry))
        masked = records.scrubbed(whole, self.masking)
        if masked is whole:
            return clean
        masked = {key: value for key, value in masked.items() if key != "scrubbed"}
        folded = self.masking.scrub_structure(
            {k: v for k, v in request.items() if k not in ("sha256", "plain", "wire")}
        )[0]
        fresh = bodies.renewed(masked)[0] if any(form in masked for form in _FORMS) else {}
        digests = {key: fresh[key] for key in ("sha256", "plain", "wire") if key in fresh}
        named = {key: digests.get(key, value) for key, value in {**request, **folded}.items()}
        told = {**named, **digests, "scrubbed": True}
        match = self._match(record, masked)
        return {key: match if key == "match" else told if key == "request" else value
                for key, value in clean.items() if key != "exact"}  # fmt: skip

    def _match(self, record: Mapping[str, Any], section: Mapping[str, Any]) -> str:
        call: Request | FunctionCall = records.request_of(section)
        run = self.book.by_run.get(str(record["run"]), {})
        return matching.recorded_key(call, [IgnorePath(text) for text in run.get("ignore", ())])


_FORMS = ("body", "events", "lines", "frames", "text", "base64")


def _recorded(entry: Entry) -> Entry:
    return getattr(entry, "recorded", entry)


def _pieces(text: str) -> Iterator[str]:
    """The records of a cassette, and what is torn behind them."""
    start = 0
    for mark in _COMMIT.finditer(text):
        yield text[start : mark.end()]
        start = mark.end()
    if text[start:]:
        yield text[start:]
