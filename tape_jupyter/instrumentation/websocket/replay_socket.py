"""A socket that speaks a recorded dialogue, for clients of WebSockets that read in a thread of
their own.

The client above is the library's own and whole. What is due is handed on in its thread; the
program's threads are told of nothing but messages, and of the refusal that ended the play.
"""

from __future__ import annotations

import functools
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from tape_jupyter.core.call import Play
from tape_jupyter.core.real_clock import monotonic
from tape_jupyter.core.websocket import DueFrame, WebSocketFrame
from tape_jupyter.errors import TapeRefusal
from tape_jupyter.instrumentation.patching import sending_live
from tape_jupyter.instrumentation.websocket.server_bytes import Peer, pong, wire


class PlayedSocket(Peer):
    """As much of a socket as a client asks for that reads in a thread of its own."""

    family = socket.AF_INET

    def __init__(self, play: Play, address: tuple[str, int]) -> None:
        super().__init__(play)
        self._address, self._handle = address, _open_readable()
        self.remind: Callable[[], object] = bool
        self._turn = threading.Condition()
        self._answers: deque[bytes] = deque()
        self._buffer, self._shut, self._over = b"", False, False
        self._readers, self._since, self._answered = 0, 0.0, False

    # what the program does

    def receive_frame(self, frame: WebSocketFrame) -> None:
        """The program sends this. Raises TapeRefusal."""
        if self.dialogue is not None:
            self.dialogue.receive_frame(frame)
        with self._turn:
            self._left = self._left or not frame.is_message
            self._since = monotonic()
            self._turn.notify_all()

    def pinged(self, data: bytes) -> None:
        self._queue_answer(pong(data))

    def _queue_answer(self, answer: bytes) -> None:
        with self._turn:
            self._answers.append(answer)
            self._turn.notify_all()

    def guard(
        self, read: Callable[..., Any], *, bounded: Callable[..., bool]
    ) -> Callable[..., Any]:
        """`read`, which waits no longer than the dialogue's patience, and raises what ended the
        play.
        """

        @functools.wraps(read)
        def read_guarded(*args: Any, **kwargs: Any) -> Any:
            self.remind()
            waits = not bounded(*args, **kwargs)
            self._count_reader(waits)
            try:
                with self._raise_refusal():
                    return read(*args, **kwargs)
            finally:
                self._count_reader(-waits)

        return read_guarded

    def guard_pieces(self, read: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """The same for a generator of a message's fragments."""

        @functools.wraps(read)
        def read_pieces_guarded(*args: Any, **kwargs: Any) -> Iterator[Any]:
            self.remind()
            pieces = read(*args, **kwargs)
            pull = self.guard(lambda: next(pieces, None), bounded=lambda: False)
            while (piece := pull()) is not None:
                yield piece

        return read_pieces_guarded

    def _count_reader(self, change: int) -> None:
        with self._turn:
            self._readers += change
            self._since = monotonic()
            self._turn.notify_all()

    # what the library does

    def recv(self, size: int) -> bytes:
        while not self._buffer:
            if self._shut or self._over:
                return b""
            self._buffer = self._read_next()
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def sendall(self, data: bytes) -> None:
        answer = self._build_handshake_answer(bytes(data))
        if answer is not None:
            self._queue_answer(answer)

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def shutdown(self, _how: int) -> None:
        with self._turn:
            self._shut = True
            self._turn.notify_all()

    def close(self) -> None:
        self.shutdown(socket.SHUT_RDWR)
        self._handle.close()

    def settimeout(self, seconds: float | None) -> None:
        """Nothing here keeps anybody waiting."""

    def setsockopt(self, *_option: Any) -> None:
        """There is no network to tune."""

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 0)

    def getpeername(self) -> tuple[str, int]:
        return self._address

    def fileno(self) -> int:
        return self._handle.fileno()

    # what the recorded server does

    def _read_next(self) -> bytes:
        """The next bytes for the client; b"" once the connection is over."""
        step = self._take_step()
        try:
            if isinstance(step, bytes):
                if not self._answered:
                    self._pass_gate(self._find_first_wait(), last=self._was_rejected)
                self._answered, self._over = True, self._was_rejected
                return step
            if step is not None:
                self._pass_gate(step.seconds, last=step.last)
        except TapeRefusal as refusal:
            self.refusal, step = refusal, None
        if step is not None:
            return self._deliver_frame(step.frame)
        return self._end_connection()

    def _pass_gate(self, seconds: float, *, last: bool) -> None:
        if self.gate is not None:
            self.gate.wait(seconds, last=last)

    def _deliver_frame(self, frame: WebSocketFrame) -> bytes:
        if frame.kind == "failed":
            self.give_up(frame.code, frame.data.decode("utf-8", "replace"))
            return self._end_connection()
        if frame.kind == "lost":
            self._over = True
            loss = self._find_loss()
            if loss is not None:
                raise loss
            return b""
        self._over = frame.kind == "close"
        return wire(frame)

    def _end_connection(self) -> bytes:
        self._over = True
        return b""

    def _take_step(self) -> bytes | DueFrame | None:
        """An answer to the handshake or a ping, a frame that is due, None for the end; waits until
        there is one.
        """
        with self._turn:
            while not self._shut:
                if self._answers:
                    return self._answers.popleft()
                due = self._find_next_frame() if self._greeted else None
                if due is not None or self._left:
                    return due
                if not self._turn.wait(self._compute_patience()) and self._is_stuck():
                    return None
            return None

    def _compute_patience(self) -> float | None:
        if not self._readers or self.dialogue is None:
            return None
        return max(0.0, self._since + self.dialogue.patience() - monotonic())

    def _is_stuck(self) -> bool:
        assert self.dialogue is not None
        self._since = monotonic()
        self.refusal = self.dialogue.stuck()
        return self.refusal is not None


def _open_readable() -> socket.socket:
    """For a client that selects before it reads (websockets since 17.3): its reading does the
    waiting here.
    """
    with sending_live():  # where socketpair is made of TCP, the guard lets it through
        ours, theirs = socket.socketpair()
    theirs.close()
    return ours
