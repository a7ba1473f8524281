"""What people type and read of plans and re-runs: `%tape plan`, `%tape rerun`. Parses words, asks
the Rerunner, gives text; prints only what comes of a re-run while it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.match_key import parting
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.dataflow.plan import Plan, PlanCell
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter.rerun import rerunner
from tape_jupyter.jupyter.rerun.comparison import Comparison
from tape_jupyter.jupyter.rerun.rerunner import Rerunner, RerunRequest
from tape_jupyter.reports.cell_summary import money
from tape_jupyter.session.options import PACES, LineParser, split_words

if TYPE_CHECKING:
    from tape_jupyter.jupyter.cell_runner import CellRunner

CHOICES = (
    "Now: %tape rerun --on-divergence live (send it), --on-divergence stale (keep the recorded reply), "
    "--write TEXT (your own){}, or --cancel"
)
SKIP = ", --on-divergence skip (leave this cell out)"
_WIDTH = 200
"""Characters of a field that are shown."""
POLICIES = ("stop", "live", "stale", "skip")


def _build_take_parser(magic: str, usage: str | None = None) -> LineParser:
    parser = LineParser(magic, usage)
    parser.add_argument("take", nargs="?", default="")
    parser.add_argument("--take", dest="named_take", metavar="TAKE")
    return parser


def _build_parser() -> LineParser:
    parser = _build_take_parser("%tape rerun")
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
    parser = _build_take_parser("%tape plan", "%tape plan [TAKE]")
    options = parser.parse_args(split_words(line))
    take = open_take(root, files.require_one_name(options.take, options.named_take))
    return "\n".join(
        [*_describe_other_cassette(root, take), plan_text(rerunner.rerunner_of(cells).plan(take))]
    )


def run_rerun(cells: CellRunner, root: Path, line: str, print_text: Callable[[str], None]) -> None:
    """`%tape rerun ...`: begins, goes on, or ends a re-run once the cell that says so is over.
    `print_text` prints.

    Raises TapeUsageError, CassetteError, before anything has run.
    """
    options, runner = _build_parser().parse_args(split_words(line)), rerunner.rerunner_of(cells)
    named = files.require_one_name(options.take, options.named_take)
    notify = _make_teller(runner, print_text)
    if options.cancel:
        return _run_after_cell(runner, lambda: runner.cancel(notify=notify), print_text)
    if runner.parked is not None and not named:
        return _run_after_cell(runner, _build_resume_action(runner, options, notify), print_text)
    if options.write is not None or options.on_divergence == "skip":
        raise TapeUsageError("no re-run is waiting at a changed request")
    take = open_take(root, named)
    if options.adopt:
        runner.adopt(files.take_name(take.path))
    plan = runner.plan(take)
    fresh = options.fresh or plan.hermetic is not None
    if options.fresh and options.cells:
        raise TapeUsageError("--fresh runs every cell: leave out --cells")
    print_text("\n".join([*_describe_other_cassette(root, take), plan_text(plan)]))
    if fresh:
        print_text(
            f"All of it ({plan.total} {plan.counted}) runs in a fresh process, "
            "the kernel is free meanwhile (%tape rerun --cancel)"
        )
    entries = ticked(plan, options.cells) if options.cells else None
    request = RerunRequest(
        plan, take, entries, options.on_divergence or "stop", options.fresh, options.pace or ""
    )
    return _run_after_cell(runner, lambda: runner.start(request, notify, browser=False), print_text)


def _build_resume_action(
    runner: Rerunner, options: Any, notify: rerunner.Tell
) -> Callable[[], None]:
    parked = runner.parked
    assert parked is not None
    if options.write is not None:
        return lambda: runner.resolve(parked.question.id, "write", options.write, notify=notify)
    if options.on_divergence in (None, "stop"):
        raise TapeUsageError(
            f"a re-run waits at a changed request; say what to do with it. {_format_choices(parked.question.payload)}"
        )
    return lambda: runner.resolve_all(options.on_divergence, notify=notify)


def _run_after_cell(
    runner: Rerunner, do: Callable[[], None], print_text: Callable[[str], None]
) -> None:
    """Cells run one after another, so a re-run waits for the end of the cell that asks for it."""
    events = runner.shell.events

    def run_once(_result: Any) -> None:
        events.unregister("post_run_cell", run_once)
        try:
            do()
        except Exception as error:
            print_text(f"{type(error).__name__}: {error}")

    events.register("post_run_cell", run_once)


def _make_teller(runner: Rerunner, print_text: Callable[[str], None]) -> rerunner.Tell:
    """Says what comes of a re-run, as text, below the cell that asked for it."""
    parent_message, closed = runner.parents.now(), False

    def print_below(text: str) -> None:
        with runner.parents.speaking_for(parent_message):
            print_text(text)

    def tell_outcome(about: str, payload: dict[str, Any]) -> None:
        nonlocal closed
        if about == "diverged":
            fields = [line for each in payload["fields"][:3] for line in _format_field(each)]
            title = f"{payload['title']}: a call of it is not on the tape; the re-run waits here."
            print_below("\n".join([title, *fields, _format_choices(payload)]))
        elif about == "done" and runner.compared is not None:
            told_of = runner.compared.proof.text if closed else runner.compared.text()
            print_below("\n".join([told_of, *_suggest_adoption(runner.compared)]))
            closed = True
        elif about == "cancelled":
            print_below("cancelled: everything is as it was before the re-run")

    return tell_outcome


def _format_choices(payload: Mapping[str, Any]) -> str:
    """What may become of a call."""
    return CHOICES.format(SKIP if "skip" in payload["choices"] else "")


def _suggest_adoption(compared: Comparison) -> list[str]:
    """What to do where a proof found more cells that depend on the change."""
    if not compared.proof.adopt:
        return []
    return [f"Now: %tape rerun {compared.take} --adopt (runs what depends on it by this, too)"]


def _format_field(each: dict[str, str]) -> list[str]:
    """Cut to where the two differ."""
    start = parting(each["recorded"], each["now"], _WIDTH, _WIDTH // 3)
    return [
        f"  {each['path']}",
        f"    recorded: {_shorten_text(each['recorded'], start)}",
        f"    now:      {_shorten_text(each['now'], start)}",
    ]


def _shorten_text(text: str, start: int) -> str:
    end = start + _WIDTH
    return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")


def open_take(root: Path, name: str = "") -> Cassette:
    """A take by its name; without one the default take, else the newest. Raises TapeUsageError
    where there is none.

    Where the cassette has none, those beside it are looked through.
    """
    has_take = name in files.take_names(root) if name else files.list_take_files(root)
    of, name = files.choose_take([root] if has_take else paths.cassettes_beside(root), name)
    return Cassette.open(of).take(name)


def _describe_other_cassette(root: Path, take: Cassette) -> list[str]:
    """That the take is not of the cassette that was used last."""
    if take.root != root:
        return [f"take {files.take_name(take.path)} is of {take.root.name}"]
    return []


def ticked(plan: Plan, cell_names: Iterable[str]) -> frozenset[int]:
    """The entries of a plan that a person named by their prompt numbers ("3") or ids of cells."""
    entries: set[int] = set()
    for cell_name in cell_names:
        same = [cell.entry for cell in plan.cells if cell_name in _list_cell_names(cell)]
        if not same:
            known = ", ".join(name for cell in plan.cells for name in _list_cell_names(cell)[:1])
            raise TapeUsageError(
                f"{cell_name[:80]!r} is not a cell of this plan; there are: {known}"
            )
        entries |= set(same)
    return frozenset(entries)


def _list_cell_names(cell: PlanCell) -> list[str]:
    return [*([str(cell.number), f"[{cell.number}]"] if cell.number is not None else []), cell.cell]


def plan_text(plan: Plan) -> str:
    """The plan before anything runs, for people."""
    live = plan.maybe_live - sum(cell.asks for cell in plan.cells if not cell.ticked)
    calls = f"{format_count(plan.from_tape, 'recorded call')}, {live} may go live{_describe_live_calls(plan)}"
    count = f"{len(plan.cells)} of {plan.total} {plan.counted}"
    lines = [f"Re-run {count} with take {plan.take}: {calls}"]
    for cell in plan.cells:
        number = f"[{cell.number}]" if cell.number is not None else "[ ]"
        lines.append(
            f"  {'x' if cell.ticked else ' '} {number:5} {cell.title:40} {'; '.join(cell.reasons)}"
        )
    lines += [f"  ! {warning}" for warning in plan.warnings]
    lines += [f"  ! only a fresh kernel gets this right: {plan.hermetic}"] if plan.hermetic else []
    return "\n".join(lines)


def _describe_live_calls(plan: Plan) -> str:
    """How many calls of which cells may go live, and at what price."""
    cells = [cell for cell in plan.cells if cell.asks and cell.ticked]
    if not cells:
        return ""
    costs = [cell.cost for cell in cells if cell.cost is not None]
    known = len(costs) == len(cells)
    price = f"about {money(Decimal(str(sum(costs))))}" if known else "price not known"
    parts = [f"{c.asks} of {c.title if c.number is None else f'[{c.number}]'}" for c in cells]
    return f": {', '.join(parts)}{'' if known and not sum(costs) else f' ({price})'}"
