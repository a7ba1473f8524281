"""What cassettes hold and what they could not hold, as plain structure and as text. Reads, never
writes.

One report over a notebook's cassettes or a whole folder: of every run that a replay uses the nine
budget items, the fields of the kit, and whether it is a cold case; of every call its part in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tape_jupyter.audit import environment_fields
from tape_jupyter.audit import nondeterminism as budget
from tape_jupyter.audit import unreplayable as cold
from tape_jupyter.audit.nondeterminism import STATUSES, AuditFinding, fold_findings
from tape_jupyter.audit.run_view import AuditedCall, AuditedRun, all_seen
from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.runs import current_runs, run_of
from tape_jupyter.cassette.takes import files as takes_files
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.reports.listing import list_cassettes
from tape_jupyter.reports.untaped_cells import describe_untaped_cells

BY_RUN = (5, 6, 8, 9)
"""Items that are told of a whole run; the others are the sum of its calls'."""

NO_GAPS = "no gaps: nothing is missing for a replay"


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run: its findings, and the calls they were drawn from."""

    run: str
    cassette: Path
    count: int | None
    at: str
    outcome: str
    budget: list[AuditFinding]
    kit: list[AuditFinding]
    calls: list[tuple[AuditedCall, list[AuditFinding], list[AuditFinding]]]
    case: cold.RunCase

    @property
    def missing(self) -> list[AuditFinding]:
        """What the run lacks, each once; what its calls lack is in the budget already."""
        own_findings = [each for each in (*self.budget, *self.kit) if each.status == "missing"]
        lost = [each for _, _, fields in self.calls for each in fields if each.status == "missing"]
        names = {each.name for each in own_findings}
        by_name: dict[str, list[AuditFinding]] = {}
        for each in lost:
            if each.name not in names:
                by_name.setdefault(each.name, []).append(each)
        return [
            *own_findings,
            *(fold_findings(name, 0, findings, "") for name, findings in by_name.items()),
        ]

    def record(self) -> dict[str, Any]:
        return {
            "run": self.run, "cassette": str(self.cassette), "cell": self.count, "at": self.at,
            "outcome": self.outcome, "cold": list(self.case.reasons),
            "budget": [each.record() for each in self.budget],
            "kit": [each.record() for each in self.kit],
            "calls": [
                {
                    "call": call.id, "kind": call.kind, "name": call.name,
                    "budget": [each.record() for each in items],
                    "kit": [each.record() for each in fields],
                }
                for call, items, fields in self.calls
            ],
        }  # fmt: skip


@dataclass(slots=True)
class Report:
    """What was asked for; `broken` are the cassettes that cannot be read, with what is wrong."""

    runs: list[RunReport] = field(default_factory=list)
    cassettes: list[Path] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    untaped: list[str] = field(default_factory=list)
    """In words, which cells of their notebooks keep the clock or chance and are not taped."""

    @property
    def cold(self) -> list[cold.RunCase]:
        return [run.case for run in self.runs if run.case.reasons]

    @property
    def patterns(self) -> dict[str, list[dict[str, Any]]]:
        return cold.cold_patterns([run.case for run in self.runs])

    @property
    def budget(self) -> list[AuditFinding]:
        """Each item over all runs: the worst of it. Empty where there is no run."""
        if self.runs:
            return [self._fold_over_runs(number) for number in budget.NAMES]
        return []

    def _fold_over_runs(self, number: int) -> AuditFinding:
        findings = [run.budget[number - 1] for run in self.runs]
        if number in BY_RUN:
            if len(findings) == 1:
                return findings[0]
            return fold_findings(findings[0].name, number, findings, "", "runs")
        of_calls = [
            each
            for run in self.runs
            for _, items, _ in run.calls
            for each in items
            if each.number == number
        ]
        return fold_findings(findings[0].name, number, of_calls, findings[0].what)

    @property
    def missing(self) -> list[tuple[AuditFinding, list[str]]]:
        """What is missing, each with the one line that keeps it, and the runs that miss it."""
        by_name: dict[tuple[str, str], list[tuple[AuditFinding, str]]] = {}
        for run in self.runs:
            for each in run.missing:
                by_name.setdefault((each.name, each.capture), []).append((each, run.run))
        one = [
            (_fold_findings([each for each, _ in met]), [run for _, run in met])
            for met in by_name.values()
        ]
        return sorted(one, key=lambda pair: (not pair[0].number, pair[0].number))

    def record(self) -> dict[str, Any]:
        """For --json."""
        statuses = Counter(each.status for run in self.runs for each in (*run.budget, *run.kit))
        return {
            "cassettes": [str(path) for path in self.cassettes],
            "broken": self.broken,
            "summary": {
                "runs": len(self.runs),
                "calls": sum(len(run.calls) for run in self.runs),
                "cold": len(self.cold),
                **{status: statuses[status] for status in STATUSES},
            },
            "budget": [each.record() for each in self.budget],
            "missing": [{**each.record(), "runs": runs} for each, runs in self.missing],
            "cold": [case.record() for case in self.cold],
            "patterns": self.patterns,
            "untaped": self.untaped,
            "runs": [run.record() for run in self.runs],
        }


def _fold_findings(findings: Sequence[AuditFinding]) -> AuditFinding:
    if len(findings) == 1:
        return findings[0]
    return fold_findings(findings[0].name, findings[0].number, findings, "", "runs")


def report(cassettes: Iterable[Cassette]) -> Report:
    """The runs that a replay uses of each of these."""
    gap_report = Report()
    for cassette in cassettes:
        _add_cassette(gap_report, cassette)
    _add_untaped_cells(gap_report)
    return gap_report


def report_gaps(cassette_paths: Sequence[Path], on_progress: Tell = ignore_progress) -> Report:
    """The same of files. One that cannot be read is named and does not hide the others."""
    gap_report = Report()
    for number, path in enumerate(cassette_paths, 1):
        if len(cassette_paths) > 1:
            of_all = f", cassette {number} of {len(cassette_paths)}"
        else:
            of_all = ""
        on_progress(f"reading {path.name}{of_all}", 0, 0)
        try:
            _add_cassette(
                gap_report,
                Cassette.open(path, check="marks"),
                lambda what, *far, more=of_all: on_progress(f"{what}{more}", *far),
            )
        except (CassetteError, OSError) as error:
            gap_report.broken[str(path)] = str(error)
    _add_untaped_cells(gap_report)
    return gap_report


def _add_untaped_cells(gap_report: Report) -> None:
    folders = dict.fromkeys(path.parent for path in gap_report.cassettes)
    notebooks = [each.with_suffix(".ipynb") for each in folders if each.suffix == ".tapes"]
    for notebook in notebooks:
        of_which = f"{notebook.name} " if len(notebooks) > 1 else ""
        gap_report.untaped += [f"{of_which}{line}" for line in describe_untaped_cells(notebook)]


def cassettes_below(where: Path, name: str | None = None) -> list[Path]:
    """The cassettes of a notebook, a `.tapes` folder or a file; of any other folder all those below
    it.

    Takes are not among them: they stand on their cassettes. Raises TapeUsageError where there is
    none.
    """
    if not where.is_dir() or where.suffix == ".tapes":
        return list_cassettes(where, name)
    all_paths = sorted(where.rglob(f"*{paths.SUFFIX}"))
    cassettes = [
        each for each in all_paths if takes_files.FOLDER not in each.relative_to(where).parts
    ]
    chosen = [each for each in cassettes if name in (None, paths.stem(each))]
    if not chosen:
        raise TapeUsageError(
            f"{where}: no cassette {name or 'below it'}; record one with: tape record NB"
        )
    return chosen


def _add_cassette(
    gap_report: Report, cassette: Cassette, on_progress: Tell = ignore_progress
) -> None:
    current = [run.id for run in current_runs(map(run_of, cassette.runs))]
    runs = all_seen(
        cassette, current, notebook=_find_notebook(cassette.root), on_progress=on_progress
    )
    taped = budget.tool_names(runs)
    gap_report.cassettes.append(cassette.path)
    gap_report.runs += [_build_run_report(run, cassette.path, taped) for run in runs]


def _find_notebook(path: Path) -> str:
    """The notebook whose folder this cassette lies in."""
    folder = path.parent
    return f"{folder.stem}.ipynb" if folder.suffix == ".tapes" else ""


def _build_run_report(run: AuditedRun, path: Path, taped: frozenset[str]) -> RunReport:
    items = budget.budget(run, taped)
    count = run.record.get("count")
    return RunReport(
        run.id,
        path,
        count if isinstance(count, int) else None,
        str(run.record.get("at", "")),
        str((run.end or {}).get("outcome", "incomplete")),
        items,
        environment_fields.of_run(run),
        [
            (call, budget.call_findings(call), environment_fields.environment_findings(call))
            for call in run.calls
        ],
        cold.case(run, str(path), items),
    )


# ---- text


def gaps_text(gap_report: Report) -> str:
    """For a page without colours: the nine items, what is missing, the cold cases."""
    return "\n".join(gap_lines(gap_report)) or NO_GAPS


def gap_lines(gap_report: Report) -> Iterator[str]:
    yield from (f"! {problem}" for problem in gap_report.broken.values())
    if not gap_report.runs:
        return
    yield gaps_headline(gap_report)
    for each in gap_report.budget:
        yield f"  {each.number} {each.name:21} {each.status:10}  {each.what}"
    missing = gap_report.missing
    yield f"missing ({len(missing)}):" if missing else NO_GAPS
    for each, runs in missing:
        yield f"  {each}  ({name_runs(runs)})"
    yield from gap_report.untaped
    yield from cold_lines(gap_report)


def cold_lines(gap_report: Report) -> Iterator[str]:
    if not gap_report.cold:
        return
    runs = format_count(len(gap_report.runs), "run")
    yield f"cold cases ({len(gap_report.cold)} of {runs} cannot be replayed fully):"
    for case in gap_report.cold:
        yield f"  {case.run}  {case.cassette}"
        yield from (f"      {reason}" for reason in case.reasons)
    for name, rows in gap_report.patterns.items():
        if rows:
            yield f"  by {name}: {coldest(rows)}"


def coldest(rows: Sequence[Mapping[str, Any]]) -> str:
    """The first of a pattern's rows (cold.patterns)."""
    return ", ".join(f"{row['value']} {row['cold']} of {row['runs']}" for row in rows[:5])


def gaps_headline(gap_report: Report) -> str:
    calls = sum(len(run.calls) for run in gap_report.runs)
    if len(gap_report.cassettes) > 1:
        files = f" in {len(gap_report.cassettes)} cassettes"
    else:
        files = ""
    return (
        f"{format_count(len(gap_report.runs), 'run')}, {format_count(calls, 'call')}{files}: "
        f"{format_count(len(gap_report.cold), 'cold case')}"
    )


def name_runs(runs: Sequence[str]) -> str:
    return ", ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
