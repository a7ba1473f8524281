"""What `%tape help` prints."""

from __future__ import annotations

from collections.abc import Mapping

from tape_jupyter.session.options import LINE_OPTIONS

Lines = tuple[tuple[str, str], ...]

TAPE_A_CELL: Lines = (
    ("%%tape record [NAME]", "the cell goes live, and its calls are kept"),
    ("%%tape replay [NAME]", "its calls are answered as recorded; nothing goes out"),
    ("%%tape once [NAME]", "replay where it is recorded, else record"),
    ("%%tape new_episodes [NAME]", "known calls are replayed, others recorded"),
    ("%%tape step [NAME]", "replay, and stop before each call"),
    ("%%tape override CALL", "the text or JSON below is the new reply of that call"),
)
SESSION: Lines = (
    ("%tape record", "record every cell from here on; also replay, once, new_episodes"),
    ("%tape live", "every cell goes live and is shown, but not recorded"),
    ("%tape off", "cells are neither recorded nor replayed"),
    ("%tape set KEY=VALUE", "tag runs, like user_id=ada; redact=REGEX masks more; adopt=OLD.tapes"),
)
LOOK: Lines = (
    ("%tape status", "mode, notebook, cassettes"),
    ("%tape calls [NAME]", "the calls: tokens, cost, time"),
    ("%tape show [NAME]", "the runs and how they ended"),
    ("%tape gaps [NAME]", "what a replay would lack, and the line that records it next time"),
    ("%tape view [NAME]", "the viewer"),
    ("%tape frame [NAME]", "the calls as a pandas frame"),
    ("%tape diff A B", "how two takes answer differently"),
    ("%tape why ...", "which difference makes --check fail: --good A --bad B --check EXPR"),
)
CHANGE: Lines = (
    ("%tape override CALL ...", "another reply: --text, --message, --value, --fault, --reply"),
    ("%tape plan [TAKE]", "which cells depend on what a take changes"),
    (
        "%tape rerun [TAKE]",
        "again: --fresh, --cells 3,5, --on-divergence, --adopt, --cancel",
    ),
    ("%tape takes ...", "list; rename A B, default A, undo A, keep A, discard A, promote A"),
    (
        "%tape prune [NAME]",
        "drop recordings that newer ones replaced; or go --back-to RUN",
    ),
)
SHARE: Lines = (
    ("%tape export [PATH]", "the session as one file, checked by a replay; --redact masks secrets"),
    ("%tape verify FILE", "check that such a file is intact; none of its code runs"),
)
OPTIONS: Lines = tuple(
    (
        f"{option.flag} {option.value}".rstrip(),
        f"of {option.mode}: {option.help}" if option.mode else option.help,
    )
    for option in LINE_OPTIONS
)
PARTS: tuple[tuple[str, Lines], ...] = (
    ("Tape a cell (its first line)", TAPE_A_CELL),
    ("Tape every cell from here on", SESSION),
    ("Look", LOOK),
    ("Change a reply, and run again", CHANGE),
    ("Share", SHARE),
    ("Options of %%tape, and of the modes of %tape", OPTIONS),
)


TERMINAL = (
    "demo", "resend", "merge", "import", "rows", "sample", "try", "bisect", "open", "doctor", "completion",
)  # fmt: skip
"""Commands of `tape` that `%tape` does not have."""
NAME: Lines = (("NAME", "a cassette of this notebook; without it the last one used, else main"),)
TAKE: Lines = (
    ("TAKE", "a take, also as --take TAKE; without it the default one, else the newest"),
)
DETAILS: Mapping[str, Lines] = {
    **dict.fromkeys(("calls", "show", "gaps", "view", "frame"), NAME),
    "prune": (
        *NAME,
        ("--dry-run", "only list what would be dropped"),
        (
            "--back-to RUN",
            "drop what replaced this run instead (%tape show lists them): it is replayed again",
        ),
    ),
    "override": (
        ("CALL", "its id in %tape calls, as 78a670b1"),
        ("--text TEXT", "replace the reply's first text"),
        ("--message JSON", "what to change in the assembled message"),
        ("--value JSON", "what a tool returns"),
        ("--fault NAME", "rate_limit, overloaded, server_error, reset, timeout or truncated"),
        ("--reply BODY", "the whole body; --status NUMBER goes with it"),
        ("--take NAME", "the take that it is written to; by default a new one"),
        ("--of TAKE", "change the reply as it is in that take"),
    ),
    "plan": TAKE,
    "rerun": (
        *TAKE,
        (
            "--on-divergence WHAT",
            "where a request has changed: stop (asks), live, stale (the recorded reply), skip (the cell)",
        ),
        ("--write TEXT", "the reply to the changed request at which it stands"),
        ("--pace WHEN", "instant, order or recorded: when replies are handed on"),
        ("--cells 3,5", "these cells only"),
        ("--fresh", "all cells, in a fresh process"),
        ("--adopt", "with the cells that the proof of the last one named, too"),
        ("--cancel", "give up a re-run that stands at a changed request"),
    ),
    "takes": (
        ("rename A B", "another name; never over another take"),
        ("default A", "A is replayed where no take is named"),
        ("discard A", "put its file aside"),
        ("undo A", "take back its last change, or bring back what was put aside"),
        ("keep A", "name the file that it lies in"),
        (
            "promote A",
            "of `tape resend`: its new answers stand in the place of the calls they belong to",
        ),
        ("diff A B", "how they answer differently"),
    ),
    "set": (
        ("user_id=ada", "stamped on every call of the runs to come; so is any other KEY=VALUE"),
        ("redact=REGEX", "what matches is masked before it is written"),
        ("adopt=OLD.tapes", "this notebook takes over the cassettes of the one that it was"),
    ),
    "why": (
        ("--good A --bad B --check EXPR", "the options of a terminal's tape why: !tape why --help"),
    ),
    "export": (
        ("PATH, --redact, ...", "the options of a terminal's tape export: !tape export --help"),
    ),
    **dict.fromkeys(("record", "replay", "once", "new_episodes"), OPTIONS),
}
"""Of a word, what may follow it."""


def word_help(word: str) -> str:
    """What `%tape WORD --help` prints: how it is typed, what it does, what may follow it."""
    known = [
        (command, text)
        for _, lines in PARTS
        for command, text in lines
        if command.split()[1:2] == [word]
    ]
    parts = ["\n".join(f"{command}\n  {text}" for command, text in known)]
    if details := DETAILS.get(word):
        width = max(len(option) for option, _ in details)
        parts.append("\n".join(f"  {option:{width}}  {text}" for option, text in details))
    return "\n\n".join([*filter(None, parts), "All of it: %tape help"])


def help_text() -> str:
    """The page: 100 columns at most."""
    width = max(len(command) for _, lines in PARTS for command, _ in lines)
    parts = []
    for title, lines in PARTS:
        parts.append(
            "\n".join(
                [title, *(f"  {command:{width}}  {description}" for command, description in lines)]
            )
        )
    return "\n\n".join(parts)
