"""Which recorded call a call is that matches by less than all of it, and in which words that is
said.

A call whose match key says less than all (`MatchedRequest.hidden`) is the recorded one with the same
digest of the rest. Where there is none, a recorded call still answers if nothing that can be
compared speaks against it:

    it was recorded before states were told, or the program has a marker in the place of what was
    masked what differs has no value that is the same in another run (a client, code, a moment, a
    random id), and what tells
        the recorded calls from each other points to one of them
    only an object differs that recorded calls changed, or a method's own: a replay may not do all
    that was done to it

That is said, and `--strict` refuses it. Any other call is not on the tape.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.match_key import MatchedRequest
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.encoding.values.mutations import FrozenValue
from tape_jupyter.errors import CassetteError
from tape_jupyter.replay.object_state import FIELDS, STATE
from tape_jupyter.replay.player import Recorded
from tape_jupyter.session.cell import TapedCell
from tape_jupyter.session.mismatch import title

_MOST = 100
"""Recorded calls with one match key that are compared field by field."""
_DAYS = 2 * 86_400.0
_UNSTEADY = frozenset({"<library>", "<code>", "<handle>", "<cut>", "<weak>", "<file>", "<cycle>"})
_ID = re.compile(r"[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# where they were recorded
_SCRATCH = (tempfile.gettempdir(), "/tmp/", "/var/folders/")  # noqa: S108
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")

Leaves = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NearMatch:
    """`discriminator` is what the recorded call is found by (None: by order). `less` is by what it matches
    less than whole, "" where it does not; `message` is what the cell says of it. `why` is why no
    recorded call answers, if one could be meant. `changed`: an object that it is about holds other
    values than it did, as far as these are steady.
    """

    discriminator: str | None
    less: str = ""
    message: str = ""
    why: str = ""
    changed: bool = False


def chosen(
    cell: TapedCell, call: Request | FunctionCall, matched: MatchedRequest, changed: Collection[str]
) -> NearMatch:
    """Which of the recorded calls with its match key the call is. `changed` are types of objects
    that recorded calls changed, and that are perhaps not as they were then.
    """
    groups = cell.player.groups(cell.execution, matched.match)
    if isinstance(call, FunctionCall):
        loose = _find_loose_arguments(call, changed)
    else:
        loose = frozenset()
    if loose:
        groups = _leave_served_out(groups, cell.execution.served)
    if not groups:
        return NearMatch(matched.discriminator)
    if matched.discriminator in groups:
        return NearMatch(matched.discriminator, ", ".join(matched.by_type))
    if "" in groups:
        return _match_by_less(call, matched, groups[""])
    if isinstance(call, Request):
        return _match_near_request(call, matched, groups)
    if loose:
        return _match_changed_object(call, matched, groups, loose)
    return _match_near_function(call, matched, groups)


def _leave_served_out(
    groups: Mapping[str, Sequence[Recorded]], served: Collection[tuple[str, str]]
) -> Mapping[str, Sequence[Recorded]]:
    """A recorded call that was served already is none that a changed object could be meant for."""
    left: dict[str, Sequence[Recorded]] = {}
    for group, calls in groups.items():
        rest = [each for each in calls if (each.run, each.id) not in served]
        if rest:
            left[group] = rest
    return left


def _find_loose_arguments(call: FunctionCall, changed: Collection[str]) -> frozenset[str]:
    """The arguments that may not be as they were when the call was recorded: a replay runs no body.
    A method's own object (`self`) says who is asked, not what.
    """
    opaque = _find_opaque_arguments(call)
    return frozenset(
        name for name, each in opaque.items() if name == "self" or each["<opaque>"] in changed
    )


def by_order(less: str, calls: Sequence[str]) -> str:
    """What is said of recorded calls that the tape cannot tell apart."""
    names = ", ".join(calls[:4]) + (", ..." if len(calls) > 4 else "")
    return f"{len(calls)} calls differ only in {less}: replay tells them apart by their order (calls {names})"


def told_by_order_with(entry: Entry) -> str:
    """The ids of the recorded calls that only their order tells from this one, and its own."""
    alike = entry.book.ended.get(entry.run, {}).get("alike", ())
    ids = []
    for each in entry.book.by_match.get(entry.match, ()):
        same = each.run == entry.run and each.discriminator == entry.discriminator
        if same and each.id in alike:
            ids.append(each.id)
    return ", ".join(ids[:6])


def _match_by_less(
    call: Request | FunctionCall, matched: MatchedRequest, recorded: Sequence[Recorded]
) -> NearMatch:
    """The recording does not hold what tells the call apart: it is older, or that was masked as
    something weak.
    """
    less = _describe_partial_fields(matched)
    if not matched.by_value:
        return NearMatch("", ", ".join(matched.by_type))
    if isinstance(call, Request) and len(recorded) == 1:
        return NearMatch("", less)
    message = (
        f"{title(call)} was matched without {less}, which {_format_place(recorded)} does not hold"
    )
    return NearMatch("", less, f"{message}. Now: record the cell again")


def _match_near_request(
    call: Request, matched: MatchedRequest, groups: Mapping[str, Sequence[Recorded]]
) -> NearMatch:
    """A value that was masked is another one now: somebody else's key, or another question."""
    less = _describe_partial_fields(matched)
    if len(groups) == 1:
        (group, recorded), *_ = groups.items()
        message = f"{title(call)} was matched without {less}, which is another value than in {_format_place(recorded)}"
        return NearMatch(group, less, message if matched.by_value else "")
    calls = [each[0].id for each in groups.values()]
    if matched.by_value:
        why = f"Calls {', '.join(calls[:4])} differ in {less}, which is masked; what is asked now is none of these."
        return NearMatch(matched.discriminator, why=why)
    return NearMatch(None, less, f"{title(call)}: {by_order(less, calls)}")


def _match_near_function(
    call: FunctionCall, matched: MatchedRequest, groups: Mapping[str, Sequence[Recorded]]
) -> NearMatch:
    ours = _collect_leaves(call)
    theirs = _read_leaves_by_group(groups)
    distinct_paths = set()
    for path in _list_paths(theirs.values()):
        if len({repr(each.get(path)) for each in theirs.values()}) > 1:
            distinct_paths.add(path)

    fits = _find_fitting(ours, theirs, distinct_paths, _is_same_field)
    if len(fits) != 1:  # a moment, a random id or an address speaks against none
        fits = _find_fitting(ours, theirs, distinct_paths, _may_be_same_field)
    if len(fits) != 1 or len(groups) > _MOST:
        count = sum(map(len, groups.values()))
        paths_text = ", ".join(sorted(distinct_paths)[:4]) or "what is masked"
        why = f"{count} recorded calls differ in {paths_text}."
        return NearMatch(matched.discriminator, why=why)
    other = theirs[fits[0]]
    if not _may_be_same_call(ours, other):
        return NearMatch(matched.discriminator)
    less = ", ".join(_list_differing_paths(ours, other)[:4]) or "what is masked in it"
    place = _format_place(groups[fits[0]])
    return NearMatch(fits[0], less, f"{title(call)} was matched without {less}, unlike in {place}")


def _read_leaves_by_group(groups: Mapping[str, Sequence[Recorded]]) -> dict[str, Leaves]:
    """Of each group, the fields of its first call: the others of it are the same."""
    compared = list(groups.items())[:_MOST]
    return {group: _read_recorded_leaves(calls[0]) for group, calls in compared}


def _find_fitting(
    ours: Leaves,
    theirs: Mapping[str, Leaves],
    paths: Iterable[str],
    is_same: Callable[[Leaves, Leaves, str], bool],
) -> list[str]:
    """The groups of recorded calls that are the same as ours in all these fields."""
    return [
        group for group, each in theirs.items() if all(is_same(ours, each, path) for path in paths)
    ]


def _match_changed_object(
    call: FunctionCall,
    matched: MatchedRequest,
    groups: Mapping[str, Sequence[Recorded]],
    loose: frozenset[str],
) -> NearMatch:
    """An object is perhaps not as it was when the call was recorded: the recorded call whose object
    is most like it, of these the first.
    """
    ours = _collect_leaves(call)
    theirs = _read_leaves_by_group(groups)
    fits = [group for group, each in theirs.items() if _may_be_same_call(ours, each, loose)]
    if not fits:
        return NearMatch(matched.discriminator)
    best = min(fits, key=lambda group: _count_differing_fields(ours, theirs[group]))
    differing = _list_differing_paths(ours, theirs[best])
    less = ", ".join(differing[:4]) or "what is masked in it"
    message = f"{title(call)} was matched without {less}, which is not as it was in {_format_place(groups[best])}"
    changed = any(not _may_be_same_field(ours, theirs[best], path) for path in differing)
    message = f"{message}: told apart by their order" if len(groups) > 1 else message
    return NearMatch(best, less, message, changed=changed)


def _may_be_same_call(ours: Leaves, theirs: Leaves, loose: frozenset[str] = frozenset()) -> bool:
    """Whether nothing speaks against it that the same was asked; `loose` arguments do not."""
    for path in _list_paths((ours, theirs)):
        argument = re.split(r"[. \[]", path)[0]
        if argument not in loose and not _may_be_same_field(ours, theirs, path):
            return False
    return True


def _count_differing_fields(ours: Leaves, theirs: Leaves) -> tuple[int, int]:
    """How many fields differ: those that are steady first, then all."""
    differing = _list_differing_paths(ours, theirs)
    return sum(not _may_be_same_field(ours, theirs, path) for path in differing), len(differing)


def _list_differing_paths(ours: Leaves, theirs: Leaves) -> list[str]:
    return [path for path in _list_paths((ours, theirs)) if not _is_same_field(ours, theirs, path)]


def _describe_partial_fields(matched: MatchedRequest) -> str:
    """What of the call did not count whole, in words."""
    return ", ".join((*matched.by_value, *matched.masked, *matched.given)) or "who asks"


def _format_place(recorded: Sequence[Recorded]) -> str:
    entry = recorded[0]
    if isinstance(entry, Entry):
        return f"call {entry.id} ({entry.book.path.name}:{entry.line})"
    return f"call {entry.id}"


# ---------------------------------------------------------------- fields


def _find_opaque_arguments(call: FunctionCall) -> dict[str, Mapping[str, Any]]:
    """The arguments that could not be written, and the method's own object, as structure."""
    everything: dict[str, Any] = dict(call.arguments)
    if call.instance is not None:
        everything["self"] = call.instance
    opaque: dict[str, Mapping[str, Any]] = {}
    for name, each in everything.items():
        structure = each.structure if isinstance(each, FrozenValue) else each
        if isinstance(structure, dict) and "<opaque>" in structure:
            opaque[name] = structure
    return opaque


def _collect_leaves(call: FunctionCall) -> Leaves:
    leaves: dict[str, Any] = {}
    for name, structure in _find_opaque_arguments(call).items():
        leaves |= _iterate_leaves(structure.get(FIELDS) or {"state": structure.get(STATE)}, name)
    return leaves


def _read_recorded_leaves(recorded: Recorded) -> Leaves:
    try:
        call = recorded.request() if isinstance(recorded, Entry) else None
    except CassetteError:
        return {}
    return _collect_leaves(call) if isinstance(call, FunctionCall) else {}


def _iterate_leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(path, value) of what was shown of a state; what stands for something else (`<library>`) is
    one value.
    """
    if isinstance(value, dict) and "<object>" in value:
        yield f"{path} (class)", value["<object>"]
        value = value.get("fields", {})
    if isinstance(value, dict) and not any(key.startswith("<") for key in value):
        for key, each in value.items():
            yield from _iterate_leaves(each, f"{path}.{key}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _iterate_leaves(each, f"{path}[{index}]")
    else:
        yield path, value


def _list_paths(several: Iterable[Leaves]) -> list[str]:
    return list(dict.fromkeys(path for each in several for path in each))


def _is_same_field(one: Leaves, other: Leaves, path: str) -> bool:
    # 1 and True are not the same
    return repr(one.get(path, "absent")) == repr(other.get(path, "absent"))


def _may_be_same_field(one: Leaves, other: Leaves, path: str) -> bool:
    """Whether the same may have been asked though a field differs: by what it is, or by what it
    says.
    """
    if _is_same_field(one, other, path):
        return True
    ours, theirs = one.get(path), other.get(path)
    if any(isinstance(each, dict) and not _UNSTEADY.isdisjoint(each) for each in (ours, theirs)):
        return True
    now, then = _parse_moment(ours), _parse_moment(theirs)
    if now is not None and then is not None:
        return abs(now - time.time()) < _DAYS and then < time.time() + _DAYS
    if _is_random_id(ours) and _is_random_id(theirs):
        return True
    return _strip_addresses(ours) == _strip_addresses(theirs) != ""


def _is_random_id(value: Any) -> bool:
    """Whether a value looks drawn: a UUID, or 16 hex digits and more."""
    if isinstance(value, dict) and value.get("<type>") == "UUID":
        text = value.get("value")
    else:
        text = value
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def _strip_addresses(value: Any) -> str:
    """A text without addresses in memory; of a temporary file only that it is one."""
    if not isinstance(value, str):
        return ""
    return "temporary" if value.startswith(_SCRATCH) else _ADDRESS.sub("0x", value)


def _parse_moment(value: Any) -> float | None:
    """The moment that a value says, in seconds of the epoch; None where it says none of this
    century.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _read_epoch(value)
    if isinstance(value, dict) and value.get("<type>") in ("datetime", "Timestamp"):
        text = value.get("value")
    else:
        text = value
    if not isinstance(text, str) or len(text) < len("2026-01-01"):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        return None


def _read_epoch(number: float) -> float | None:
    """Seconds of the epoch, from a number of seconds, milli-, micro- or nanoseconds."""
    for unit in (1, 10**3, 10**6, 10**9):
        if 1e9 < number / unit < 4e9:
            return number / unit
    return None
