"""What changed between two recordings of the same cell: around the calls, and in what answered
them.

Pure views of what audit/run_view.py read. A model's text is drawn anew each time and is no drift;
what answered it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tape_jupyter.audit.environment_fields import tags
from tape_jupyter.audit.nondeterminism import chunks_of, overlapping
from tape_jupyter.audit.run_view import AuditedCall, AuditedRun
from tape_jupyter.cassette.match_key import parting
from tape_jupyter.core.call import Value
from tape_jupyter.providers.json_access import as_mapping, as_text

_SHOWN = 80
_NAMED = 6


_DIGESTS = ("cell source", "git diff")
"""What is known by a digest only: two of them say nothing to a person."""


@dataclass(frozen=True, slots=True)
class Drift:
    """`what` changed from `before` to `after` ("" where it was not there); `call` is the later
    one's id.
    """

    what: str
    before: str
    after: str
    call: str = ""

    def record(self) -> dict[str, str]:
        return {key: value for key, value in asdict(self).items() if value or key != "call"}

    def __str__(self) -> str:
        if self.what in _DIGESTS and self.before and self.after:
            return f"{self.what} changed"
        return f"{self.what} changed: {self.before or 'none'} -> {self.after or 'none'}"


def drift(before: AuditedRun, after: AuditedRun) -> list[Drift]:
    """What answered first (it is what people look for), then the code, then what lies around it."""
    pairs = pair_seen(before.calls, after.calls)
    return [
        *of_pairs(pairs),
        *_compare_order(before, pairs),
        *_compare_counts(before, after),
        *of_runs(before, after),
    ]


def of_pairs(pairs: Iterable[tuple[AuditedCall, AuditedCall]]) -> list[Drift]:
    """Each change once, however many calls show it."""
    drifts = (each for one, other in pairs for each in call_drift(one, other))
    return list({(each.what, each.before, each.after): each for each in drifts}.values())


def pair_seen(
    before: Sequence[AuditedCall], after: Sequence[AuditedCall]
) -> list[tuple[AuditedCall, AuditedCall]]:
    """The calls that asked the same, in order; of the others those of one name, in order; then
    models with models.
    """
    left = list(before)
    pairs: dict[str, AuditedCall] = {}
    for key in _KEYS:
        waiting = [call for call in after if call.id not in pairs]
        pairs |= _pair_calls(key, left, waiting)
        taken = {id(call) for call in pairs.values()}
        left = [call for call in left if id(call) not in taken]
    return [(pairs[call.id], call) for call in after if call.id in pairs]


_KEYS: tuple[Callable[[AuditedCall], Any], ...] = (
    lambda call: call.match,
    lambda call: (call.kind, call.name),
    lambda call: (
        "" if call.is_model else (call.kind, call.name)
    ),  # a model's name may be what changed
)


def _pair_calls(
    key: Callable[[AuditedCall], Any], before: Iterable[AuditedCall], after: Iterable[AuditedCall]
) -> dict[str, AuditedCall]:
    known: dict[Any, list[AuditedCall]] = {}
    for call in before:
        known.setdefault(key(call), []).append(call)
    return {call.id: known[key(call)].pop(0) for call in after if known.get(key(call))}


# ---- calls


def call_drift(before: AuditedCall, after: AuditedCall) -> Iterator[Drift]:
    """What answered one call, and how it was asked."""
    names = ("status", "requested model", "sampling", "answered model", "system_fingerprint", "region", "service tier",
             "upstream provider")  # fmt: skip
    failed = before.status != after.status  # an error tells little of who answers
    for name, one, other in zip(
        names, _list_answer_fields(before), _list_answer_fields(after), strict=True
    ):
        if one != other and not (failed and name != "status" and not (one and other)):
            yield Drift(name, one, other, after.id)
    yield from _compare_fields(
        "tool schema", _collect_schemas(before), _collect_schemas(after), after.id
    )
    yield from _compare_results(before, after)


def _list_answer_fields(call: AuditedCall) -> tuple[str, ...]:
    sampling = ", ".join(
        f"{name} {value}"
        for name, value in sorted(call.facts.sampling.items())
        if value != "absent"
    )
    status = str(call.status or "")
    return (status, call.facts.model, sampling, call.facts.answered, call.more.fingerprint, call.region, call.more.tier,
            call.more.upstream)  # fmt: skip


def _collect_schemas(call: AuditedCall) -> dict[str, str]:
    return {each.name: each.digest for each in call.facts.tools}


def _compare_results(before: AuditedCall, after: AuditedCall) -> Iterator[Drift]:
    if not isinstance(before.reply, Value) or not isinstance(after.reply, Value):
        return
    if after.kind != "retrieval":
        one, other = _format_value(before.reply), _format_value(after.reply)
        if one != other:
            yield Drift(f"tool result of {after.name}", *_cut_to_difference(one, other), after.id)
        return
    old, new = chunks_of(before.reply), chunks_of(after.reply)
    compared = {
        "embedding model": (old.embedding, new.embedding),
        "retrieval scores": (_format_scores(old.chunks), _format_scores(new.chunks)),
        "retrieved text": (_format_value(before.reply), _format_value(after.reply)),
    }
    # the text holds all of it
    what = next((name for name, (one, other) in compared.items() if one != other), "")
    if what:
        yield Drift(f"{what} of {after.name}", *_cut_to_difference(*compared[what]), after.id)


def _format_scores(chunks: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{chunk.get('id', '?')} {chunk.get('score', '')}".strip() for chunk in chunks)


def _format_value(value: Value) -> str:
    content = value.error if value.error is not None else value.unkept or value.value
    return json.dumps(content, ensure_ascii=False, sort_keys=True, default=str)


def _cut_to_difference(one: str, other: str) -> tuple[str, str]:
    """Both from where they part, so that the change is in what is shown."""
    start = parting(one, other, _SHOWN, _SHOWN // 4)
    return _cut_text(one, start), _cut_text(other, start)


def _cut_text(text: str, start: int) -> str:
    excerpt = text[start : start + _SHOWN]
    return f"{'…' if start else ''}{excerpt}{'…' if start + _SHOWN < len(text) else ''}"


# ---- the run


def _compare_order(
    run: AuditedRun, pairs: Sequence[tuple[AuditedCall, AuditedCall]]
) -> list[Drift]:
    """Records stand in the order of completion; it means something where calls were under way
    together.
    """
    if not (overlapping(one for one, _ in pairs) or overlapping(other for _, other in pairs)):
        return []
    places = {call.id: place for place, call in enumerate(run.calls)}
    before = sorted(pairs, key=lambda pair: places[pair[0].id])
    if before == list(pairs):
        return []
    one, other = (
        ", ".join(f"{call.name} {call.id[:4]}" for _, call in order) for order in (before, pairs)
    )
    return [Drift("order of completion", *_cut_to_difference(one, other))]


def _compare_counts(before: AuditedRun, after: AuditedRun) -> list[Drift]:
    one, other = len(before.calls), len(after.calls)
    return [Drift("number of calls", str(one), str(other))] if one != other else []


def of_runs(before: AuditedRun, after: AuditedRun) -> list[Drift]:
    """Code, libraries, machine, moment, whom it served: whatever the two kits say differently."""
    old, new = before.kit, after.kit
    one, other = (_collect_surroundings(run) for run in (before, after))
    return [
        *_compare_fields("", _collect_code(before), _collect_code(after)),
        *_compare_fields("library", _read_versions(old), _read_versions(new), both=True),
        *_compare_fields(
            "local module", _to_texts(old.get("modules")), _to_texts(new.get("modules")), both=True
        ),
        *_compare_fields("", one, other),
        *_compare_fields(
            "environment", _to_texts(old.get("environment")), _to_texts(new.get("environment"))
        ),
        *_compare_fields("", _to_texts(tags(before)), _to_texts(tags(after))),
        *_compare_fields(
            "state of", _read_generator_places(before), _read_generator_places(after), both=True
        ),
    ]


def _collect_code(run: AuditedRun) -> dict[str, str]:
    git = as_mapping(run.kit.get("git"))
    fields = {
        "cell source": run.record.get("source"),
        "git commit": git.get("commit"),
        "git diff": git.get("diff"),
    }
    return {name: as_text(value)[:16] for name, value in fields.items() if value}


def _collect_surroundings(run: AuditedRun) -> dict[str, str]:
    clock = as_mapping(run.kit.get("clock"))
    zone = as_mapping(run.pins.get("timezone")).get("zone") or clock.get("zone")
    fields = {
        "python": run.kit.get("python"), "platform": run.kit.get("platform"),
        "day (UTC)": as_text(clock.get("utc"))[:10],
        "timezone": zone, "hash seed": as_mapping(run.pins.get("random")).get("hash"),
    }  # fmt: skip
    return {name: as_text(value) for name, value in fields.items() if value}


def _read_versions(kit: Mapping[str, Any]) -> dict[str, str]:
    listed = kit.get("distributions")
    pairs = (str(each).partition("==") for each in listed) if isinstance(listed, list) else ()
    return {name: version for name, _, version in pairs}


def _read_generator_places(run: AuditedRun) -> dict[str, str]:
    """Where each generator stood: a short mark of its state, or how far it had been drawn from."""
    places = as_mapping(as_mapping(run.pins.get("random")).get("at"))
    return {name: _format_place(each) for name, each in places.items()}


def _format_place(place: Any) -> str:
    if isinstance(place, dict):
        return ", ".join(f"{name} {each}" for name, each in place.items())
    return as_text(place)


def _to_texts(value: Any) -> dict[str, str]:
    mapping = as_mapping(value)
    return {
        str(name): each if isinstance(each, str) else json.dumps(each, default=str)
        for name, each in mapping.items()
    }


def _compare_fields(
    what: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    call: str = "",
    *,
    both: bool = False,
) -> Iterator[Drift]:
    """What the two say differently. `both`: only of what both name (another import is not another
    version).
    """
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name, ""), after.get(name, "")
        if one != other and (not both or (one and other)):
            yield Drift(f"{what} {name}".strip(), *_cut_to_difference(one, other), call)


# ---- in words


def line(drifts: Sequence[Drift]) -> str:
    """One line for a summary; "" where nothing changed."""
    if not drifts:
        return ""
    counts = Counter(map(str, drifts))
    parts = [f"{text} ({count} times)" if count > 1 else text for text, count in counts.items()]
    more = f"; and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return f"drift: {'; '.join(parts[:_NAMED])}{more}"
