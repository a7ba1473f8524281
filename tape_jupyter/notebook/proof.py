"""Notebook room: proves a re-run in the background: a fresh process replays the whole history on the take, away from
the network and the disk (flow/hermetic.py), and what it comes to is compared with the notebook. The kernel goes on.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tape_jupyter import airgap, outputs
from tape_jupyter.flow import ends, hermetic, verify
from tape_jupyter.flow.history import History
from tape_jupyter.notebook.comparison import Proof
from tape_jupyter.notebook.displayed import Output

_LOADED = "The tape_jupyter extension is already loaded. To reload it, use:\n  %reload_ext tape_jupyter\n"
"""What IPython says where the cell that loads the tape runs again in the same kernel."""
LOAD = "__import__('tape_jupyter').load_ipython_extension(get_ipython())"


@dataclass(frozen=True, slots=True)
class Case:
    """What is to be proved: the history as it stands and what its entries show, and both as they were before."""

    history: History
    texts: Mapping[int, str]
    before: History
    texts_before: Mapping[int, str]
    notebook: Path | None
    take: str
    recording: str
    live: ends.End | None = None
    """What is there in the kernel after the re-run."""
    unsure: tuple[str, ...] = ()
    """What recorded replies a whole run may not give, in words."""


def begin(case: Case, done: Callable[[Proof], None]) -> threading.Thread:
    """Start proving; `done` is called on a thread of its own."""

    def run() -> None:
        with airgap.unwatched():  # the fresh process has a wall of its own
            told = prove(case)
        done(told)

    thread = threading.Thread(target=run, name="tape proof", daemon=True)
    contextvars.Context().run(thread.start)  # no cell's thread
    return thread


def prove(case: Case) -> Proof:
    """Blocks until it is known. Never raises."""
    if why := hermetic.impossible(case.history):
        return Proof("not provable", why)
    if case.notebook is None:
        return Proof("not provable", "the notebook's path is not known, so a fresh kernel would not find the recording")
    try:
        replayed = hermetic.replay(_job(case.history, case, case.take))
        verdict = verify.verify(case.history, case.texts, replayed, lambda: _unsteady(case), case.live)
    except Exception as error:
        return Proof("not provable", f"the fresh kernel did not start: {type(error).__name__}: {error}")
    text = verdict.text.replace("a fresh replay of all cells came out the same", "proved in a fresh kernel")
    if verdict.state == "proved" and case.unsure:
        more = f" (and {len(case.unsure) - 1} more)" if len(case.unsure) > 1 else ""
        return Proof("not provable", f"{case.unsure[0]}{more}. Now: run that tool anew (%tape replay --live tool:NAME)")
    adopt = tuple(dict.fromkeys(_cell(case.history, index) for index in verdict.cells))
    return Proof(verdict.state, text, adopt)


def _unsteady(case: Case) -> set[int]:
    """The entries that do not come out the same even on the recording itself."""
    replayed = hermetic.replay(_job(case.before, case, case.recording))
    return set(verify.differing(case.before, case.texts_before, replayed))


def _job(history: History, case: Case, take: str) -> hermetic.Job:
    env = {"TAPE_MODE": "replay", "TAPE_OPTIONS": f"--take {take}"}
    if case.notebook is not None:
        env["TAPE_NOTEBOOK"] = str(case.notebook)
    return hermetic.job(history, env=env, setup=LOAD)


def _cell(history: History, index: int) -> str:
    return history[index].cell or str(index)


def text_of(shown: Iterable[Output]) -> str:
    """What a cell shows, as flow/fresh.py tells it: standard output, the text of each display, the error's line."""
    told = [each for each in shown if not outputs.is_summary(each)]
    printed = "".join(each["text"] for each in told if each["output_type"] == "stream" and each["name"] == "stdout")
    printed = printed.replace(_LOADED, "")
    parts = [_line(str(each["data"]["text/plain"])) for each in told if "text/plain" in each.get("data", {})]
    errors = [f"{each['ename']}: {each['evalue']}" for each in told if each["output_type"] == "error"]
    return "".join([printed, *parts, *errors])


def _line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def texts(history: History, shown: Callable[[int], list[Output]], known: Callable[[int], bool]) -> dict[int, str]:
    """What each entry shows; those of which that is not known are left out."""
    return {entry.index: text_of(shown(entry.index)) for entry in history if known(entry.index)}
