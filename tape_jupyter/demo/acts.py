"""The demo's acts, in order: record, record again, replay with all cut off, edit a reply, miss a
call.

Every act runs the same notebook in a fresh kernel. What an act finds is data (`Show`); screen.py
says it in words.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.demo import runs, server, texts
from tape_jupyter.demo.runs import Audience, DemoRun
from tape_jupyter.isolation import namespaces
from tape_jupyter.reports import listing

TAPED = ("classify", "agent", "summary")
"""Ids of the cells that make calls."""


class Stage(Audience, Protocol):
    """Who is told what the demo does."""

    def act(self, title: str, *lines: str) -> None: ...
    def waiting(self, what: str) -> None: ...
    def came_out(self, columns: Mapping[str, Mapping[str, str]]) -> None: ...
    def print_lines(self, *lines: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Show:
    """All that the demo did. `tokens` are (in, out); `cost` is in US dollars at list price, None
    where none is known.

    `live` and `replayed` are seconds in the cells; `differing` counts taped cells that came out
    differently live.
    """

    guards: str
    recorded: DemoRun
    again: DemoRun
    replayed: DemoRun
    edited: DemoRun
    missed: DemoRun
    differing: int
    calls: Mapping[str, int]
    tokens: tuple[int, int]
    cost: Decimal | None
    size: int
    key_found: bool
    seconds: float

    @property
    def connections(self) -> int:
        """Attempted in all three replays."""
        return sum(run.connections or 0 for run in (self.replayed, self.edited, self.missed))

    def wrong(self) -> list[str]:
        """What did not come out as it must, in words; [] when all is well."""
        edited = [cell.title for cell in self.edited.cells if not cell.good]
        checks = {
            "a cell replayed differently": all(
                cell.status == "same" for cell in self.replayed.cells
            ),
            "two live runs came out the same": self.differing > 0,
            f"the edited reply changed {edited or 'nothing'}": [
                c.status for c in self.edited.cells if not c.good
            ]
            == ["differs"],
            "the edit was not marked": any(
                "edited by hand" in cell.tape for cell in self.edited.cells
            ),
            "the changed prompt was not missed": [
                c.status for c in self.missed.cells if not c.good
            ][:1]
            == ["missed"],
            f"{self.connections} connections were attempted": self.connections == 0,
            "the key is in a file": not self.key_found,
        }
        return [message for message, well in checks.items() if not well]


def run_demo(folder: Path, key: str, stage: Stage, *, live: bool) -> Show:
    """Run the whole demo in `folder`. Raises TapeUsageError where an act cannot run at all."""
    began = time.monotonic()
    notebook, second = folder / "support.ipynb", folder / "again" / "support.ipynb"
    stage.waiting("loading the model" if live else "starting the provider")
    with server.serving(folder, key, live=live) as url:
        source = texts.to_record(texts.pipeline(), url, {} if live else texts.STAND_IN_MODELS)
        for path in (notebook, second):
            path.parent.mkdir(exist_ok=True)
            path.write_text(source, encoding="utf-8")
        what = "Gemma 3 270M, on this machine" if live else "a stand-in for a model"
        stage.act(
            "Record", f"{what} listens on {url}; %%tape record is on three cells of {notebook.name}"
        )
        recorded = runs.record_demo(notebook, key, stage)
        stage.act(
            "Run it live once more",
            "a copy of the notebook in another folder, so that the first recording stays as it is",
        )
        again = runs.record_demo(second, key, stage)
    first, other = texts.cell_texts(notebook), texts.cell_texts(second)
    stage.came_out({"recorded": first, "live once more": other})
    port = urlsplit(url).port or 0
    replayed = _run_replay_act(notebook, port, stage)
    size = _find_cassette(notebook).stat().st_size
    edited = _run_edit_act(notebook, first["summary"], port, stage)
    missed = _run_miss_act(notebook, port, stage)
    calls = listing.call_records(Cassette.open(_find_cassette(notebook)))
    return Show(
        guards=_describe_guards(),
        recorded=recorded,
        again=again,
        replayed=replayed,
        edited=edited,
        missed=missed,
        differing=sum(first[cell] != other[cell] for cell in TAPED),
        calls={kind: sum(call["kind"] == kind for call in calls) for kind in ("model", "tool")},
        tokens=(
            sum(call["tokens_in"] or 0 for call in calls),
            sum(call["tokens_out"] or 0 for call in calls),
        ),
        cost=sum(costs, start=Decimal())
        if (costs := [Decimal(c["cost"]) for c in calls if c["cost"]])
        else None,
        size=size,
        key_found=any(
            key.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file()
        ),
        seconds=time.monotonic() - began,
    )


def _find_cassette(notebook: Path) -> Path:
    return notebook.with_suffix(".tapes") / "main.tape.yaml"


def _describe_guards() -> str:
    return "; ".join(namespaces.namespace_guards())


def _run_replay_act(notebook: Path, port: int, stage: Stage) -> DemoRun:
    notebook.write_text(texts.to_replay(notebook.read_text(encoding="utf-8")), encoding="utf-8")
    stage.act(
        "Replay",
        "the provider is stopped, the keys are gone from the environment; what keeps it from the network:",
        _describe_guards(),
        "a fresh kernel; each cell is compared with what was recorded",
    )
    return runs.replay_demo(notebook, port, stage)


def _run_edit_act(notebook: Path, old_text: str, port: int, stage: Stage) -> DemoRun:
    """The last reply is edited: nothing asks for anything after it, so all other calls still match."""
    cassette = _find_cassette(notebook)
    text = cassette.read_text(encoding="utf-8")
    cassette.write_text(texts.with_last_reply(text, old_text, texts.EDITED), encoding="utf-8")
    stage.act(
        "Edit a reply by hand",
        f"{cassette.parent.name}/{cassette.name}, the streamed summary, as text:",
        f"  - {old_text}",
        f"  + {texts.EDITED}",
    )
    run = runs.replay_demo(notebook, port, stage)
    stage.print_lines(
        "The stream was cut into events anew, and the SDK read it. Had the edited reply been part of a later request,",
        "that request would be a new one: replay stops there with a miss, as in the next act.",
    )
    return run


def _run_miss_act(notebook: Path, port: int, stage: Stage) -> DemoRun:
    """The notebook is put back afterwards."""
    text = notebook.read_text(encoding="utf-8")
    stage.act("Change a prompt", f"  - {texts.TICKET}", f"  + {texts.ANOTHER_TICKET}")
    notebook.write_text(texts.with_another_ticket(text), encoding="utf-8")
    try:
        return runs.replay_demo(notebook, port, stage)
    finally:
        notebook.write_text(text, encoding="utf-8")
