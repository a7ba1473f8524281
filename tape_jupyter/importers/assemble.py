"""What formats read becomes a cassette of ordinary calls, written by the ordinary store.

Calls wait in an unnamed temporary file until the last record is read: parents may come after their
children, and traces may be mixed. The cassette is made in a folder of its own beside its place, and
gets its name when it is whole.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

from tape_jupyter.cassette import match_key
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.records import Head, moment_text
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.importers import recognise
from tape_jupyter.importers.source import Source, TraceError
from tape_jupyter.importers.trace import TWICE, Call, Item, Kind, Origin, Run, Skipped, Span
from tape_jupyter.importers.tree import TraceNode, Tree
from tape_jupyter.providers import call_class, registry
from tape_jupyter.secrets.registry import Secrets

_IN_MEMORY = 32 * 1024 * 1024
_TOLD = 500
"""Records between two words on how far it is."""
_KEPT_TEXT = 20_000
_TELEMETRY = "a request that reports to a telemetry service"


@dataclass(slots=True)
class FileReport:
    """What became of a file. `reasons` counts the records that are neither a call nor a span."""

    file: str
    format: str = ""
    runs: list[str] = field(default_factory=list)
    calls: int = 0
    spans: int = 0
    grades: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    assumed: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0

    @property
    def grade(self) -> str:
        """The lowest of its calls' grades."""
        return max(self.grades, key="WJPMT".index, default="")

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        values: dict[str, Any] = {each.name: record[each.name] for each in fields(cls)}
        counted = {
            name: Counter(values[name]) for name in ("grades", "reasons", "missing", "assumed")
        }
        return cls(**{**values, **counted})

    def record(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, "grade": self.grade, "seconds": round(self.seconds, 3)}


@dataclass(slots=True)
class Imported:
    """A cassette that was made, and what became of each file. `path` is None where no file held
    anything.
    """

    path: Path | None
    files: list[FileReport]

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """From what `record` gave, in another process."""
        path, files = record.get("cassette"), record.get("files", ())
        return cls(Path(path) if path else None, [FileReport.of_record(each) for each in files])

    def record(self) -> dict[str, Any]:
        return {
            "cassette": str(self.path) if self.path else None,
            "files": [each.record() for each in self.files],
        }


def import_trace(
    *places: str | Path,
    form: str = "",
    cassette: str | Path | None = None,
    tell: Tell = ignore_progress,
) -> Imported:
    """`tape.import_trace()`: read files (or folders of them) that other systems wrote, into one new
    cassette.

    `form` names their format, else it is recognised. The cassette is `NAME.tapes/main.tape.yaml` in
    the working directory, `NAME` as the first file; no file is overwritten. Raises TapeError where
    nothing can be imported: a format that is not known, a file that is broken. Of several files
    those that can be read are imported.
    """
    sources = list(_list_sources([Path(each) for each in places]))
    chosen = recognise.named_format(form) if form else None
    if cassette is not None:
        goal = Path(cassette)
    else:
        goal = _find_free_path(Path.cwd() / f"{_clean_stem(Path(places[0]))}.tapes" / _MAIN)
    if goal.exists() or (
        cassette is not None and goal.parent.exists() and any(goal.parent.iterdir())
    ):
        raise TapeUsageError(f"{goal.parent} exists already and is not overwritten; name another")
    with _Assembly(goal, tell) as assembly:
        for source in sources:
            _read_source(
                assembly,
                source,
                (form, chosen) if chosen is not None else None,
                only_source=len(sources) == 1,
            )
        assembly.take_rest()
        path = assembly.write()
    failed = [each for each in assembly.files if each.error]
    if path is None and failed:
        raise TraceError("\n".join(each.error for each in failed[:20]))
    return Imported(path, assembly.files)


_MAIN = "main.tape.yaml"


def _list_sources(places: Sequence[Path]) -> Iterator[Source]:
    if not places:
        raise TapeUsageError("name a file or a folder to import")
    for place in places:
        if place.is_dir():
            paths = [
                each
                for each in sorted(place.rglob("*"))
                if each.is_file() and not each.name.startswith(".")
            ]
            if not paths:
                raise TapeUsageError(f"{place}: there is no file in this folder")
            yield from (Source(each) for each in paths)
        elif not place.exists():
            raise TapeUsageError(f"{place}: there is no such file")
        elif not place.is_file():
            raise TapeUsageError(f"{place} is not a plain file")
        else:
            yield Source(place)


def _clean_stem(place: Path) -> str:
    name = re.sub(r"[^\w.-]+", "-", place.absolute().name.partition(".")[0]).strip("-.")
    return name or "imported"


def _find_free_path(goal: Path) -> Path:
    """The first of `x.tapes`, `x-2.tapes`, ... that is not there."""
    folder, number = goal.parent, 1
    while folder.exists():
        number += 1
        folder = goal.parent.with_name(f"{goal.parent.stem}-{number}.tapes")
    return folder / goal.name


def _read_source(
    assembly: _Assembly,
    source: Source,
    chosen: tuple[str, recognise.Format] | None,
    *,
    only_source: bool,
) -> None:
    report = assembly.report_of(source)
    began = time.perf_counter()
    mark = assembly.mark()
    try:
        report.format, form = chosen or recognise.recognised(source)
        assembly.add_items(report, assembly.reading(form, source))
        report.notes += source.remarks
    except (TraceError, CassetteError) as error:
        assembly.forget(mark)
        report.error = str(error)
        if only_source:
            raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        assembly.forget(mark)
        reason = f"is not as {report.format} files are ({type(error).__name__}: {str(error)[:200]})"
        trace_error = source.failed(reason, assembly.line)
        report.error = str(trace_error)
        if only_source:
            raise trace_error from error
    report.seconds = time.perf_counter() - began


class _WaitingCall(NamedTuple):
    """A call that waits: when it began, its place in the temporary file, its id, and what the
    report counts.
    """

    start: float
    number: int
    offset: int
    length: int
    id: str
    report: int


@dataclass(slots=True)
class _Trace:
    """A run to be: the file that it is first told in, its spans and the calls that wait."""

    report: int
    key: str
    tree: Tree = field(default_factory=Tree)
    waiting: dict[str, _WaitingCall] = field(default_factory=dict)
    run: Run | None = None
    root: str = ""
    start: float = 0.0
    last: float = 0.0
    failed: str = ""
    skipped: list[Skipped] = field(default_factory=list)


class _Assembly:
    """One import: collects what is read, then writes it."""

    def __init__(self, goal: Path, on_progress: Tell) -> None:
        self.goal, self._on_progress = goal, on_progress
        self.files: list[FileReport] = []
        self.line = 0
        self._traces: dict[str, _Trace] = {}
        self._joined: dict[str, tuple[recognise.Joined, list[tuple[Source, int]]]] = {}
        self._shared = ""  # the format whose files tell of the same traces
        self._at = 0  # the report of what is read
        self._secrets = Secrets()
        self._secrets.learn_environment(os.environ)
        # closed on exit
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self._count = self._end = 0
        self._draft: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._draft is not None:
            shutil.rmtree(self._draft, ignore_errors=True)

    # -- reading

    def report_of(self, source: Source) -> FileReport:
        """A report of the file that is read now."""
        self.files.append(FileReport(source.name))
        self._at = len(self.files) - 1
        return self.files[-1]

    def reading(self, form: recognise.Format, source: Source) -> Iterator[Item]:
        """The items of a file; of a format that joins files, those that need not wait."""
        begin = getattr(form, "begin", None)
        if begin is None:
            self._shared = ""
            return form.read(source)
        self._shared = self.files[self._at].format
        reader, places = self._joined.setdefault(self._shared, (begin(), []))
        places.append((source, self._at))
        items: Iterator[Item] = reader.read(source)
        return items

    def take_rest(self) -> None:
        """What formats that join files kept for the last of them."""
        for form, (reader, places) in self._joined.items():
            self._shared = form
            known = {id(source): at for source, at in places if not self.files[at].error}
            for source_id, items in groupby(reader.rest(), key=lambda each: id(each[0])):
                if source_id in known:
                    self._at = known[source_id]
                    self.add_items(self.files[self._at], (item for _, item in items))
            for source, at in places:
                report = self.files[at]
                report.notes += [note for note in source.remarks if note not in report.notes]

    def mark(self) -> set[str]:
        """What is there, for `forget`."""
        return set(self._traces)

    def forget(self, mark: set[str]) -> None:
        """Nothing of a file that cannot be read to its end is kept."""
        report = self._at
        self._traces = {
            key: trace
            for key, trace in self._traces.items()
            if key in mark and trace.report != report
        }
        for trace in self._traces.values():  # those of several files
            trace.waiting = {
                name: call for name, call in trace.waiting.items() if call.report != report
            }

    def add_items(self, report: FileReport, items: Iterable[Item]) -> None:
        kept: list[Skipped] = []
        trace: _Trace | None = None
        for number, item in enumerate(items, 1):
            if number % _TOLD == 0:
                self._on_progress(f"reading {Path(report.file).name}: record", number, 0)
            if isinstance(item, Skipped):
                report.reasons[item.reason] += item.count
                if item.text:
                    kept.append(replace(item, text=item.text[:_KEPT_TEXT]))
                continue
            trace = self._ensure_trace(item.trace)
            if isinstance(item, Run):
                trace.run = item
            elif isinstance(item, Span):
                self._add_span(trace, item)
            elif (kind := _classify_call(item)) is None:
                report.reasons[_TELEMETRY] += 1
            else:
                self.line = item.origin.line
                in_order, item.kind = item.kind == "http", kind
                self._add_call(trace, item, in_order=in_order)
        if kept:  # what broke off follows the run that was read last
            (trace or self._ensure_trace("")).skipped += kept

    def _ensure_trace(self, name: str) -> _Trace:
        key = f"{self._shared} {name}" if self._shared and name else f"{self._at} {name}"
        if key not in self._traces:
            self._traces[key] = _Trace(self._at, name)
        return self._traces[key]

    def _add_span(self, trace: _Trace, span: Span) -> None:
        self._count += 1
        name = span.id or f"#{self._count}"
        trace.waiting.pop(name, None)
        trace.tree.add(name, TraceNode(span.parent, _clean_label(span.name), "span"))
        trace.start = min(filter(None, (trace.start, span.start)), default=0.0)
        if not span.parent:
            trace.root = trace.root or _clean_label(span.name)
            trace.failed = trace.failed or span.error

    def _add_call(self, trace: _Trace, call: Call, *, in_order: bool) -> None:
        """`in_order`: the file's order is that of the calls, whatever clocks say."""
        self._count += 1
        name = call.id or f"#{self._count}"
        trace.tree.add(
            name,
            TraceNode(call.parent, _clean_label(call.name or call.model or call.kind), call.kind),
        )
        trace.start = min(filter(None, (trace.start, call.start)), default=0.0)
        self._learn_keys(call)
        data = marshal.dumps(_pack_call(call))
        trace.last = max(trace.last, call.start) if in_order else call.start or trace.last
        trace.waiting[name] = _WaitingCall(
            trace.last, self._count, self._end, len(data), name, self._at
        )
        self._file.write(data)
        self._end += len(data)

    def _learn_keys(self, call: Call) -> None:
        """Keys that the source holds are held back everywhere: those in headers, and those that
        look like keys.
        """
        if isinstance(call.request, Request):
            self._secrets.learn_request(call.request)
            texts: tuple[bytes, ...] = (call.request.body,)
        else:
            texts = (repr(dict(call.request.arguments)).encode("utf-8", "replace"),)
        texts += (
            tuple(call.reply.chunks)
            if isinstance(call.reply, Reply)
            else (repr(call.reply.value).encode("utf-8", "replace"),)
        )
        for data in texts:
            for key in _KEYS.findall(data) if any(start in data for start in _KEY_STARTS) else ():
                self._secrets.learn("key", key.decode("ascii"), explicit=False)

    # -- writing

    def write(self) -> Path | None:
        """The cassette; None where there is nothing to write."""
        traces = [
            trace
            for trace in self._traces.values()
            if trace.waiting or trace.tree.nodes or trace.skipped
        ]
        if not traces:
            return None
        self._draft = _make_draft_folder(self.goal)
        cassette = Cassette.open(self._draft / self.goal.name)
        header = {
            "notebook": f"{self.goal.parent.stem}.ipynb",
            "cassette": self.goal.name.partition(".")[0],
        }
        total, done = sum(len(trace.waiting) for trace in traces), 0
        with cassette.hold_open():
            for trace in sorted(traces, key=lambda each: (each.report, each.start)):
                for _ in self._write_run(cassette, trace, header):
                    done += 1
                    if done % _TOLD == 0:
                        self._on_progress("writing calls", done, total)
        cassette.sync()
        _publish_draft(self._draft, self.goal)
        self._draft = None
        return self.goal

    def _write_run(
        self, cassette: Cassette, trace: _Trace, header: dict[str, Any]
    ) -> Iterator[None]:
        report = self.files[trace.report]
        outer = trace.tree.outer()
        self._count_spans(report, trace, outer)
        run_info = trace.run or Run(trace.key)
        at = moment_text(_to_datetime(trace.start) or datetime.now(UTC))
        identity = hashlib.sha256(
            f"{report.format} {report.file} {trace.key}".encode("utf-8", "replace")
        ).hexdigest()
        record: dict[str, Any] = {
            "mode": "import", "cell": f"import-{identity[:12]}", "at": at,
            "title": _clean_label(run_info.name or trace.root or Path(report.file).name),
            "kit": {"import": {"file": file_in_cassette(report.file), "format": report.format,
            "trace": trace.key, **run_info.about}},
        }  # fmt: skip
        run = cassette.start_run(record, {**header, "made by": _format_version()}, self._secrets)
        report.runs.append(run)
        writer = _Writer(cassette, run, self._secrets, trace, at, report)
        order = sorted(
            (waiting for name, waiting in trace.waiting.items() if name not in outer),
            key=lambda h: (h.start, h.number),
        )
        for waiting in order:
            writer.report = self.files[waiting.report]
            self._file.seek(waiting.offset)
            # written above
            writer.write(waiting.id, _unpack_call(marshal.loads(self._file.read(waiting.length))))  # noqa: S302
            yield
        end: dict[str, Any] = {"outcome": "raised" if trace.failed else "ok", "calls": len(order)}
        if trace.failed:
            end["error"] = trace.failed[:2000]
        if writer.missing:
            end["cold"] = [
                f"{what}: not in the file ({format_count(count, 'call')})"
                for what, count in writer.missing.most_common(30)
            ]
        if trace.skipped:
            end["left"] = [
                {"reason": each.reason, "line": each.line, "text": each.text}
                for each in trace.skipped[:100]
            ]
        # the draft is synced when it is whole
        cassette.end_run(run, end, self._secrets, sync=False)

    def _count_spans(self, report: FileReport, trace: _Trace, outer: set[str]) -> None:
        for name in outer:
            node = trace.tree.nodes[name]
            trace.tree.nodes[name] = node._replace(kind="span")
        report.spans += sum(node.kind == "span" for node in trace.tree.nodes.values())
        if trace.tree.repeated:
            report.reasons[TWICE] += trace.tree.repeated
        for count, what in (
            (
                len(outer),
                f"{format_count(len(outer), 'model call')} around another one, shown as a span",
            ),
            (trace.tree.strangers(), "parents are not in the file"),
            (trace.tree.circles(), "spans form a cycle of parents"),
        ):
            if count:
                report.notes.append(what if what[0].isdigit() else f"{count} {what}")


@dataclass(slots=True)
class _Writer:
    """Writes the calls of one run, in their order."""

    cassette: Cassette
    run: str
    secrets: Secrets
    trace: _Trace
    at: str
    report: FileReport
    missing: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)

    def write(self, call_id: str, call: Call) -> None:
        matched = self._match_request(call.request)
        self._seen[matched.match] += 1
        number = self._seen[matched.match]
        self.names[call_id] = matched.match[:8] + (f"-{number}" if number > 1 else "")
        tree = self.trace.tree
        where = Where(self.run, "", tree.path(call_id), self.names.get(tree.caller(call_id), ""))
        began = _to_datetime(call.start)
        if began is None:
            call.missing.append("time")
        self._count_call(call)
        if isinstance(call.reply, Reply):
            reply_json = registry.said_json(call.reply)
        else:
            reply_json = None
        kit = {**self._collect_facts(call, matched.json, reply_json), **_describe_origin(call)}
        kind = {"http": "host"}.get(call.kind, call.kind)
        name = "" if kit.get("model") else call.name
        head = Head(
            self.names[call_id],
            self.run,
            matched.match,
            kind,
            where,
            moment_text(began) if began else self.at,
            max(call.end - call.start, 0.0) if call.start and call.end else 0.0,
            kit,
            name,
            call.error[:2000],
            matched.exact,
            matched.clean,
            request_json=matched.json,
            reply_json=reply_json,
            discriminator=matched.discriminator,
        )
        try:
            self.cassette.append_call(head, call.request, call.reply, self.secrets)
        except CassetteError as error:
            raise TraceError(
                f"call {call_id} cannot be kept: {error.reason}",
                path=call.origin.file,
                line=call.origin.line,
            ) from error

    def _match_request(self, request: Request | FunctionCall) -> match_key.MatchedRequest:
        if isinstance(request, FunctionCall):
            return match_key.asked_function(request, self.secrets)
        return match_key.match_request(request, self.secrets, exact=match_key.exact_digest(request))

    def _collect_facts(self, call: Call, parsed: Any, reply_json: Any) -> dict[str, Any]:
        reply = call.reply
        if (
            call.kind != "model"
            or not isinstance(call.request, Request)
            or not isinstance(reply, Reply)
        ):
            return {}
        known = registry.call_facts(
            call.request, reply, parsed=parsed, reply_json=reply_json
        ).record()
        facts = {
            "provider": call.provider,
            "model": call.model,
            "usage": {k: v for k, v in call.usage.items() if v},
        }
        return {**{name: value for name, value in facts.items() if value}, **known}

    def _count_call(self, call: Call) -> None:
        self.report.calls += 1
        self.report.grades[call.grade] += 1
        self.report.missing.update(call.missing)
        self.report.assumed.update(call.assumed)
        self.missing.update(call.missing)


def _describe_origin(call: Call) -> dict[str, Any]:
    """What the call's kit says of where it comes from."""
    more: Mapping[str, Any] = {
        "missing": call.missing, "assumed": call.assumed, "rebuilt": call.rebuilt, "tags": dict(call.about),
    }  # fmt: skip
    origin = {**call.origin.record(), "file": file_in_cassette(call.origin.file)}
    return {
        "origin": origin,
        "grade": call.grade,
        **{name: value for name, value in more.items() if value},
    }


def _classify_call(call: Call) -> Kind | None:
    """What an HTTP call is by its address; None for one that only reports to a telemetry service."""
    if call.kind != "http" or not isinstance(call.request, Request):
        return call.kind
    host_class = call_class.class_of(call.request)
    if host_class == "telemetry":
        return None
    if host_class == "model" or registry.call_facts(call.request).model:
        return "model"
    return "http"


@lru_cache(64)
def file_in_cassette(file: str) -> str:
    """A file as the cassette names it: an absolute path says where somebody's home is, and goes
    with the cassette.
    """
    if Path(file).is_absolute():
        return "/".join(Path(file).parts[-2:])
    return Path(file).as_posix()


def _format_version() -> str:
    from tape_jupyter import __version__

    return f"tape-jupyter {__version__}"


def _clean_label(name: str) -> str:
    """A name as a span's path can hold it, and a terminal."""
    plain = "".join(char if char.isprintable() else " " for char in str(name))
    return plain.replace(" / ", "/").strip()[:200] or "span"


def _to_datetime(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


_KEY_STARTS = (
    b"sk-", b"AIza", b"ghp_", b"gho_", b"github_pat_", b"xox", b"AKIA", b"ASIA", b"hf_", b"gsk_", b"lsv2_", b"pplx-",
    b"xai-", b"r8_", b"tvly-",
)  # fmt: skip
"""What `_KEYS` looks for begins with one of these: many times faster than the pattern where none is
there.
"""
_KEYS = re.compile(
    rb"(?<![A-Za-z0-9_-])(?:sk-[A-Za-z0-9_-]{20,}|AIza[A-Za-z0-9_-]{35}|gh[po]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}"
    rb"|xox[abprs]-[A-Za-z0-9-]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}"
    rb"|lsv2_[a-z]{2}_[A-Za-z0-9_]{30,}|pplx-[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}"
    rb"|tvly-[A-Za-z0-9-]{20,})"
)


# ---------------------------------------------------------------- the waiting calls


def _pack_call(call: Call) -> tuple[Any, ...]:
    """A call as plain structure."""
    rest = [getattr(call, name) for name in _REST]
    rest[_REST.index("about")] = dict(call.about)
    rest[_REST.index("usage")] = dict(call.usage)
    origin = call.origin
    return (
        *rest,
        (origin.system, origin.file, origin.id, origin.line),
        _pack_part(call.request),
        _pack_part(call.reply),
    )


def _pack_part(part: Request | FunctionCall | Reply | Value) -> tuple[Any, ...]:
    kept = [name for name in _INIT[type(part)] if name != "scope"]
    values = (getattr(part, name) for name in kept)
    return (
        type(part).__name__,
        {n: dict(v) if isinstance(v, Mapping) else v for n, v in zip(kept, values, strict=True)},
    )


def _unpack_call(packed: tuple[Any, ...]) -> Call:
    *rest, origin, request, reply = packed
    parts = {each.__name__: each for each in _INIT}
    return Call(
        request=parts[request[0]](**request[1]), reply=parts[reply[0]](**reply[1]), origin=Origin(*origin),
        **dict(zip(_REST, rest, strict=True)),
    )  # fmt: skip


_REST = [each.name for each in fields(Call) if each.name not in ("request", "reply", "origin")]
_INIT: dict[Callable[..., Any], list[str]] = {
    kind: [each.name for each in fields(kind) if each.init]
    for kind in (Request, FunctionCall, Reply, Value)
}


# ---------------------------------------------------------------- the folder


def _make_draft_folder(goal: Path) -> Path:
    try:
        goal.parent.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{goal.parent.name}-", dir=goal.parent.parent))
    except OSError as error:
        raise CassetteError(
            f"cannot be written: {error.strerror or error}", path=str(goal)
        ) from error


def _publish_draft(draft: Path, goal: Path) -> None:
    """Give the whole folder its name; never over another one."""
    try:
        draft.chmod(0o777 & ~_read_umask())
        if goal.parent.exists():
            goal.parent.rmdir()  # an empty one
        draft.rename(goal.parent)
    except OSError as error:
        raise CassetteError(
            f"cannot be written: {error.strerror or error}", path=str(goal)
        ) from error


def _read_umask() -> int:
    umask = os.umask(0o022)
    os.umask(umask)
    return umask


def assembly_text(done: Imported) -> str:
    """For people."""
    lines = []
    for each in done.files:
        if each.error:
            lines.append(f"! {each.error}")
            continue
        grades = ", ".join(
            f"{count} of grade {grade}" for grade, count in sorted(each.grades.items())
        )
        lines.append(
            f"{each.file}: {each.format}, {format_count(len(each.runs), 'run')}, {format_count(each.calls, 'call')} "
            f"({grades or 'none'}), {format_count(each.spans, 'span')}"
        )
        lines += [f"    left out: {count} {reason}" for reason, count in each.reasons.most_common()]
        lines += [
            f"    missing: {what} ({format_count(count, 'call')})"
            for what, count in each.missing.most_common()
        ]
        lines += [
            f"    assumed: {what} ({format_count(count, 'call')})"
            for what, count in each.assumed.most_common()
        ]
        lines += [f"    {note}" for note in each.notes]
    return "\n".join([*lines, f"{done.path}" if done.path else "nothing was found to import"])
