"""The pin of the clock: a cell's readings, its sleeps, and the pace at which replies are handed on.

`--pace instant` hands every reply on at once. `order` hands them on in the recorded order, part by
part, in no more time than that takes; `recorded` also waits as long as it took. Without a word,
replies come in order where several tasks or threads got some (there a program may depend on it),
else at once. The order is that in which the program went on with them (determinism/order.py); of a
recording that does not tell it, that of their completion. `--no-pin sleep` lets sleeps wait,
`--no-pin clock` that and gives real time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.core.call import Gate, Reply, Value
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.core.websocket import SWITCHED
from tape_jupyter.determinism.clock import ClockBase, TapeClock
from tape_jupyter.determinism.clock_readings import LIMIT, Notes, Readings
from tape_jupyter.determinism.gate import Gives, NumberedGate, ReplyGate
from tape_jupyter.determinism.order import MOST_NAMED, RecordedOrder
from tape_jupyter.determinism.scheduler import Timeline
from tape_jupyter.encoding.values.generators import is_steps
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.instrumentation.concurrency.threads import STARTED
from tape_jupyter.instrumentation.determinism import clock as clock_tap
from tape_jupyter.instrumentation.determinism import timers, wall_clock
from tape_jupyter.session.cell import TapedCell

SHUFFLE = "TAPE_SHUFFLE"
"""Variable with the seed by which replies that may come in any order are shuffled (`tape replay
--shuffle`).
"""

_NUMPY_NOW = re.compile(r"datetime64\(\s*['\"](now|today)['\"]")


def pin(cell: TapedCell, run: Mapping[str, Any] | None) -> Callable[[], None]:
    """Hold the cell's clock to what `run` recorded, or begin to note it. Raises CassetteError on a
    bad record.
    """
    off = set(cell.request.options.get("no_pin", ()))
    replays, holds = run is not None, "clock" not in off
    cell.origin.counted = run is not None and not run.get("strands")
    readings = _load_readings(cell, run) if run is not None and holds else None
    notes = Notes() if holds and not replays and not cell.replaying else None
    live = cell.request.options.get("live")
    pace = asked_pace(cell)
    cell.pins.clock = clock = TapeClock(
        _build_clock_base(run),
        notes=notes,
        readings=readings,
        sleeps=cell.replaying and pace != "recorded" and not live and not off & {"clock", "sleep"},
        jumps=pace != "recorded",
        watch=timers.watch_loop,
        earlier=list(STARTED),
        orders=not replays and not cell.replaying,
        sequence=_read_sequence(cell, run)
        if cell.replaying and pace in ("", "order") and not live
        else None,
    )
    timers.count_files(clock)
    cell.pins.pacing = GatePacing(cell, clock, pace, str(run["run"]) if run is not None else "")
    if notes is not None:
        cell.recording.pins["clock"] = {
            "wall": clock.base.wall,
            "monotonic": clock.base.monotonic,
            "perf": clock.base.perf,
        }
    unhook = _hook_wall_clock(cell) if clock.is_active else do_nothing
    clock_tap.rebind([cell.request.namespace])

    def undo_pin() -> None:
        clock.close()
        unhook()
        if clock.order is not None:
            cell.recording.ends.update(clock.order.record(has_strands=cell.origin.has_children))
        if clock.sequence is not None:
            _report_disorder(cell, clock.sequence)
        if notes is not None:
            _record_readings(cell, notes)

    return undo_pin


def _build_clock_base(run: Mapping[str, Any] | None) -> ClockBase:
    """The clocks at the start of the recording; of an old one the wall clock at least, to what it
    says.
    """
    now = ClockBase.now()
    if run is None:
        return now
    recorded = run.get("pins", {}).get("clock")
    if recorded is not None:
        return ClockBase(int(recorded["wall"]), int(recorded["monotonic"]), int(recorded["perf"]))
    utc = run.get("kit", {}).get("clock", {}).get("utc") or run.get("at")
    if utc is None:
        return now
    return ClockBase(_to_nanoseconds(str(utc)), now.monotonic, now.perf)


def _to_nanoseconds(utc: str) -> int:
    since = datetime.fromisoformat(utc) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000


def _read_sequence(cell: TapedCell, run: Mapping[str, Any] | None) -> RecordedOrder | None:
    """The order of the run's hand-overs, where it tells one."""
    if cell.cassette is not None and run is not None:
        ended = cell.cassette.ended.get(str(run["run"]), {})
    else:
        ended = {}
    if "order" in ended:
        return RecordedOrder(ended["order"], ended.get("timers"))
    return None


def _report_disorder(cell: TapedCell, sequence: RecordedOrder) -> None:
    """Name what was not handed over as it was recorded, or may not have been."""
    strands = {entry.id: entry.lineage for entry in cell.execution.played}
    sequence.note_missing(strands)
    for pairs, text in ((sequence.swapped, SWAPPED), (sequence.untold, UNTOLD)):
        named = [
            pair
            for pair in pairs
            if _parse_strand(pair[0], strands) != _parse_strand(pair[1], strands)
        ]
        for first, second in named[:MOST_NAMED]:
            cell.warn(
                text.format(_describe_place(first, strands), _describe_place(second, strands))
            )
        if len(named) > MOST_NAMED:
            cell.warn(
                f"{len(named) - MOST_NAMED} more pairs of calls could not be told apart in this way"
            )


SWAPPED = (
    "{0} arrived before {1}, and in the recording after it: what follows may differ. Which "
    "comes first depends on the machine (threads behind a lock or a semaphore), or the cell asks something else now"
)
UNTOLD = (
    "{0} and {1} could not be told apart: the second arrived while the program was still working on the first. What "
    "both change may differ from the recording"
)


def _describe_place(name: str, strands: Mapping[str, str]) -> str:
    """A call or a timer, for people."""
    if not name:
        return "the start of the cell"
    strand = _parse_strand(name, strands) or "the cell"
    if name.startswith(">"):
        return f"the beginning of {strand}"
    if name.startswith("@"):
        return f"a timer or sleep of {strand}"
    return f"call {name} of {strand}"


def _parse_strand(name: str, strands: Mapping[str, str]) -> str:
    """The strand of a call, a timer or a beginning of the order."""
    if name.startswith(">"):
        return name[1:]
    if name.startswith("@"):
        return name[1:].rpartition("#")[0]
    return strands.get(name, "")


def _load_readings(cell: TapedCell, run: Mapping[str, Any]) -> Readings:
    if cell.cassette is not None:
        ended = cell.cassette.ended.get(str(run["run"]), {})
    else:
        ended = {}
    return Readings(ended.get("clock", {}))


def _hook_wall_clock(cell: TapedCell) -> Callable[[], None]:
    if (
        cell.pins.clock is not None
        and cell.pins.clock.notes is not None
        and _NUMPY_NOW.search(cell.request.source)
    ):
        cell.warn(
            "numpy reads the clock in C, where it is not replayed: in replay datetime64('now') gives the new time. "
            "Now: write np.datetime64(datetime.now())",
            cold=True,
        )
    try:
        return wall_clock.hold_wall_clock()
    except RuntimeError as error:
        cell.warn(
            f"the wall clock (time.time, datetime.now, ...) is not replayed: {error}. Sleeps and perf_counter are",
            cold=True,
        )
        return do_nothing


def _record_readings(cell: TapedCell, notes: Notes) -> None:
    """Put what was read into the end mark. A cell that made no call is recorded for it."""
    record = notes.record()
    if record:
        cell.recording.ends["clock"] = record
        cell.recording.drawn = True
    if notes.beyond:
        who = ", ".join(sorted(notes.beyond))
        cell.warn(
            f"{who} read the clock more than {LIMIT:,} times: later readings are not on the tape, in replay they go on "
            "from its time",
            cold=True,
        )


# ---------------------------------------------------------------- pace


def asked_pace(cell: TapedCell) -> str:
    """instant, order or recorded, as it was said; "" where nothing was, "shuffled" for a search by
    seed.
    """
    if seed_of(cell):
        return "shuffled"
    return str(cell.request.options.get("pace") or "")


def seed_of(cell: TapedCell) -> str:
    option = cell.request.options.get("shuffle")
    return os.environ.get(SHUFFLE, "") if option is None else str(option)


_SEVERAL = 2  # strands: of calls on one nothing needs to be read to know that none overlap


class GatePacing:
    """Makes the gates of one cell's replies."""

    def __init__(self, cell: TapedCell, clock: TapeClock, pace: str, run: str = "") -> None:
        """`run`: the one whose order the clock's sequence tells."""
        self._cell, self._clock, self._pace, self._run = cell, clock, pace, run
        self._timelines: dict[str, Timeline | None] = {}

    def gate(self, entry: Entry, reply: Reply | Value) -> Gate | None:
        """The gate that this reply passes; None: it is handed on at once."""
        timeline = self._find_timeline(entry) if self._cell.replaying else None
        if timeline is None or entry.id not in timeline:
            self._clock.advance(int(_read_duration(entry, reply) * 1e9))
            return None
        sequence = self._clock.sequence
        if sequence is not None and entry.run == self._run:
            parts, gives = _read_parts(entry, reply, sequence)
            return NumberedGate(
                self._clock, timeline, entry.id, self._refuse_ended, sequence, parts, gives=gives
            )
        in_one = isinstance(reply, Reply) and _count_parts(reply) == 2 and reply.end == "complete"
        return ReplyGate(self._clock, timeline, entry.id, self._refuse_ended, in_one=in_one)

    def _find_timeline(self, entry: Entry) -> Timeline | None:
        if self._pace == "instant":
            return None
        if entry.run not in self._timelines:
            self._timelines[entry.run] = self._build_timeline(entry)
        return self._timelines[entry.run]

    def _build_timeline(self, entry: Entry) -> Timeline | None:
        cassette = self._cell.cassette
        recorded = entry.recorded if isinstance(entry, Overridden) else entry
        numbered = self._clock.sequence is not None and entry.run == self._run
        if (
            not self._pace
            and not numbered
            and len(recorded.book.strands.get(recorded.run, ())) < _SEVERAL
        ):
            return None
        run_calls = [
            call
            for call in (cassette.calls if cassette is not None else ())
            if call.run == entry.run
        ]
        calls = [call.recorded if isinstance(call, Overridden) else call for call in run_calls]
        return Timeline(calls, seed_of(self._cell))

    def _refuse_ended(self) -> UnmatchedCall:
        refusal = UnmatchedCall(
            "the cell ended before this reply was handed on; nothing is played after its end"
        )
        self._cell.refuse(refusal)
        return refusal


def _count_parts(reply: Reply | Value) -> int | None:
    """How often it is handed on; None for a dialogue, of which each message of the server is."""
    if isinstance(reply, Value):
        return max(1, len(reply.groups))  # the first group has no place, the result has one
    return None if reply.status == SWITCHED else 1 + len(reply.chunks)


def _read_parts(
    entry: Entry, reply: Reply | Value, sequence: RecordedOrder
) -> tuple[int | None, Gives]:
    """How often it is handed on, and what it gives. Of a generator that is each item where the
    order tells of each, else (as of an older recording) its end alone.
    """
    if isinstance(reply, Reply):
        return _count_parts(reply), "reply"
    items = len(reply.value.get("items", ())) if is_steps(reply.value) else 0
    if sequence.tells_items(entry.id, items):
        return items, "items"
    return _count_parts(reply), "value"


def _read_duration(entry: Entry, reply: Reply | Value) -> float:
    """Seconds that a reply took when it was recorded."""
    if isinstance(reply, Reply):
        return reply.waits[-1] if reply.waits else 0.0
    seconds = entry.head().get("seconds", 0.0)
    return float(seconds) if isinstance(seconds, int | float) else 0.0
