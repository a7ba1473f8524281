"""One recorded call: where it lies and what it is found by. Everything else is read, when it is
asked for, by the book that holds it; nothing is kept here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.core.parse_limits import ReadBudget

Name = tuple[str, str]
"""Run id and call id."""


class Holder(Protocol):
    """The book that reads an entry (reader.Book), as entries and the takes above it see it."""

    path: Path
    base: Holder | None
    calls: list[Entry]
    overrides: list[Overridden]
    runs: list[dict[str, Any]]
    ended: dict[str, dict[str, Any]]
    tools: dict[str, list[Entry]]
    by_run: dict[str, dict[str, Any]]
    by_match: dict[str, list[Entry]]
    by_exact: dict[str, str]
    strands: dict[str, set[str]]
    by_name: dict[Name, Entry]

    @property
    def size(self) -> int: ...
    @property
    def torn(self) -> int: ...
    @property
    def assets(self) -> Path: ...
    def refresh(self) -> bool: ...
    def check(self, *, large: bool = True, budget: ReadBudget | None = None) -> Sequence[Entry]: ...
    def line(self, offset: int) -> int: ...
    def head(self, entry: Entry) -> dict[str, Any]: ...
    def request(self, entry: Entry) -> Request | FunctionCall: ...
    def request_section(self, entry: Entry) -> dict[str, Any]: ...
    def reply(self, entry: Entry) -> tuple[Reply | Value, bool]: ...
    def long_texts(self, entry: Entry) -> int: ...
    def count_values(self, entry: Entry) -> int: ...
    def place(self, name: Name) -> int | None: ...
    def folded_body(self, name: Name) -> Any: ...


class Entry:
    """One recorded call in a cassette: where it lies and what it is found by; everything else is
    read on demand.
    """

    __slots__ = (
        "book",
        "discriminator",
        "id",
        "length",
        "lineage",
        "match",
        "more",
        "offset",
        "place",
        "run",
    )

    def __init__(
        self,
        book: Holder,
        span: tuple[int, int],
        names: tuple[str, str, str, str],
        discriminator: str = "",
    ) -> None:
        self.book, self.discriminator = book, discriminator
        self.offset, self.length = span
        self.id, self.run, self.match, self.lineage = names
        self.more: tuple[tuple[int, int], ...] = ()
        self.place = -1

    def __repr__(self) -> str:
        return f"<call {self.id} of run {self.run}>"

    @property
    def line(self) -> int:
        """1-based line of the record in the file."""
        return self.book.line(self.offset)

    @property
    def name(self) -> str:
        """Which call of the cassette it is: `RUN/ID`."""
        return f"{self.run}/{self.id}"

    @property
    def title(self) -> str:
        """What was called: `tool lookup_order`, `model claude-sonnet-5`."""
        head = self.head()
        kit = head.get("kit")
        model = kit.get("model", "") if isinstance(kit, dict) else ""
        return f"{head.get('kind', 'call')} {head.get('name') or model}".strip()

    @property
    def order(self) -> int:
        """Which of the run's calls with the same match key this is, from 1, in the order they were
        made.
        """
        return int(self.id.partition("-")[2] or 1)

    def head(self) -> dict[str, Any]:
        """Every key of the record above `request`."""
        return self.book.head(self)

    def request(self) -> Request | FunctionCall:
        return self.book.request(self)

    def reply(self) -> Reply | Value:
        return self.book.reply(self)[0]

    def did(self) -> Mapping[str, Any]:
        """What a recorded function did besides (core/call.Value); {} of a request."""
        reply = self.reply()
        return reply.did if isinstance(reply, Value) else {}

    def moved(self) -> Mapping[str, Any]:
        """How far a recorded function moved generators, by their names; {} of a request."""
        reply = self.reply()
        return reply.moved if isinstance(reply, Value) else {}

    def edited(self) -> bool:
        """Whether the reply's bytes are not the recorded ones: somebody edited the file."""
        return self.book.reply(self)[1]


class Overridden(Entry):
    """A call whose reply a take replaces: found as the `recorded` call is, answered by the take's
    record.

    `replaced` is what would be answered without this record: the recorded call, or an earlier
    override of it. `by` is the run whose live answer this is, "" where a person gave it.
    """

    __slots__ = ("by", "recorded", "replaced")

    def __init__(self, book: Holder, span: tuple[int, int], replaced: Entry, by: str = "") -> None:
        super().__init__(
            book,
            span,
            (replaced.id, replaced.run, replaced.match, replaced.lineage),
            replaced.discriminator,
        )
        self.replaced, self.by, self.place = replaced, by, replaced.place
        self.recorded: Entry = replaced.recorded if isinstance(replaced, Overridden) else replaced
