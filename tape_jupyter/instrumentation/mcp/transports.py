"""What an MCP client talks through: a child process, HTTP, a server in this process. Decides
nothing itself.

Opening a transport is a call of its own, `mcp.connect`: recorded, it opens as ever, and what is
sent below it stays silent; played, nothing is opened, no process and no connection. What the
program gets then is asleep: it opens when a request goes live after all (a new one, a tool run
live), in a task of its own.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial, wraps
from pathlib import PurePath
from types import FunctionType, ModuleType, TracebackType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, FunctionCall, Play, Value
from tape_jupyter.core.context import SENDING
from tape_jupyter.instrumentation.concurrency.threads import settle_origin
from tape_jupyter.instrumentation.http.replayed_response import await_head, thawed
from tape_jupyter.instrumentation.mcp.connections import (
    Connection,
    Opens,
    Sleeping,
    sleeping_dispatcher,
    sleeping_streams,
)
from tape_jupyter.instrumentation.patching import sending, sending_live, swap, undoing
from tape_jupyter.instrumentation.stepping_hook import begin_call

Undo = Callable[[], None]

CONNECT = "mcp.connect"
_KINDS = {"stdio_client": "stdio", "streamable_http_client": "http", "sse_client": "sse"}


# The doors


def patch(module: ModuleType) -> Undo:
    """Tap the transports that one of mcp's client modules defines. Returns the undo."""
    here = {
        name: kind for name, kind in _KINDS.items() if _is_defined_in(module, name, "__wrapped__")
    }
    undone = [_wrap_transport(vars(module)[name], kind) for name, kind in here.items()]
    if _is_defined_in(module, "InMemoryTransport", "_connect"):
        undone.append(swap(module.InMemoryTransport, "_connect", _wrap_in_memory))
    if _is_defined_in(module, "Client", "_build_session"):
        undone.append(swap(module.Client, "_build_session", _wrap_build_session))
    return undoing(*undone)


def _is_defined_in(module: ModuleType, name: str, attribute: str) -> bool:
    """Whether the module defines this, rather than having imported it, and in the form we know."""
    member = vars(module).get(name)
    return getattr(member, "__module__", "") == module.__name__ and hasattr(member, attribute)


def _wrap_transport(function: Any, kind: str) -> Undo:
    """Put a door into a function that `asynccontextmanager` made, for everybody who has imported it
    already: the generator function stands in a cell of its closure.
    """
    cell = function.__closure__[function.__code__.co_freevars.index("func")]
    original = function.__wrapped__

    @wraps(original)
    async def open_taped(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        opens = partial(_watch_transport, partial(asynccontextmanager(original), *args, **kwargs))
        async with _open_connection(
            _describe_server(kind, args, kwargs), opens, sleeping_streams
        ) as streams:
            yield streams

    cell.cell_contents = open_taped

    def undo() -> None:
        if cell.cell_contents is open_taped:
            cell.cell_contents = original

    return undo


def _wrap_in_memory(
    original: Callable[[Any], AbstractAsyncContextManager[Any]],
) -> Callable[[Any], Any]:
    def _connect(transport: Any) -> AbstractAsyncContextManager[Any]:
        opens = partial(
            _watch_transport,
            partial(original, transport),
            server=transport._server,  # noqa: SLF001
        )
        server = _describe_server("memory", (transport._server,), {})  # noqa: SLF001
        return _open_connection(server, opens, sleeping_streams)

    return _connect


def _wrap_build_session(
    original: Callable[[Any, AsyncExitStack], Awaitable[Any]],
) -> Callable[..., Awaitable[Any]]:
    """`Client` opens whatever it was given by a function that it holds; a door stands in for that
    one meanwhile.
    """

    async def build_session(client: Any, exit_stack: AsyncExitStack) -> Any:
        connect = client._connect  # noqa: SLF001

        async def connect_taped(stack: AsyncExitStack, *how: Any) -> Any:
            opens = partial(_enter_stack, lambda inner: connect(inner, *how))
            description = _describe_server("client", (client.server,), {})
            return await stack.enter_async_context(
                _open_connection(description, opens, sleeping_dispatcher)
            )

        client._connect = connect_taped  # noqa: SLF001
        try:
            session = await original(client, exit_stack)
            vars(session)[_SERVER] = client.server
            return session
        finally:
            client._connect = connect  # noqa: SLF001

    return build_session


@asynccontextmanager
async def _enter_stack(enter: Callable[[AsyncExitStack], Awaitable[Any]]) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:
        yield await enter(stack)


def _describe_server(kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Which server: what of it can be written, and is the same elsewhere. No headers, no
    environment.
    """
    server: Any = args[0] if args else kwargs.get("url", kwargs.get("server"))
    if isinstance(server, str):
        return {"transport": "sse" if kind == "sse" else "http", "url": server.partition("?")[0]}
    if hasattr(server, "command"):
        if server.command == sys.executable:
            command = "python"
        else:
            command = PurePath(server.command).name
        return {"transport": "stdio", "command": command, "args": list(server.args)}
    return {"transport": kind, "server": str(getattr(server, "name", type(server).__name__))}


# One connection


@asynccontextmanager
async def _open_connection(
    description: dict[str, Any], opens: Opens, asleep: Callable[[Connection], Any]
) -> AsyncIterator[Any]:
    """What `opens` gives, recorded; or, played, what `asleep` makes of a connection that nobody
    opens.
    """
    decision = await _ask_tape(description)
    if isinstance(decision, Play):
        await _pass_opening(decision)
        async with Connection(opens) as connection, asleep(connection) as inner:
            yield inner
    elif decision is None:
        async with opens() as inner:
            yield inner
    else:
        async with _UntapedTransport(opens(), decision) as inner:
            yield inner


async def _ask_tape(description: dict[str, Any]) -> Play | Capture | None:
    tape = instrumentation.current()
    if tape is None or SENDING.get():
        return None
    settle_origin()
    return await begin_call(tape, FunctionCall(CONNECT, description))


async def _pass_opening(play: Play) -> None:
    """The recorded opening: its wait, and its error."""
    await await_head(play)
    reply = cast("Value", play.reply)
    if reply.error is not None:
        raise thawed(reply.error)


class _UntapedTransport:
    """A live transport: what it does on its way in and out, and in its tasks, is no call of the
    program's.
    """

    def __init__(self, inner: AbstractAsyncContextManager[Any], capture: Capture) -> None:
        self._inner, self._capture = inner, capture

    async def __aenter__(self) -> Any:
        with sending(self._capture):
            opened = await self._inner.__aenter__()
        self._capture.value(None)
        return opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool | None:
        with sending_live():
            return await self._inner.__aexit__(kind, error, at)


# Live connections, as their sessions see them


class _Transport:
    """A live transport. `server`: the one in this process that it leads to. `held` are requests
    that were cancelled while it broke: its own error is theirs.
    """

    def __init__(self, server: Any) -> None:
        self.server = server
        self.manager: Any = None
        self.held: list[tuple[Callable[[BaseException], None], BaseException]] = []

    @property
    def breaking(self) -> bool:
        """Whether a task of the transport failed, which cancels whoever uses it. Its task group is
        a local of it.
        """
        frame = getattr(getattr(self.manager, "gen", None), "ag_frame", None)
        tasks = frame.f_locals.get("tg") if frame is not None else None
        return bool(tasks is not None and tasks.cancel_scope.cancel_called)

    def fail_requests(self, error: BaseException | None) -> None:
        requests, self.held = self.held, []
        for fail, own_error in requests:
            fail(error if isinstance(error, BaseExceptionGroup) else own_error)


_open: dict[int, _Transport] = {}
"""Live transports by the `id` of the stream that a session writes to, for as long as they are open."""


@asynccontextmanager
async def _watch_transport(opens: Opens, *, server: Any = None) -> AsyncIterator[Any]:
    known = _Transport(server)
    known.manager, streams = opens(), None
    try:
        async with known.manager as streams:
            _open[id(streams[1])] = known
            yield streams
    except BaseException as error:
        known.fail_requests(error)
        raise
    finally:
        known.fail_requests(None)
        _open.pop(id(streams[1]) if streams else 0, None)


_SERVER = "__tape_server__"


def body_of_tool(session: Any, dispatcher: Any, name: str) -> FunctionType | None:
    """The function that a server in this process runs for a tool; None of any other server."""
    known = _open.get(_find_stream_id(dispatcher))
    server = getattr(known, "server", None) or vars(session).get(_SERVER)
    if (manager := getattr(server, "_tool_manager", None)) is not None:
        body = getattr(manager.get_tool(name), "fn", None)
    else:  # a server of the SDK's lower level, with one handler for all tools
        handlers = getattr(server, "_request_handlers", {})
        body = getattr(handlers.get("tools/call"), "handler", None)
    return body if isinstance(body, FunctionType) else None


def is_direct(dispatcher: Any) -> bool:
    """Whether the server is called, without a message between."""
    return type(_find_real(dispatcher)).__name__ == "DirectDispatcher"


def is_near(dispatcher: Any) -> bool:
    """Whether the server runs in this process: what its tools do is the program's own doing."""
    known = _open.get(_find_stream_id(dispatcher))
    return known.server is not None if known else is_direct(dispatcher)


def is_cancelled_failure(
    dispatcher: Any, fail: Callable[[BaseException], None], error: BaseException
) -> bool:
    """Whether a cancelled request is its transport's failure: then the transport tells it at its
    end.
    """
    known = _open.get(_find_stream_id(dispatcher))
    if known is None or not known.breaking:
        return False
    known.held.append((fail, error))
    return True


def _find_real(dispatcher: Any) -> Any:
    return dispatcher.real if isinstance(dispatcher, Sleeping) else dispatcher


def _find_stream_id(dispatcher: Any) -> int:
    return id(getattr(_find_real(dispatcher), "_write_stream", None))
