"""What an import reads from a file: runs, spans, calls, and records that became neither.

A format yields these in any order, children before parents too. Which run a call belongs to is told
by `trace`. Nothing is dropped without a `Skipped`: every record of a file is a call, a span, or
counted under a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tape_jupyter.core.call import FunctionCall, Reply, Request, Value

Grade = Literal["W", "J", "P", "M", "T"]
"""What a source holds of a call: wire bytes, the JSON of both bodies, provider-shaped parts,
neutral messages, text.
"""

TWICE = "a record sent twice: the last one counts"

Kind = Literal["model", "tool", "retrieval", "http"]


@dataclass(slots=True)
class Origin:
    """Where a call comes from: the system that wrote it, the file, its id there, and its line (0:
    not known).
    """

    system: str
    file: str = ""
    id: str = ""
    line: int = 0

    def record(self) -> dict[str, Any]:
        values = {"system": self.system, "file": self.file, "id": self.id, "line": self.line}
        return {name: value for name, value in values.items() if value}


@dataclass(slots=True)
class Run:
    """What is known of a trace as a whole; `about` are tags such as its user and session."""

    trace: str
    name: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Span:
    """A step around calls. Times are seconds of the epoch; 0.0 where they are not told."""

    id: str
    name: str
    parent: str = ""
    trace: str = ""
    start: float = 0.0
    end: float = 0.0
    error: str = ""


@dataclass(slots=True)
class Call:
    """A recorded call, as it will stand in the cassette.

    `missing` names what the source does not hold, `assumed` what was filled in. `usage` and `model`
    count where the bodies do not tell. `rebuilt`: the reply was made from messages.
    """

    id: str
    kind: Kind
    request: Request | FunctionCall
    reply: Reply | Value
    grade: Grade
    origin: Origin
    trace: str = ""
    parent: str = ""
    name: str = ""
    provider: str = ""
    model: str = ""
    start: float = 0.0
    end: float = 0.0
    missing: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    usage: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    rebuilt: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Skipped:
    """Records that are neither a call nor a span, and why. `text` is kept where it is all there is
    of them.
    """

    reason: str
    count: int = 1
    line: int = 0
    text: str = ""


Item = Run | Span | Call | Skipped


def each(make: Callable[[], Iterable[Item]], line: int = 0) -> Iterator[Item]:
    """What one record of a file gives; one that is not as its format has it is counted, and spoils
    no other.
    """
    try:
        yield from list(make())
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        yield Skipped(
            f"a record that is not as its format has it ({type(error).__name__}: {str(error)[:80]})",
            line=line,
        )
