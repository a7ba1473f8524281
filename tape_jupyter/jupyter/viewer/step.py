"""What a view asks of a cell that is stepped: its state, what to do, frames, variables, two stops
compared, what it has shown. Checks what comes from the page and hands it to the Stepper, on
whatever thread it came.
"""

from __future__ import annotations

from typing import Any

from tape_jupyter.cassette.takes import files
from tape_jupyter.jupyter.step import command
from tape_jupyter.jupyter.step.command import StepRequest
from tape_jupyter.jupyter.viewer.edit import message_edit
from tape_jupyter.jupyter.viewer.server import Forged, Viewer, answers, text_field
from tape_jupyter.session.options import Word

WORDS = (
    "over", "model", "tool", "retrieval", "continue", "to", "jump", "back", "edit", "answer", "fault", "live", "refuse",
    "request", "stop",
)  # fmt: skip
_MOST_BREAKS, _LONG = 20, 400


@answers("step")
def state(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any] | None:
    """The state of the cell that is stepped, None where none is; the view is told from now on."""
    return command.steps_of(viewer.cells).watch(viewer)


@answers("step.outputs")
def outputs(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    return command.steps_of(viewer.cells).collect_outputs()


@answers("step.here")
def handle_here(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    command.steps_of(viewer.cells).here()
    return {}


@answers("step.do")
def handle_step(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{do, strand?, revision?, ...}: what comes of it is told."""
    if message.get("do") not in WORDS:
        raise Forged("do")
    for key in ("strand", "span", "place", "text", "name"):
        if key in message and message[key] is not None and not isinstance(message[key], str):
            raise Forged(key)
    if "revision" in message and type(message["revision"]) is not int:
        raise Forged("revision")
    if not isinstance(message.get("options", {}), dict):
        raise Forged("options")
    if message["do"] == "edit":
        request = {**message, "edit": message_edit(message)}
    else:
        request = message
    command.steps_of(viewer.cells).require().apply_command(request)
    return {}


@answers("step.frames")
def handle_frames(viewer: Viewer, message: dict[str, Any]) -> list[dict[str, Any]]:
    return command.steps_of(viewer.cells).require().frames(text_field(message, "strand", ""))


@answers("step.variables")
def handle_variables(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    frame = message.get("frame")
    if type(frame) is not int:
        raise Forged("frame")
    return (
        command.steps_of(viewer.cells).require().variables(text_field(message, "strand", ""), frame)
    )


@answers("step.compare")
def handle_compare(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{a, b}: places at which the cell stopped. Also when it is over."""
    current = command.steps_of(viewer.cells).current
    if current is None:
        raise Forged("compare")
    return current.stops.compared(text_field(message, "a", ""), text_field(message, "b", ""))


@answers("step.arm")
def arm(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{cell, breaks, record, take}: the next execution of that cell is stepped. Where neither this
    nor the cell names a take, it is the one that the notebook's views show.
    """
    breaks, records = message.get("breaks", []), message.get("record", False)
    if not isinstance(breaks, list) or len(breaks) > _MOST_BREAKS or not isinstance(records, bool):
        raise Forged("breaks")
    if not all(isinstance(each, str) and len(each) <= _LONG for each in breaks):
        raise Forged("breaks")
    cell, take = text_field(message, "cell", ""), text_field(message, "take", "")
    options: dict[str, Any] = {"breaks": tuple(breaks), "record": records}
    if take:
        options["take"] = files.check_take_name(take)
    elif not records:
        options["shown"] = viewer.find_opened().path
    command.steps_of(viewer.cells).arm(StepRequest(cell, Word("step", None, options)))
    return {}
