"""What was executed in this kernel, in the order it was executed. Values only: nothing is run here.

An entry is one execution of one cell: the same cell run twice is two entries, and a cell that was
edited or deleted since keeps the entry of what really ran. What a cell reads and writes are
*resources*, each a text:

    mood                  a name of the notebook
    memo['a']  agent.log  a part of one: a key of a plain dict, an attribute of a plain object
    log[*]                some element of one, nobody knows which
    memo.__len__          how many it has, and which keys; memo.__len__['a'] whether it has that one
    helpers:STATE         a global of a module of the user's
    file:/tmp/out.csv     a file; file:* any file (a subprocess ran)
    ambient:cwd           state of the process that has no name (AMBIENT in dataflow/tracing/ambient.py)
    library:logging       state inside a library
    output:3              what the shell shows and keeps: Out[3], _; output:* any of it
    *                     any name (exec of a text that nobody knows beforehand)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tape_jupyter.dataflow.static.names import StatementPlace

Outcome = Literal["ok", "error", "cancelled", "running"]

EVERYTHING = "*"
FILES = "file:*"
OUTPUTS = "output:*"
ELEMENT = "[*]"
SIZE = ".__len__"
COLUMNS = ".__columns__"
"""Which columns a frame has."""
REPLY = ":reply"
"""Among what a thing depends on: what a call to something outside returned, a taped one perhaps."""

TOO_LARGE = "`{name}` is too large to keep"
UNREAD = "what `{name}` held after {title} was discarded: no cell read it before it was assigned again or deleted"
UNCALLED = (
    "what `{name}` held after {title} was discarded: no cell had made a call when it was last read"
)
WEAKLY_WATCHED = (
    "`{name}` holds something of which a weak reference tells when the notebook drops it"
)
UNWATCHED = "what `{name}` held after {title} was not kept: no cell was taped yet"
"""Why values are not kept (Entry.unkept)."""

_STEPS = re.compile(r"""^[^.\[]+|\.[^.\[]+|\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\]'"]*)\]""")
_SIZED = re.compile(rf"({re.escape(SIZE)}|{re.escape(COLUMNS)})\[")
_NAME = re.compile(r"[^\W\d]\w*")


@lru_cache(65536)
def name_of(resource: str) -> str | None:
    """The notebook's name that a resource is, or is part of; None for what is no name."""
    match = _NAME.match(resource)
    return None if match is None or ":" in resource.partition("[")[0] else match[0]


def covers(written: str, read: str) -> bool:
    """Whether a reader of `read` sees a change of `written`: equal, or one a part or a pattern of
    the other.
    """
    if written == read:
        return True
    if EVERYTHING in (written, read):
        return name_of(read if written == EVERYTHING else written) is not None or written == read
    if ELEMENT in written or ELEMENT in read:
        return _is_element_covered(written, read)
    if is_part(written, read) or is_part(read, written):
        return True
    kind, colon, rest = written.partition(":")
    return (
        bool(colon) and read.startswith(f"{kind}:") and "*" in (rest, read.removeprefix(f"{kind}:"))
    )


def _is_element_covered(written: str, read: str) -> bool:
    """`log[*]`, some element of it: it is not how many there are, nor of which class it is; and
    `log[*]['role']`, that of each.
    """
    return all(
        one == other or (ELEMENT in (one, other) and one[0] == other[0] == "[")
        for one, other in zip(split_path(written), split_path(read), strict=False)
    )


def presence(box: str, step: str, size: str = SIZE) -> str:
    """Whether a box has an element `step`, a part of how many it has and which."""
    return f"{box}{size}{step}"


def find_presence(resource: str) -> int:
    """Where it is said of a box whether it has one element, in what `presence` gives; -1 elsewhere."""
    match = _SIZED.search(resource)
    return match.start() if match else -1


@lru_cache(65536)
def split_path(resource: str) -> tuple[str, ...]:
    """`log`, `[0]`, `['role']` of `log[0]['role']`."""
    return tuple(_STEPS.findall(resource))


def is_part(parent: str, part: str) -> bool:
    return part.startswith(parent) and part[len(parent)] in ".["


@dataclass(frozen=True, slots=True)
class Step:
    """One top-level statement of an entry: what it reads and may write. `strong` is written
    whatever the value before was and whatever else happens, so it ends a taint; `weak` may be
    changed. `via` says how a resource that the source does not name was reached: {"client": "ask"}
    is "calls `ask`, which reads `client`".
    """

    line: int
    end: int = 0
    reads: frozenset[str] = frozenset()
    strong: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    via: Mapping[str, str] = field(default_factory=dict)
    calm: bool = False
    """It raises for no other value that it reads: `print(r)`; so what follows it is reached all the
    same.
    """
    calm_call: bool = False
    """It raises for no other reply that it asks for: `r = ask("hi")`."""
    amends: frozenset[str] = frozenset()
    """Of `reads`, names of which it binds a part and reads nothing: it depends on them, what it
    writes does not.
    """
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What some of the things it writes depend on, among `reads` and REPLY; the others depend on
    all (outcomes.py).
    """
    raises: frozenset[str] | None = None
    """What it depends on whether it comes to its end; None: see `calm`."""
    unsure: frozenset[str] = frozenset()
    """Of `strong`, what was written in a branch: with another reply it may stay as it was."""
    direct: frozenset[str] = frozenset()
    """Of `reads`, names that it reads in its own text alone: no function that ran did."""
    place: StatementPlace | None = field(default=None, compare=False, repr=False)
    """Where that text stands."""


@dataclass(frozen=True, slots=True)
class Change:
    """A piece of ambient state before and after an entry, as ambient.restore_part() takes it; or a file's
    bytes (None: there was none). `known` is False where the value before could not be kept: then
    only a fresh kernel restores it.
    """

    before: Any
    after: Any
    known: bool = True


@dataclass(slots=True)
class Execution:
    """One execution. What is unknown is assumed to be touched: then `opaque` names it and `notes`
    says it in words.
    """

    index: int
    cell: str
    source: str
    number: int | None = None
    run: str = ""
    outcome: Outcome = "running"
    calls: bool = False
    """Whether it is taped or made a taped call: only from such a one a re-run sets out."""
    seconds: float = 0.0
    steps: tuple[Step, ...] = ()
    before: dict[str, str] = field(default_factory=dict)
    """Fingerprints of the names that it could reach, as they were before it ("" : the name was not
    there).
    """
    after: dict[str, str] = field(default_factory=dict)
    """The same afterwards, with the names it made ("" : it is gone)."""
    changed: frozenset[str] = frozenset()
    """Names whose fingerprint differs, that were bound anew, or whose value is opaque and was
    reached.
    """
    opaque: frozenset[str] = frozenset()
    """Names whose value cannot be looked into (a connection, a generator, something vast)."""
    shares: dict[str, frozenset[str]] = field(default_factory=dict)
    """Names that hold, somewhere, the same changeable object, after it."""
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    """The values of `changed` names after it, by reference: those that can be put back, as long as
    keeping.py says.
    """
    mementos: dict[str, Any] = field(default_factory=dict, repr=False)
    """Mementos of the kept values (restore/snapshots.py): what they held after it, since objects change. Of
    a value that cannot be put back, only why.
    """
    unkept: dict[str, str] = field(default_factory=dict)
    """Of the `changed` names, why their values are not kept, where that is no matter of what they
    hold: a sentence with {name} and {title}.
    """
    ambient: dict[str, Change] = field(default_factory=dict)
    """By the part after "ambient:"."""
    files: dict[str, Change] = field(default_factory=dict)
    """By absolute path."""
    imported: frozenset[str] = frozenset()
    """Modules of the user's that were first imported by it: without it they are not there."""
    outputs: str = ""
    """Digest of what it printed and displayed; "" where nobody looked."""
    notes: tuple[str, ...] = ()
    """Sentences on what cannot be known: "starts a process: it may read any file"."""

    @property
    def reads(self) -> frozenset[str]:
        return frozenset().union(*(step.reads for step in self.steps))

    @property
    def strong(self) -> frozenset[str]:
        return frozenset().union(*(step.strong for step in self.steps))

    @property
    def certain(self) -> frozenset[str]:
        """What it binds anew or removes whatever the replies are, so that the value before does not
        matter.
        """
        return self.strong - frozenset().union(*(step.unsure for step in self.steps))

    @property
    def writes(self) -> frozenset[str]:
        return frozenset().union(*(step.strong | step.weak for step in self.steps))

    @property
    def title(self) -> str:
        """How people are told of it: [3], or [deleted] where it has no prompt number."""
        return f"[{self.number}]" if self.number is not None else "an unnumbered cell"

    def let_go(self, name: str, why: str) -> None:
        """Keep the value of a name no longer."""
        self.kept.pop(name, None)
        self.mementos.pop(name, None)
        self.unkept[name] = why

    def summary(self) -> dict[str, Any]:
        """For the viewer: JSON types only, no values of the notebook."""
        return {
            "index": self.index, "cell": self.cell, "number": self.number, "run": self.run, "outcome": self.outcome,
            "seconds": self.seconds, "source": self.source, "reads": sorted(self.reads), "writes": sorted(self.writes),
            "strong": sorted(self.strong), "changed": sorted(self.changed), "opaque": sorted(self.opaque),
            "ambient": sorted(self.ambient), "files": sorted(self.files), "notes": list(self.notes),
        }  # fmt: skip


class History:
    """The entries of one kernel, oldest first."""

    def __init__(self, entries: Iterable[Execution] = ()) -> None:
        self.entries: list[Execution] = list(entries)

    def __iter__(self) -> Iterator[Execution]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Execution:
        return self.entries[index]

    def begin(self, cell: str, source: str, number: int | None) -> Execution:
        """A new entry, in its place; its `outcome` is "running" until the tracker has looked."""
        entry = Execution(len(self.entries), cell, source, number)
        self.entries.append(entry)
        return entry

    def of_run(self, run: str) -> Execution | None:
        """The entry that a taped run belongs to; the newest, where a run was replayed again."""
        return next((e for e in reversed(self.entries) if run and e.run == run), None)

    def of_cell(self, cell: str) -> list[Execution]:
        return [e for e in self.entries if e.cell == cell]

    def latest(self) -> dict[str, Execution]:
        """By cell, the entry that last ran it, in the order of these runs."""
        last = {e.cell: e for e in self.entries}
        return {e.cell: e for e in sorted(last.values(), key=lambda each: each.index)}

    def summary(self) -> list[dict[str, Any]]:
        return [entry.summary() for entry in self.entries]
