"""Every field of a run's replay kit, and of each call's: held, recorded, or named as missing.

Pure views of what audit/run_view.py read. The fields are those of the cassette format's paragraph
on the kit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tape_jupyter.audit import environment as kits
from tape_jupyter.audit.nondeterminism import AuditFinding, chunks_of, routing, sampling
from tape_jupyter.audit.run_view import AuditedCall, AuditedRun
from tape_jupyter.core.call import FunctionCall, Reply
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.providers.json_access import as_mapping, as_text

WHO = ("user_id", "tenant_id", "session_id", "flags")
AGAIN = "record it again with %%tape record"


def of_run(run: AuditedRun) -> list[AuditFinding]:
    """The run-level fields, in the order of the format's description."""
    if not run.kit:
        return [
            AuditFinding("kit", "missing", "this run recorded nothing about its environment", AGAIN)
        ]
    return [
        *_audit_identity(run),
        *_audit_users(run),
        *_audit_machine(run),
        *_audit_code(run.kit),
        *_audit_moment(run),
        *_audit_settings(run),
    ]


def tags(run: AuditedRun) -> dict[str, Any]:
    """What was told or found of whom the run served; flags that were evaluated later stand on its
    end mark.
    """
    kit_tags = kits.tags_of(run.kit)
    flags = {**_to_flags(kit_tags.get("flags")), **_to_flags((run.end or {}).get("flags"))}
    record: dict[str, Any] = dict(kit_tags)
    if flags:
        record["flags"] = flags
    return record


def _to_flags(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    return {str(value): True} if value else {}


def _audit_field(name: str, value: Any, capture: str) -> AuditFinding:
    """Recorded where it is there, else missing."""
    if value in (None, "", {}, []):
        return AuditFinding(name, "missing", "not given", capture)
    return AuditFinding(name, "recorded", _shorten_value(value))


def _shorten_value(value: Any) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{key}={item}" for key, item in value.items())
    elif isinstance(value, list):
        value = ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


# ---- the run


def _audit_identity(run: AuditedRun) -> list[AuditFinding]:
    record = run.record
    parent = record.get("parent")
    cell = (
        record.get("cell")
        or "this front end sends no cell id; the hash of its source is used instead"
    )
    return [
        AuditFinding("run", "recorded", run.id),
        AuditFinding(
            "parent",
            "recorded",
            f"adds to {parent}" if parent else "none: this run does not add to another",
        ),
        _audit_field("notebook", run.notebook, "%%tape record in a saved notebook"),
        AuditFinding("cell id", "recorded", str(cell)),
        _audit_field("source hash", record.get("source"), AGAIN),
        AuditFinding(
            "execution count", "recorded", str(record.get("count", "none: not run in a cell"))
        ),
    ]


def _audit_users(run: AuditedRun) -> list[AuditFinding]:
    run_tags = tags(run)
    users = sorted({call.facts.user for call in run.calls if call.facts.user})
    if users and "user_id" not in run_tags:
        run_tags["user_id"] = ", ".join(users) + " (in the requests)"
    findings = [
        _audit_field(name, run_tags.get(name), f"%tape set {name}=...") for name in WHO[:-1]
    ]
    flags = run_tags.get("flags")
    return [
        *findings,
        AuditFinding(
            "flags", "recorded", _shorten_value(flags) if flags else "none set, none evaluated"
        ),
    ]


def _audit_machine(run: AuditedRun) -> list[AuditFinding]:
    versions = run.kit.get("distributions")
    count = f"{len(versions)} imported" if isinstance(versions, list) and versions else ""
    return [
        _audit_surroundings(run, "python", run.kit.get("python")),
        _audit_surroundings(run, "platform", run.kit.get("platform")),
        _audit_surroundings(run, "library versions", count),
    ]


def _audit_surroundings(run: AuditedRun, name: str, value: Any) -> AuditFinding:
    """What is written with a run's first call: where none was made, recording again gives no more."""
    return _audit_field(name, value or ("" if run.calls else "no call was made"), AGAIN)


def _audit_code(kit: Mapping[str, Any]) -> list[AuditFinding]:
    modules = as_mapping(kit.get("modules"))
    if modules:
        local = _shorten_value(list(modules))
    else:
        local = "none imported from the notebook's folder"
    return [
        _audit_git(as_mapping(kit.get("git"))),
        AuditFinding("local modules", "recorded", local),
    ]


def _audit_git(git: Mapping[str, Any]) -> AuditFinding:
    if not git:
        what = "the notebook is not in a git repository"
        return AuditFinding(
            "code version", "missing", what, "git init, and commit, before recording"
        )
    if "unknown" in git:
        what = f"git failed ({git['unknown']})"
        return AuditFinding("code version", "missing", what, "record where `git status` works")
    if git.get("dirty"):
        kept = f"only their digest is kept: {git.get('diff', '')}"
        what = "changes were not committed"
        return AuditFinding(
            "code version", "missing", what, "git commit before recording", detail=kept
        )
    return AuditFinding(
        "code version", "recorded", f"commit {as_text(git.get('commit'))[:12]}, clean"
    )


def _audit_pin(name: str, value: str, *, pinned: bool) -> AuditFinding:
    """Pinned or only recorded where it is there, else missing."""
    if not value:
        return _audit_field(name, "", AGAIN)
    return AuditFinding(name, "pinned" if pinned else "recorded", value)


def _audit_moment(run: AuditedRun) -> list[AuditFinding]:
    kit_clock = as_mapping(run.kit.get("clock"))
    utc = as_text(kit_clock.get("utc"))
    zone = as_text(as_mapping(run.pins.get("timezone")).get("zone")) or as_text(
        kit_clock.get("zone")
    )
    findings = [
        _audit_pin("base clock", utc, pinned="clock" in run.pins),
        _audit_pin("timezone", zone, pinned="timezone" in run.pins),
    ]
    if "random" in run.pins:
        places = as_mapping(as_mapping(run.pins["random"]).get("at"))
        return [
            *findings,
            AuditFinding(
                "random state",
                "pinned",
                ", ".join(map(str, places)) or "a seed for the random numbers",
            ),
        ]
    capture = "record it again without --no-pin random"
    return [
        *findings,
        AuditFinding("random state", "missing", "at most a digest of it is recorded", capture),
    ]


def _audit_hash_seed(run: AuditedRun, seed: Any) -> AuditFinding:
    """A kernel without PYTHONHASHSEED has a seed of its own. Where its mark is on the tape, a replay
    whose requests differ in order alone says so: nothing is missing before that.
    """
    if seed not in (None, "", "random"):
        return AuditFinding("hash seed", "recorded", f"PYTHONHASHSEED={seed}")
    if mark := as_text(as_mapping(run.pins.get("random")).get("hash")):
        what = f"that kernel's own ({mark}); a replay names a request that only differs in order"
        return AuditFinding("hash seed", "recorded", what)
    what = "PYTHONHASHSEED is not set, so sets of strings may be in another order"
    return AuditFinding("hash seed", "missing", what, "start the kernel with PYTHONHASHSEED=0")


def _audit_settings(run: AuditedRun) -> list[AuditFinding]:
    environment = as_mapping(run.kit.get("environment"))
    names = as_text(run.kit.get("variables")).split()
    if names:
        count = f"{format_count(len(names), 'name')}, {format_count(len(environment), 'value')}"
    else:
        count = ""
    return [
        _audit_hash_seed(run, environment.get("PYTHONHASHSEED")),
        _audit_surroundings(run, "environment", count),
    ]


# ---- a call


def environment_findings(call: AuditedCall) -> list[AuditFinding]:
    """The fields of one call's kit; those that such a call cannot have are left out."""
    if call.problem:
        return [
            AuditFinding(
                "record",
                "missing",
                call.problem,
                "repair the file, or record it again",
                call=call.id,
            )
        ]
    if isinstance(call.request, FunctionCall):
        request_findings = []
    else:
        request_findings = _audit_request(call)
    findings = [
        *request_findings,
        *_audit_model(call),
        *_audit_retrieval(call),
        *_audit_times(call),
        *_audit_lineage(call),
    ]
    return [
        AuditFinding(each.name, each.status, each.what, each.capture, call=call.id)
        for each in findings
    ]


def _audit_request(call: AuditedCall) -> list[AuditFinding]:
    known = routing(call)
    where = known.status if known is not None else "recorded"
    limits = ", ".join(sorted(call.facts.limits))
    return [
        AuditFinding("host", "recorded", call.host),
        _audit_region(call.region, pinned=where == "pinned"),
        AuditFinding("request id", "recorded", call.facts.request_id or "the reply has none"),
        AuditFinding("rate limits", "recorded", limits or "the reply has none"),
        AuditFinding("attempt", "recorded", str(call.more.attempt)),
    ]


def _audit_region(region: str, *, pinned: bool) -> AuditFinding:
    if not region:
        return AuditFinding("region", "unpinnable", "neither the URL nor the reply names one")
    return AuditFinding("region", "pinned" if pinned else "recorded", region)


def _audit_model(call: AuditedCall) -> list[AuditFinding]:
    if not call.is_model and not call.is_embedding:
        return []
    settings = sampling(call)
    tools = ", ".join(f"{each.name} {each.digest}" for each in call.facts.tools)
    answered = call.facts.answered
    return [
        AuditFinding("provider", "recorded", call.facts.provider),
        AuditFinding("requested model", "recorded", call.facts.model),
        AuditFinding("answered model", "recorded", "none: the call failed")
        if not answered and (call.status or 500) >= 400
        else _audit_field(
            "answered model", answered, f"ask for a dated snapshot of {call.facts.model}"
        ),
        *(
            [AuditFinding("sampling", settings.status, settings.what, settings.capture)]
            if settings is not None
            else []
        ),
        AuditFinding("tool schemas", "recorded", tools or "no tools offered"),
    ]


def _audit_retrieval(call: AuditedCall) -> list[AuditFinding]:
    if call.kind != "retrieval":
        return []
    capture = "return {'chunks': [...], 'embedding_model': '...'}"
    return [_audit_field("embedding model", chunks_of(call.reply).embedding, capture)]


def _audit_times(call: AuditedCall) -> list[AuditFinding]:
    reply = call.reply
    if isinstance(reply, Reply) and reply.waits:
        first = f"{reply.waits[0]:g} s after"
    else:
        first = ""
    ended = f"{call.seconds:g} s after" if call.seconds is not None else ""
    findings = [
        _audit_field("start", call.head.get("at"), AGAIN),
        _audit_field("end", ended, AGAIN),
    ]
    if first:
        return [*findings, AuditFinding("first byte", "recorded", first)]
    return findings


def _audit_lineage(call: AuditedCall) -> list[AuditFinding]:
    return [AuditFinding("lineage", "recorded", call.lineage or "the cell itself")]
