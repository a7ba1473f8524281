"""What an MCP server says and asks while a request is under way: kept beside its result, heard
again.

Three things reach a program besides results: progress, notifications, and questions (sampling,
elicitation, roots). Each becomes an event of the oldest request under way, or of the one it names;
in replay it comes again before that request's result, through the program's own callbacks. A
question must get the answer that it got when recorded, since the recorded result may hang on it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture
from tape_jupyter.core.context import SENDING, Origin
from tape_jupyter.core.real_clock import perf_counter
from tape_jupyter.encoding.values.tool_results import Exchange
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.instrumentation.patching import sending_live, swap, undoing
from tape_jupyter.instrumentation.tools.generators import body_strand, parent_of, switch_strand

TAPED = "__tape_session__"
"""Where a session keeps its `Heard`."""

_HEARD = "mcp_heard"
_PROGRESS, _SUBSCRIPTION = "notifications/progress", "io.modelcontextprotocol/subscriptionId"
_log = logging.getLogger("tape_jupyter.mcp")


def patch_session(session: Any) -> Callable[[], None]:
    """Tap what a ClientSession class hears. Returns the undo."""
    return undoing(
        swap(session, "_intercept_notification", _wrap_intercept),
        swap(session, "_on_notify", _wrap_on_notify),
        swap(session, "_on_request", _wrap_on_request),
    )


# Where the program's callbacks run


@contextmanager
def placed(origin: Origin | None, parent: str) -> Iterator[None]:
    """Inside, code runs as the program's, on that strand, whatever task of the session's it runs
    in.
    """
    before = SENDING.get()
    SENDING.set(False)
    try:
        with switch_strand(origin, parent):
            yield
    finally:  # not Token.reset, as in body_of
        SENDING.set(before)


# Live


class McpRequest:
    """A live request: its capture, and what was heard for it. `options` are its options as the
    session gave them.
    """

    def __init__(
        self, capture: Capture, name: str, options: dict[str, Any], early: list[dict[str, Any]]
    ) -> None:
        self.capture, self.given, self._listener_of = capture, options, early
        self.started, self.strand = perf_counter(), body_strand(name)
        self.parent = parent_of(capture)
        self.on_progress: Callable[..., Awaitable[None]] | None = None

    def add_event(self, event: dict[str, Any]) -> None:
        event["at"] = round(perf_counter() - self.started, 4)
        self._listener_of.append(event)

    def options(self, *, direct: bool) -> dict[str, Any]:
        """The options with the program's progress callback in its place. `direct`: no notification
        tells of it.
        """
        callback = self.given.get("on_progress")
        if callback is None:
            return self.given

        async def on_progress(*values: Any) -> None:
            if direct:
                self.add_event({"progress": list(values)})
            with placed(self.strand, self.parent):
                await callback(*values)

        self.on_progress = on_progress
        return {**self.given, "on_progress": on_progress}

    def value(self, result: Any) -> None:
        self.capture.value(Exchange(result, self._listener_of) if self._listener_of else result)

    def fail(self, error: BaseException) -> None:
        if self._listener_of:
            setattr(error, _HEARD, self._listener_of)
        self.capture.fail(error)
        # that one may be written down at the cell's end only
        if not isinstance(error, asyncio.CancelledError):
            vars(error).pop(_HEARD, None)


def heard_before(error: BaseException) -> list[dict[str, Any]]:
    """What was heard before a recorded error; taken off it."""
    return cast("list[dict[str, Any]]", vars(error).pop(_HEARD, []))


class SessionTraffic:
    """What one session hears: the requests under way, and what came when none was."""

    def __init__(self, session: Any, dispatcher: Any) -> None:
        self.session, self.real = session, dispatcher
        self.under_way: list[McpRequest] = []
        self.early: list[dict[str, Any]] = []
        self.recording = False

    def find_request(self, params: Mapping[str, Any] | None) -> McpRequest | None:
        """The request that a message belongs to: the one it names, else the oldest under way."""
        token = (params or {}).get("progressToken")
        if isinstance(token, (str, int)):
            pending = getattr(self.real, "_pending", {}).get(token)
        else:
            pending = None
        subscription = ((params or {}).get("_meta") or {}).get(_SUBSCRIPTION)
        for request in self.under_way:
            if pending is not None and pending.on_progress is request.on_progress is not None:
                return request
            if subscription is not None and request.given.get("request_id") == subscription:
                return request
        return self.under_way[0] if self.under_way else None

    def add_notification(self, method: str, params: Mapping[str, Any] | None) -> None:
        """A notification arrived: kept with its request, else for the next one."""
        event = {"notification": method, "params": dict(params or {}), "at": 0.0}
        request = self.find_request(params)
        if request is not None:
            request.add_event(event)
        elif self.recording:
            self.early.append(event)
            if _has_callbacks(self.session):
                instrumentation.note(
                    f"MCP: {method} came while no request was under way; in replay it comes with the next one"
                )

    # ------------------------------------------------------------ heard again

    async def repeat_event(
        self, event: dict[str, Any], origin: Origin | None, options: dict[str, Any]
    ) -> None:
        """What the recorded session heard, to this one: in tasks of the session's, as its
        dispatcher does it.
        """
        import anyio.lowlevel

        if "asked" in event:
            await self._repeat_request(event, origin)
        elif "progress" in event:
            self._start_callback(origin, options.get("on_progress"), *event["progress"])
        else:
            self._repeat_notification(
                event["notification"],
                _rename_subscription(event["params"], options),
                origin,
                options,
            )
        await anyio.lowlevel.checkpoint()

    def _repeat_notification(
        self, method: str, params: dict[str, Any], origin: Origin | None, options: dict[str, Any]
    ) -> None:
        if method == _PROGRESS:
            progress = (params.get("progress"), params.get("total"), params.get("message"))
            self._start_callback(origin, options.get("on_progress"), *progress)
        if not _find_original(self.session, "_intercept_notification")(
            self.session, method, params
        ):
            self._start_callback(origin, self.session._on_notify, _Asking(None), method, params)  # noqa: SLF001

    def _start_callback(
        self, origin: Origin | None, callback: Callable[..., Awaitable[None]] | None, *args: Any
    ) -> None:
        async def run_callback() -> None:
            with placed(origin, ""):
                try:
                    await cast("Callable[..., Awaitable[None]]", callback)(*args)
                except (
                    Exception
                ):  # as the dispatcher does: a callback's failure is not the request's
                    _log.exception("a callback of an MCP session raised")

        if callback is not None:
            with sending_live():  # a task that takes no number
                self.session._task_group.start_soon(run_callback)  # noqa: SLF001

    async def _repeat_request(self, event: dict[str, Any], origin: Origin | None) -> None:
        method, recorded = event["asked"], event.get("answer")
        with placed(origin, ""):
            try:
                handler = _find_original(self.session, "_on_request")
                answer = await handler(
                    self.session, _Asking(event.get("id", 0)), method, event["params"]
                )
            except Exception as error:
                answer = _build_error_answer(error)
        if recorded is not None and not _is_same_answer(answer, recorded):
            raise UnmatchedCall(
                f"the MCP server asked {method}, and the program answers differently from the recording: the "
                f"recorded result does not follow from it.\n  recorded: {_shorten_answer(recorded)}\n  now:      "
                f"{_shorten_answer(answer)}\nNow: fix the difference, or record the cell again."
            )


class _Asking:
    """As much of a dispatcher's context as a session looks at."""

    def __init__(self, request_id: Any) -> None:
        self.request_id = request_id


def _rename_subscription(params: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """A subscription's notifications name its request, whose id is new in every run of the process."""
    meta = params.get("_meta") or {}
    if _SUBSCRIPTION not in meta or "request_id" not in options:
        return params
    return {**params, "_meta": {**meta, _SUBSCRIPTION: options["request_id"]}}


def _has_callbacks(session: Any) -> bool:
    """Whether the program gave callbacks for what comes unasked: not mcp's own, nor those that only
    hand on to none.
    """
    handler = session._message_handler  # noqa: SLF001
    cells = getattr(handler, "__closure__", None) or ()
    inner = [cell.cell_contents for cell in cells if callable(cell.cell_contents)]
    callbacks = (*inner, session._logging_callback) if _is_mcps(handler) else (handler,)  # noqa: SLF001
    return any(not _is_mcps(callback) for callback in callbacks)


def _is_mcps(callback: Any) -> bool:
    return str(getattr(callback, "__module__", type(callback).__module__)).startswith("mcp.")


def _build_error_answer(error: Exception) -> dict[str, Any]:
    """What an error says to the server."""
    data = getattr(error, "error", None)
    return {"error": {"code": getattr(data, "code", 0), "message": str(error)}}


def _is_same_answer(answer: Any, recorded: Any) -> bool:
    """Whether two answers are equal, as far as the tape holds them: secrets are masked there."""
    return "<secret:" in _dump_answer(recorded) or _dump_answer(answer) == _dump_answer(recorded)


def _dump_answer(answer: Any) -> str:
    return json.dumps(answer, sort_keys=True, default=str)


def _shorten_answer(answer: Any) -> str:
    return _dump_answer(answer)[:300]


# The session's own methods


def _find_listener(session: Any) -> SessionTraffic | None:
    return vars(session).get(TAPED) if instrumentation.current() is not None else None


def _find_original(session: Any, name: str) -> Callable[..., Any]:
    method = getattr(type(session), name)
    return cast("Callable[..., Any]", getattr(method, "__tape_original__", method))


def _wrap_intercept(original: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(original)
    def intercept_notification(session: Any, method: str, params: Mapping[str, Any] | None) -> bool:
        listener = _find_listener(session)
        if listener is not None:
            listener.add_notification(method, params)
        return original(session, method, params)

    return intercept_notification


def _wrap_on_notify(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @functools.wraps(original)
    async def on_notify(
        session: Any, dctx: Any, method: str, params: Mapping[str, Any] | None
    ) -> None:
        listener = _find_listener(session)
        request = listener.find_request(params) if listener is not None else None
        if request is None:
            return await original(session, dctx, method, params)
        with placed(request.strand, request.parent):
            return await original(session, dctx, method, params)

    return on_notify


def _wrap_on_request(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(original)
    async def on_request(
        session: Any, dctx: Any, method: str, params: Mapping[str, Any] | None
    ) -> Any:
        listener = _find_listener(session)
        request = listener.find_request(None) if listener is not None else None
        if listener is None or method == "ping":
            return await original(session, dctx, method, params)
        if request is None:
            if listener.recording:
                instrumentation.note(
                    f"the MCP server asked {method} while no request was under way; in replay it does not ask"
                )
            return await original(session, dctx, method, params)
        event: dict[str, Any] = {
            "asked": method,
            "id": dctx.request_id,
            "params": dict(params or {}),
        }
        request.add_event(event)
        with placed(request.strand, request.parent):
            try:
                event["answer"] = await original(session, dctx, method, params)
            except Exception as error:
                event["answer"] = _build_error_answer(error)
                raise
        return event["answer"]

    return on_request
