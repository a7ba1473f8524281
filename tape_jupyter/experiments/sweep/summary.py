"""What a sweep comes to: for each candidate how many runs pass, and of each kind of failure how many
now do. Rows are counted one by one, in any order; nothing of them is kept but what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.bundle.archive import locations
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.experiments.sweep.candidate import AS_RECORDED
from tape_jupyter.experiments.sweep.store import Row

Signature = tuple[str, str, str, str, str]
"""Error, first differing call, tool, model, tenant."""


@dataclass(frozen=True, slots=True)
class FailureCluster:
    """Runs that do not pass as recorded, alike in their signature; `passing` counts, for each
    candidate, those that now do.
    """

    signature: Signature
    runs: int
    passing: dict[str, int]

    @property
    def label(self) -> str:
        error, first_call, tool, model, tenant = self.signature
        named = [("tool", tool), ("model", model), ("tenant", tenant)]
        names = [f"{what} {name}" for what, name in named if name]
        return ", ".join([error, *filter(None, [first_call]), *names])

    def record(self) -> dict[str, Any]:
        keys = ("error", "asked", "tool", "model", "tenant")
        return {
            **dict(zip(keys, self.signature, strict=True)), "runs": self.runs, "now pass": self.passing,
        }  # fmt: skip


@dataclass(slots=True)
class SweepSummary:
    """`names` are the candidates, the recordings themselves first."""

    names: Sequence[str]
    verdicts: dict[str, Counter[str]] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    first_end: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of each kind of end, the place and the reason of the first row that had it."""
    fits: Counter[str] = field(default_factory=Counter)
    cold: set[str] = field(default_factory=set)
    calls: int = 0
    live: int = 0
    diverged: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    rows: int = 0
    unanswered: dict[str, str] = field(default_factory=dict)
    """Runs that came to their end as recorded, and in which the check could not be answered: why."""
    _passes: dict[str, set[str]] = field(default_factory=dict)
    _failed: dict[str, Signature] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        name, place = row["candidate"], row["place"]
        self.rows += 1
        self.verdicts.setdefault(name, Counter())[row["verdict"]] += 1
        if row["end"]:
            self.ends[row["end"]] += 1
            self.first_end.setdefault(row["end"], (place, row["why"]))
        self.fits[name] += row["fits"] > 0
        self.calls += row["calls"] or 0
        self.live += row["live"]
        self.diverged += row["diverged"] or 0
        self.cost += row["cost"]
        self.seconds += row["seconds"]
        if row["cold"]:
            self.cold.add(place)
        if row["verdict"] == "passes":
            self._passes.setdefault(name, set()).add(place)
        elif name == AS_RECORDED:
            self._failed[place] = signature(row)
            if row["verdict"] == "unresolved" and not (row["end"] or row["asked"] or row["cell"]):
                self.unanswered[place] = row["why"]

    @property
    def runs(self) -> int:
        return self.verdicts.get(AS_RECORDED, Counter()).total()

    def count(self, name: str, verdict: str) -> int:
        return self.verdicts.get(name, Counter())[verdict]

    def now_pass(self, name: str) -> int:
        return len(self._failed.keys() & self._passes.get(name, set()))

    def no_longer(self, name: str) -> int:
        """Runs that pass as recorded, and not with it."""
        return len(self._passes.get(AS_RECORDED, set()) - self._passes.get(name, set()))

    def clusters(self) -> list[FailureCluster]:
        """The largest first."""
        places: dict[Signature, set[str]] = {}
        for place, failure in self._failed.items():
            places.setdefault(failure, set()).add(place)
        tried = [name for name in self.names if name != AS_RECORDED]
        result = [
            FailureCluster(
                failure,
                len(failed_places),
                {name: len(failed_places & self._passes.get(name, set())) for name in tried},
            )
            for failure, failed_places in places.items()
        ]
        return sorted(result, key=lambda each: (-each.runs, each.signature))

    @property
    def unfit(self) -> list[str]:
        """Candidates that change nothing in any run."""
        return [name for name in self.names if name != AS_RECORDED and not self.fits[name]]

    @property
    def good(self) -> bool:
        """Whether every run passes with every candidate."""
        tried = [name for name in self.names if name != AS_RECORDED] or list(self.names)
        return all(len(self._passes.get(name, set())) == self.runs for name in tried)

    def _describe_end(self, end: str, count: int) -> str:
        place, why = self.first_end[end]
        name = locations.shown_place(place)
        return f"! {format_count(count, 'row')}: {end} ({why if name in why else f'{name}: {why}'})"

    def record(self) -> dict[str, Any]:
        candidates = [
            {
                "candidate": name, **self.verdicts.get(name, Counter()), "runs": self.runs,
                "now pass": self.now_pass(name), "no longer pass": self.no_longer(name), "fits": self.fits[name],
            }
            for name in self.names
        ]  # fmt: skip
        return {
            "runs": self.runs, "rows": self.rows, "candidates": candidates,
            "clusters": [each.record() for each in self.clusters()], "cold": sorted(self.cold),
            "ends": dict(self.ends), "calls": {"tape": self.calls, "live": self.live, "diverged": self.diverged},
            "cost": self.cost, "seconds": round(self.seconds, 3),
        }  # fmt: skip

    def lines(self) -> list[str]:
        """For people."""
        text = []
        for name in self.names:
            verdicts = self.verdicts.get(name, Counter())
            line = f"  {name:24} {verdicts['passes']:>5} of {self.runs} pass"
            if name != AS_RECORDED:
                line += f", {self.now_pass(name)} of {len(self._failed)} now pass"
                lost = self.no_longer(name)
                line += f", {lost} no longer" if lost else ""
            if verdicts["unresolved"]:
                line += f", {verdicts['unresolved']} unresolved"
            text.append(line)
        if clusters := self.clusters():
            text.append("what does not pass as recorded, and how many of it now pass:")
        for each in clusters:
            passing = "; ".join(
                f"{name} {count} of {each.runs}" for name, count in each.passing.items()
            )
            text.append(f"  {each.runs:>5}  {each.label}" + (f"   {passing}" if passing else ""))
        text.append(
            f"{format_count(self.rows, 'row')}, {self.seconds:.1f} s of runs; calls: {self.calls} from the tape, "
            f"{self.live} live, {self.diverged} not on it; ${self.cost:g}"
        )
        if self.cold:
            count = f"{len(self.cold)} of {format_count(self.runs, 'run')}"
            text.append(f"! cold cases: what a replay needs is missing in {count} (tape gaps)")
        text += [self._describe_end(end, count) for end, count in self.ends.items()]
        return [*text, *(f"! {name} changes nothing in any of these runs" for name in self.unfit)]


def signature(row: Row) -> Signature:
    """What makes failures alike."""
    error = row["error"] or row["end"] or "the check fails"
    first_call = row["asked"].partition(" is not on the tape")[0].partition(" (")[0]
    return error, first_call, row["tool"], row["model"], row["tenant"]
