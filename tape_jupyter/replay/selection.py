"""Which boundaries go live, stay frozen or are answered by a stub: the words of --live, --freeze,
--stub.

Pure: a word in, a value out; and for one call, which of them it is. The player decides what follows
from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from tape_jupyter.cassette.runs import CellIdentity
from tape_jupyter.core.call import FunctionCall, HostClass, Request
from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.providers import hosts

Kind = Literal["llm", "tools", "tool", "host", "call", "cell"]
WORDS = "llm, tools, tool:NAME, host:NAME, call:ID or cell:ID"
_ALONE: Mapping[str, Kind] = {"llm": "llm", "tools": "tools"}
_NAMED: Mapping[str, Kind] = {"tool": "tool", "host": "host", "call": "call", "cell": "cell"}
_RANK: Mapping[Kind, int] = {"call": 2, "tool": 1, "llm": 0, "tools": 0, "host": 0, "cell": 0}
"""A word for less beats one for more: `--live tools --freeze tool:send_mail`."""
_NO_RANK = -1
_SHORTEST_HASH = 4


class Known(Protocol):
    """A recorded call, as far as a selector asks."""

    @property
    def id(self) -> str: ...
    @property
    def run(self) -> str: ...


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """Where a call crosses: its kind, the tool's name or the host's (with its port), and the cell
    it comes from.
    """

    kind: HostClass
    name: str = ""
    port: int | None = None
    cell: CellIdentity = field(default_factory=CellIdentity)


def call_origin(call: Request | FunctionCall, kind: HostClass, cell: CellIdentity) -> CallOrigin:
    if isinstance(call, FunctionCall):
        return CallOrigin(kind, call.name, None, cell)
    try:
        parts = urlsplit(call.url)
        return CallOrigin(kind, parts.hostname or "", parts.port or _PORTS.get(parts.scheme), cell)
    except ValueError:
        return CallOrigin(kind, "", None, cell)


_FUNCTIONS = ("tool", "retrieval")
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


@dataclass(frozen=True, slots=True)
class Selector:
    """One word of --live or --freeze: `llm`, `tools`, `tool:NAME`, `host:NAME[:PORT]`, `call:ID`,
    `cell:ID`.
    """

    kind: Kind
    name: str = ""

    @classmethod
    def parse(cls, spec: str) -> Selector:
        """Raises TapeUsageError for what is none."""
        kind, colon, name = spec.strip().partition(":")
        if not colon and kind in _ALONE:
            return cls(_ALONE[kind])
        if name and kind in _NAMED:
            return cls(_NAMED[kind], name.lower() if kind == "host" else name)
        raise TapeUsageError(f"{spec[:80]!r} names no calls: write {WORDS}")

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    def selects(self, site: CallOrigin, recorded: Known | None) -> bool:
        """Whether the word is for this call; `recorded` is the recorded call that would answer it."""
        if self.kind in ("llm", "tools"):
            if self.kind == "llm":
                return site.kind == "model"
            return site.kind in _FUNCTIONS
        if self.kind == "tool":
            return self.name in _list_tool_names(site)
        if self.kind == "host":
            is_request = site.kind not in _FUNCTIONS
            return is_request and hosts.fits_host(self.name, site.name, site.port)
        if self.kind == "call":
            return recorded is not None and self.name in _list_call_names(recorded)
        source = len(self.name) >= _SHORTEST_HASH and site.cell.source.startswith(self.name)
        return self.name == site.cell.cell_id or source


def _list_call_names(recorded: Known) -> tuple[str, str]:
    return recorded.id, f"{recorded.run}/{recorded.id}"


How = Literal["live", "freeze", "stub", ""]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a person excepted from a cell's mode. `stubs` are frozen values (freezing/) by the
    tool's name.
    """

    live: tuple[Selector, ...] = ()
    freeze: tuple[Selector, ...] = ()
    stubs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(
        cls,
        live: Iterable[str] = (),
        freeze: Iterable[str] = (),
        stub: Mapping[str, Any] | None = None,
    ) -> Selection:
        """From words; `stub` maps `tool:NAME` (or NAME) to a value. Raises TapeUsageError, also for
        both at once.
        """
        lives = tuple(dict.fromkeys(map(Selector.parse, live)))
        freezes = tuple(dict.fromkeys(map(Selector.parse, freeze)))
        stubs = {
            _parse_tool_name(name): freeze_value(name, value)
            for name, value in (stub or {}).items()
        }
        stubbed = {Selector("tool", name) for name in stubs}
        for one, other, what in (
            (lives, freezes, "--live and --freeze"),
            (lives, stubbed, "--live and --stub"),
            (freezes, stubbed, "--freeze and --stub"),
        ):
            if both := set(one) & set(other):
                raise TapeUsageError(
                    f"{what} {' '.join(sorted(map(str, both)))}: a boundary is one or the other"
                )
        return cls(lives, freezes, stubs)

    def __bool__(self) -> bool:
        return bool(self.live or self.freeze or self.stubs)

    @property
    def changes(self) -> bool:
        """Whether a replay with it may answer otherwise than the tape does: then it goes to a take."""
        return bool(self.live or self.stubs)

    def without_stubs(self) -> Selection:
        return Selection(self.live, self.freeze)

    @property
    def hosts(self) -> frozenset[str]:
        """Hosts that connections which no tap sees may go to."""
        return frozenset(each.name for each in self.live if each.kind == "host")

    def how(self, site: CallOrigin, recorded: Known | None) -> How:
        """What holds for a call; "" what the cell's mode says. The word for less counts, and of
        equals the frozen.
        """
        live = _rank_of(self.live, site, recorded)
        frozen = _rank_of(self.freeze, site, recorded)
        stubbed = _NO_RANK
        if self.stubs and any(name in self.stubs for name in _list_tool_names(site)):
            stubbed = _RANK["tool"]
        if live > max(frozen, stubbed):
            return "live"
        if stubbed > frozen:
            return "stub"
        return "freeze" if frozen > _NO_RANK else ""

    def stub(self, site: CallOrigin) -> Any:
        """The frozen value that answers a call whose `how` is "stub"."""
        return next(self.stubs[name] for name in _list_tool_names(site) if name in self.stubs)

    @property
    def held_tools(self) -> tuple[str, ...]:
        """Names of tools that must not run."""
        return (*(each.name for each in self.freeze if each.kind == "tool"), *self.stubs)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of all the tools that are spoken of: they are taped, whoever asks for them."""
        return (*(each.name for each in self.live if each.kind == "tool"), *self.held_tools)

    def record(self) -> dict[str, Any]:
        """Its keys in a run record: what a run was made with."""
        fields = {
            "live": list(map(str, self.live)),
            "freeze": list(map(str, self.freeze)),
            "stub": list(self.stubs),
        }
        return {name: selectors for name, selectors in fields.items() if selectors}


def _rank_of(selectors: Iterable[Selector], site: CallOrigin, recorded: Known | None) -> int:
    """The rank of the word for least that is for this call."""
    ranks = [_RANK[each.kind] for each in selectors if each.selects(site, recorded)]
    return max(ranks, default=_NO_RANK)


def _list_tool_names(site: CallOrigin) -> tuple[str, ...]:
    """What a tool may be called; a method goes by its own name as well."""
    if site.kind in _FUNCTIONS:
        return site.name, site.name.rpartition(".")[2]
    return ()


def _parse_tool_name(name: str) -> str:
    kind, colon, rest = name.partition(":")
    bare = rest if colon else kind
    if (colon and kind != "tool") or not bare:
        raise TapeUsageError(f"--stub {name[:80]!r} names no tool: write tool:NAME=JSON")
    return bare


def freeze_value(name: str, value: Any) -> Any:
    try:
        return freeze(value)
    except Exception as error:
        raise TapeUsageError(f"--stub {name}: {error}") from error
