"""Values room: what a report says of one source of chance or one part of the kit. Nothing here reads or decides.

* pinned: a replay holds it to what it was.
* recorded: it stands on the tape; it is replayed as it was, and a change is seen when the cell is recorded again.
* unpinnable: nothing can hold it when the cell runs live; the recorded reply is the only way to have it again.
* missing: it is not on the tape; `capture` is the one line that keeps it next time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Status = Literal["pinned", "recorded", "unpinnable", "missing"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""From the best to the worst."""

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """`number` is that of a budget item (1 to 9), 0 for a field of the kit; `call` is "" where it is of the run.

    `detail` is what only this very call says (its request id); `empty`: there was nothing to hold.
    """

    name: str
    status: Status
    what: str
    capture: str = ""
    number: int = 0
    call: str = ""
    empty: bool = False
    detail: str = ""

    @property
    def said(self) -> str:
        """All that is known of it."""
        return f"{self.what}, {self.detail}" if self.detail else self.what

    def record(self) -> dict[str, Any]:
        whole = {**asdict(self), "what": self.said}
        told = {key: value for key, value in whole.items() if key not in ("empty", "detail") and value not in ("", 0)}
        return {**({"item": told.pop("number")} if self.number else {}), **told}

    def __str__(self) -> str:
        return f"{self.name}: {self.what}" + (f". Next time: {self.capture}" if self.capture else "")


def worst(findings: Iterable[Finding]) -> Status:
    """The worst status among them; that of nothing at all is "recorded"."""
    return max((each.status for each in findings), key=STATUSES.index, default="recorded")


def folded(name: str, number: int, findings: Sequence[Finding], none: str, unit: str = "calls") -> Finding:
    """What several calls (or runs) say together: the worst of it, and how many say so. `none`: where there are none."""
    if not findings:
        return Finding(name, "recorded", none, number=number, empty=True)
    findings = [each for each in findings if not each.empty] or findings
    status = worst(findings)
    bad = [each for each in findings if each.status == status]
    said = Counter(each.said if len(findings) == 1 else each.what for each in bad).most_common()
    told = "; ".join(f"{what} ({count} {unit})" if count > 1 else what for what, count in said[:_NAMED])
    more = f"; {len(said) - _NAMED} more kinds" if len(said) > _NAMED else ""
    of = f"{len(bad)} of {len(findings)} {unit}: " if len(bad) < len(findings) else ""
    capture = next((each.capture for each in bad if each.capture), "")
    return Finding(name, status, f"{of}{told}{more}", capture, number)
