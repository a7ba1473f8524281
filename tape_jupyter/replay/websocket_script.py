"""A recorded dialogue as it is played: which frame is due, and whether what is said was recorded.

Pure order and matching: no clock is read, nothing waits, nothing is raised but what `refuse` gives.
Two rules:

* A frame that came after the program's n-th message is due once those n messages were said. Not
  after that: senders
  that run side by side (a microphone, a tool's result) overtake each other, so a message may be
  said before its turn.
* A message counts by its JSON (volatile fields out), else by its bytes. The earliest recorded one
  that is the same and
  was not said yet is taken. One that the recording does not hold is refused, but for a stream of
  media: how many pieces a program sends until it has seen the answer depends on the machine, so
  pieces beyond the last are let go.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tape_jupyter.cassette.match_key import IgnorePath, canonical, json_value
from tape_jupyter.core.websocket import DueFrame, WebSocketFrame
from tape_jupyter.secrets.registry import Secrets

VOLATILE = frozenset({"event_id"})
"""Fields of a message that are new in every run, besides those that `--ignore` names."""

MEDIA = frozenset({"input_audio_buffer.append", "realtime_input", "realtimeInput"})
"""Messages that carry a piece of audio or video: OpenAI's by `type`, Gemini's by their one field."""

PATIENCE = 10.0
"""Seconds that a program may take longer than the recorded one to say what the next frame waits
for, or to close.
"""


@dataclass(frozen=True, slots=True)
class Missing:
    """What a program that waits has not said: the first such message, its place among all, how many
    it lacks.
    """

    frame: WebSocketFrame | None
    place: int = 0
    count: int = 0


class Script:
    """A recorded connection, frame by frame (dialogue.Dialogue without `stuck`). Thread-safe.

    `waits` are seconds from the call's start to each frame. `lost`: the recorded connection ended
    without a close. `refuse(now, recorded, place)` gives the error for a message that is not the
    recorded one (the nearest, if any).
    """

    def __init__(
        self,
        frames: Sequence[WebSocketFrame],
        waits: Sequence[float],
        same: Callable[[WebSocketFrame], Hashable],
        refuse: Callable[[WebSocketFrame, WebSocketFrame | None, int], BaseException],
        *,
        lost: bool = False,
    ) -> None:
        self.frames = [*frames, WebSocketFrame("got", "lost")] if lost else list(frames)
        self._waits, self._same, self._refuse = waits, same, refuse
        self._lock = threading.Lock()
        self._at = 0
        self._closed = False
        self._unsaid: dict[int, WebSocketFrame] = {
            i: f for i, f in enumerate(self.frames) if f.by == "sent" and f.is_message
        }
        self._places: dict[Hashable, deque[int]] = {}
        for place, frame in self._unsaid.items():
            self._places.setdefault(same(frame), deque()).append(place)
        got = [
            place
            for place, frame in enumerate(self.frames)
            if frame.by == "got" or frame.kind == "failed"
        ]
        self._last = got[-1] if got else -1

    def take_due_frame(self) -> DueFrame | None:
        """The next frame for the program, taken; after a close nothing is due, and a close is
        answered by a close.
        """
        with self._lock:
            while self._at < len(self.frames):
                place, frame = self._at, self.frames[self._at]
                if self._is_held_back(place, frame):
                    return None
                self._at += 1
                if frame.by == "got" or frame.kind == "failed":
                    return DueFrame(frame, self._read_wait(place), place == self._last)
            return None

    def _is_held_back(self, place: int, frame: WebSocketFrame) -> bool:
        if self._closed:
            return False
        if frame.by == "sent" and frame.kind == "close":
            return True
        return place in self._unsaid

    def _read_wait(self, place: int) -> float:
        return self._waits[min(place, len(self._waits) - 1)] if self._waits else 0.0

    def receive_frame(self, frame: WebSocketFrame) -> None:
        with self._lock:
            if not frame.is_message:
                self._close_script(frame)
            elif not self._consume_message(frame) and not self._is_surplus(frame):
                place, recorded = self._find_nearest(frame)
                raise self._refuse(frame, recorded, place)

    def _consume_message(self, frame: WebSocketFrame) -> bool:
        places = self._places.get(self._same(frame))
        if not places:
            return False
        del self._unsaid[places.popleft()]
        return True

    def _is_surplus(self, frame: WebSocketFrame) -> bool:
        """Whether it is a further piece of a stream of which all recorded pieces were sent."""
        kind = message_kind(frame)
        if kind not in MEDIA or any(message_kind(left) == kind for left in self._unsaid.values()):
            return False
        return any(message_kind(other) == kind for other in self.frames if other.by == "sent")

    def _find_nearest(self, frame: WebSocketFrame) -> tuple[int, WebSocketFrame | None]:
        """The first message not said yet that is of the same kind, else the first of all."""
        kind = message_kind(frame)
        like = next(
            (place for place, left in self._unsaid.items() if kind and message_kind(left) == kind),
            None,
        )
        place = like if like is not None else next(iter(self._unsaid), -1)
        if place < 0:
            return -1, None
        return self._count_ordinal(place), self.frames[place]

    def _count_ordinal(self, place: int) -> int:
        return sum(f.by == "sent" and f.is_message for f in self.frames[: place + 1])

    def _close_script(self, frame: WebSocketFrame) -> None:
        """The program closes: due is what the recorded server did then; its close alone, where this
        close is early.
        """
        if self._closed:
            return
        self._closed = True
        closes = [i for i, f in enumerate(self.frames) if f.by == "sent" and f.kind == "close"]
        if (
            closes
            and closes[0] >= self._at
            and not any(place < closes[0] for place in self._unsaid)
        ):
            return
        answer = [f for f in self.frames[self._at :] if f.by == "got" and f.kind == "close"]
        self.frames[self._at :] = answer or [WebSocketFrame("got", "close", frame.data, frame.code)]
        self._last = len(self.frames) - 1

    def patience(self) -> float:
        """Seconds that the program may wait now: the longer the recorded one took for its next
        step, the longer.
        """
        with self._lock:
            return PATIENCE + 2 * max(
                0.0, self._read_wait(self._at) - self._read_wait(max(self._at - 1, 0))
            )

    def missing(self) -> Missing:
        """What the next frame waits for; nothing where the recorded program closed, or the
        recording ends.
        """
        with self._lock:
            after = next(
                (i for i in range(self._at, len(self.frames)) if self.frames[i].by == "got"), -1
            )
            left = [place for place in self._unsaid if place < after]
            if left:
                return Missing(self.frames[left[0]], self._count_ordinal(left[0]), len(left))
            return Missing(None)


def message_kind(frame: WebSocketFrame) -> str:
    """What a JSON message is: its `type`, else its first field; "" for anything else."""
    value = json_value(frame.data)
    if not isinstance(value, dict) or not value:
        return ""
    kind = value.get("type")
    return kind if isinstance(kind, str) else str(next(iter(value)))


def counted_content(
    frame: WebSocketFrame, secrets: Secrets, ignore: Sequence[IgnorePath] = ()
) -> Any:
    """What counts of a message: its JSON without what varies and without secrets; None where it is
    no JSON.
    """
    value = json_value(frame.data)
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if name not in VOLATILE}
    for path in ignore:
        value = path.drop(value)
    return None if value is None else secrets.scrub_structure(value)[0]


def message_key(
    frame: WebSocketFrame, secrets: Secrets, ignore: Sequence[IgnorePath] = ()
) -> Hashable:
    """Equal exactly for messages that are the same."""
    value = counted_content(frame, secrets, ignore)
    if value is not None:
        return canonical(value)
    if frame.kind == "binary":
        return frame.data
    return secrets.scrub(frame.data.decode("utf-8", "replace"))[0]
