"""Stepping by typing, where there is no page: a terminal, a console, a front end without widgets.

At each stop it prints where the cell stands and asks `step> `. Strands that stand at a call wait in
turn; nothing is expanded, nothing is run. A blank line steps over.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tape_jupyter.core.context import ORIGIN, Origin
from tape_jupyter.errors import TapeError
from tape_jupyter.jupyter.step.stepper import Reach, Record, Stepper, Waiter

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

HELP = """\
  n, Enter  serve this reply, stop at the next call      c  go on to the next breakpoint or the end
  m, t      run to the next model call, tool call        b  back to the call before
  j PLACE   jump to a call of the list (l)               l  the calls made so far, and who waits
  e TEXT    this reply instead (text of a model, JSON    a TEXT  the same, for a call that is not on the tape
            of a tool); kept in a take                   f NAME [OPTION=VALUE]  a fault: rate_limit, timeout, ...
  live      let this one call go out                     refuse  refuse it
  p TEXT    send this instead, when it goes out (--record): the body, or a tool's arguments as JSON
  r, q      the whole reply, the whole request           w  where: the stack; v [FRAME]  its variables
  d A B     how the variables at two stops differ        s  stop: variables as before the cell; h  this help"""
PROMPT = "step> "
SHORT = 300
"""Characters of a request or reply that are shown at a stop."""
FIELDS = 3
"""Fields that are named where a call is not on the tape."""

_MOVES = {
    "": "over", "n": "over", "next": "over", "over": "over",
    "m": "model", "model": "model", "t": "tool", "tool": "tool",
    "c": "continue", "continue": "continue", "b": "back", "back": "back", "live": "live", "refuse": "refuse",
    "s": "stop", "stop": "stop",
}  # fmt: skip


_LOOKS = frozenset({"l", "list", "r", "reply", "q", "where", "w", "v", "vars", "d", "diff"})


def can_ask(shell: InteractiveShell) -> bool:
    """Whether the front end takes input for the cell that runs."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return hasattr(shell, "prompt_for_code") or _is_interactive()
    return bool(getattr(kernel, "_allow_stdin", False))


def _is_interactive() -> bool:
    return sys.stdin is not None and not sys.stdin.closed


class Prompt(Reach):
    """Asks at each stop, one strand after another. It clears nothing: outputs and questions come to
    a front end by two channels with no order between them, and a clearing that comes late takes
    the question with it.
    """

    name = "prompt"
    clears = False

    def __init__(self, shell: InteractiveShell, why: str = "") -> None:
        """`why` it asks here is said once, where somebody might look for a view: not in a terminal."""
        self._shell, self._turn = shell, threading.Lock()
        if why and getattr(shell, "kernel", None) is not None:
            self._why = f"tape step: {why}"
        else:
            self._why = ""
        self._read_command = _make_asker(shell)
        self._stepper: Stepper | None = None

    def attach(self, stepper: Stepper) -> None:
        self._stepper = stepper

    def block(self, released: threading.Event, waiter: Waiter) -> None:
        while not released.is_set():
            with self._turn:
                if not released.is_set():
                    self._ask_until_gone(waiter, released.is_set)

    async def wait_async(self, released: asyncio.Future[None], waiter: Waiter) -> None:
        """The loop stands still while a person types; what others were told meanwhile is done
        afterwards.
        """
        moved = [False]
        wake = waiter.wake

        def wake_waiter() -> None:
            moved[0] = True
            wake()

        waiter.wake = wake_waiter
        await asyncio.sleep(0)
        if not released.done() and not moved[0]:
            with self._turn:
                self._ask_until_gone(waiter, lambda: moved[0])
        await released

    def _ask_until_gone(self, waiter: Waiter, is_gone: Callable[[], bool]) -> None:
        """Ask until the strand goes on."""
        stepper = waiter.stepper
        _print_text(self._why)
        self._why = ""
        _print_text(_format_stop(stepper.state(), waiter))
        while not is_gone():
            try:
                line = self._read_command(PROMPT)
            except EOFError:
                stepper.stop()
                return
            try:
                self._run_command(stepper, waiter, line.strip())
            except (TapeError, ValueError) as error:
                _print_text(f"  {error}")

    def _run_command(self, stepper: Stepper, waiter: Waiter, line: str) -> None:
        command, _, rest = line.partition(" ")
        rest, strand = rest.strip(), waiter.at.strand
        if command in _MOVES:
            stepper.apply_command({"do": _MOVES[command], "strand": strand})
        elif command in ("j", "jump", "to"):
            stepper.apply_command({"do": "jump", "place": _find_place(stepper.state(), rest)})
        elif command in ("e", "edit", "a", "answer"):
            stepper.apply_command({"do": "answer", "strand": strand, "text": rest, "accept": True})
        elif command in ("p", "request"):
            stepper.apply_command({"do": "request", "strand": strand, "text": rest})
            _print_text(_format_stop(stepper.state(), waiter))
        elif command in ("f", "fault"):
            name, *options = shlex.split(rest) or [""]
            settings = dict(each.partition("=")[::2] for each in options)
            stepper.apply_command(
                {"do": "fault", "strand": strand, "name": name, "options": settings, "accept": True}
            )
        else:
            _print_text(self._format_inspection(stepper, waiter, command, rest))

    def _format_inspection(self, stepper: Stepper, waiter: Waiter, command: str, rest: str) -> str:
        """What there is to see; the help for what is no command."""
        state, strand = stepper.state(), waiter.at.strand
        call = next((each["call"] for each in state["strands"] if each["strand"] == strand), None)
        if call is None:
            return "  it went on meanwhile"
        views: dict[str, Callable[[], str]] = {
            "l": lambda: "\n".join(_format_calls(state)),
            "r": lambda: _indent_text((call["reply"] or {"text": "(none)"})["text"]),
            "q": lambda: _indent_text(call["request"]["text"]),
            "w": lambda: "\n".join(
                line for frame in stepper.frames(strand) for line in _format_frame(frame)
            ),
            "v": lambda: _format_variables(stepper.variables(strand, int(rest or 0))["variables"]),
            "d": lambda: _format_comparison(
                stepper, [_find_place(state, each) for each in rest.split()]
            ),
        }
        return views.get(command[:1] if command in _LOOKS else "", lambda: HELP)()


# ---------------------------------------------------------------- texts


def _format_stop(state: Record, waiter: Waiter) -> str:
    """A stop, in a few lines."""
    strand = next((each for each in state["strands"] if each["strand"] == waiter.at.strand), None)
    if strand is None:
        return ""
    call, others = strand["call"], [each for each in state["strands"] if each is not strand]
    where = f"  {strand['at']}:{strand['line']}" if strand["at"] else ""
    what = {"play": "from the tape", "live": "goes out live", "refuse": "NOT on the tape"}[
        call["would"]
    ]
    lines = [f"stopped before call {call['nth']}, {call['kind']} {call['title']} ({what}){where}"]
    if strand["name"] != "cell" or others:
        waits = f"; {len(others)} more stand at a call" if others else ""
        lines.append(f"  {strand['name']}, {call['place'] or ':1'}{waits}")
    lines.append(f"  asks   {_format_line(call['request']['text'])}")
    for field in call["fields"][:FIELDS]:
        lines += [
            f"  {field['path']}",
            f"    recorded: {_format_line(field['recorded'])}",
            f"    now:      {_format_line(field['now'])}",
        ]
    if call["reply"] is not None:
        lines.append(
            f"  reply  {_format_line(call['reply']['text'])}{' (edited)' if call['edited'] else ''}"
        )
    if state["note"]:
        lines.append(f"  {state['note']}")
    return "\n".join(lines)


def _format_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[:SHORT]} ..."


def _indent_text(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _format_calls(state: Record) -> list[str]:
    first = state["made"] - len(state["passed"]) + 1
    passed = [
        f"  {number:3} {each['place']:8} {each['kind']} {each['title']}{' (edited)' if each['edited'] else ''}"
        for number, each in enumerate(state["passed"], first)
    ]
    waiting = [
        f"    > {at['call']['place']:8} {at['call']['title']}  ({at['name']})"
        for at in state["strands"]
    ]
    return passed + waiting


def _format_variables(variables: list[Record]) -> str:
    return (
        "\n".join(f"  {each['name']} = {each['text'][:SHORT]}" for each in variables) or "  (none)"
    )


def _format_comparison(stepper: Stepper, places: list[str]) -> str:
    if len(places) != 2:
        raise ValueError("d A B: two stops, by place or number")
    pairs = stepper.stops.compared(*places)["variables"]
    return (
        "\n".join(f"  {each['name']}: {each['before']} -> {each['after']}" for each in pairs)
        or "  nothing differs"
    )


def _format_frame(frame: Mapping[str, Any]) -> list[str]:
    here = frame["line"] - frame["first"]
    source_lines = [
        f"  {'>' if n == here else ' '} {line}"
        for n, line in enumerate(frame["source"])
        if abs(n - here) <= 1
    ]
    name = f", {frame['function']}" if frame["function"] else ""
    if frame["left_out"]:
        left_out = [f"  ... {frame['left_out']} frames of libraries"]
    else:
        left_out = []
    return [*left_out, f"  [{frame['index']}] {frame['file']}:{frame['line']}{name}", *source_lines]


def _find_place(state: Record, place: str) -> str:
    """A place, or the number that it has in the list."""
    if place.isdigit():
        places = [each["place"] for each in state["passed"]] + [
            each["call"]["place"] for each in state["strands"]
        ]
        if not 1 <= int(place) <= len(places):
            raise ValueError(f"there are calls 1 to {len(places)} (l lists them)")
        return str(places[int(place) - 1])
    return place


def _print_text(text: str) -> None:
    if text:
        print(text)  # noqa: T201 - the answer to a person


def _make_asker(shell: InteractiveShell) -> Callable[[str], str]:
    """What asks a person a line, and is none of the cell's own calls."""
    kernel = getattr(shell, "kernel", None)

    def ask_person(prompt: str) -> str:
        token = ORIGIN.set(Origin(None))  # what we ask is no call of the cell's
        try:
            if kernel is not None:
                return str(kernel.raw_input(prompt))
            return input(prompt)
        finally:
            ORIGIN.reset(token)

    return ask_person
