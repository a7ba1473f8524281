"""A bundle's files without their secrets: the same value is the same mark everywhere, so that what
the notebook asks is still what the cassette answers. Files on disk are never touched; what is given
is searched again.

Cassettes told again without secrets, record by record, through the store's own writer: bytes,
digests, match keys and references hold, and takes know their base again. A record that held none
keeps its bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from tape_jupyter.cassette import external_texts, match_key, records
from tape_jupyter.cassette.cell_sources import source_hash
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.match_key import IgnorePath
from tape_jupyter.cassette.reader import Book
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.core.progress import Tell
from tape_jupyter.encoding.http import body as http_body
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import BundleError, CassetteError
from tape_jupyter.secrets import leaks, nested_encodings, passages
from tape_jupyter.secrets.leaks import Hit, Leak
from tape_jupyter.secrets.masking import Masking, recut_masked
from tape_jupyter.secrets.registry import Secrets, marker, secret_digest

SUFFIX = ".tape.yaml"
_COMMIT = re.compile(r"(?<=\n)\.\.\.(?:\n|\Z)")  # an editor may leave out the last line end
_KEPT = ("call", "run", "match", "override", "more", "kit", "end", "like", "by", "parent")


class RedactedFolder:
    """The cassettes of one notebook (`churn.tapes/`), copied to `folder`: told again in place.

    `sources`: digests of cells' sources, old to new, where the notebook's cells were masked as
    well.
    """

    def __init__(self, folder: Path, masking: Masking, sources: Mapping[str, str]) -> None:
        self.folder, self.masking, self.sources = folder, masking, sources
        self._texts: dict[Path, tuple[str, str]] = {}  # what was, and what is told, line ends LF

    def redact_cassettes(self) -> list[Path]:
        """Tell every cassette again, a take after its base; those that changed. Raises BundleError."""
        try:
            for path in sorted(
                self.folder.rglob(f"*{SUFFIX}"), key=lambda path: (len(path.parts), path)
            ):
                self._redact_cassette(path)
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

    def _redact_cassette(self, path: Path) -> None:
        if path in self._texts:
            return
        old = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
        self._texts[path] = old, old
        book = Book.open(path, check="marks")
        if book.base is not None and (base := self._find_base(path)) is not None:
            self._redact_cassette(base)
        self._texts[path] = old, _Cassette(self, path, book).redact_text(old)

    def _find_base(self, path: Path) -> Path | None:
        from tape_jupyter.cassette.takes import files

        return files.base_file(path)

    def base_record(self, path: Path, size: int) -> dict[str, Any] | None:
        """`base:` of a take of the first `size` bytes of what that file was; None where it did not
        change.
        """
        old, new = self._texts.get(path, ("", ""))
        if old == new:
            return None
        head = old.encode()[:size].decode("utf-8", "ignore")
        count = len(_COMMIT.findall(head))
        ends = [match.end() for match in _COMMIT.finditer(new)]
        prefix = new[: ends[count - 1]].encode() if 0 < count <= len(ends) else b""
        return {"bytes": len(prefix), "sha256": hashlib.sha256(prefix).hexdigest()}

    def _drop_assets(self) -> None:
        """Long texts that no cassette speaks of any more: they held what was masked."""
        all_text = "".join(new for _, new in self._texts.values())
        for file in self.folder.glob("assets/*"):
            if file.name not in all_text:
                file.unlink()


class _Cassette:
    def __init__(self, folder: RedactedFolder, path: Path, book: Book) -> None:
        self.folder, self.path, self.book = folder, path, book
        self.masking = folder.masking

    def redact_text(self, text: str) -> str:
        return "".join(self._redact_record(piece) for piece in _split_records(text))

    def _redact_record(self, piece: str) -> str:
        if not piece.startswith("---\n"):
            return self.masking.scrub(piece)[0]
        record = emitter.parse_record(piece)
        kind = next(iter(record))
        if external_texts.MARK in piece:
            full_record = external_texts.restore_texts(record, self.book.assets)
        else:
            full_record = record
        clean = self._redact_by_kind(kind, full_record)
        if clean == full_record:
            return piece
        redacted = {
            key: value if key in _KEPT else external_texts.put_away(value, self.book.assets)
            for key, value in clean.items()
        }
        new = emitter.emit(redacted)
        if emitter.parse_record(new) != redacted:
            raise CassetteError(
                "a masked record did not survive being written and read; please report this"
            )
        return new

    def _redact_by_kind(self, kind: str, record: dict[str, Any]) -> dict[str, Any]:
        if kind == "tape":
            return self._redact_header(record)
        if kind in ("run", "kit", "end"):
            clean = records.masked_record(record, self.masking)
            source = self.folder.sources.get(str(record.get("source", "")))
            return {**clean, "source": source} if source else clean
        clean = self._redact_fields(record)
        if kind == "call":
            return self._redact_call(record, clean)
        if kind == "more":
            body = {key: value for key, value in record.items() if key not in ("more", "run")}
            return {"more": record["more"], "run": record["run"], **self._redact_response(body)}
        if isinstance(record.get("response"), dict):
            return {**clean, "response": self._redact_response(record["response"])}
        return clean

    def _redact_header(self, record: dict[str, Any]) -> dict[str, Any]:
        clean: dict[str, Any] = {
            key: value
            if key in ("tape", "take of", "base")
            else self.masking.scrub_structure(value)[0]
            for key, value in record.items()
        }
        # one module, one class
        base = self.folder._find_base(self.path) if "take of" in record else None  # noqa: SLF001
        new_base = (
            self.folder.base_record(base, record["base"]["bytes"]) if base is not None else None
        )
        return {**clean, "base": new_base} if new_base else clean

    def _redact_fields(self, record: dict[str, Any]) -> dict[str, Any]:
        """What a record says above its request and reply."""
        return {
            key: value
            if key in (*_KEPT, "request", "response")
            else self.masking.scrub_structure(value)[0]
            for key, value in record.items()
        }

    def _redact_response(self, section: dict[str, Any]) -> dict[str, Any]:
        clean = records.scrubbed(section, self.masking)
        if (
            clean is not section
            and section.get("sha256")
            and "large" not in section
            and http_body.restore(section)[1]
        ):
            return {
                **clean,
                "sha256": section["sha256"],
            }  # it was edited by hand, and stays marked as that
        return clean

    def _redact_call(self, record: dict[str, Any], clean: dict[str, Any]) -> dict[str, Any]:
        request, response = record.get("request"), record.get("response")
        if not isinstance(request, dict) or not isinstance(response, dict):
            raise CassetteError("a cassette of an older format cannot be masked; migrate it first")
        clean = {**clean, "response": self._redact_response(response)}
        entry = self.book.call(str(record["run"]), str(record["call"]))
        if entry is None:
            return {**clean, "request": records.scrubbed(request, self.masking)}
        full_request = self.book.request_section(_find_recorded(entry))
        masked = records.scrubbed(full_request, self.masking)
        if masked is full_request:
            return clean
        masked = {key: value for key, value in masked.items() if key != "scrubbed"}
        folded = self.masking.scrub_structure(
            {k: v for k, v in request.items() if k not in ("sha256", "plain", "wire")}
        )[0]
        fresh = http_body.renewed(masked)[0] if any(form in masked for form in _FORMS) else {}
        digests = {key: fresh[key] for key in ("sha256", "plain", "wire") if key in fresh}
        named = {key: digests.get(key, value) for key, value in {**request, **folded}.items()}
        new_request = {**named, **digests, "scrubbed": True}
        changes = {"match": self._compute_match(record, masked), "request": new_request}
        return {key: changes.get(key, value) for key, value in clean.items() if key != "exact"}

    def _compute_match(self, record: Mapping[str, Any], section: Mapping[str, Any]) -> str:
        call: Request | FunctionCall = records.section_request(section, self.book.assets)
        run = self.book.by_run.get(str(record["run"]), {})
        return match_key.recorded_key(call, [IgnorePath(text) for text in run.get("ignore", ())])


_FORMS = ("body", "events", "lines", "frames", "text", "base64")


def _find_recorded(entry: Entry) -> Entry:
    return getattr(entry, "recorded", entry)


def _split_records(text: str) -> Iterator[str]:
    """The records of a cassette, and what is torn behind them."""
    start = 0
    for mark in _COMMIT.finditer(text):
        yield text[start : mark.end()]
        start = mark.end()
    if text[start:]:
        yield text[start:]


Content = Mapping[str, bytes | Path]

BINARY = "a secret stands in it, and it is not text"


@dataclass(frozen=True)
class Redacted:
    """The files without secrets; where marks stand now, by kind; files that are left out, and why."""

    content: dict[str, bytes | Path]
    redactions: tuple[Leak, ...]
    left_out: tuple[tuple[str, str], ...]


def redact(
    content: Content,
    known: Secrets,
    on_progress: Tell | None = None,
    called: Mapping[str, str] = MappingProxyType({}),
) -> Redacted:
    """Mask every secret that `leaks.scan` finds. Files without one are given as they came.

    A mark is `<secret:NAME>` for a value with a name here (as recordings have it), else
    `redacted-KIND-NUMBER`: letters that are left alone in URLs, JSON and code. `called`: what
    recordings call a value that was sent as a credential (Secrets.carried); where all of that name
    were found, their mark takes the place of that name as well. Raises BundleError where a secret
    cannot be masked.
    """
    first = hits = list(leaks.hunt(content, known, on_progress))
    if named := sorted({hit.kind for hit in hits if hit.where == leaks.NAME}):
        raise BundleError(
            f"a file's own name holds a secret ({', '.join(named)}); rename it, then export again"
        )
    new: dict[str, bytes | Path] = dict(content)
    left_out: dict[str, str] = {}
    every: list[Hit] = []
    seen: dict[str, str] = {}
    for _ in range(_ROUNDS):
        if not hits:
            break
        every += hits
        masking = _build_masking(known, every, called)
        touched = [hit.path for hit in hits]
        touched += [
            path
            for path, source in new.items()
            if called and masking.has_marker(passages.read_passages(source))
        ]
        left_out |= _mask_files(new, touched, masking)
        seen |= masking.seen
        hits = list(leaks.hunt(new, known, on_progress))
    if seen and not hits:
        masking = _build_masking(known, every, called)
        seen = {**marks(every), **seen}
        begun = {
            way
            for each in masking.look_for_beginnings(seen)
            for way in (each.encode("utf-8", "surrogatepass"), json.dumps(each)[1:-1].encode())
        }
        touched = [
            path for path, source in new.items() if _has_any(passages.read_passages(source), begun)
        ]
        left_out |= _mask_files(new, touched, masking)
        hits = list(
            leaks.hunt({path: new[path] for path in touched if path in new}, known, on_progress)
        )
    if hits:
        raise _build_leak_error(hits)
    return Redacted(new, tuple(leaks.shown_leaks(first)), tuple(sorted(left_out.items())))


def _has_any(data: bytes, any_of: Iterable[bytes]) -> bool:
    return any(each in data for each in any_of)


def _build_masking(known: Secrets, every: Iterable[Hit], called: Mapping[str, str]) -> Masking:
    value_marks = marks(every)
    names = _find_names(value_marks, called)
    value_marks |= {
        value: names[name]
        for value in value_marks
        if (name := called.get(secret_digest(value), "")) in names
    }
    return Masking(known, value_marks, {marker(name): mark for name, mark in names.items()})


_ROUNDS = 4
"""A part of a secret may be found as one of its own, and what it leaves of the whole the next time."""


def _find_names(value_marks: Mapping[str, str], called: Mapping[str, str]) -> dict[str, str]:
    """What recordings call values that were all found, and the mark that takes its place. Sent in a
    header, a value has a name in what was sent and answered from then on; its mark must say the
    same.
    """
    by_digest = {secret_digest(value): mark for value, mark in value_marks.items()}
    names: dict[str, list[str]] = {}
    for value, name in called.items():
        names.setdefault(name, []).append(by_digest.get(value, ""))
    return {name: min(marks_) for name, marks_ in names.items() if all(marks_)}


def _mask_files(
    new: dict[str, bytes | Path], paths: Iterable[str], masking: Masking
) -> dict[str, str]:
    """Mask what stands in these files; those that are left out instead, and why."""
    touched = dict.fromkeys(paths)
    left_out: dict[str, str] = {}
    sources = _mask_notebooks(new, touched, masking)
    _redact_cassettes(new, touched, masking, sources)
    for path in touched:
        if path in new and not path.endswith((".ipynb", SUFFIX)):
            clean = text_without(passages.read_passages(new[path]), masking)
            if clean is None:
                left_out[path] = BINARY
                del new[path]
            else:
                new[path] = clean
    return left_out


def _build_leak_error(hits: Iterable[Hit]) -> BundleError:
    places = [f"{leak.where}: {leak.kind}" for leak in leaks.shown_leaks(hits)]
    reason = f"secrets that could not be masked: {'; '.join(places[:5])}. Remove them by hand, then export again"
    return BundleError(reason, problems=places)


def marks(hits: Iterable[Hit]) -> dict[str, str]:
    """What stands for each value that has no name here; one value spelled in two ways has one mark."""
    text_marks: dict[str, str] = {}
    counts: dict[str, int] = {}
    value_marks: dict[str, str] = {}
    for hit in hits:
        if hit.kind.startswith("known ") or hit.value in value_marks:
            continue
        plain = (nested_encodings.unescaped(hit.value) or (hit.value, []))[0]
        if plain not in text_marks:
            kind = hit.kind.removeprefix("field ").lower().replace("_", "-")
            counts[kind] = counts.get(kind, 0) + 1
            text_marks[plain] = _format_mark(kind, counts[kind], plain)
        value_marks[hit.value] = value_marks[plain] = text_marks[plain]
    return value_marks


def _format_mark(kind: str, number: int, value: str) -> str:
    """As long as the value but for threes of bytes, so that base64 around it is cut and padded as
    it was.
    """
    mark = f"redacted-{kind}-"
    lacking = (len(value.encode("utf-8", "surrogatepass")) - len(f"{mark}{number}")) % 3
    return f"{mark}{'0' * lacking}{number}"


def text_without(data: bytes, masking: Masking) -> bytes | None:
    """A text file without secrets; None for a file that is no text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return masking.scrub(text)[0].encode("utf-8") if "\0" not in text else None


# ---------------------------------------------------------------- notebooks


def _mask_notebooks(
    new: dict[str, bytes | Path], touched: Iterable[str], masking: Masking
) -> dict[str, str]:
    """Mask the notebooks; digests of cells' sources, old to new."""
    sources: dict[str, str] = {}
    for path in touched:
        if path.endswith(".ipynb"):
            data = passages.read_passages(new[path])
            try:
                loaded = json.loads(data)
            except (ValueError, RecursionError):
                new[path] = text_without(data, masking) or b""
                continue
            clean = notebook_without(loaded, masking)
            new[path] = (json.dumps(clean, indent=1, ensure_ascii=False) + "\n").encode(
                "utf-8", "surrogatepass"
            )
            sources |= _map_sources(loaded, clean)
    return sources


def notebook_without(value: Any, masking: Masking) -> Any:
    """The structure of a notebook masked; what is kept as a list of lines is masked as one text."""
    if isinstance(value, dict):
        return {key: _mask_part(key, item, masking) for key, item in value.items()}
    if isinstance(value, list):
        if len(value) > 1 and all(isinstance(item, str) for item in value):
            return _mask_lines(value, masking)
        return [notebook_without(item, masking) for item in value]
    return masking.scrub(value)[0] if isinstance(value, str) else value


def _mask_lines(texts: list[str], masking: Masking) -> list[str]:
    """Texts that are one text: each masked, then what stands across them. Tracebacks are no lines,
    and stay as cut.
    """
    if all(text.endswith("\n") for text in texts[:-1]):
        clean, changed = masking.scrub("".join(texts))
        return clean.splitlines(keepends=True) if changed else texts
    each = [masking.scrub(text)[0] for text in texts]
    clean, changed = masking.scrub("".join(each))
    each = recut_masked(each, clean) if changed else each
    return each if each != texts else texts


def _mask_part(key: str, item: Any, masking: Masking) -> Any:
    clean = notebook_without(item, masking)
    return masking.escape_output(key, clean) if clean != item else item


def _map_sources(old: Any, new: Any) -> dict[str, str]:
    """Digests of masked cells' sources: a recording knows its cell by them, without the line that
    tapes it.
    """
    moved = {}
    for before, after in zip(old.get("cells", ()), new.get("cells", ()), strict=True):
        texts = (
            passages.joined_lines(before.get("source")),
            passages.joined_lines(after.get("source")),
        )
        if texts[0] != texts[1]:
            for one, other in (texts, tuple(map(_drop_magic_line, texts))):
                moved[source_hash(one)] = source_hash(other)
    return moved


def _drop_magic_line(source: str) -> str:
    first, _, rest = source.lstrip("\n").partition("\n")
    return rest if first.startswith("%%tape") else source


# ---------------------------------------------------------------- cassettes


def _redact_cassettes(
    new: dict[str, bytes | Path],
    touched: Iterable[str],
    masking: Masking,
    sources: Mapping[str, str],
) -> None:
    """Tell the cassettes of each folder that holds a secret again; long texts beside them go with
    them.
    """
    folders = {_find_home(path) for path in touched if path.endswith(SUFFIX) or "/assets/" in path}
    folders |= {_find_home(path) for path in new if path.endswith(SUFFIX)} if sources else set()
    for folder in sorted(folders):
        inner_paths = [path for path in new if path.startswith(f"{folder}/")]
        if not any(path.endswith(SUFFIX) for path in inner_paths):
            continue
        with tempfile.TemporaryDirectory(prefix="tape-redact-") as temporary:
            place = Path(temporary)
            for path in inner_paths:
                target = place / path.removeprefix(f"{folder}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(passages.read_passages(new[path]))
            RedactedFolder(place, masking, sources).redact_cassettes()
            for path in inner_paths:
                del new[path]
            for file in sorted(file for file in place.rglob("*") if file.is_file()):
                path = f"{folder}/{file.relative_to(place).as_posix()}"
                new[path] = file.read_bytes()


def _find_home(path: str) -> str:
    """The folder of a notebook's cassettes, of a path in it."""
    parent = PurePosixPath(path).parent
    return str(parent.parent if parent.name in ("takes", "assets") else parent)
