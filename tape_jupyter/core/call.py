"""What a call is. Nothing here reads, writes, patches or decides.

A *call* is one request to a model, tool, retriever or host, with its reply or error. Two kinds of
request exist: `Request` (HTTP, bytes) and `FunctionCall` (a Python function, live objects).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tape_jupyter.core import large_body as large
from tape_jupyter.core.websocket import Dialogue

Headers = tuple[tuple[str, str], ...]
End = Literal["complete", "closed", "cut short", "error"]
HostClass = Literal["model", "tool", "retrieval", "telemetry", "asset", "host"]


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request as the transport was asked to send it.

    `method` is upper case, `url` absolute, `body` the exact bytes (content-encoding on). Headers
    keep their order and spelling and may hold secrets: they never reach a file unscrubbed. A body
    that is too large to be held is `large`, and `body` is empty then.
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    large: large.LargeBody | None = None
    named: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """The headers by their names in lower case; of one that repeats, the first."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "named", {key.lower(): value for key, value in reversed(self.headers)}
        )

    def header(self, name: str, default: str = "") -> str:
        return self.named.get(name, default)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a taped Python function: its name and its bound arguments (live objects, by
    parameter name).

    `discreet`: whether what it gives is a secret and is not kept (`maybe`: what was asked and
    answered tells). `instance` is a method's own object, None where it has none. `scope` is what its
    body can reach (effects.scope.Scope); it is no part of what is asked.
    """

    name: str
    arguments: Mapping[str, Any]
    kind: Literal["tool", "retrieval"] = "tool"
    discreet: Literal["no", "maybe", "yes"] = "no"
    instance: Any = None
    scope: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back over HTTP.

    `chunks` are the bytes of each network read with content-encoding on, `waits` the seconds from
    sending the request to each read (same length). `end` says how it ended: 'complete' (end of body
    seen, or its terminal event), 'closed' (the program stopped reading), 'cut short' (a kernel
    interrupt), 'error' (`error` was raised after the chunks, or instead of a head when `status` is
    None). `error` is a frozen exception (freezing/). The chunks of a body that is too large to be
    held are read from its file, one at a time.
    """

    status: int | None
    headers: Headers = ()
    chunks: Sequence[bytes] = ()
    waits: tuple[float, ...] = ()
    end: End = "complete"
    error: Mapping[str, Any] | None = None
    version: str = "HTTP/1.1"
    reason: str = ""

    @property
    def body(self) -> bytes:
        """All of it, however large."""
        return b"".join(self.chunks)

    @property
    def readable(self) -> bytes:
        """What is looked into: the body, and nothing of one that is too large to be held."""
        return b"" if large.is_large(self.chunks) else self.body

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return large.chunks_size(self.chunks)

    def header(self, name: str, default: str = "") -> str:
        return header_value(self.headers, name, default)


@dataclass(frozen=True, slots=True)
class Value:
    """What a taped function gave: a frozen value, or a frozen exception in `error` (freezing/).

    `unkept` says why neither could be kept; the call holds its place, so that its like are not
    taken for it. `did` is what its body did besides (session/tool_effects.py). `moved` says how far
    it moved random generators that others use too (session/pins/random.py). `changed` are the types
    of arguments that could not be written and whose state it changed: a replay may leave those as
    they are. `effects`, of older recordings: the arguments it changed in place
    (encoding/values/mutations.py).
    """

    value: Any = None
    error: Mapping[str, Any] | None = None
    seconds: float = 0.0
    unkept: str = ""
    effects: Mapping[str, Any] = field(default_factory=dict)
    moved: Mapping[str, Any] = field(default_factory=dict)
    did: Mapping[str, Any] = field(default_factory=dict)
    changed: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[int, ...]:
        """How many of the things that its body showed came together: first those that it showed at
        once, then those that have places in the order of hand-overs, before that of the result.
        """
        amid = self.did.get("amid")
        if not isinstance(amid, list) or not all(type(n) is int and n >= 0 for n in amid):
            return ()
        return tuple(amid)

    @property
    def awaited(self) -> bool:
        """Whether the error is that of a coroutine which a plain function gave."""
        return self.did.get("awaited") is True

    @property
    def cancelled(self) -> int:
        """How often its task was cancelled, and its body went on."""
        count = self.did.get("cancelled", 0)
        return count if type(count) is int else 0


class Gate(Protocol):
    """When a recorded reply may be handed on: in its recorded order, or after its recorded waits.

    Seconds are counted from the call's start on the tape's clock (Reply.waits, Value.seconds). A
    tap passes the gate before it hands on the head (its first wait), and before each chunk; `last`
    marks what completes the call. Both raise TapeRefusal where the cell has ended meanwhile.
    `each`: the head and the first chunk pass one after the other, and so does the closing of a
    reply, where a task has to wait for that; else what comes together passes once. `ends`: it is
    known when the program went on that had read a reply to its end, or closed it.
    """

    each: bool
    ends: bool

    def wait(self, seconds: float, *, last: bool = False, shown: bool = False) -> None:
        """Block this thread until then. `shown`: until what a function showed may be shown."""

    async def wait_async(self, seconds: float, *, last: bool = False, shown: bool = False) -> None:
        """The same, awaited."""


class Effects(Protocol):
    """What a recorded function did besides returning. A tap asks for it when it hands the result
    on, and shows before what came before it (`Value.groups`): the first group at once, the others
    one by one as the gate says.
    """

    groups: Sequence[int]

    def show_group(self, group: int) -> None:
        """Show what came together before the result."""

    def happen(self, step: int | None = None) -> None:
        """Do it again: all of it; of a generator, what belongs to the item of that number."""

    def report_early_close(self) -> None:
        """A generator is closed before its end, where the recorded one then did something more."""

    def result(self, structure: Any) -> Any:
        """A frozen result; parts that are objects of the program's are those very objects."""

    def raised(self, error: BaseException) -> BaseException:
        """The same of an error."""


@dataclass(frozen=True, slots=True)
class Play:
    """Decision: hand this back; nothing goes out. `gate`, where there is one, says when.

    `dialogue` is there where the reply is a connection with frames both ways (its status is 101),
    `effects` where it is a function's.
    """

    reply: Reply | Value
    gate: Gate | None = None
    dialogue: Dialogue | None = None
    effects: Effects | None = None


class Capture:
    """Decision: go live, and tell the capture what happens, as it happens. This one keeps nothing
    (telemetry; the guard lets its socket through); others define what they keep.

    Of `finish`, `close` and `fail` exactly one is called, at most once has an effect. None of them
    raises, except that nothing is caught from a kernel interrupt. `chunk` commits the call before
    it returns when the chunk holds the terminal event or the last declared byte: a tap calls it
    *before* handing the chunk on.
    """

    def sent(self) -> None:
        """The request is out, and nothing came yet: a tap that can tell says so, in the thread or
        task that waits.
        """

    def head(
        self, status: int, headers: Headers, version: str = "HTTP/1.1", reason: str = ""
    ) -> None:
        """The head of the reply arrived."""

    def chunk(self, data: bytes) -> None:
        """One network read, not yet handed to the caller."""

    def finish(self) -> None:
        """The end of the body was seen."""

    def close(self) -> None:
        """The program closed the reply before its end."""

    def fail(self, error: BaseException) -> None:
        """What was raised to the caller (connection refused, reset, timeout, cancel, interrupt)."""

    def value(self, value: Any) -> None:
        """A taped function returned this; of a generator, its `frozen.Steps` to the end."""

    def progress(self, steps: Any) -> None:
        """A taped function is a generator that runs: `steps` (frozen.Steps) grow as it yields."""

    def stepping(self) -> None:
        """The generator's body is about to run on."""

    def stepped(self) -> None:
        """It yielded, ended or raised: what it did since belongs to that item."""

    def yielded(self) -> None:
        """Its newest item is handed to the program now."""

    def awaited(self) -> None:
        """A taped function is none of `async def`, and gave a coroutine: what comes is that one's."""

    def wait_to_show(self) -> None:
        """The body of a taped function is about to show something."""

    def record_output(self, event: dict[str, Any], sink: Any = None) -> None:
        """The body of a taped function showed something at a sink, or told its framework
        (instrumentation/tools/output.py).
        """

    def knows(self, value: Any) -> bool:  # noqa: ARG002
        """Whether an object was within reach of the body when that began."""
        return False

    def acting_again(
        self,
        objects: Sequence[Any],  # noqa: ARG002
        event: Mapping[str, Any],  # noqa: ARG002
        sink: Any,  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Inside, the event is recorded, and code of these objects shows it, as it does in replay."""
        return nullcontext()


class Tape(Protocol):
    """All that instrumentation asks. A tape decides on calls (`begin`); the other answers here are
    those of a tape that records everything and plays nothing. Inherit them.
    """

    def begin(self, call: Request | FunctionCall) -> Play | Capture | None:
        """Decide on one call. None: it is not taped, behave as if we were not there. Raises
        TapeRefusal (an unmatched call, a call whose cell has ended).

        Code that can await asks through `stepping_hook.begin_call`, so that a call that is held blocks
        its own task only.
        """

    def hold_call(self, call: Request | FunctionCall) -> Hold | None:  # noqa: ARG002
        """The call, where it is to wait for a person; None: ask `begin`."""
        return None

    def may_decide(self) -> bool:
        """Whether an HTTP call that is made here is this tape's to decide on."""
        return True

    def withholds(self, peek: Callable[[], Request]) -> bool:  # noqa: ARG002
        """Whether a call that is not taped carries a placeholder, and must not go out."""
        return False

    def answers(self) -> bool:
        """Whether a call that is made here may be answered without being sent."""
        return False

    def replays(self) -> bool:
        """Whether all that is asked here is answered from the tape: no credential is of use."""
        return False

    def lend_placeholder(self, name: str, label: str) -> str | None:  # noqa: ARG002
        """A placeholder for a credential that is nowhere to be found; None: it fails as without
        us.
        """
        return None

    def setting(self, name: str) -> str | None:  # noqa: ARG002
        """What the recorded calls tell of a setting that is not set here."""
        return None

    def untyped(self, call: FunctionCall) -> str | None:  # noqa: ARG002
        """What stands in for a secret that a person was asked for and did not type."""
        return None

    def spool(self, request: Request) -> Any:  # noqa: ARG002
        """Where a large body goes that is about to be sent (secrets.spooling.Spool); None: it is
        held in memory.
        """
        return None

    def note(self, text: str) -> None:
        """What instrumentation saw and the tape cannot hold."""

    def flag(self, key: str, value: Any) -> None:
        """A feature flag was evaluated."""


class Hold(Protocol):
    """The decision is a person's (`%%tape step`): it is waited for, in this thread or task alone."""

    async def wait_async(self) -> Play | Capture | None:
        """The decision. Raises TapeRefusal: the call was refused, or the cell is left."""


@dataclass(frozen=True, slots=True)
class Where:
    """Who made a call: which cell execution, and by which lineage of tasks and threads.

    `lineage` is the path of spawned tasks, threads and work items from the cell: "" the cell
    itself, "ask-2" the third that runs a function `ask`, "ask-2.0" that one's first child that has
    no name. The same program gives the same paths whatever order threads run in. (Recordings of
    earlier versions have numbers alone.)
    """

    cell: str = ""
    lineage: str = ""
    span: tuple[str, ...] = ()
    parent: str = ""
    tags: Mapping[str, Any] = field(default_factory=dict)


def header_value(headers: Headers, name: str, default: str = "") -> str:
    """The first header of that name, whatever its case."""
    for key, value in headers:
        if key.lower() == name:
            return value
    return default
