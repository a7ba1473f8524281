"""A held call as a person sees it: what is asked, what will be served. Decides nothing.

Secrets are masked as they are on the tape. Texts are cut: the whole is a click away, in the detail
of the call's span.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.index_entries import Overridden
from tape_jupyter.cassette.match_key import json_value
from tape_jupyter.cassette.takes import edits
from tape_jupyter.cassette.takes.faults import faults
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.core.plain_text import format_json
from tape_jupyter.debugger.call_site import KINDS, CallSite, Would
from tape_jupyter.debugger.machine import ParkedStrand
from tape_jupyter.encoding.http.body import decode
from tape_jupyter.encoding.values.mutations import frozen_or_type
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.providers import editing, registry
from tape_jupyter.replay.player import Frozen, GoLive, Recorded, Refuse, Stub
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session.cell import PausedCall

MOST = 4_000
"""Characters of a section."""
_TITLE = 80
_FRAMING = ("content-length", "content-encoding", "transfer-encoding")
"""A changed body is neither packed nor in parts, and as long as it is."""
_NOTHING = {"text": "", "json": False, "whole": True}


def entry_of(decided: Any) -> Entry | None:
    """The recorded call that answers, or in whose place the answer stands."""
    recorded: Recorded | None = (
        decided.recorded if isinstance(decided, Frozen | Stub | GoLive) else decided
    )
    return recorded if isinstance(recorded, Entry) else None


def held_site(held_call: PausedCall, decided: Any, *, with_text: bool) -> CallSite:
    """The call for whoever decides whether to stop there; `with_text` where a condition may look at
    what is asked.
    """
    call, entry = held_call.call, entry_of(decided)
    kind = held_call.kind if held_call.kind in KINDS else "http"
    cell = held_call.cell.request
    shared: dict[str, Any] = {
        "span": entry.name if entry is not None else "",
        "would": would(decided),
        "failed": _has_failed(entry),
        "edited": isinstance(entry, Overridden),
        "cell": f"{cell.cell_id or ''} {cell.count or ''}",
    }
    if isinstance(call, FunctionCall):
        title = f"{call.name}({_format_arguments(call)})"
        text = format_json(_freeze_arguments(call)) if with_text else ""
        arguments = dict(call.arguments) if with_text else {}
        return CallSite(
            call.kind, call.name, title[:_TITLE], text=text, arguments=arguments, **shared
        )
    name = _find_model_name(call) if kind == "model" else urlsplit(call.url).netloc
    text = _decode_body(call) if with_text else ""
    title = name if kind == "model" else f"{call.method} {_shorten_url(call.url)}"[:_TITLE]
    return CallSite(kind, name, title, text=text, **shared)


def would(decided: Any) -> Would:
    """What becomes of the call when nobody says otherwise."""
    if isinstance(decided, Refuse):
        return "refuse"
    return "live" if isinstance(decided, GoLive) else "play"


def call_record(
    at: ParkedStrand,
    held_call: PausedCall,
    decided: Any,
    can: list[str],
    secrets: Secrets,
    *,
    sent: Any,
    fields: list[dict[str, str]],
    unchangeable: str = "",
) -> dict[str, Any]:
    """As protocol.ts has it (StepCall). `fields`: how it differs from what is on the tape;
    `unchangeable`: why a request that goes out cannot be changed before.
    """
    site = at.site
    request = sent if sent is not None else held_call.call
    return {
        "place": at.place, "nth": at.nth, "span": site.span, "kind": site.kind, "title": site.title, "name": site.name,
        "would": site.would, "request": asked_request(request, secrets), "reply": reply_section(decided, secrets),
        "fields": fields,
        "request_edit": editable_request(request) if "request" in can else None, "unchangeable": unchangeable,
        "faults": _list_faults(held_call.call) if "fault" in can and not site.span else [],
        "edited": site.edited, "can": can,
    }  # fmt: skip


def _list_faults(call: Request | FunctionCall) -> list[dict[str, Any]]:
    """Those of a call that is not on the tape: there is no recorded reply that could come after
    one.
    """
    records = [each.record() for each in faults(call)]
    return [
        {**each, "options": [one for one in each["options"] if one["name"] != "times"]}
        for each in records
    ]


def asked_request(call: Request | FunctionCall, secrets: Secrets) -> dict[str, Any]:
    if isinstance(call, FunctionCall):
        return _build_section(
            format_json(secrets.scrub_structure(_freeze_arguments(call))[0]), is_json=True
        )
    value = json_value(decode(call.body, call.header("content-encoding")) or b"")
    if value is None:
        return _build_section(secrets.scrub(_decode_body(call))[0], is_json=False)
    return _build_section(format_json(secrets.scrub_structure(value)[0]), is_json=True)


def reply_section(decided: Any, secrets: Secrets) -> dict[str, Any] | None:
    """The reply that will be served; None where none will be, or it cannot be read."""
    entry = entry_of(decided)
    if isinstance(decided, GoLive) or (entry is None and not isinstance(decided, Stub)):
        return None
    if entry is None:
        return _build_section(format_json(decided.value), is_json=True)
    try:
        request, reply = entry.request(), entry.reply()
    except CassetteError as error:
        return _build_section(str(error), is_json=False)
    return _build_reply_section(request, reply, secrets)


def _build_reply_section(
    request: Request | FunctionCall, reply: Reply | Value, secrets: Secrets
) -> dict[str, Any]:
    if isinstance(reply, Value):
        content = reply.error if reply.error is not None else reply.value
        return _build_section(format_json(secrets.scrub_structure(content)[0]), is_json=True)
    if isinstance(request, Request):
        message = editing.reply_message(request, reply)
    else:
        message = None
    if message is not None:
        return _build_section(format_json(secrets.scrub_structure(message)[0]), is_json=True)
    if reply.error is not None:
        return _build_section(format_json(reply.error), is_json=True)
    head = f"{reply.status} {reply.reason}".strip()
    return _build_section(f"{head}\n{secrets.scrub(edits.body_text(reply))[0]}", is_json=False)


# ---------------------------------------------------------------- a request that is changed before it goes out


def editable_request(call: Request | FunctionCall) -> str:
    """The body or the arguments as text, to be changed; what is a secret stands there as it is
    sent.
    """
    if isinstance(call, FunctionCall):
        return format_json(_freeze_arguments(call))
    body = decode(call.body, call.header("content-encoding")) or b""
    value = json_value(body)
    if value is not None:
        return format_json(value)
    return body.decode("utf-8", "replace")


def changed_request(call: Request | FunctionCall, text: str) -> Request | FunctionCall:
    """The call with another body, or other arguments. Raises TapeUsageError for what cannot be
    sent.
    """
    if len(text) > edits.LIMIT:
        raise TapeUsageError(f"a request is at most {edits.LIMIT:,} characters long")
    if isinstance(call, FunctionCall):
        return _replace_arguments(call, text)
    if json_value(decode(call.body, call.header("content-encoding")) or b"") is not None:
        try:
            body = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8"
            )
        except ValueError as error:
            raise TapeUsageError(f"the request is JSON, and this is none ({error})") from None
    else:
        body = text.encode("utf-8")
    kept = [(name, value) for name, value in call.headers if name.lower() not in _FRAMING]
    return Request(call.method, call.url, (*kept, ("Content-Length", str(len(body)))), body)


def _replace_arguments(call: FunctionCall, text: str) -> FunctionCall:
    from tape_jupyter.encoding.values.registry import thaw

    try:
        arguments = json.loads(text)
        if not isinstance(arguments, dict) or set(arguments) != set(call.arguments):
            raise TapeUsageError(
                f"the arguments are JSON of an object with {', '.join(call.arguments) or 'no names'}"
            )
        return FunctionCall(
            call.name,
            {name: thaw(value) for name, value in arguments.items()},
            call.kind,
            call.discreet,
        )
    except (ValueError, CassetteError) as error:
        raise TapeUsageError(f"these are no arguments ({error})") from None


# ---------------------------------------------------------------- texts


def _freeze_arguments(call: FunctionCall) -> dict[str, Any]:
    return {name: frozen_or_type(value) for name, value in call.arguments.items()}


def _format_arguments(call: FunctionCall) -> str:
    arguments = {
        name: format_json(value).replace("\n", " ")
        for name, value in _freeze_arguments(call).items()
    }
    return ", ".join(f"{name}={value[:30]}" for name, value in arguments.items())


def _decode_body(call: Request) -> str:
    return (decode(call.body, call.header("content-encoding")) or b"").decode("utf-8", "replace")


def _find_model_name(call: Request) -> str:
    body = json_value(_decode_body(call).encode())
    model = body.get("model") if isinstance(body, dict) else None
    if isinstance(model, str):
        return model
    return registry.identify(call).model or urlsplit(call.url).netloc


def _shorten_url(url: str) -> str:
    return url.partition("://")[2].partition("?")[0]


def _has_failed(entry: Entry | None) -> bool:
    """Whether the recorded call ended in an error, by its head: the reply is not read for it."""
    if entry is None:
        return False
    return bool(entry.head().get("failed")) or (
        isinstance(entry, Overridden) and "fault" in entry.head()
    )


def _build_section(text: str, *, is_json: bool) -> dict[str, Any]:
    if text:
        return {"text": text[:MOST], "json": is_json, "whole": len(text) <= MOST}
    return dict(_NOTHING)
