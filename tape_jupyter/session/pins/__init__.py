"""The pins of a taped cell: what holds its clock, sleeps, chance and time zone to the tape.

Each pin is a function `pin(cell, recorded)`: `recorded` is the record of the run that this cell
repeats (None: this cell is the recording); what was written of a pin stands under `pins`, by its
name. It fills `cell.recording.pins[name]` with plain structure for the run record, and returns what takes it
off again. A pin that fails says so and is off: no cell fails of a pin, and after the cell there is
none. Other packages add pins by the entry-point group `tape_jupyter.pins`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import EntryPoint
from types import FunctionType
from typing import Any

from tape_jupyter.cassette import adoption
from tape_jupyter.core import plugins
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.errors import CassetteError
from tape_jupyter.session.cell import TapedCell
from tape_jupyter.session.options import PIN_GROUP
from tape_jupyter.session.pins import clock, random, timezone

Undo = Callable[[], None]
Pin = Callable[[TapedCell, "Mapping[str, Any] | None"], Undo]

BUILT_IN: Mapping[str, Pin] = {"timezone": timezone.pin, "random": random.pin}


def known_pins() -> Mapping[str, Pin]:
    """By name, in the order in which they are put on; they are taken off in the opposite one.

    The clock's is not among them: it is always first.
    """
    points = plugins.entry_points_of(PIN_GROUP).items()
    return {**BUILT_IN, **{name: partial(_put_on_added, point) for name, point in points}}


def _put_on_added(point: EntryPoint, cell: TapedCell, recorded: Mapping[str, Any] | None) -> Undo:
    """The pin of another package. One that cannot be loaded fails here, as a pin."""
    undo: Undo = plugins.load_entry_point(point, FunctionType)(cell, recorded)
    return undo


def put_on_pins(cell: TapedCell) -> Undo:
    """Put on every pin that the cell did not switch off; gives what takes them off."""
    if cell.cassette is None or cell.mode == "live":
        return do_nothing
    run = recorded_run(cell)
    off = cell.request.options.get("no_pin", ())
    # it looks at `no_pin` itself: paces need it too
    undo = [_put_on_pin("clock", clock.pin, cell, run)]
    if run is None and cell.replaying:
        undo.append(lambda: _note_no_recording(cell))
    else:
        undo += [
            _put_on_pin(name, pin, cell, run)
            for name, pin in known_pins().items()
            if name not in off
        ]
    return lambda: _take_off_pins(cell, undo)


def recorded_run(cell: TapedCell) -> Mapping[str, Any] | None:
    """The run record that this cell repeats; None while recording, and where the cassette has none
    of this cell.

    Where no front end tells cell ids, an edited cell is taken for the one that was run as the same
    `In [n]`, or, if it has a `%%tape` line or is a block, for the only recording there is.
    """
    if cell.cassette is None or cell.mode == "record":
        return None
    runs = cell.cassette.by_run
    repeated = cell.player.repeats(cell.execution)
    if repeated:
        return runs.get(repeated)
    if not cell.replaying:
        return None
    current = [runs[run.id] for run in cell.player.current() if not run.parent and run.id in runs]
    if cell.request.explicit and len(current) == 1:
        return current[0]
    same = [
        run
        for run in current
        if cell.request.count is not None and run.get("count") == cell.request.count
    ]
    if same and (cell.request.explicit or not _is_anothers(cell, same[-1])):
        return same[-1]
    return None


def _is_anothers(cell: TapedCell, run: Mapping[str, Any]) -> bool:
    """Whether the recording is not of this cell, though it was run as the same `In [n]`: a cell of
    the notebook has its source, or both have ids.
    """
    if cell.request.cell_id and run.get("cell"):
        return True
    return cell.request.notebook is not None and run.get("source") in adoption.source_hashes(
        cell.request.notebook
    )


def _put_on_pin(name: str, pin: Pin, cell: TapedCell, run: Mapping[str, Any] | None) -> Undo:
    try:
        return pin(cell, run)
    except Exception as error:
        cell.recording.pins.pop(name, None)
        cell.warn(f"{name} is not replayed: {type(error).__name__}: {error}", cold=True)
        return do_nothing


def _take_off_pins(cell: TapedCell, undo: list[Undo]) -> None:
    for each in reversed(undo):
        try:
            each()
        except Exception as error:  # the others come off all the same
            cell.warn(f"a pin did not come off cleanly: {type(error).__name__}: {error}")


def _note_no_recording(cell: TapedCell) -> None:
    """A cell that plays calls of other cells' recordings; one that makes no call was not worth
    recording.
    """
    if cell.execution.played or cell.findings.refusals:
        cell.findings.notes.append(
            "the cassette has no recording of this cell: its calls are looked for among those of other cells, "
            "its clock and random numbers are not replayed"
        )


def commit_drawn(
    cell: TapedCell, start_run: Callable[[TapedCell], None], *, failed: bool = False
) -> None:
    """At the cell's end: commit the run of a cell that made no call but drew from a pin, so that
    replay holds it too.

    Also of one that did neither, where its replay would find no cassette. Raises nothing: a
    cassette that cannot be written to is said, as with the end mark.
    """
    if cell.recording.run or cell.mode in ("live", "replay"):
        return
    if not cell.recording.drawn and (failed or not _is_first_recording(cell)):
        return
    try:
        start_run(cell)
    except (CassetteError, OSError) as problem:
        cell.warn(f"what this cell drew is not on the tape: {problem}")


def _is_first_recording(cell: TapedCell) -> bool:
    """Whether `%%tape record` stands on this very cell, and its cassette is not there.

    Not for `once`: what it finds on the tape it replays for ever, and a cell may ask something the
    next time.
    """
    by_line = cell.request.explicit and cell.request.path is None and cell.mode == "record"
    return by_line and cell.cassette is not None and not cell.cassette.path.exists()
