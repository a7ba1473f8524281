"""The nine sources of chance in a recorded run and in each of its calls: held, recorded, or not
held.

Pure views of what audit/run_view.py read. The items are those of the project's nondeterminism
budget, by number: 1 sampling, 2 seed, 3 model drift, 4 routing, 5 latency and races, 6 tool
results, 7 retrieval freshness, 8 time-of-day failures, 9 clock logic.

What a report says of one source of chance or one part of the kit. Nothing here reads or decides.

* pinned: a replay holds it to what it was.
* recorded: it stands on the tape; it is replayed as it was, and a change is seen when the cell is
  recorded again.
* unpinnable: nothing can hold it when the cell runs live; the recorded reply is the only way to
  have it again.
* missing: it is not on the tape; `capture` is the one line that keeps it next time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from tape_jupyter.audit.run_view import AuditedCall, AuditedRun
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.providers import hosts, registry
from tape_jupyter.providers.json_access import as_mapping, as_text, maps
from tape_jupyter.providers.metadata import is_gateway
from tape_jupyter.providers.types import ABSENT

Status = Literal["pinned", "recorded", "unpinnable", "missing"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""From the best to the worst."""

_NAMED = 3


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """`number` is that of a budget item (1 to 9), 0 for a field of the kit; `call` is "" where it
    is of the run.

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
    def description(self) -> str:
        """All that is known of it."""
        return f"{self.what}, {self.detail}" if self.detail else self.what

    def record(self) -> dict[str, Any]:
        fields = {**asdict(self), "what": self.description}
        shown_fields = {
            key: value
            for key, value in fields.items()
            if key not in ("empty", "detail") and value not in ("", 0)
        }
        return {**({"item": shown_fields.pop("number")} if self.number else {}), **shown_fields}

    def __str__(self) -> str:
        return f"{self.name}: {self.what}" + (
            f". Next time: {self.capture}" if self.capture else ""
        )


def worst(findings: Iterable[AuditFinding]) -> Status:
    """The worst status among them; that of nothing at all is "recorded"."""
    return max((each.status for each in findings), key=STATUSES.index, default="recorded")


def fold_findings(
    name: str, number: int, findings: Sequence[AuditFinding], none: str, unit: str = "calls"
) -> AuditFinding:
    """What several calls (or runs) say together: the worst of it, and how many say so. `none`:
    where there are none.
    """
    if not findings:
        return AuditFinding(name, "recorded", none, number=number, empty=True)
    findings = [each for each in findings if not each.empty] or findings
    status = worst(findings)
    bad = [each for each in findings if each.status == status]
    counts = Counter(
        each.description if len(findings) == 1 else each.what for each in bad
    ).most_common()
    text = "; ".join(
        f"{what} ({count} {unit})" if count > 1 else what for what, count in counts[:_NAMED]
    )
    if len(counts) > _NAMED:
        more = f"; {format_count(len(counts) - _NAMED, 'more kind')}"
    else:
        more = ""
    of = f"{len(bad)} of {len(findings)} {unit}: " if len(bad) < len(findings) else ""
    capture = next((each.capture for each in bad if each.capture), "")
    return AuditFinding(name, status, f"{of}{text}{more}", capture, number)


NAMES = {
    1: "sampling", 2: "seed", 3: "model drift", 4: "routing", 5: "latency and races", 6: "tool results",
    7: "retrieval freshness", 8: "time-of-day failures", 9: "clock logic",
}  # fmt: skip
_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens")
# OpenAI's models that refuse a temperature
_REASONS = re.compile(r"(?:.*/)?(?:o[1-9]|gpt-5)(?:$|[-.])")
_DATED = re.compile(r"(?:20\d{6}|20\d\d-\d\d-\d\d|-\d{4}$|-(?:00[1-9]|v\d+(?::\d+)?)$|@20\d{6})")


def budget(run: AuditedRun, taped: Iterable[str] = ()) -> list[AuditFinding]:
    """The nine items of one run, in their order. `taped`: names of the tools that the cassette
    holds calls of.
    """
    tools = frozenset(taped) | tool_names([run])
    return [
        _fold_calls(run, 1, sampling, "no model was asked"),
        _fold_calls(run, 2, seed, "no model was asked"),
        _fold_calls(run, 3, model, "no model was asked"),
        _fold_calls(run, 4, routing, "no host was asked"),
        races(run),
        tool_results(run, tools),
        _fold_calls(run, 7, retrieval_finding, "none made"),
        failures(run),
        clock(run),
    ]


def call_findings(call: AuditedCall) -> list[AuditFinding]:
    """The items that one call has a part in."""
    items = (
        sampling,
        seed,
        model,
        routing,
        latency,
        tool_result,
        retrieval_finding,
        rate_limit_finding,
    )
    return [finding for item in items if (finding := item(call)) is not None]


def tool_names(runs: Iterable[AuditedRun]) -> frozenset[str]:
    """Names of the tools that were called on the tape; a method of a taped class goes by its own
    name as well.
    """
    names = {
        call.name for run in runs for call in run.calls if isinstance(call.request, FunctionCall)
    }
    return frozenset(names | {name.rpartition(".")[2] for name in names})


def _fold_calls(
    run: AuditedRun, number: int, item: Callable[[AuditedCall], AuditFinding | None], none: str
) -> AuditFinding:
    findings = [each for call in run.calls if (each := item(call)) is not None]
    return fold_findings(NAMES[number], number, findings, none)


# ---- 1 sampling


def sampling(call: AuditedCall) -> AuditFinding | None:
    """Which settings the request fixed; `absent` is what it left to the provider."""
    if not call.is_model:
        return None
    settings = call.facts.sampling
    what = ", ".join(f"{name} {_shorten_value(settings.get(name, ABSENT))}" for name in _SETTINGS)
    temperature = settings.get("temperature", ABSENT)
    if temperature == ABSENT and (why := _explain_no_temperature(call)):
        return AuditFinding(
            NAMES[1],
            "unpinnable",
            f"{what}; {why}: only the recorded reply repeats it",
            "",
            1,
            call.id,
        )
    if temperature == ABSENT:
        return AuditFinding(NAMES[1], "missing", what, "temperature=0", 1, call.id)
    return AuditFinding(NAMES[1], "recorded" if temperature else "pinned", what, "", 1, call.id)


def _explain_no_temperature(call: AuditedCall) -> str:
    if call.facts.wire == "anthropic":
        return "anthropic's SDK 2 takes no sampling settings"
    if _REASONS.match(call.facts.model):
        return "this model takes no temperature"
    return ""


def _shorten_value(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 20 else f"{text[:19]}…"


# ---- 2 seed


def seed(call: AuditedCall) -> AuditFinding | None:
    if not call.is_model:
        return None
    value = call.facts.sampling.get("seed", ABSENT)
    if value != ABSENT:
        return AuditFinding(NAMES[2], "pinned", f"seed {_shorten_value(value)}", "", 2, call.id)
    provider = registry.providers().get(call.facts.wire)
    if provider is not None and provider.seeds:
        return AuditFinding(NAMES[2], "missing", "the request gave no seed", "seed=7", 2, call.id)
    what = f"{call.facts.wire} takes no seed: replay is the only way"
    return AuditFinding(NAMES[2], "unpinnable", what, "", 2, call.id)


# ---- 3 model drift


def model(call: AuditedCall) -> AuditFinding | None:
    """Whether the name that was asked for is a dated snapshot, and what answered."""
    if not (call.is_model or call.is_embedding) or (call.status or 0) >= 400:
        return None  # of a call that failed, nothing answered
    requested, answered = call.facts.model, call.facts.answered
    build = f", system_fingerprint {call.more.fingerprint}" if call.more.fingerprint else ""
    if _DATED.search(requested):
        same = answered in ("", requested)
        if same:
            summary = f"{requested}{build}"
        else:
            summary = f"{requested}, answered by {answered}{build}"
        return AuditFinding(NAMES[3], "pinned" if same else "recorded", summary, "", 3, call.id)
    if not answered:
        capture = f"ask for a dated snapshot of {requested}"
        return AuditFinding(
            NAMES[3],
            "missing",
            f"{requested}; the reply does not say which model answered",
            capture,
            3,
            call.id,
        )
    summary = f"{requested}, answered by {answered}{build}"
    if _DATED.search(answered):
        capture = f"to pin it, ask for the dated snapshot: {answered}"
    else:
        capture = ""
    return AuditFinding(NAMES[3], "recorded", summary, capture, 3, call.id)


# ---- 4 routing


def routing(call: AuditedCall) -> AuditFinding | None:
    """Which host, region, tier and request answered; behind a gateway, whom it asked."""
    if not call.url:
        return None
    parts = {
        "": call.host, "region": call.region, "edge": call.more.edge, "tier": call.more.tier,
        "through to": call.more.upstream,
    }  # fmt: skip
    what = ", ".join(f"{name} {value}".strip() for name, value in parts.items() if value)
    status, more, capture = _find_route_status(call)
    detail = f"request id {call.facts.request_id}" if call.facts.request_id else ""
    return AuditFinding(NAMES[4], status, f"{what}{more}", capture, 4, call.id, detail=detail)


def _find_route_status(call: AuditedCall) -> tuple[Status, str, str]:
    """How the route is held, what more is to be said of it, and the line that keeps it."""
    if is_gateway(call.facts.provider) and not call.more.routed and not call.more.upstream:
        capture = 'extra_body={"provider": {"order": ["..."], "allow_fallbacks": False}}'
        return "missing", "; the gateway does not say which provider answered", capture
    if call.more.routed or _has_fixed_region(call):
        return "pinned", "", ""
    return "recorded", "" if call.region or call.more.upstream else "; no region given", ""


def _has_fixed_region(call: AuditedCall) -> bool:
    """Whether the address itself names a region, or this very machine."""
    return bool(hosts.region(call.url)) or hosts.loopback(call.host.rpartition(":")[0] or call.host)


# ---- 5 latency and races


def latency(call: AuditedCall) -> AuditFinding | None:
    if call.began is None or call.seconds is None:
        capture = "record it again: this record holds no times"
        return AuditFinding(
            NAMES[5], "missing", "its start or end time is not on the tape", capture, 5, call.id
        )
    lineage = f", task or thread {call.lineage}" if call.lineage else ""
    if isinstance(call.reply, Reply) and call.reply.waits:
        waits = f", {len(call.reply.waits)} reads"
    else:
        waits = ""
    return AuditFinding(NAMES[5], "pinned", f"{call.seconds:g} s{waits}{lineage}", "", 5, call.id)


def races(run: AuditedRun) -> AuditFinding:
    """Whether calls were under way together, and whether their order of completion is known."""
    findings = [each for call in run.calls if (each := latency(call)) is not None]
    if any(each.status == "missing" for each in findings):
        return fold_findings(NAMES[5], 5, findings, "")
    together = overlapping(run.calls)
    if not together:
        several = len(run.calls) > 1
        summary = "one call after another" if several else "at most one call"
        return AuditFinding(NAMES[5], "pinned", summary, number=5, empty=not several)
    what = f"{together} calls overlapped; the order in which they ended is recorded (--pace order repeats it)"
    return AuditFinding(NAMES[5], "pinned", what, number=5)


def overlapping(calls: Iterable[AuditedCall]) -> int:
    """How many calls were under way while another one was."""
    spans = sorted(
        (c.began, c.began + c.seconds, c.id)
        for c in calls
        if c.began is not None and c.seconds is not None
    )
    met: set[int] = set()
    last, until = -1, 0.0
    for place, (began, ended, _) in enumerate(spans):
        if last >= 0 and began < until - 0.002:  # recorded moments are rounded to the millisecond
            met |= {last, place}
        if ended > until:
            last, until = place, ended
    return len(met)


# ---- 6 tool results


def tool_result(call: AuditedCall) -> AuditFinding | None:
    if call.kind != "tool" and not (
        isinstance(call.request, FunctionCall) and call.request.kind == "tool"
    ):
        return None
    if isinstance(call.reply, Value) and call.reply.unkept:
        capture = f"return plain data from {call.name}"
        return AuditFinding(
            NAMES[6], "missing", f"{call.name}: not kept: {call.reply.unkept}", capture, 6, call.id
        )
    if call.head.get("frozen") == "stub":
        how = "a stub answered"
    else:
        how = "answered from the tape"
    return AuditFinding(NAMES[6], "pinned", f"{call.name}: {how}", "", 6, call.id)


def tool_results(run: AuditedRun, taped: frozenset[str]) -> AuditFinding:
    """Whether every result that a request hands back has its tool call on the tape."""
    findings = [each for call in run.calls if (each := tool_result(call)) is not None]
    findings += [
        _report_untaped_tool(name) for name in dict.fromkeys(_find_untaped_tools(run, taped))
    ]
    findings += [
        AuditFinding(NAMES[6], "missing", note, "return what the tool changes")
        for note in run.cold
        if _CHANGED(note)
    ]
    return fold_findings(NAMES[6], 6, findings, "no tool was called")


_UNTAPED = re.compile(r"^the result of tool (.+?) was not taped")
_CHANGED = re.compile(r"\bargument\b").search


def _report_untaped_tool(name: str) -> AuditFinding:
    return AuditFinding(
        NAMES[6], "missing", f"the result of {name} was not taped", f"@tape.tool above def {name}"
    )


def _find_untaped_tools(run: AuditedRun, taped: frozenset[str]) -> Iterator[str]:
    """Those named while recording; and where this run asked for a tool, the results it handed back
    without a call.
    """
    yield from (match[1] for note in run.cold if (match := _UNTAPED.match(note)))
    if any(isinstance(call.request, FunctionCall) for call in run.calls):
        # a function may go by another name than its tool: what was named while recording is all
        return
    requested = {each.id or each.name: each.name for call in run.calls for each in call.facts.calls}
    for call in run.calls:
        names = (requested.get(result.id or result.name, "") for result in call.facts.results)
        yield from (name for name in names if name and name not in taped)


# ---- 7 retrieval freshness


def retrieval_finding(call: AuditedCall) -> AuditFinding | None:
    """What a retrieval found: ids and scores of its chunks, and what embedded and indexed them."""
    if call.is_embedding:
        return AuditFinding(
            NAMES[7],
            "pinned",
            f"embedding by {call.facts.answered or call.facts.model}",
            "",
            7,
            call.id,
        )
    if call.kind != "retrieval":
        return None
    retrieved = chunks_of(call.reply)
    lacking = [
        name
        for name in ("id", "score")
        if retrieved.chunks and not all(name in chunk for chunk in retrieved.chunks)
    ]
    parts = [
        f"{call.name}: {format_count(len(retrieved.chunks), 'chunk')}",
        *([f"embedded by {retrieved.embedding}"] if retrieved.embedding else []),
    ]
    if index := _find_index(call):
        parts.append(f"index {index}")
    if not retrieved.embedding:
        lacking.append("embedding model")
    what = ", ".join(parts)
    if lacking:
        capture = "return each chunk as {'id': ..., 'score': ..., 'text': ...}, with 'embedding_model' beside them"
        return AuditFinding(
            NAMES[7], "missing", f"{what}; no {', no '.join(lacking)} given", capture, 7, call.id
        )
    return AuditFinding(NAMES[7], "pinned", what, "", 7, call.id)


class Chunks:
    """What a retrieval's value says of its chunks (`id` and `score` where known) and of what
    embedded them.
    """

    def __init__(self, chunks: list[Mapping[str, Any]], embedding: str = "") -> None:
        self.chunks, self.embedding = chunks, embedding


def chunks_of(reply: Any) -> Chunks:
    """From a tap's parcel (encoding/values/tool_results.py), or from plain data: a list of chunks,
    or a mapping that holds one.
    """
    value = reply.value if isinstance(reply, Value) else None
    parcel = as_mapping(value)
    chunks = next((parcel[name] for name in _LISTS if isinstance(parcel.get(name), list)), value)
    embedding = next((text for name in _EMBEDDINGS if (text := as_text(parcel.get(name)))), "")
    listed = [_read_chunk(each) for each in maps(chunks)]
    return Chunks(
        listed,
        embedding
        or next((as_text(each["embedding"]) for each in listed if "embedding" in each), ""),
    )


_LISTS = ("chunks", "documents", "results", "matches", "hits")
_EMBEDDINGS = ("embedding", "embedding_model", "model")
_IDS = ("id", "chunk_id", "doc_id", "node_id", "_id")
_SCORES = ("score", "distance", "similarity", "relevance")


def _read_chunk(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = {**chunk, **as_mapping(chunk.get("fields")), **as_mapping(chunk.get("attributes"))}
    places = {"id": _IDS, "score": _SCORES, "embedding": ("embedding_model",)}
    by_field = {
        key: [fields[name] for name in names if name in fields] for key, names in places.items()
    }
    return {key: values[0] for key, values in by_field.items() if values}


def _find_index(call: AuditedCall) -> str:
    arguments = call.request.arguments if isinstance(call.request, FunctionCall) else {}
    candidates = (
        arguments.get(name)
        for name in ("index", "index_name", "collection", "namespace", "collection_name")
    )
    return next((each for each in candidates if isinstance(each, str) and each), "")


# ---- 8 time-of-day failures


def rate_limit_finding(call: AuditedCall) -> AuditFinding | None:
    """A call that was refused for the hour's sake: what it said of when to come again."""
    if call.status is None or not call.was_refused:
        return None
    limits = ", ".join(f"{name}: {value}" for name, value in sorted(call.facts.limits.items())[:4])
    parts = [
        f"{call.status}",
        f"retry-after {call.more.retry_after}" if call.more.retry_after else "",
        limits,
    ]
    return AuditFinding(
        NAMES[8], "pinned", ", ".join(part for part in parts if part), "", 8, call.id
    )


def failures(run: AuditedRun) -> AuditFinding:
    """Failures are on the tape like any reply; what hour it was must be as well."""
    findings = [each for call in run.calls if (each := rate_limit_finding(call)) is not None]
    clock_told = as_mapping(run.kit.get("clock"))
    hour = f"{as_text(clock_told.get('utc'))[:16]}Z {as_text(clock_told.get('zone'))}".strip()
    if not clock_told.get("utc"):
        return AuditFinding(
            NAMES[8], "missing", "the time of the run is not on the tape", "record it again", 8
        )
    limited = sum(bool(call.facts.limits) for call in run.calls)
    limits = f", rate-limit headers of {format_count(limited, 'call')}" if limited else ""
    if findings:
        what = f"{len(findings)} failed ({findings[0].what})"
    else:
        what = "no call was refused"
    return AuditFinding(
        NAMES[8], "pinned" if findings else "recorded", f"{what}; started {hour}{limits}", "", 8
    )


# ---- 9 clock logic


def clock(run: AuditedRun) -> AuditFinding:
    """Whether the cell's clock is held, who read it, and which readings are not."""
    unheld = [note for note in run.cold if _CLOCK(note)]
    if run.record.get("mode") == "replay":  # what ran live in a replay: a run of a take
        return AuditFinding(
            NAMES[9], "pinned", f"as in {run.record.get('parent')}, which it repeats", number=9
        )
    if "clock" not in run.pins:
        capture = "record it again without --no-pin clock"
        return AuditFinding(
            NAMES[9], "missing", "the clock of this run is not replayed", capture, 9
        )
    if unheld:
        if "numpy" in unheld[0]:
            capture = "np.datetime64(datetime.now())"
        else:
            capture = "see the warning of that run"
        return AuditFinding(NAMES[9], "missing", "; ".join(unheld), capture, 9)
    readings = as_mapping((run.end or {}).get("clock"))
    count = sum(len(each) for each in readings.values() if isinstance(each, list))
    who = ", ".join(sorted({str(name).partition(" ")[0] for name in readings})[:4])
    if count:
        note = f"{count} readings on the tape, by {who}"
    else:
        note = "replayed; no code read it"
    return AuditFinding(NAMES[9], "pinned", note, number=9)


_CLOCK = re.compile(r"\bclock\b|\btimezone\b").search
