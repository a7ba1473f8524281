"""For your own tests: what a recording holds as values to assert on, a notebook recorded or
replayed, and a provider that answers as scripted.

    from tape_jupyter import testing

    def test_nobody_sees_another_users_order():
        run = testing.assert_replays("support.ipynb")
        for call in run.calls:
            if call.name == "lookup_order":
                assert call.answered["user"] == "ada"

`pytest` users also have the `tape` fixture and `@pytest.mark.tape` (pytest_plugin/__init__.py),
whose `calls` and `spans` are these. Nothing here writes, except `run_notebook(..., mode="record")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files
from tape_jupyter.comparison import outputs
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.headless import run as headless_run
from tape_jupyter.headless.run import CellRun
from tape_jupyter.providers import conversation, http
from tape_jupyter.reports import listing
from tape_jupyter.session import saved_output
from tape_jupyter.session.options import check_pace
from tape_jupyter.spans.details import read_call
from tape_jupyter.spans.headers import CELL, KINDS, SPAN
from tape_jupyter.spans.rows import Spans
from tape_jupyter.spans.tree import Node
from tape_jupyter.testing.provider import Answer, Asked, FakeProvider, fails, says, sends, uses

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from tape_jupyter.cassette.index_entries import Entry

__all__ = [
    "Answer", "Asked", "CellRun", "FakeProvider", "Run", "Span", "Use", "assert_replays", "calls", "fails",
    "run_notebook", "says", "sends", "spans", "uses",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Use:
    """A tool that a model asked for, with the arguments it gave."""

    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Span:
    """One span of a run, as the viewer shows it: a cell, a span of the user's, or a call.

    `kind` is "cell", "span", "model", "tool", "retrieval" or "http"; `name` the cell's title, the
    span's, tool's or retriever's name, the model that answered, or the URL. `call` and `run` are
    ids ("" for what is no call), `path` the user's spans around it, `parent` the id of the taped
    call whose body made it, `depth` how deep it stands.

    Of a call: `asked` is the JSON (or text) of the request's body, or the tool's arguments;
    `answered` that of the reply's body, or what the tool returned; values that JSON has not stand
    as the cassette writes them. `text` is what the model said, `uses` are the tools it asked for,
    `status` is the HTTP status, `error` what was raised or "".
    """

    kind: str
    name: str
    call: str = ""
    run: str = ""
    depth: int = 0
    path: tuple[str, ...] = ()
    parent: str = ""
    asked: Any = None
    answered: Any = None
    text: str = ""
    uses: tuple[Use, ...] = ()
    status: int | None = None
    error: str = ""

    @property
    def is_call(self) -> bool:
        return bool(self.call)


@dataclass(frozen=True, slots=True)
class Run:
    """A notebook that was run in a fresh kernel: its code cells, and the spans of the calls that
    they made, in order.

    `cells` have `number` (from 1), `title`, `status`, and in `said` a diff, miss or error; `good`
    is whether all is as saved. `outputs` are those of each cell, as nbformat has them.
    """

    cells: tuple[CellRun, ...]
    spans: tuple[Span, ...]
    outputs: tuple[Sequence[Mapping[str, Any]], ...] = ()

    @property
    def good(self) -> bool:
        return all(each.good for each in self.cells)

    @property
    def calls(self) -> tuple[Span, ...]:
        return tuple(each for each in self.spans if each.is_call)

    def named(self, name: str) -> tuple[Span, ...]:
        """The calls of a tool, or of a model, by its name."""
        return tuple(each for each in self.calls if each.name == name)

    def text(self) -> str:
        """What is not as saved, for people; "" where all is."""
        return "\n".join(told_of(each) for each in self.cells if not each.good)

    def shown(self, number: int) -> str:
        """What a cell printed and displayed, as text; the tape's own summary is left out."""
        return "\n".join(outputs.output_lines(self.outputs[number - 1]))


def told_of(run: CellRun) -> str:
    """A cell that is not as it was saved, for people."""
    return "\n".join(
        [f"cell {run.number} ({run.title}): {run.status}", *(f"  {line}" for line in run.messages)]
    )


# ---------------------------------------------------------------- what is recorded


def spans(place: str | Path, *, name: str = "main", take: str = "") -> tuple[Span, ...]:
    """The spans of a recording, in tree order: those of each cell's newest run.

    `place` is a notebook, a cassette or a bundle (nothing of it runs); `name` says which cassette
    of a notebook, `take` which take of it. Raises TapeError for what is none.
    """
    with _open_recording(Path(place), name) as path:
        if take:
            files.require_take(path, take)
        cassette = Cassette.open(path)
        cassette_spans = Spans(cassette.take(take) if take else cassette)
        cassette_spans.refresh()
        return tuple(_build_span(cassette_spans, node) for node in cassette_spans.nodes)


def calls(place: str | Path, *, name: str = "main", take: str = "") -> tuple[Span, ...]:
    """The calls among them."""
    return tuple(each for each in spans(place, name=name, take=take) if each.is_call)


@contextmanager
def _open_recording(place: Path, name: str) -> Iterator[Path]:
    """The cassette's file while it is read."""
    if place.suffix != ".zip":
        yield next(
            iter(
                listing.list_cassettes(
                    place, name if place.suffix == ".ipynb" or place.is_dir() else None
                )
            )
        )
        return
    from tape_jupyter.bundle import opened

    with opened(place) as bundle, TemporaryDirectory() as folder:
        there = bundle.extract(Path(folder) / "session", ("notebook", "cassette", "take", "asset"))
        yield next(iter(listing.list_cassettes(there / bundle.manifest.notebook, name)))


def spans_of(cassette: Cassette, run: str, entries: Iterable[Entry]) -> tuple[Span, ...]:
    """The spans of one run that made, or was played, these calls."""
    run_spans = saved_output.spans_of_run(cassette, run, entries)
    return tuple(_build_span(run_spans, node) for node in run_spans.nodes)


def _build_span(all_spans: Spans, node: Node) -> Span:
    call = node.header
    if call is None:
        if node.kind == CELL:
            error = str(all_spans.book.ended.get(node.id, {}).get("error", ""))
        else:
            error = ""
        name = node.name if node.kind == SPAN else all_spans.row(node).name
        run = str(node.record.get("run", ""))
        return Span(KINDS[node.kind], name, run=run, depth=node.depth, error=error)
    name = call.name or call.facts.answered or call.facts.model or call.target
    base = Span(
        KINDS[node.kind],
        name,
        call.id,
        call.run,
        node.depth,
        call.span,
        call.parent,
        error=call.error or call.failed,
    )
    return _add_exchange(base, call.entry)


def _add_exchange(span: Span, entry: Entry | None) -> Span:
    """With what was asked and answered."""
    call = read_call(entry)
    if call.failure or call.request is None:
        return replace(span, error=span.error or call.failure)
    if isinstance(call.request, FunctionCall):
        answered = call.reply.value if isinstance(call.reply, Value) else None
        return replace(span, asked=dict(call.request.arguments), answered=answered)
    request_body = None
    if call.request.body:
        request_body = listing.readable_body(call.request.body, call.request.headers)
    return _add_reply(replace(span, asked=request_body), call.reply)


def _add_reply(span: Span, reply: Reply | Value | None) -> Span:
    if not isinstance(reply, Reply) or reply.status is None:
        return span
    data = http.decoded_body(reply.headers, reply.body) or b""
    if span.kind == "model":
        parts = [
            part
            for turn in conversation.reply_body_turns(reply.headers, data)
            for part in turn["parts"]
        ]
    else:
        parts = []
    return replace(
        span,
        answered=listing.readable_body(reply.body, reply.headers) if reply.body else None,
        text="".join(part["text"] for part in parts if part["type"] == "text"),
        uses=tuple(
            Use(part["name"], part["input"]) for part in parts if part["type"] == "tool_use"
        ),
        status=reply.status,
    )


# ---------------------------------------------------------------- what runs


def run_notebook(
    path: str | Path,
    mode: Literal["replay", "record"] = "replay",
    *,
    take: str = "",
    timeout: float | None = None,
    pace: str = "",
    env: Mapping[str, str] = MappingProxyType({}),
    told: Callable[[CellRun], None] = do_nothing,
) -> Run:
    """Run a notebook in a fresh kernel, each code cell in turn until one raises; compare its
    outputs with those saved.

    In replay nothing leaves the machine and the notebook's folder stays as it is. `mode="record"`
    runs it live, records every call and saves the outputs in the notebook. `take` plays (or records
    into) a take, `timeout` is in seconds for each cell, `pace` is as for `tape.replaying`, `env` is
    added to the kernel's environment, `told` hears of each cell as it is done. Raises
    TapeUsageError for what is no notebook, or a kernel that cannot tape.
    """
    place = Path(path)
    line_options = {"--take": take, "--pace": check_pace(pace)}
    options = " ".join(f"{name} {value}" for name, value in line_options.items() if value)
    full_env: dict[str, Any] = dict(env)
    if options:
        full_env["TAPE_OPTIONS"] = options
    if mode == "record":
        cell_runs, written = headless_run.record_notebook(
            place, do_nothing, told, timeout, full_env
        )
        replayed = headless_run.read_notebook(written)
    else:
        cell_runs, replayed = headless_run.replay_with_outputs(
            place, do_nothing, told, timeout, full_env
        )
    cell_outputs = tuple(each.outputs for each in replayed.cells if headless_run.has_code(each))
    return Run(tuple(cell_runs), tuple(_find_played_spans(place, replayed)), cell_outputs)


def _find_played_spans(notebook: Path, replayed: NotebookNode) -> Iterator[Span]:
    """The spans of the calls that the cells' summaries name."""
    books: dict[str, Cassette] = {}
    for each in filter(headless_run.has_code, replayed.cells):
        for output in each.outputs:
            summary = (output.get("data") or {}).get(saved_output.MIME)
            if not isinstance(summary, Mapping) or not outputs.is_summary(output):
                continue
            book = books.get(str(summary["path"]))
            if book is None:
                book = books[str(summary["path"])] = Cassette.open(
                    notebook.parent / str(summary["path"])
                )
            if entries := saved_output.calls_named(book, summary):
                yield from spans_of(book, entries[0].run, entries)


def assert_replays(
    place: str | Path,
    *,
    take: str = "",
    timeout: float | None = None,
    pace: str = "",
    env: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Replay a notebook, and fail with a readable diff where a cell is not as it was saved; gives
    the run.

    Raises AssertionError, and TapeUsageError for what cannot be run. Bundles hold code of others,
    and are asked for before they run: `tape replay FILE`, or `pytest --tape FILE`.
    """
    if Path(place).suffix == ".zip":
        raise TapeUsageError(
            f"{place}: a bundle is replayed by tape replay {place}, or pytest --tape {place}"
        )
    done = run_notebook(place, take=take, timeout=timeout, pace=pace, env=env)
    if not done.good:
        raise AssertionError(f"{place} does not replay as it was saved:\n{done.text()}")
    return done
