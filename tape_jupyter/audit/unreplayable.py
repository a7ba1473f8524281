"""Cold cases: runs that no replay can repeat fully, why, and what they have in common. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tape_jupyter.audit.environment_fields import tags
from tape_jupyter.audit.nondeterminism import AuditFinding
from tape_jupyter.audit.run_view import AuditedRun
from tape_jupyter.core.call import Value
from tape_jupyter.providers.json_access import as_text


@dataclass(frozen=True, slots=True)
class RunCase:
    """One run, cold or not (`reasons` is then empty). `hour` is of the day, UTC; "" where it is not
    told.
    """

    run: str
    cassette: str
    reasons: tuple[str, ...]
    models: tuple[str, ...] = ()
    hour: str = ""
    tenant: str = ""
    tools: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        return {
            "run": self.run, "cassette": self.cassette, "reasons": list(self.reasons), "model": list(self.models),
            "hour": self.hour, "tenant": self.tenant, "tool": list(self.tools),
        }  # fmt: skip


def case(run: AuditedRun, cassette: str, findings: Iterable[AuditFinding] = ()) -> RunCase:
    """`findings`: the run's budget. A tool result that is not on the tape makes a run cold; an
    unpinned model does not.
    """
    reasons = [*run.cold, *_explain_unread(run)]
    if not reasons:  # what was named while recording is the same, in better words
        reasons = [each.what for each in findings if each.number == 6 and each.status == "missing"]
    if run.end is None:
        reasons.append("the run has no end mark: its kernel died, or it still runs")
    return RunCase(
        run.id,
        cassette,
        tuple(dict.fromkeys(reasons)),
        tuple(sorted({call.facts.model for call in run.calls if call.facts.model})),
        as_text(run.record.get("at"))[11:13],
        str(tags(run).get("tenant_id", "")),
        tuple(sorted(_collect_tools(run))),
    )


def _explain_unread(run: AuditedRun) -> list[str]:
    unkept = [
        f"what {call.name} returned could not be recorded: {call.reply.unkept}"
        for call in run.calls
        if isinstance(call.reply, Value) and call.reply.unkept
    ]
    return [*unkept, *(call.problem for call in run.calls if call.problem)]


def _collect_tools(run: AuditedRun) -> set[str]:
    tool_names = {tool.name for call in run.calls for tool in call.facts.calls if tool.name}
    return tool_names | {call.name for call in run.calls if call.kind == "tool"}


PATTERNS: Mapping[str, Callable[[RunCase], Sequence[str]]] = {
    "model": lambda case: case.models,
    "hour": lambda case: [f"{case.hour}:00 UTC"] if case.hour else [],
    "tenant": lambda case: [case.tenant] if case.tenant else [],
    "tool": lambda case: case.tools,
}


def cold_patterns(cases: Sequence[RunCase]) -> dict[str, list[dict[str, Any]]]:
    """For each of model, hour, tenant and tool: how many of the runs that have it are cold; the
    coldest first.
    """
    return {name: _count_groups(cases, of) for name, of in PATTERNS.items()}


def _count_groups(
    cases: Sequence[RunCase], of: Callable[[RunCase], Sequence[str]]
) -> list[dict[str, Any]]:
    runs: dict[str, list[RunCase]] = {}
    for each in cases:
        for value in of(each):
            runs.setdefault(value, []).append(each)
    rows = [
        {"value": value, "cold": sum(bool(each.reasons) for each in group), "runs": len(group)}
        for value, group in runs.items()
    ]
    return sorted(
        (row for row in rows if row["cold"]),
        key=lambda row: (-row["cold"], row["runs"], row["value"]),
    )
