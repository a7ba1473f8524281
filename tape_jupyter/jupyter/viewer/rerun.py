"""What a view asks of plans and re-runs: plan, rerun, resume, seen, cancel, resolve, adopt. Checks
what comes from the page and hands it to the Rerunner; what a re-run tells goes to the view that
asked for it.

A page's questions come on whatever thread; a re-run is done on the kernel's main thread, while no
cell runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.rerun import rerunner
from tape_jupyter.jupyter.rerun.rerunner import CHOICES, Rerunner, RerunRequest
from tape_jupyter.jupyter.viewer.server import Forged, Viewer, answers

_POLICIES = ("stop", "live", "stale")


@answers("plan")
def handle_plan(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{take, changed?}: `changed` are span ids ("RUN" or "RUN/CALL") or ids of cells."""
    runner, changed = rerunner.rerunner_of(viewer.cells), message.get("changed")
    if isinstance(changed, str):
        changed = [changed]
    if changed is not None and not _is_text_list(changed):
        raise Forged("changed")
    return runner.plan(
        _open_take(viewer, message), _find_entries(runner, changed) if changed else None
    ).record()


@answers("rerun")
def handle_start(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{take, entries, fresh, on_divergence}: begins once the kernel is idle, and tells how it gets
    on.
    """
    entries, policy = message.get("entries"), message.get("on_divergence", "stop")
    if (
        not _is_number_list(entries)
        or policy not in _POLICIES
        or not isinstance(message.get("fresh", False), bool)
    ):
        raise Forged("rerun")
    runner, take = rerunner.rerunner_of(viewer.cells), _open_take(viewer, message)
    plan = runner.plan(take, _find_entries(runner, message.get("changed") or []) or None)
    if unknown := set(entries or ()) - set(plan.entries):
        raise TapeUsageError(
            f"the plan has changed (it has no entry {min(unknown)}): ask for it again"
        )
    if runner.running:
        raise TapeUsageError("a re-run is running already")
    _require_idle(runner)
    fresh = bool(message.get("fresh"))
    request = RerunRequest(
        plan, take, frozenset(entries) if entries is not None else None, policy, fresh
    )
    _run_on_main(viewer, lambda: runner.start(request, Teller(viewer)))
    return {"started": True}


@answers("cancel")
def cancel(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    runner = rerunner.rerunner_of(viewer.cells)
    if runner.parked is not None:
        _run_on_main(viewer, lambda: runner.cancel(notify=Teller.join_viewer(runner, viewer)))
    else:
        runner.cancel(notify=Teller.join_viewer(runner, viewer))
    return {}


@answers("resolve")
def resolve(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{divergence, choice, reply?}: what becomes of the call that the re-run waits at."""
    divergence = message.get("divergence")
    choice = message.get("choice")
    reply = message.get("reply")
    if (
        not isinstance(divergence, str)
        or choice not in CHOICES
        or not isinstance(reply, str | None)
    ):
        raise Forged("resolve")
    runner = rerunner.rerunner_of(viewer.cells)
    runner.check(divergence, choice, reply)
    _run_on_main(
        viewer,
        lambda: runner.resolve(
            divergence, choice, reply, notify=Teller.join_viewer(runner, viewer)
        ),
    )
    return {}


@answers("adopt")
def handle_adopt(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{take, cells}: cells that the proof found to depend on it are planned from now on."""
    if not _is_text_list(message.get("cells")):
        raise Forged("adopt")
    runner = rerunner.rerunner_of(viewer.cells)
    runner.learned |= _find_entries(runner, message["cells"])
    return runner.plan(_open_take(viewer, message)).record()


@answers("resume")
def resume(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    """What a re-run told last: {about, told}, {} where there is none. From here on this view hears
    of it too: its page may have been loaded again while a question waited.
    """
    runner = rerunner.known_rerunner(viewer.cells)
    teller = runner.teller if runner is not None else None
    return teller.join(viewer) if isinstance(teller, Teller) else {}


@answers("seen")
def handle_seen(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    """A person closed the comparison: no page shows it anew. Of a take that was put aside, no proof
    is told either.
    """
    runner = rerunner.known_rerunner(viewer.cells)
    if runner is None:
        return {}
    if isinstance(runner.teller, Teller):
        runner.teller.last = {}
    compared, book = runner.compared, viewer.book
    takes = files.take_names(book.root) if isinstance(book, Cassette) else []
    if compared is not None and compared.take not in takes:
        runner.compared = None
    return {}


class Teller:
    """Tells views of a re-run: the one that asked for it, and those that were opened since. `last`
    is {about, told}.
    """

    def __init__(self, viewer: Viewer) -> None:
        self.last: dict[str, Any] = {}
        self._viewers = [viewer]

    @classmethod
    def join_viewer(cls, runner: Rerunner, viewer: Viewer) -> Teller:
        """Who hears of the re-run that is on, with a view among them."""
        teller = runner.teller if isinstance(runner.teller, cls) else cls(viewer)
        teller.join(viewer)
        return teller

    def join(self, viewer: Viewer) -> dict[str, Any]:
        """Gives what the view has missed: {} where it was there."""
        if viewer in self._viewers:
            return {}
        self._viewers = [*(each for each in self._viewers if not each.closed), viewer]
        return self.last

    def __call__(self, about: str, payload: dict[str, Any]) -> None:
        self.last = {"about": about, "told": payload} if about != "cancelled" else {}
        for viewer in self._viewers:
            viewer.send_update(about, **payload)
            if about in ("done", "cancelled"):
                viewer.changed()


def _run_on_main(viewer: Viewer, do: Callable[[], object]) -> None:
    """On the main thread once it is idle; what goes wrong there is told, since nobody waits for an
    answer any more.
    """

    def run_checked() -> None:
        try:
            _require_idle(rerunner.rerunner_of(viewer.cells))
            do()
        except Exception as error:
            viewer.send_update("failed", text=f"{type(error).__name__}: {error}")

    labextension.on_main(run_checked)


def _require_idle(runner: Rerunner) -> None:
    if runner.displayed.open:
        raise TapeUsageError("a cell is running: wait for its end")


def _open_take(viewer: Viewer, message: dict[str, Any]) -> Cassette:
    """The take that is asked of; "" is the one that is open, else the default one, and the name of
    its cassette the recording itself.
    """
    name = message.get("take", "")
    if not isinstance(name, str):
        raise Forged("take")
    book = viewer.book
    if not isinstance(book, Cassette):
        raise TapeUsageError("there is no cassette to re-run from yet")
    name = name or (
        files.take_name(book.path) if book.base is not None else files.default_take(book.root)
    )
    if not name:
        return book
    if name == paths.stem(book.root):
        return Cassette.open(book.root)
    files.require_take(book.root, name)
    return Cassette.open(book.root).take(name)


def _find_entries(runner: Rerunner, cell_ids: list[str]) -> set[int]:
    """The entries that runs, calls or cells stand for. Raises TapeUsageError where there is none."""
    history = runner.history
    entries: set[int] = set()
    for cell_id in cell_ids:
        run = cell_id.partition("/")[0]
        entry = history.of_run(run) if history is not None else None
        cells = runner.of_cell(cell_id)
        if entry is not None:
            entries.add(entry.index)
        elif cells:
            entries.add(cells[-1])
    if cell_ids and not entries:
        raise TapeUsageError(
            "this kernel has not run that cell: run the notebook first (%tape replay, Run All)"
        )
    return entries


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_number_list(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(type(each) is int for each in value))
