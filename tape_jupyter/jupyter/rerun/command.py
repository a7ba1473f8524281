"""What people type and read of plans and re-runs: `%tape plan`, `%tape rerun`. Parses words, asks
the Rerunner, gives text; prints only what comes of a re-run while it goes on.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files
from tape_jupyter.dataflow.plan import Plan, PlanCell
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter.rerun import rerunner
from tape_jupyter.jupyter.rerun.comparison import Comparison
from tape_jupyter.jupyter.rerun.rerunner import Rerunner, RerunRequest
from tape_jupyter.reports.cell_summary import money
from tape_jupyter.session.options import HELP, PACES, LineParser

if TYPE_CHECKING:
    from tape_jupyter.jupyter.cell_runner import CellRunner

PLAN_USAGE = "%tape plan [TAKE]"
CHOICES = (
    "Now: %tape rerun --on-divergence live (ask anew), --on-divergence stale (keep the recorded reply), "
    "--write TEXT (your own){}, or --cancel"
)
SKIP = ", --on-divergence skip (leave this cell out)"
POLICIES = ("stop", "live", "stale", "skip")


def _build_parser() -> LineParser:
    parser = LineParser("%tape rerun")
    parser.add_argument("take", nargs="?", default="")
    parser.add_argument("--cells", type=lambda text: [name for name in text.split(",") if name])
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--on-divergence", choices=POLICIES)
    parser.add_argument("--pace", choices=PACES)
    parser.add_argument("--write")
    parser.add_argument("--adopt", action="store_true")
    parser.add_argument("--cancel", action="store_true")
    return parser


def print_plan(cells: CellRunner, root: Path, line: str) -> str:
    """`%tape plan [TAKE]`: which cells a re-run would run, and why each. Raises TapeUsageError,
    CassetteError.
    """
    words = _split_words(line)
    if len(words) > 1:
        raise TapeUsageError(f"usage: {PLAN_USAGE}")
    take = open_take(root, *words)
    return "\n".join(
        [*_describe_other_cassette(root, take), plan_text(rerunner.rerunner_of(cells).plan(take))]
    )


def run_rerun(cells: CellRunner, root: Path, line: str, say: Callable[[str], None]) -> None:
    """`%tape rerun ...`: begins, goes on, or ends a re-run once the cell that says so is over.
    `say` prints.

    Raises TapeUsageError, CassetteError, before anything has run.
    """
    said, runner = _build_parser().parse_args(_split_words(line)), rerunner.rerunner_of(cells)
    tell = _make_teller(runner, say)
    if said.cancel:
        return _run_after_cell(runner, lambda: runner.cancel(tell=tell), say)
    if runner.parked is not None and not said.take:
        return _run_after_cell(runner, _build_resume_action(runner, said, tell), say)
    if said.write is not None or said.on_divergence == "skip":
        raise TapeUsageError("no re-run waits at a divergence")
    take = open_take(root, *([said.take] if said.take else []))
    if said.adopt:
        runner.adopt(files.take_name(take.path))
    made = runner.plan(take)
    fresh = said.fresh or made.hermetic is not None
    if said.fresh and said.cells:
        raise TapeUsageError("--fresh runs every cell: leave out --cells")
    say("\n".join([*_describe_other_cassette(root, take), plan_text(made)]))
    if fresh:
        say(
            f"All {made.total} cells run in a fresh process, the kernel is free meanwhile (%tape rerun --cancel)"
        )
    entries = ticked(made, said.cells) if said.cells else None
    ask = RerunRequest(
        made, take, entries, said.on_divergence or "stop", said.fresh, said.pace or ""
    )
    return _run_after_cell(runner, lambda: runner.start(ask, tell, browser=False), say)


def _build_resume_action(runner: Rerunner, said: Any, tell: rerunner.Tell) -> Callable[[], None]:
    parked = runner.parked
    assert parked is not None
    if said.write is not None:
        return lambda: runner.resolve(parked.question.id, "write", said.write, tell=tell)
    if said.on_divergence in (None, "stop"):
        raise TapeUsageError(
            f"a re-run waits at a divergence; say what becomes of it. {_format_choices(parked.question.payload)}"
        )
    return lambda: runner.resolve_all(said.on_divergence, tell=tell)


def _run_after_cell(runner: Rerunner, do: Callable[[], None], say: Callable[[str], None]) -> None:
    """Cells run one after another, so a re-run waits for the end of the cell that asks for it."""
    events = runner.shell.events

    def run_once(_result: Any) -> None:
        events.unregister("post_run_cell", run_once)
        try:
            do()
        except Exception as error:
            say(f"{type(error).__name__}: {error}")

    events.register("post_run_cell", run_once)


def _make_teller(runner: Rerunner, say: Callable[[str], None]) -> rerunner.Tell:
    """Says what comes of a re-run, as text, below the cell that asked for it."""
    asked, closed = runner.parents.now(), False

    def print_below(text: str) -> None:
        with runner.parents.speaking_for(asked):
            say(text)

    def tell_outcome(about: str, told: dict[str, Any]) -> None:
        nonlocal closed
        if about == "diverged":
            fields = [line for each in told["fields"][:3] for line in _format_field(each)]
            title = f"{told['title']}: a call of it is not on the tape; the re-run waits here."
            print_below("\n".join([title, *fields, _format_choices(told)]))
        elif about == "done" and runner.compared is not None:
            told_of = runner.compared.proof.text if closed else runner.compared.text()
            print_below("\n".join([told_of, *_suggest_adoption(runner.compared)]))
            closed = True
        elif about == "cancelled":
            print_below("cancelled: everything is as it was before the re-run")

    return tell_outcome


def _format_choices(told: Mapping[str, Any]) -> str:
    """What may become of a call."""
    return CHOICES.format(SKIP if "skip" in told["choices"] else "")


def _suggest_adoption(compared: Comparison) -> list[str]:
    """What to do where a proof found more cells that depend on the change."""
    if not compared.proof.adopt:
        return []
    return [f"Now: %tape rerun {compared.take} --adopt (runs what depends on it by this, too)"]


def _format_field(each: dict[str, str]) -> list[str]:
    return [
        f"  {each['path']}",
        f"    recorded: {_shorten_text(each['recorded'])}",
        f"    now:      {_shorten_text(each['now'])}",
    ]


def _shorten_text(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


def open_take(root: Path, name: str = "") -> Cassette:
    """A take by its name; without one the default take, else the newest. Raises TapeUsageError
    where there is none.

    Where the cassette has none, those beside it are looked through.
    """
    own = name in files.take_names(root) if name else files.list_take_files(root)
    of, name = files.choose_take([root] if own else paths.cassettes_beside(root), name)
    return Cassette.open(of).take(name)


def _describe_other_cassette(root: Path, take: Cassette) -> list[str]:
    """That the take is not of the cassette that was used last."""
    return (
        [f"take {files.take_name(take.path)} is of {take.root.name}"] if take.root != root else []
    )


def ticked(made: Plan, words: Iterable[str]) -> frozenset[int]:
    """The entries of a plan that a person named by their prompt numbers ("3") or ids of cells."""
    found: set[int] = set()
    for word in words:
        same = [cell.entry for cell in made.cells if word in _list_cell_names(cell)]
        if not same:
            known = ", ".join(name for cell in made.cells for name in _list_cell_names(cell)[:1])
            raise TapeUsageError(f"{word[:80]!r} is no cell of this plan; there are: {known}")
        found |= set(same)
    return frozenset(found)


def _list_cell_names(cell: PlanCell) -> list[str]:
    return [*([str(cell.number), f"[{cell.number}]"] if cell.number is not None else []), cell.cell]


def plan_text(made: Plan) -> str:
    """The plan before anything runs, for people."""
    live = made.maybe_live - sum(cell.asks for cell in made.cells if not cell.ticked)
    calls = f"{made.from_tape} calls from the tape, {live} may ask anew{_describe_live_calls(made)}"
    count = len({cell.cell or cell.entry for cell in made.cells})
    lines = [f"Re-run {count} of {made.total} cells with take {made.take}: {calls}"]
    for cell in made.cells:
        number = f"[{cell.number}]" if cell.number is not None else "[ ]"
        lines.append(
            f"  {'x' if cell.ticked else ' '} {number:5} {cell.title:40} {'; '.join(cell.reasons)}"
        )
    lines += [f"  ! {warning}" for warning in made.warnings]
    lines += [f"  ! only a fresh kernel gets this right: {made.hermetic}"] if made.hermetic else []
    return "\n".join(lines)


def _describe_live_calls(made: Plan) -> str:
    """How many calls of which cells may go live, and at what price."""
    cells = [cell for cell in made.cells if cell.asks and cell.ticked]
    if not cells:
        return ""
    costs = [cell.cost for cell in cells if cell.cost is not None]
    known = len(costs) == len(cells)
    price = f"about {money(Decimal(str(sum(costs))))}" if known else "price not known"
    told = [f"{c.asks} of {c.title if c.number is None else f'[{c.number}]'}" for c in cells]
    return f": {', '.join(told)}{'' if known and not sum(costs) else f' ({price})'}"


def _split_words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise TapeUsageError(f"{line.strip()!r}: {error}. {HELP}") from None
