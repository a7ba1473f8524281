"""A notebook that replays an imported cassette: its calls as cells, in the SDKs' own words.

One cell for each top-level step of a trace. Tools are stubs: the tape answers for them. Each cell
sends what the cassette holds, so a changed prompt is a call that is not on the tape, and the tape
says which.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.core.call import FunctionCall, Reply
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.importers import sdk_words
from tape_jupyter.importers.sdk_words import SdkClient

_FAILED = 400
_LONG = 200


def require_free(path: Path) -> None:
    """Raises TapeUsageError where something of that name is there."""
    if path.exists() or path.is_symlink():
        raise TapeUsageError(f"{path} exists already and is not overwritten; name another")


def write_replaying_notebook(path: Path, cassette: Path) -> list[str]:
    """Write the notebook beside its cassette. Returns what it does not call, and why. Nothing is
    overwritten.
    """
    maker = _Maker(Cassette.open(cassette))
    cells = maker.cells()
    notebook = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    try:
        with path.open("x", encoding="utf-8") as file:
            nbformat.write(notebook, file)  # type: ignore[no-untyped-call]
    except FileExistsError:
        require_free(path)
    except OSError as error:
        raise CassetteError(
            f"cannot be written: {error.strerror or error}", path=str(path)
        ) from error
    return maker.left


class _Maker:
    """The cells of one notebook, and what they share: imports, clients, stubs."""

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._needs: set[str] = set()
        self._clients: dict[SdkClient, str] = {}
        self._stubs: dict[tuple[str, tuple[str, ...]], str] = {}
        self._kinds: dict[str, str] = {}
        self._number = 0
        self.left: list[str] = []

    def cells(self) -> list[Any]:
        """The heading, what is set up, then each run's steps."""
        runs = {str(run["run"]): run for run in self._cassette.runs}
        steps: list[Any] = []
        for run, calls in groupby(self._cassette.calls, key=lambda entry: entry.run):
            record = runs.get(run, {})
            steps.append(
                _build_heading(
                    _clean_text(record.get("title", run)), record.get("kit", {}).get("import", {})
                )
            )
            steps += self._build_step_cells(list(calls))
        first = _build_code_cell("%load_ext tape_jupyter")
        set_up = self._format_setup()
        return [
            first,
            *([_build_code_cell(f"%%tape replay\n{set_up}")] if set_up else []),
            *steps,
        ]

    def _build_step_cells(self, calls: Sequence[Entry]) -> Iterator[Any]:
        spans = [
            [each for each in str(call.head().get("span", "")).split(" / ") if each]
            for call in calls
        ]
        shared = _count_shared_spans(spans)
        for number, call in enumerate(calls):
            spans[number] = spans[number][shared : shared + 1] or [f"\0{call.name}"]
        for _, step in groupby(zip(calls, spans, strict=True), key=lambda each: each[1]):
            pairs = list(step)
            if pairs[0][1][0][0] == "\0":
                title = ""
            else:
                title = f"# {_clean_text(pairs[0][1][0])}\n"
            parts = [part for call, _ in pairs if (part := self._format_call(call))]
            if parts:
                yield _build_code_cell("%%tape replay\n" + title + "\n\n".join(parts))

    def _format_call(self, entry: Entry) -> str:
        request = entry.request()
        reply, _ = _to_pair(entry.reply())
        head = entry.head()
        self._number += 1
        name = f"reply_{self._number}"
        if isinstance(request, FunctionCall):
            return self._format_function_call(entry, request, reply, name)
        if isinstance(reply, Reply) and reply.status == 101:
            self.left.append(f"{entry.name}: a WebSocket")
            return ""
        code = sdk_words.request_words(request)
        self._needs.update(filter(None, (code.needs, code.client.needs if code.client else "")))
        expression = code.request_expression(self._name_client(code.client))
        lines = [
            *_format_notes(head),
            *_wrap_in_try(f"{name} = {expression}", code.show(name), failed=_has_failed(reply)),
        ]
        return "\n".join(lines)

    def _name_client(self, client: SdkClient | None) -> str:
        if client is None:
            return ""
        if client not in self._clients:
            count = sum(each.kind == client.kind for each in self._clients)
            self._clients[client] = f"{client.kind}_client" + (f"_{count + 1}" if count else "")
        return self._clients[client]

    def _format_function_call(self, entry: Entry, call: FunctionCall, reply: Any, name: str) -> str:
        """A call of a tool's stub."""
        names = tuple(call.arguments)
        if not all(_is_name(each) for each in names) or call.instance is not None:
            self.left.append(
                f"{entry.name}: {_clean_text(call.name)} has arguments that no function's parameters can have"
            )
            return ""
        if not _is_json(dict(call.arguments)):
            self.left.append(f"{entry.name}: {_clean_text(call.name)} was given what is not JSON")
            return ""
        key = (call.name, names)
        if key not in self._stubs:
            plain = call.name if _is_name(call.name) else "tool"
            taken = set(self._stubs.values())
            stub = plain
            while stub in taken or stub in _TAKEN:
                stub = f"{plain}_{len(taken) + 1}"
            self._stubs[key], self._kinds[stub] = stub, call.kind
        arguments = "".join(
            f"    {each}={sdk_words.python_words(value, 4)},\n"
            for each, value in call.arguments.items()
        )
        if arguments:
            expression = f"{self._stubs[key]}(\n{arguments})"
        else:
            expression = f"{self._stubs[key]}()"
        failed = getattr(reply, "error", None) is not None
        return "\n".join(
            [
                *_format_notes(entry.head()),
                *_wrap_in_try(f"{name} = {expression}", f"print({name})", failed=failed),
            ]
        )

    def _format_setup(self) -> str:
        """Imports, clients and stubs. A replayed cell needs no key for a client."""
        lines = sorted(self._needs)
        if self._stubs:
            lines.append("import tape_jupyter as tape")
        lines += ["", *(f"{name} = {client.make}" for client, name in self._clients.items())]
        for (tool, names), stub in self._stubs.items():
            star = "*, " if names else ""
            lines += [
                "", "", f"@tape.{self._kinds[stub]}" + ("" if stub == tool else f"(name={tool!r})"),
                f"def {stub}({star}{', '.join(names)}):",
                '    raise NotImplementedError("a stub: the tape answers for it; write the tool here to run it live")',
            ]  # fmt: skip
        return "\n".join(lines).strip()


_TAKEN = {
    "tape",
    "openai",
    "anthropic",
    "genai",
    "boto3",
    "httpx",
    "json",
    "print",
    "list",
    "each",
    "error",
}


def _to_pair(value: Any) -> tuple[Any, bool]:
    return value if isinstance(value, tuple) else (value, False)


def _build_code_cell(source: str) -> Any:
    return nbformat.v4.new_code_cell(source)  # type: ignore[no-untyped-call]


def _build_heading(title: str, about: Mapping[str, Any]) -> Any:
    text = "".join(f"\\{char}" if char in "\\`*_[]<>#|$!" else char for char in title)
    origin = ", ".join(_clean_text(about[name]) for name in ("file", "format") if about.get(name))
    return nbformat.v4.new_markdown_cell(  # type: ignore[no-untyped-call]
        f"## {text}" + (f"\n\nImported from `{origin.replace('`', '')}`." if origin else "")
    )


def _count_shared_spans(spans: Sequence[Sequence[str]]) -> int:
    """How many outer spans hold every call: they are no steps."""
    count = 0
    while (
        spans
        and all(len(each) > count for each in spans)
        and len({each[count] for each in spans}) == 1
    ):
        count += 1
    return count


def _format_notes(head: Mapping[str, Any]) -> list[str]:
    """What is to be known of where a call comes from."""
    kit = head.get("kit", {})
    grade, lines = kit.get("grade", ""), [f"# call {head['call']}"]
    if grade in ("P", "M", "T") or kit.get("rebuilt"):
        lines.append(
            f"# rebuilt: made from what the trace tells (grade {grade}), not as it was sent"
        )
    lines += [
        f"# {name}: {_clean_text(', '.join(kit[name]))}" for name in ("assumed",) if kit.get(name)
    ]
    return lines


def _wrap_in_try(statement: str, show: str, *, failed: bool) -> list[str]:
    if not failed:
        return [statement, show]
    inner = "\n".join(f"    {line}" for line in f"{statement}\n{show}".split("\n"))
    return [
        "try:  # the recorded call failed",
        inner,
        "except Exception as error:",
        "    print(f'{type(error).__name__}: {error}')",
    ]


def _has_failed(reply: Any) -> bool:
    return isinstance(reply, Reply) and (
        reply.status is None or reply.status >= _FAILED or reply.end != "complete"
    )


def _clean_text(value: Any) -> str:
    """Text of a file as a comment can hold it."""
    return "".join(char if char.isprintable() else " " for char in str(value))[:_LONG]


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(
            type(name) is str and not name.startswith("<") and _is_json(each)
            for name, each in value.items()
        )
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float | bool)
