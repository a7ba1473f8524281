"""An asyncio transport that speaks a recorded dialogue, for clients of WebSockets.

The client above is the library's own and whole; it is handed what the dialogue says is due, in
callbacks of the loop, and its connection ends as the recorded one did.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

from tape_jupyter.core.call import Play
from tape_jupyter.core.websocket import WebSocketFrame
from tape_jupyter.errors import TapeRefusal
from tape_jupyter.instrumentation.patching import sending_live
from tape_jupyter.instrumentation.websocket.server_bytes import Peer, pong, wire


class PlayedTransport(Peer, asyncio.Transport):
    """As much of an asyncio transport as a client asks for; frames come in callbacks of the loop.

    A client that `echoes_later` answers a close in a task of its own: it is told of the end once it
    has.
    """

    def __init__(
        self, play: Play, protocol: Any, address: tuple[str, int], *, echoes_later: bool = False
    ) -> None:
        Peer.__init__(self, play)
        self._echoes_later = echoes_later
        asyncio.Transport.__init__(self, {"peername": address, "sockname": ("127.0.0.1", 0)})
        self._loop = asyncio.get_running_loop()
        self._protocol, self._busy, self._over = protocol, False, False
        self._readers: set[object] = set()
        self._timer: asyncio.TimerHandle | None = None

    # what the program does

    def receive_frame(self, frame: WebSocketFrame) -> None:
        """The program sends this. Raises TapeRefusal."""
        if self.dialogue is not None:
            self.dialogue.receive_frame(frame)
        self._left = self._left or not frame.is_message
        self._restart_timer()
        self._loop.call_soon(self._deliver_due)

    def pinged(self, data: bytes) -> None:
        self._loop.call_soon(self._deliver_data, pong(data))

    def _deliver_data(self, data: bytes) -> None:
        if not self._over:
            self._protocol.data_received(data)

    def guard(self, read: Callable[..., Any]) -> Callable[..., Any]:
        """`read`, awaited no longer than the dialogue's patience; raises what ended the play."""

        @functools.wraps(read)
        async def read_guarded(*args: Any, **kwargs: Any) -> Any:
            reader = object()
            self._readers.add(reader)
            self._restart_timer()
            try:
                with self._raise_refusal():
                    return await read(*args, **kwargs)
            finally:
                self._readers.discard(reader)
                self._restart_timer()

        return read_guarded

    def refusing(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """`send`, which raises what ended the play."""

        @functools.wraps(send)
        async def send_guarded(*args: Any, **kwargs: Any) -> None:
            with self._raise_refusal():
                await send(*args, **kwargs)

        return send_guarded

    def guard_pieces(
        self, read: Callable[..., AsyncIterator[Any]]
    ) -> Callable[..., AsyncIterator[Any]]:
        """The same for a generator of a message's fragments."""

        @functools.wraps(read)
        async def read_pieces_guarded(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            pieces = read(*args, **kwargs)
            pull = self.guard(lambda: anext(pieces, None))
            while (piece := await pull()) is not None:
                yield piece

        return read_pieces_guarded

    # what the library does

    def write(self, data: bytes | bytearray | memoryview) -> None:
        answer = self._build_handshake_answer(bytes(data))
        if answer is not None:
            self._schedule_act(
                self._find_first_wait(), self._was_rejected, lambda: self._deliver_answer(answer)
            )

    def is_closing(self) -> bool:
        return self._over

    def close(self) -> None:
        self._hang_up()

    def abort(self) -> None:
        self._hang_up()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """The server, if it listened, would have heard all."""

    def pause_reading(self) -> None:
        """Recorded frames wait in the client's queue as well as here."""

    def resume_reading(self) -> None:
        """They were never stopped."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered."""

    def get_write_buffer_size(self) -> int:
        return 0

    # what the recorded server does

    def _schedule_act(self, seconds: float, last: bool, act: Callable[[], None]) -> None:
        """`act` in a callback; where there is a gate, once it is passed."""
        if self.gate is None:
            self._loop.call_soon(act)
            return
        self._busy = True
        with sending_live():  # a task of ours takes no number among the program's
            self._passing = self._loop.create_task(self._pass_gate(seconds, last, act))

    async def _pass_gate(self, seconds: float, last: bool, act: Callable[[], None]) -> None:
        assert self.gate is not None
        try:
            await self.gate.wait_async(seconds, last=last)
        except TapeRefusal as refusal:
            self.refusal = refusal
            self._hang_up()
        else:
            act()
        self._busy = False
        self._deliver_due()

    def _deliver_answer(self, answer: bytes) -> None:
        self._deliver_data(answer)
        if self._was_rejected:
            self._hang_up()
        else:
            self._deliver_due()

    def _deliver_due(self) -> None:
        """Hand on all that is due."""
        while not (self._busy or self._over):
            due = self._find_next_frame() if self._greeted else None
            if due is None:
                if self._left:
                    self._hang_up()
                return
            if self.gate is None:
                self._deliver_frame(due.frame)
            else:
                self._schedule_act(
                    due.seconds, due.last, functools.partial(self._deliver_frame, due.frame)
                )

    def _deliver_frame(self, frame: WebSocketFrame) -> None:
        if self._over:
            return
        if frame.kind == "failed":
            self.give_up(frame.code, frame.data.decode("utf-8", "replace"))
            self._hang_up()
        elif frame.kind == "lost":
            self._hang_up(self._find_loss())
        else:
            self._protocol.data_received(wire(frame))
            if frame.kind == "close" and (self._left or not self._echoes_later):
                self._hang_up()

    def _hang_up(self, error: Exception | None = None) -> None:
        if self._over:
            return
        self._over = True
        self._restart_timer()
        if error is None:
            self._protocol.eof_received()
        self._loop.call_soon(self._protocol.connection_lost, error)

    def _restart_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._readers and self.dialogue is not None and not self._over:
            self._timer = self._loop.call_later(self.dialogue.patience(), self._handle_overdue)

    def _handle_overdue(self) -> None:
        assert self.dialogue is not None
        self.refusal = self.dialogue.stuck()
        if self.refusal is None:
            self._restart_timer()
        else:
            self._hang_up()
