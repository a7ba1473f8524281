"""What a cassette holds, as plain structure for --json and as text for people. Reads, never writes."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import adoption, paths
from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.cassette.runs import current_run_ids
from tape_jupyter.core.call import FunctionCall, Headers, Reply, Request, Value
from tape_jupyter.core.notebook_text import describe_absence, describe_notebooks
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.encoding.http.content_encoding import decode_body
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.reports.cell_summary import COLUMNS, plain_table, summary_rows
from tape_jupyter.session.summary_rows import row_of_entry

SHOWN_TEXT = 20_000
"""Characters of one body that `tape show CALL` prints; --json gives all of it."""


def list_cassettes(path: Path, name: str | None = None) -> list[Path]:
    """The cassettes a path speaks of: itself, those of a .tapes folder, or those of a notebook;
    main first.

    Raises TapeUsageError when there is none, naming those that are there.
    """
    if path.suffix == ".ipynb" or path.is_dir() or path.suffix == ".tapes":
        folder = paths.folder(path) if path.suffix == ".ipynb" else path
        cassette_paths = paths.cassettes_in(folder)
        chosen = [each for each in cassette_paths if name in (None, paths.stem(each))]
        if chosen:
            return chosen
        if path.suffix == ".ipynb" and not (cassette_paths or path.exists()):
            raise TapeUsageError(f"{path}: {describe_absence(path)}")
        if not (folder.exists() or path.suffix == ".ipynb"):
            raise TapeUsageError(f"{path}: {describe_absence(path, 'folder')}")
        if cassette_paths:
            have = f"there are: {', '.join(map(paths.stem, cassette_paths))}"
        else:
            _require_no_neighbour(path)
            have = _describe_way_to_cassette(path)
        raise TapeUsageError(f"{folder}: no cassette {name or 'here'}; {have}")
    if not path.exists():
        raise TapeUsageError(f"{path}: {describe_absence(path, 'cassette or notebook')}")
    return [path]


def _describe_way_to_cassette(path: Path) -> str:
    """Where a notebook or a folder has no cassette: what to type now."""
    if path.suffix == ".ipynb":
        return f"record one with: tape record {shlex.quote(str(path))}"
    if notebooks := describe_notebooks(path):
        return f"name {notebooks}"
    return "record one with: tape record NB"


def require_main_cassette(notebook: Path) -> None:
    """Before a notebook runs: raises what its first taped cell would. CassetteError where the main
    cassette cannot be read, TapeUsageError where another notebook's is of these cells.
    """
    _open_main_cassette(notebook)


def _open_main_cassette(notebook: Path) -> Cassette:
    main = paths.cassette_path(notebook)
    if not main.exists():
        _require_no_neighbour(notebook)
    return Cassette.open(main, check="marks")


def require_recordable(notebook: Path) -> None:
    """The same before one is recorded, and that its outputs and its calls can be written."""
    main = _open_main_cassette(notebook)
    folder = notebook.resolve().parent
    if notebook.is_file() and not os.access(folder, os.W_OK):
        raise TapeUsageError(
            f"{notebook}: its outputs cannot be written, {folder} is read-only: copy the notebook to another "
            "folder. Nothing was run"
        )
    if reason := main.writable():
        raise CassetteError(
            f"cannot be recorded to: {reason}. Nothing was run", path=str(main.path)
        )


def _require_no_neighbour(notebook: Path) -> None:
    """Raises TapeUsageError where the notebook was renamed or copied without its cassettes."""
    if notebook.suffix != ".ipynb":
        return
    if neighbour := adoption.adoptable(notebook, adoption.source_hashes(notebook)):
        raise TapeUsageError(adoption.offer(notebook, neighbour))


def run_records(cassette: Cassette) -> list[dict[str, Any]]:
    """Each run: id, when, mode, source hash of its cell, number of calls, outcome, and whether
    replay uses it.
    """
    counts: dict[str, int] = {}
    for entry in cassette.calls:
        counts[entry.run] = counts.get(entry.run, 0) + 1
    used = current_run_ids(cassette.runs)
    listed = []
    for run in cassette.runs:
        name = str(run["run"])
        end = cassette.ended.get(name, {})
        listed.append(
            {
                "run": name,
                "at": run.get("at", ""),
                "mode": run.get("mode", ""),
                "cell": run.get("count"),
                "source": run.get("source", ""),
                "calls": counts.get(name, 0),
                "outcome": end.get("outcome", "incomplete"),
                "replayed": name in used,
                **({"error": end["error"]} if "error" in end else {}),
                **({"cold": end["cold"]} if "cold" in end else {}),
            }
        )
    return listed


def runs_text(cassette: Cassette) -> Iterator[str]:
    size = cassette.path.stat().st_size if cassette.path.exists() else 0
    yield (
        f"{cassette.path}: {format_count(len(cassette.runs), 'run')}, "
        f"{format_count(len(cassette.calls), 'call')}, {format_count(size, 'byte')}"
    )
    for run in run_records(cassette):
        cell = f"[{run['cell']}]" if run["cell"] is not None else ""
        state = run["outcome"] + ("" if run["replayed"] else ", superseded")
        calls = format_count(run["calls"], "call")
        yield f"  {run['run']}  {run['at']:24}  {cell:>5}  {calls:>10}  {run['mode']}, {state}"
        for cold in (*run.get("cold", ()), *([run["error"]] if "error" in run else ())):
            yield f"      {cold}"
    yield from (f"  ! {note}" for note in cassette.notes)


def call_records(cassette: Cassette) -> list[dict[str, Any]]:
    """Each call as a flat record; the reply is read only to tell whether it was edited."""
    listed = []
    for entry in cassette.calls:
        row = row_of_entry(entry)
        listed.append(
            {
                "call": entry.id,
                "run": entry.run,
                "line": entry.line,
                "kind": row.kind,
                "name": row.name,
                "provider": row.provider,
                "tokens_in": row.tokens_in,
                "tokens_out": row.tokens_out,
                "cost": str(row.cost) if row.cost is not None else None,
                "seconds": row.seconds,
                "error": row.error,
                "edited": entry.edited(),
                "tags": dict(row.tags),
            }
        )
    return listed


def calls_text(cassette: Cassette) -> str:
    if not cassette.calls:
        return "no calls yet"
    used = current_run_ids(cassette.runs)
    old = sum(entry.run not in used for entry in cassette.calls)
    table = plain_table(row_of_entry(entry) for entry in cassette.calls)
    if not old:
        return table
    replaced = f"{'1 is' if old == 1 else f'{old} are'} of a recording that a newer one replaced"
    return f"{table}\n{replaced} (tape show lists them; tape prune drops what no take needs)"


def find_call_record(cassettes: list[Cassette], call: str) -> Entry:
    """The call of that id ("78a670b1", or "RUN/78a670b1"); the newest where several runs have it."""
    run, _, name = call.rpartition("/")
    entries = [e for tape in cassettes for e in tape.calls if e.id == name and run in ("", e.run)]
    if not entries:
        near = sorted(
            {e.id for tape in cassettes for e in tape.calls if e.id.startswith(name[:3])}
        )[:5]
        raise TapeUsageError(
            f"no call {call!r} in it{'; near: ' + ', '.join(near) if near else ''}. See: tape calls"
        )
    return entries[-1]


def call_record(entry: Entry) -> dict[str, Any]:
    """One call in full: head, request and reply, bodies as JSON or text where they are that."""
    request, reply = entry.request(), entry.reply()
    return {
        **entry.head(),
        "where": f"{entry.book.path}:{entry.line}",
        "edited": entry.edited(),
        "request": _describe_request(request),
        "reply": _describe_reply(reply),
    }


def _describe_request(request: Request | FunctionCall) -> dict[str, Any]:
    if isinstance(request, FunctionCall):
        return {request.kind: request.name, "arguments": dict(request.arguments)}
    headers = request.headers
    return {
        "method": request.method,
        "url": request.url,
        "headers": _format_headers(headers),
        "body": _describe_body(request),
    }


def _describe_reply(reply: Reply | Value) -> dict[str, Any]:
    if isinstance(reply, Value):
        if reply.error is not None:
            return {"error": dict(reply.error)}
        return {"value": reply.value}
    record: dict[str, Any] = {
        "status": reply.status,
        "headers": _format_headers(reply.headers),
        "end": reply.end,
    }
    if reply.error is not None:
        record["error"] = dict(reply.error)
    return {**record, "reads": len(reply.chunks), "body": _describe_body(reply)}


def _format_headers(headers: Headers) -> list[str]:
    return [f"{key}: {value}" for key, value in headers]


def _describe_body(of: Request | Reply) -> Any:
    if isinstance(of, Request):
        data = of.body
        size = of.large.size if of.large is not None else 0
    else:
        data, size = of.readable, of.size
    if size and not data:
        return f"({format_count(size, 'byte')} beside the cassette)"
    return readable_body(data, of.headers)


def readable_body(data: bytes, headers: Headers) -> Any:
    """A body as JSON where it is that, else as text, else in words."""
    coding = next((value for key, value in headers if key.lower() == "content-encoding"), "")
    try:
        text = decode_body(data, coding).decode("utf-8")
    except ValueError:
        return f"(not text: {format_count(len(data), 'byte')})"
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def call_text(entry: Entry) -> Iterator[str]:
    record = call_record(entry)
    request, reply = record.pop("request"), record.pop("reply")
    yield from _format_block(record)
    for name, part in (("request", request), ("reply", reply)):
        yield f"-- {name}"
        body = part.pop("body", None)
        yield from _format_block(part)
        if body not in (None, ""):
            if isinstance(body, str):
                text = body
            else:
                text = json.dumps(body, indent=2, ensure_ascii=False)
            yield text[:SHOWN_TEXT]
            if len(text) > SHOWN_TEXT:
                yield f"... {len(text) - SHOWN_TEXT:,} more characters"


def _format_block(part: Mapping[str, Any]) -> Iterator[str]:
    for key, value in part.items():
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            yield f"{key}:"
            yield from (f"  {item}" for item in value)
        else:
            yield f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)}"


__all__ = [
    "COLUMNS",
    "call_record",
    "call_records",
    "call_text",
    "calls_text",
    "find_call_record",
    "list_cassettes",
    "readable_body",
    "run_records",
    "runs_text",
    "summary_rows",
]  # fmt: skip
