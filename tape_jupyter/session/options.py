"""What a person says to the tape: modes, names and options of `%tape` and `%%tape` lines. No
IPython, nothing is expanded and nothing is run; what makes no sense is a TapeUsageError that says
what would.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

from tape_jupyter.cassette.paths import check_cassette_name
from tape_jupyter.cassette.takes import files
from tape_jupyter.core import plugins
from tape_jupyter.core.plain_text import did_you_mean
from tape_jupyter.debugger.breakpoints import Breaks
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.replay.player import POLICIES
from tape_jupyter.session import partial_replay, tool_effects

CELL_MODES = ("record", "replay", "once", "new_episodes")
LINE_MODES = (*CELL_MODES, "step")
"""What a `%%tape` line may ask for."""
SESSION_MODES = (*CELL_MODES, "live", "off")
PACES = ("instant", "order", "recorded")
"""What `--pace` and `pace=` take; without a word: in order where calls overlapped, else at once."""
PINS = ("clock", "sleep", "random", "timezone")
"""What `--no-pin` and `no_pin=` take off; and the pins of other packages, by their names."""
PIN_GROUP = "tape_jupyter.pins"
"""Entry points by which other packages add pins (session/pins)."""


@dataclass(frozen=True, slots=True)
class LineOption:
    """An option of `%%tape`, in its one place: read, named in the usage, helped and completed by it.

    value: what stands behind the flag; "" for a switch. parse: how argparse reads it. mode: the one
    mode that takes it ("": all).
    """

    flag: str
    value: str
    help: str
    parse: dict[str, Any]
    mode: str = ""

    @property
    def usage(self) -> str:
        value = "|".join(self.parse.get("choices", ())) or self.value
        text = f"{self.flag} {value}".rstrip()
        repeated = "..." if self.parse.get("action") == "append" and not self.mode else ""
        return f"[{self.mode}: {text}]" if self.mode else f"[{text}]{repeated}"


def _split_names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


_SWITCH = {"action": "store_true"}
_REPEATED = {"action": "append", "default": []}
_LISTED = {"type": _split_names, "action": "extend", "default": []}
LINE_OPTIONS = (
    LineOption("--take", "NAME", "play that take, or write to it", {}),
    LineOption(
        "--live",
        "X",
        "X goes live: llm, tools, tool:NAME, host:NAME, call:ID, cell:ID",
        _REPEATED,
    ),
    LineOption("--freeze", "X", "X never runs: answered as recorded", _REPEATED),
    LineOption("--stub", "tool:NAME=JSON", "that tool never runs: answered with JSON", _REPEATED),
    LineOption(
        "--on-divergence",
        "WHAT",
        f"a call that is not recorded: {', '.join(POLICIES)}",
        {"choices": POLICIES},
    ),
    LineOption("--strict", "", "refuse replies edited by hand, and loose matches", _SWITCH),
    LineOption("--ignore", "JSON.PATH", "ignore a field when requests are matched", _REPEATED),
    LineOption("--tools", "a,b", "tape these functions", {"type": _split_names, "default": []}),
    LineOption(
        "--pace",
        "WHEN",
        f"replies arrive: {', '.join(PACES)} (with their waits)",
        {"choices": PACES},
    ),
    LineOption(
        "--cut-short", "", "replay a reply that an interrupt cut off, and the interrupt", _SWITCH
    ),
    LineOption("--no-pin", "a,b", f"do not record: {', '.join(PINS)}", _LISTED),
    LineOption(
        "--no-effects",
        "a,b",
        f"of what tools do, leave out: {', '.join(tool_effects.KINDS)}",
        _LISTED,
    ),
    LineOption(
        "--break",
        "WHERE",
        "stop at KIND, tool=NAME, model=NAME, nth=N, error, 'PYTHON'",
        {**_REPEATED, "dest": "breaks"},
        mode="step",
    ),
    LineOption("--record", "", "record instead of replay", _SWITCH, mode="step"),
)
USAGE = " ".join(
    [f"%%tape {'|'.join(LINE_MODES)} [NAME]", *(option.usage for option in LINE_OPTIONS)]
)

HELP = "What there is: %tape help"


@dataclass(frozen=True, slots=True)
class Word:
    """What a person said on a `%%tape` line, or for the session with `%tape`: mode, cassette name,
    options.
    """

    mode: str
    name: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


class LineParser(argparse.ArgumentParser):
    """Parses what follows a magic. What it does not know is a TapeUsageError of one line, which ends
    with the usage where that is given.
    """

    def __init__(self, prog: str, usage: str | None = None) -> None:
        super().__init__(prog=prog, usage=usage, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        _, unknown, rest = message.partition("unrecognized arguments: ")
        options = tuple(self._option_string_actions)
        near = did_you_mean(rest.split(maxsplit=1)[0], options) if unknown else ""
        more = f"Usage: {self.usage}" if self.usage else HELP
        raise TapeUsageError(f"{self.prog}: {message}{near or '.'} {more}")


@lru_cache(maxsize=2)
def _build_parser(magic: str) -> LineParser:
    parser = LineParser(magic)
    parser.add_argument("mode")
    parser.add_argument("name", nargs="?")
    for option in LINE_OPTIONS:
        parser.add_argument(option.flag, **option.parse)
    return parser


def excepted(
    mode: str,
    take: str | None,
    live: list[str],
    freeze: list[str],
    stub: list[str],
    on_divergence: str | None = None,
) -> dict[str, Any]:
    """The options of --take, --live, --freeze, --stub and --on-divergence that were given.

    Raises TapeUsageError for what is none.
    """
    selection = {
        "take": take and files.check_take_name(take),
        "live": live,
        "freeze": freeze,
        "stub": stubs(stub),
    }
    options = {
        name: value
        for name, value in {**selection, "on_divergence": on_divergence}.items()
        if value
    }
    partial_replay.selection_of(options, mode)
    partial_replay.policy_of(options, mode)
    return options


def stubs(assignments: Iterable[str]) -> dict[str, Any]:
    """`tool:NAME=JSON`, each: the tool's word and its value. Raises TapeUsageError."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        try:
            values[name] = json.loads(text)
        except ValueError as error:
            why = f"{text[:80]!r} is not JSON ({error})" if equals else "it has no =JSON"
            raise TapeUsageError(
                f"--stub {name[:80]!r}: {why}; write --stub 'tool:NAME={{\"sent\": true}}'"
            ) from None
    return values


def asks_for_help(line: str) -> bool:
    """Whether the words after a magic's first one ask what that is."""
    return not {"--help", "-h"}.isdisjoint(line.split())


def split_words(line: str) -> list[str]:
    """The words of a magic's line, as a shell would split them. Raises TapeUsageError."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise TapeUsageError(f"{line.strip()[:80]!r}: {error}. {HELP}") from None


def parse_line(line: str, modes: tuple[str, ...] = LINE_MODES) -> Word:
    """The word of a `%%tape` line (what follows `%%tape`). Nothing in it is expanded. Raises
    TapeUsageError.
    """
    arguments = split_words(line)
    if not arguments:
        raise TapeUsageError(f"name a mode. Usage: {USAGE}")
    if not arguments[0].startswith("-"):
        check_mode(arguments[0], modes)
    parsed = _build_parser("%%tape" if modes == LINE_MODES else "%tape").parse_args(arguments)
    if parsed.name is not None:
        check_cassette_name(parsed.name)
    parsed.no_pin = check_pins(parsed.no_pin)
    parsed.no_effects = check_effects(parsed.no_effects)
    options = {
        key: value
        for key, value in vars(parsed).items()
        if key not in ("mode", "name", *partial_replay.OPTIONS)
    }
    options |= _parse_step_options(
        parsed.mode, options.pop("breaks"), records=options.pop("record")
    )
    options |= excepted(
        parsed.mode, parsed.take, parsed.live, parsed.freeze, parsed.stub, parsed.on_divergence
    )
    return Word(parsed.mode, parsed.name, options)


def _parse_step_options(mode: str, breaks: list[str], *, records: bool) -> dict[str, Any]:
    """The options of `%%tape step`. Raises TapeUsageError where they stand with another mode."""
    if mode != "step":
        if breaks or records:
            flag = "--break" if breaks else "--record"
            raise TapeUsageError(f"{flag} goes with step: %%tape step {flag}")
        return {}
    Breaks.parse(breaks)
    return {"breaks": tuple(breaks), "record": records}


def check_pace(pace: str) -> str:
    """The pace itself ("": none was said). Raises TapeUsageError for what is none."""
    if pace and pace not in PACES:
        raise TapeUsageError(
            f"{pace[:80]!r} is not a pace{did_you_mean(pace, PACES)} (there are: {', '.join(PACES)})"
        )
    return pace


def check_pins(pins: Iterable[str]) -> tuple[str, ...]:
    """The same words, each once. Raises TapeUsageError, with the nearest word, for what is no pin."""
    pins = tuple(pins)
    added = () if set(pins) <= set(PINS) else tuple(plugins.entry_points_of(PIN_GROUP))
    return _require_known_words(pins, (*PINS, *added), "pin")


def check_effects(effects: Iterable[str]) -> tuple[str, ...]:
    """The same for what `--no-effects` and `no_effects=` leave out of what tools did."""
    return _require_known_words(effects, tool_effects.KINDS, "effect")


def _require_known_words(
    values: Iterable[str], known: tuple[str, ...], what: str
) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(values))
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise TapeUsageError(
                f"{name[:80]!r} is no {what}{near} (there are: {', '.join(known)})"
            )
    return names


def check_mode(mode: str, modes: tuple[str, ...] = SESSION_MODES, where: str = "") -> str:
    """The mode itself; TapeUsageError with the nearest word when there is not a mode."""
    if mode in modes:
        return mode
    for_all = "; for all cells: %tape live" if mode == "live" else ""
    raise TapeUsageError(
        f"{where}{mode[:80]!r} is not a mode{did_you_mean(mode, modes)} (there are: {', '.join(modes)}{for_all})"
    )
