"""What `%tape help` prints."""

from __future__ import annotations

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
    ("%tape prune [NAME]", "drop recordings that newer ones replaced; --dry-run lists them"),
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
