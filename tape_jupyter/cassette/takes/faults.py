"""Faults that a person puts in a recorded call's place: limits, overload, resets, timeouts, cut
streams.

A fault holds no library's own exception: a reset is a ConnectionResetError, a timeout a
TimeoutError, and the tap of whatever client replays it makes of it what that client raises. What
SDKs try again (`TRIED_AGAIN`) is a fault `times` times; then comes the recorded reply.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tape_jupyter.cassette.records import phrase
from tape_jupyter.core.call import FunctionCall, Headers, Reply, Request, Value
from tape_jupyter.encoding.http.aws_event_stream import split_frames
from tape_jupyter.encoding.values.registry import freeze_error, thaw_error
from tape_jupyter.encoding.values.user_classes import ModuleAbsent
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.providers import http
from tape_jupyter.providers.editing import plain_headers
from tape_jupyter.providers.openai import provider as openai
from tape_jupyter.providers.protocol import Provider, ProviderError
from tape_jupyter.providers.registry import REQUEST_IDS, identify, providers
from tape_jupyter.providers.streams import rechunking
from tape_jupyter.providers.streams.events import parse_events

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault; `options` with their defaults and what they are called for people."""

    name: str
    label: str
    options: Mapping[str, tuple[str, bool | int | float | str]]

    def record(self) -> dict[str, Any]:
        """In the shape of the view's protocol (Fault)."""
        options = [
            {"name": name, "label": label, "value": value}
            for name, (label, value) in self.options.items()
        ]
        return {"name": self.name, "label": self.label, "options": options}


_TIMES: Final = ("how many times, before the recorded reply", 1)
_PARTIAL: Final = ("its body breaks off halfway", True)
_AFTER: Final = ("after how many events", 2)
_YES_OR_NO: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
HTTP: Final = (
    Fault("rate_limit", "429, rate limit",
          {"retry_after": ("asks to wait, seconds", 1), "partial": _PARTIAL, "times": _TIMES}),
    Fault("overloaded", "overloaded (529, elsewhere 503)", {"times": _TIMES}),
    Fault("server_error", "500, internal error", {"times": _TIMES}),
    Fault("reset", "connection reset", {"after": _AFTER, "times": _TIMES}),
    Fault("timeout", "timeout", {"after": ("after how many events", 0), "times": _TIMES}),
    Fault("truncated", "stream ends early, without an error", {"after": _AFTER}),
)  # fmt: skip
FUNCTION: Final = (
    Fault(
        "error",
        "raises",
        {"class": ("class", "TimeoutError"), "message": ("message", "it took too long")},
    ),
)
TRIED_AGAIN: Final = frozenset({"rate_limit", "overloaded", "server_error", "reset", "timeout"})
_MOST_TIMES: Final = 20


def faults(request: Request | FunctionCall) -> tuple[Fault, ...]:
    """Those that a call may get."""
    if isinstance(request, FunctionCall):
        return FUNCTION
    # of a dialogue the lines are edited
    return () if request.url.startswith(("ws:", "wss:")) else HTTP


def parse_fault(fault: Any) -> tuple[str, dict[str, Any]]:
    """`reset:after=2`, {"name": "reset", "after": 2} or {"name": ..., "options": {...}}: the name
    and the options.
    """
    if isinstance(fault, str):
        name, _, rest = fault.partition(":")
        pairs = [pair.partition("=") for pair in rest.split(",") if pair]
        if bad := next((key for key, equals, _ in pairs if not equals), ""):
            raise TapeUsageError(
                f"fault {fault[:80]!r}: {bad!r} has no =; write NAME:OPTION=VALUE,OPTION=VALUE"
            )
        return name, {key.strip(): value for key, _, value in pairs}
    if isinstance(fault, Mapping) and isinstance(fault.get("name"), str):
        inner = fault.get("options")
        if isinstance(inner, Mapping):
            return fault["name"], dict(inner)
        return fault["name"], {key: value for key, value in fault.items() if key != "name"}
    raise TapeUsageError('fault= is a text like "reset:after=2" or {"name": "reset", "after": 2}')


def injected(
    request: Request | FunctionCall, recorded: Reply | Value, fault: Any
) -> tuple[Reply | Value, list[Reply], dict[str, Any]]:
    """The answer that the fault is, what answers after it when the call is tried again, and what to
    keep of it.

    Raises TapeUsageError for a fault or an option that there is not.
    """
    name, settings = parse_fault(fault)
    kind = next((each for each in faults(request) if each.name == name), None)
    if kind is None:
        have = (
            ", ".join(each.name for each in faults(request))
            or "none (it is a dialogue: edit its lines)"
        )
        raise TapeUsageError(f"there is no fault {name[:80]!r} for this call; there are: {have}")
    options = _fill_options(kind, settings)
    kept = {"name": name, **options}
    if isinstance(request, FunctionCall):
        return _build_raised_value(str(options["class"]), str(options["message"])), [], kept
    if not isinstance(recorded, Reply):
        raise TapeUsageError("this call has no recorded reply to make a fault of")
    if name in _MADE:
        answer = _MADE[name](request, recorded, options)
    else:
        answer = _break_reply(name, recorded, int(options["after"]))
    again = name in TRIED_AGAIN and (answer.status is None or answer.status >= 400)
    more = [answer] * (int(options["times"]) - 1) if again else []
    return answer, [*more, recorded] if again else [], kept


def _fill_options(kind: Fault, settings: Options) -> dict[str, Any]:
    options: dict[str, Any] = {name: value for name, (_, value) in kind.options.items()}
    for name, value in settings.items():
        if name not in options:
            have = ", ".join(options) or "none"
            raise TapeUsageError(
                f"fault {kind.name} has no option {str(name)[:80]!r}; it has {have}"
            )
        if isinstance(options[name], bool):
            options[name] = _parse_choice(kind, name, value)
        elif isinstance(options[name], int | float):
            options[name] = _parse_number(kind, name, value)
        else:
            options[name] = str(value)
    return options


def _parse_choice(kind: Fault, name: str, value: Any) -> bool:
    choice = _YES_OR_NO.get(str(value).lower())
    if choice is None:
        raise TapeUsageError(f"fault {kind.name}: {name} is yes or no, not {str(value)[:80]!r}")
    return choice


def _parse_number(kind: Fault, name: str, value: Any) -> int | float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TapeUsageError(
            f"fault {kind.name}: {name} is a number, not {str(value)[:80]!r}"
        ) from None
    most = _MOST_TIMES if name == "times" else 1_000_000
    if not (name == "times") <= number <= most:  # not a number is not between them either
        raise TapeUsageError(f"fault {kind.name}: {name} is from {int(name == 'times')} to {most}")
    return int(number) if number == int(number) else number


# ---------------------------------------------------------------- answers instead of the recorded one


def _build_rate_limit(request: Request, recorded: Reply, options: Options) -> Reply:
    body = _build_error_body(request, 429)
    reply = _build_refusal(recorded, 429, body, (("retry-after", f"{options['retry_after']:g}"),))
    if not options["partial"]:
        return reply
    return replace(reply, chunks=(body[: len(body) // 2],), end="error", error=_build_reset_error())


def _build_overloaded(request: Request, recorded: Reply, _: Options) -> Reply:
    status = _find_provider(request).overloaded
    return _build_refusal(recorded, status, _build_error_body(request, status))


def _build_server_error(request: Request, recorded: Reply, _: Options) -> Reply:
    return _build_refusal(recorded, 500, _build_error_body(request, 500))


_MADE: Final = {
    "rate_limit": _build_rate_limit,
    "overloaded": _build_overloaded,
    "server_error": _build_server_error,
}


def _build_refusal(recorded: Reply, status: int, body: bytes, more: Headers = ()) -> Reply:
    """A whole reply with that status, after the recorded wait; the request's id is that of the
    recorded reply.
    """
    ids = tuple((name, value) for name, value in recorded.headers if name.lower() in REQUEST_IDS)
    headers = (
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        *more,
        *ids,
    )
    wait = recorded.waits[0] if recorded.waits else 0.0
    reason = phrase(status) or "Overloaded"
    return Reply(status, headers, (body,), (wait,), version=recorded.version, reason=reason)


_SAID: Final = {
    429: ("rate_limit_error", "RESOURCE_EXHAUSTED", "This request would exceed your rate limit."),
    500: ("api_error", "INTERNAL", "Internal server error."),
    503: ("overloaded_error", "UNAVAILABLE", "The model is overloaded. Please try again later."),
    529: ("overloaded_error", "UNAVAILABLE", "Overloaded"),
}


def _build_error_body(request: Request, status: int) -> bytes:
    """What the provider of that wire says then."""
    error = ProviderError(status, *_SAID[status])
    return json.dumps(_find_provider(request).error_body(error)).encode()


def _find_provider(request: Request) -> Provider:
    """Of an address that nobody is known for: OpenAI's, which most hosts follow."""
    return providers().get(identify(request).wire, openai.CHAT)


# ---------------------------------------------------------------- the recorded one, broken off


def _break_reply(name: str, recorded: Reply, after: int) -> Reply:
    if recorded.status is None:
        raise TapeUsageError("the recorded call got no reply that could break off")
    if name != "truncated" and after == 0:
        return Reply(
            None,
            end="error",
            error=_build_reset_error() if name == "reset" else _build_timeout_error(),
            waits=recorded.waits[:1],
        )
    body = b"".join(_take_first_events(recorded, after))
    chunked, waits = rechunking.first_chunks(recorded, body)
    reply = replace(recorded, chunks=chunked, waits=waits, end="complete", error=None)
    if name == "truncated":
        return replace(reply, headers=plain_headers(recorded.headers, len(body)))
    headers = tuple(
        (key, value) for key, value in recorded.headers if key.lower() != "content-encoding"
    )
    return replace(
        reply,
        headers=headers,
        end="error",
        error=_build_reset_error() if name == "reset" else _build_timeout_error(),
    )


def _take_first_events(recorded: Reply, after: int) -> Iterator[bytes]:
    """The first events of a stream (lines, frames); of a body that is one piece, half of it."""
    body = http.decoded_body(recorded.headers, recorded.body) or b""
    kind = recorded.header("content-type").lower()
    if "amazon.eventstream" in kind:
        parts = list(split_frames(body))
    elif "ndjson" in kind:
        parts = body.splitlines(keepends=True)
    elif "event-stream" in kind or body.lstrip()[:1] not in (b"{", b"["):
        parts = [event.raw for event in parse_events(body)]
    else:
        parts = [body[: len(body) // 2]] if after else []
    if after >= len(parts) > 1:
        raise TapeUsageError(
            f"the recorded stream has {len(parts)} events; break it off after fewer"
        )
    yield from parts[:after]


def _build_reset_error() -> dict[str, Any]:
    return freeze_error(ConnectionResetError(104, "Connection reset by peer"))


def _build_timeout_error() -> dict[str, Any]:
    return freeze_error(TimeoutError("timed out"))


# ---------------------------------------------------------------- functions


def _build_raised_value(name: str, message: str) -> Value:
    """A function that raises: an exception of Python's, or MODULE:CLASS of a module that is
    imported.
    """
    known = getattr(builtins, name, None)
    if ":" not in name and not (isinstance(known, type) and issubclass(known, BaseException)):
        raise TapeUsageError(
            f"{name[:80]!r} is not an exception of Python's; write MODULE:CLASS for another"
        )
    frozen = {
        "<type>": "exception",
        "class": name if ":" in name else f"builtins:{name}",
        "args": [message],
    }
    try:
        thaw_error(frozen)
    except ModuleAbsent:
        pass  # the notebook has it, this process has not
    except CassetteError as error:
        raise TapeUsageError(str(error)) from error
    return Value(error=frozen)
