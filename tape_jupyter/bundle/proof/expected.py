"""What a bundle says its cells give: digests of outputs without what is forgiven
(comparison/outputs.py).

They are of the outputs that the saved notebook shows; the proof says whether a fresh run gives them
again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tape_jupyter.bundle.archive.manifest import Expected
from tape_jupyter.bundle.session import Session
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import digests
from tape_jupyter.cassette.runs import current_runs, run_of
from tape_jupyter.comparison import outputs
from tape_jupyter.core.parse_limits import ReadBudget
from tape_jupyter.headless import run as headless_run

NOWHERE: Mapping[str, str] = outputs.NOWHERE
_SECONDS_PER_CHARACTER = 3e-7
"""What the digest of outputs takes at most."""


def outputs_digest(
    cell_outputs: Iterable[Mapping[str, Any]], where: Mapping[str, str] = NOWHERE
) -> str:
    """sha256 (hex) of a cell's outputs. `where`: what stands for the folder and home it ran in
    (forgiven.places).
    """
    digest = hashlib.sha256()
    for line in outputs.output_lines(cell_outputs, where):
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def of_session(session: Session) -> tuple[Expected, ...]:
    """What each code cell of the saved notebook shows, and how many recorded calls are its own."""
    return tuple(_yield_cells(session.notebook.cells, session.cassettes, session.where))


def _yield_cells(
    every: Sequence[Any], cassettes: Iterable[Path], where: Mapping[str, str]
) -> Iterator[Expected]:
    counts = _count_calls(cassettes)
    for number, cell in enumerate((each for each in every if headless_run.has_code(each)), 1):
        name = str(cell.get("id") or "")
        yield Expected(
            number=number,
            id=name,
            title=headless_run.first_line(cell.source),
            source=hashlib.sha256(cell.source.encode("utf-8", "surrogatepass")).hexdigest(),
            outputs=outputs_digest(shown_outputs(cell), where),
            calls=next((counts[key] for key in (name, *digests(cell.source)) if key in counts), 0),
            raises=outputs.failure_of(shown_outputs(cell))[0],
        )


def compare_with_manifest(
    expected_cells: Sequence[Expected], cells: Sequence[Mapping[str, Any]], budget: ReadBudget
) -> tuple[list[str], list[int], list[int]]:
    """How the cells of a notebook, as its file (nbformat 4) has them, are not those of a manifest,
    a line each; and the numbers of those whose outputs have another digest, which the folders that
    they name may explain; and of those that the budget leaves unread.
    """
    code = [{**each, "source": outputs.join_lines(each.get("source", ""))} for each in cells]
    code = [each for each in code if each.get("cell_type") == "code" and each["source"].strip()]
    if len(code) != len(expected_cells):
        return (
            [f"the notebook has {len(code)} code cells, the manifest {len(expected_cells)}"],
            [],
            [],
        )
    problems, unsure, unread = list[str](), list[int](), list[int]()
    for number, (one, cell) in enumerate(zip(expected_cells, code, strict=True), 1):
        out = headless_run.counted_outputs(cell["source"], cell.get("outputs", ()))
        differs = {
            "number": one.number != number,
            "id": "id" in cell and one.id != cell["id"],
            "title": one.title != headless_run.first_line(cell["source"]),
            "source": one.source
            != hashlib.sha256(cell["source"].encode("utf-8", "surrogatepass")).hexdigest(),
            "error": one.raises != outputs.failure_of(out)[0],
        }
        if wrong := [name for name, other in differs.items() if other]:
            problems.append(
                f"cell {number} of the notebook is not the manifest's: another {', '.join(wrong)}"
            )
        elif not budget.has_time(_SECONDS_PER_CHARACTER * outputs.count_characters(out)):
            unread.append(number)
        elif one.outputs != outputs_digest(out):
            unsure.append(number)
    return problems, unsure, unread


def shown_outputs(cell: Any) -> Sequence[Any]:
    """The outputs of a saved cell that count: what the tape answers is none."""
    return headless_run.counted_outputs(cell.source, cell.outputs)


def _count_calls(cassettes: Iterable[Path]) -> dict[str, int]:
    """Calls that count, by the id of their cell and by the hash of its source."""
    counts: dict[str, int] = {}
    for path in cassettes:
        cassette = Cassette.open(path)
        by_run: dict[str, int] = {}
        for entry in cassette.calls:
            by_run[entry.run] = by_run.get(entry.run, 0) + 1
        for run in current_runs(map(run_of, cassette.runs)):
            for key in filter(None, {run.cell.cell_id, run.cell.source}):
                counts[key] = counts.get(key, 0) + by_run.get(run.id, 0)
    return counts
