"""What is said over a connection with frames both ways (a WebSocket), and how it is played.

Such a connection is one call: a GET of a `wss://` address that was answered 101. Its body is what
was said, a line a frame (encoding/http/websocket.py). Nothing here reads, writes, patches or
decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

SWITCHED = 101
"""The status that answers the handshake (RFC 6455, 4.2.2)."""

NO_CODE = 1005
"""The close code that stands for none (RFC 6455, 7.4.1)."""


@dataclass(frozen=True, slots=True)
class WebSocketFrame:
    """One message, or the close of the connection.

    `by` says whose: 'got' from the server, 'sent' by the program. `data` is the payload with
    compression off, of a close its reason in UTF-8. A 'failed' close is one that the client's own
    library sent: a message too long, a ping without an answer. 'lost' is an end without a close.
    `parts` are the lengths of a message's fragments, where it came in several; `complete` is False for
    a message that the end of the connection broke off.
    """

    by: Literal["got", "sent"]
    kind: Literal["text", "binary", "close", "failed", "lost"]
    data: bytes = b""
    code: int = NO_CODE
    parts: tuple[int, ...] = ()
    complete: bool = True

    @property
    def is_message(self) -> bool:
        return self.kind in ("text", "binary")

    @property
    def fragments(self) -> list[bytes]:
        """The payload as it is cut on the wire; after an edit the last fragment takes what is more
        or less.
        """
        if len(self.parts) < 2:
            return [self.data]
        cut, rest = [], self.data
        for length in self.parts[:-1]:
            cut.append(rest[:length])
            rest = rest[length:]
        return [*cut, rest]


class DueFrame(NamedTuple):
    """A frame that may be handed on; `seconds` after the call's start it came, `last` is the last
    that will.
    """

    frame: WebSocketFrame
    seconds: float
    last: bool


class Dialogue(Protocol):
    """A recorded connection as it is played. What came after the program's n-th frame is due after
    its n-th frame.
    """

    def take_due_frame(self) -> DueFrame | None:
        """The next frame for the program, taken. None: there is none before the program says more,
        if ever.
        """

    def receive_frame(self, frame: WebSocketFrame) -> None:
        """The program sends this. Raises TapeRefusal where the recorded program said no such thing."""

    def patience(self) -> float:
        """Seconds that the program may wait for a frame that is not due, before `stuck` is asked."""

    def stuck(self) -> BaseException | None:
        """The refusal for a program that waits for what cannot come; None while no taped cell runs."""
