"""An MCP connection that a recorded session had, asleep until something must go live. Decides
nothing.

Two shapes, for the two things a session may be made of: a pair of streams, or a dispatcher.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self, cast

Opens = Callable[[], AbstractAsyncContextManager[Any]]


class Connection:
    """A connection that is opened only if it must be, in a task of its own. Enter it, then `wake`
    it at will.
    """

    def __init__(self, opens: Opens) -> None:
        import anyio

        self._opens, self._lock, self._done = opens, anyio.Lock(), anyio.Event()
        self._tasks = anyio.create_task_group()
        self.attach: Callable[[Any, Any], Awaitable[None]] | None = None
        self.awake = False

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool | None:
        self._done.set()
        if not self.awake or error is not None:
            self._tasks.cancel_scope.cancel()
        return cast("bool | None", await self._tasks.__aexit__(kind, error, at))

    async def wake(self) -> None:
        """Open it, unless it is open. Raises what opening raises."""
        async with self._lock:
            if not self.awake:
                await self._tasks.start(self._run_connection)
                self.awake = True

    async def _run_connection(self, task_status: Any) -> None:
        async with self._opens() as inner:
            assert self.attach is not None
            await self.attach(inner, self._tasks)
            task_status.started()
            await self._done.wait()

    def crash(self, errors: tuple[BaseException, ...]) -> None:
        """Fail as the recorded transport did: in a task, which takes the session above it down."""
        for error in errors:
            self._tasks.start_soon(_raise_error, error)


async def _raise_error(error: BaseException) -> None:
    raise error


# Asleep: streams for a session that is made of streams, a dispatcher for `Client`


class _Write:
    """The stream that a session writes to, and the connection behind it."""

    def __init__(self, inner: Any, connection: Connection) -> None:
        self._inner, self.connection = inner, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def sleeping_streams(connection: Connection) -> AsyncIterator[tuple[Any, Any]]:
    import anyio

    incoming, read = anyio.create_memory_object_stream[Any](0)
    write, outgoing = anyio.create_memory_object_stream[Any](0)

    async def attach_streams(streams: Any, tasks: Any) -> None:
        tasks.start_soon(_pump_messages, streams[0], incoming)
        tasks.start_soon(_pump_messages, outgoing, streams[1])

    connection.attach = attach_streams
    async with incoming, read, write, outgoing:
        yield read, _Write(write, connection)


async def _pump_messages(source: Any, sink: Any) -> None:
    import anyio

    try:
        async for message in source:
            await sink.send(message)
        await sink.aclose()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return  # the other side is gone


@asynccontextmanager
async def sleeping_dispatcher(connection: Connection) -> AsyncIterator[Any]:
    yield Sleeping(connection)


class Sleeping:
    """A dispatcher without a connection; once that wakes, it hands on to the real one."""

    def __init__(self, connection: Connection) -> None:
        import anyio

        self.connection, self.real = connection, cast("Any", None)
        self._woken, self._running = anyio.Event(), anyio.Event()
        connection.attach = self._attach_dispatcher

    async def _attach_dispatcher(self, real: Any, _tasks: Any) -> None:
        self.real = real
        self._woken.set()
        await self._running.wait()

    async def run(self, *handlers: Any, task_status: Any) -> None:
        task_status.started()
        await self._woken.wait()
        await self.real.run(*handlers, task_status=_Started(self._running))

    async def send_raw_request(self, *request: Any) -> Any:
        return await self.real.send_raw_request(*request)

    async def notify(self, *notification: Any) -> None:
        await self.real.notify(*notification)


class _Started:
    """What a task tells that it runs (anyio's TaskStatus)."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def started(self, _value: object = None) -> None:
        self._event.set()


def connection_of(dispatcher: Any) -> Connection | None:
    """The connection that this dispatcher would have, where it was not opened; None for an open
    one.
    """
    if isinstance(dispatcher, Sleeping):
        return dispatcher.connection
    stream = getattr(dispatcher, "_write_stream", None)
    return stream.connection if isinstance(stream, (Sleeping, _Write)) else None
