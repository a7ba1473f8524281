"""MCP, as a client session asks. Decides nothing itself; transports are
instrumentation/mcp/transports.py's.

Every request of a session is a call: `tools/call` a call of the tool by its own name and arguments,
any other one `mcp.METHOD`. What is kept is the raw result; the SDK reads it again in replay, so
objects and errors are its own. What the server says meanwhile is kept beside it
(instrumentation/mcp/notifications.py).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import FunctionCall, Play, Value
from tape_jupyter.core.context import SENDING
from tape_jupyter.effects.scope import Scope
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.tool_results import Exchange
from tape_jupyter.instrumentation.concurrency.threads import settle_origin
from tape_jupyter.instrumentation.http.replayed_response import await_cancel, await_head, thawed
from tape_jupyter.instrumentation.mcp.connections import connection_of
from tape_jupyter.instrumentation.mcp.notifications import (
    TAPED,
    McpRequest,
    SessionTraffic,
    heard_before,
    patch_session,
    placed,
)
from tape_jupyter.instrumentation.mcp.transports import (
    body_of_tool,
    is_cancelled_failure,
    is_direct,
    is_near,
)
from tape_jupyter.instrumentation.patching import sending, sending_live
from tape_jupyter.instrumentation.stepping_hook import begin_call
from tape_jupyter.instrumentation.tools.generators import body_strand
from tape_jupyter.instrumentation.tools.output import listening

_DISPATCHER = "_dispatcher"


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the ClientSession of `module` (mcp.client.session). Returns the undo."""
    session = module.ClientSession
    if not hasattr(session, "_intercept_notification"):  # before mcp 2: another machine
        return lambda: None
    undo_heard = patch_session(session)
    session._dispatcher = _Dispatcher()  # noqa: SLF001

    def undo() -> None:
        if isinstance(vars(session).get(_DISPATCHER), _Dispatcher):
            del session._dispatcher  # noqa: SLF001
        undo_heard()

    return undo


def call_of_request(method: str, params: Mapping[str, Any] | None) -> FunctionCall:
    """The call that a request is. What the SDK adds on its own account (`_meta`, its version) is no
    part of it.
    """
    fields = {
        name: value
        for name, value in (params or {}).items()
        if name not in ("_meta", "protocolVersion")
    }
    if method != "tools/call":
        return FunctionCall(f"mcp.{method}", fields)
    name, arguments = str(fields.pop("name", "")), fields.pop("arguments", None) or {}
    return FunctionCall(name, {**arguments, **fields})


def result_of(value: Any) -> dict[str, Any]:
    """A tool's result as a server sends it; of a plain value (a stub, an edit by hand), one that
    says that value.
    """
    if isinstance(value, dict) and (
        isinstance(value.get("content"), list) or "resultType" in value
    ):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # as servers wrap what is no object
    structured = value if isinstance(value, dict) else {"result": value}
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": False,
    }


class _Dispatcher:
    """Stands over `ClientSession._dispatcher`: whoever asks a session for it, however old, gets the
    taped one.
    """

    def __get__(self, session: Any, _owner: type | None = None) -> Any:
        if session is None:
            return self
        attributes = vars(session)
        if _DISPATCHER not in attributes:
            raise AttributeError(_DISPATCHER)
        taped = attributes.get(TAPED)
        if taped is None or taped.real is not attributes[_DISPATCHER]:
            taped = attributes[TAPED] = _Taped(session, attributes[_DISPATCHER])
        return taped

    def __set__(self, session: Any, dispatcher: Any) -> None:
        vars(session)[_DISPATCHER] = dispatcher


class _Taped(SessionTraffic):
    """The dispatcher of one session: the tape is asked before anything is sent."""

    def __init__(self, session: Any, real: Any) -> None:
        super().__init__(session, real)
        # played; sent where the connection opens after all
        self._handshake: list[tuple[str, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    async def run(self, *handlers: Any, **options: Any) -> None:
        """The session's own task: what it sends is nobody's call, what it calls back is the
        program's.
        """
        if instrumentation.current() is not None:
            SENDING.set(True)
        await self.real.run(*handlers, **options)

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        tape = instrumentation.current()
        if tape is None or SENDING.get() or self.session._task_group is None:  # noqa: SLF001
            return await self._send_request(method, params, opts)
        settle_origin()
        call, options = self._build_call(method, params), dict(opts or {})
        decision = await begin_call(tape, call)
        self.recording = not (decision is None or isinstance(decision, Play))
        if isinstance(decision, Play):
            if method == "initialize":
                self._handshake = [(method, params, opts)]
            result = await self._play_result(decision, call.name, options)
            if method == "tools/call":
                return result_of(result)
            return cast("dict[str, Any]", result)
        if decision is None:
            await self._wake_connection()
            return await self._send_request(method, params, opts)
        return await self._record_request(
            McpRequest(decision, call.name, options, self._pop_early()), method, params
        )

    def _build_call(self, method: str, params: Any) -> FunctionCall:
        """The request; of a server in this process with what its tool can reach."""
        call = call_of_request(method, params)
        if method == "tools/call":
            body = body_of_tool(self.session, self.real, call.name)
        else:
            body = None
        if body is None:
            return call
        return replace(call, scope=Scope(body, call.arguments, far=True))

    async def _send_request(self, method: str, params: Any, opts: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", await self.real.send_raw_request(method, params, opts))

    def _pop_early(self) -> list[dict[str, Any]]:
        early, self.early = self.early, []
        return early

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        """A notification leaves as part of the handshake, or as a call that has no result."""
        if method == "notifications/initialized":
            return await self._notify_ready(method, params, opts)
        tape = instrumentation.current()
        decision = None
        if tape is not None and not SENDING.get():
            settle_origin()
            decision = await begin_call(tape, call_of_request(method, params))
        if isinstance(decision, Play):
            return None
        if decision is None:
            await self._wake_connection()
            return cast("None", await self.real.notify(method, params, opts))
        with sending(decision):
            await self._wake_connection()
            await self.real.notify(method, params, opts)
        return decision.value(None)

    async def _notify_ready(self, method: str, params: Any, opts: Any) -> None:
        connection = connection_of(self.real)
        if connection is not None and not connection.awake:
            self._handshake.append((method, params, opts))
            return
        with sending_live():
            await self.real.notify(method, params, opts)

    async def _wake_connection(self) -> None:
        """Open a connection that was not, and shake hands as the recorded session did."""
        connection = connection_of(self.real)
        if connection is None or connection.awake:
            return
        await connection.wake()
        handshake, self._handshake = self._handshake, []
        for method, params, opts in handshake:
            if method == "initialize":
                send = self.real.send_raw_request
            else:
                send = self.real.notify
            await send(method, params, opts)

    async def _record_request(
        self, request: McpRequest, method: str, params: Any
    ) -> dict[str, Any]:
        self.under_way.append(request)
        try:
            with sending_live():
                await self._wake_connection()
            options = request.options(direct=is_direct(self.real))
            with self._mark_sending(request):
                result = await self._send_request(method, params, options)
        except GeneratorExit:
            request.capture.close()
            raise
        except BaseException as error:
            if not (
                isinstance(error, asyncio.CancelledError)
                and is_cancelled_failure(self.real, request.fail, error)
            ):
                request.fail(error)
            raise
        finally:
            self.under_way.remove(request)
        request.value(result)
        return result

    @contextmanager
    def _mark_sending(self, request: McpRequest) -> Iterator[None]:
        if is_near(self.real):
            with placed(request.strand, request.parent), listening(request.capture):
                yield
        else:
            with sending_live():
                yield

    async def _play_result(self, play: Play, name: str, options: dict[str, Any]) -> Any:
        import anyio.lowlevel

        reply, gate, origin = cast("Value", play.reply), play.gate, body_strand(name)
        error = thawed(reply.error) if reply.error is not None else None
        if error is None:
            kept = registry.thaw(reply.value)
        else:
            kept = Exchange(None, heard_before(error))
        exchange = kept if isinstance(kept, Exchange) else Exchange(kept)
        for event in exchange.messages:
            if gate is not None:
                await gate.wait_async(event.get("at", 0.0))
            await self.repeat_event(event, origin, options)
        await anyio.lowlevel.checkpoint()
        await await_cancel(reply.error)
        await await_head(play)
        if play.effects is not None:
            play.effects.happen()
        if error is not None:
            await self._raise_error(error)
        return exchange.result

    async def _raise_error(self, error: BaseException) -> None:
        """A group is what a transport broke with: this one breaks too, which cancels the session
        and us.
        """
        import anyio

        connection = connection_of(self.real)
        if isinstance(error, BaseExceptionGroup) and connection is not None:
            connection.crash(error.exceptions)
            await anyio.Event().wait()
        raise error
