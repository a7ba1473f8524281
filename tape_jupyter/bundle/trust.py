"""Which bundles a person has said may run. To replay a bundle is to run a stranger's code, so each
is asked for once; it is known by its digest, which another byte in it changes. Nothing is trusted
by itself but what this person exported here.

One file in the user's config folder, a line each: the digest, how it came there, and the notebook's
name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from tape_jupyter.bundle.archive import Bundle
from tape_jupyter.core import locks
from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.errors import BundleError, CassetteError

How = Literal["asked", "exported"]
WORD = "run"
"""What is typed to let it run."""
_PATIENCE = 10.0
"""Seconds to wait while another process adds a line."""
_LINE = re.compile(r"([0-9a-f]{64}) (asked|exported)( .*)?")
_HEAD = "# bundles that may run here: digest, how that came about, notebook. Take a line out to be asked again.\n"


def file() -> Path:
    """Where it is kept."""
    from platformdirs import user_config_path

    return user_config_path("tape-jupyter", appauthor=False) / "trusted-bundles"


def trusted(digest: str) -> bool:
    """Whether a person of this account has let this very bundle run, or made it here."""
    return digest in _read_known()


def remember_trust(digest: str, notebook: str, how: How) -> str:
    """Keep that it may run. Gives a sentence where that cannot be written (it will be asked for
    again), else "".
    """
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"no digest: {digest!r}")
    if trusted(digest):
        return ""
    try:
        _add_line(f"{digest} {how} {_to_plain_line(notebook)}")
    except (CassetteError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        return f"your permission to run it could not be saved ({file()}: {reason}); it will be asked for again"
    return ""


def ask_trust(
    bundle: Bundle, facts: list[str], *, yes: bool, answer: Callable[[str], str] | None = None
) -> str:
    """Let it run, or raise BundleError; gives a sentence for the person, or "".

    `facts` are lines about what will run and what holds it; `yes` was said on the command line, for
    this once; `answer` puts a question to the person (by itself the terminal, where there is one).
    """
    if yes or trusted(bundle.digest):
        return ""
    prompt = answer or terminal()
    notice = "\n".join(
        [f"{_to_plain_line(bundle.place)} (sha256 {bundle.digest[:16]}) was not made here.", *facts]
    )
    if prompt is None:
        raise BundleError(
            f"{notice}\nIt was not run: there is no terminal to ask in. To run it, add --yes; to look first: tape "
            "verify, tape open (neither runs any of its code)"
        )
    if (
        prompt(f"{notice}\nType {WORD} to run it, anything else to leave it: ").strip().lower()
        != WORD
    ):
        raise BundleError(
            f"not run. To look at it without running anything: tape open {_to_plain_line(bundle.place)}"
        )
    return remember_trust(bundle.digest, bundle.manifest.notebook, "asked")


def terminal() -> Callable[[str], str] | None:
    """Asks on the terminal: on stderr, so that stdout is the report's."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask_there(question: str) -> str:
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline()

    return ask_there


def _to_plain_line(text: str) -> str:
    """A stranger's text on one line of a terminal: nothing that moves its cursor."""
    return "".join(c if c.isprintable() else "?" for c in str(text))[:200]


def _read_known() -> set[str]:
    try:
        lines = file().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {match[1] for line in lines if (match := _LINE.fullmatch(line))}


def _add_line(line: str) -> None:
    """One line more, in one step; two that do it at once both have theirs."""
    path = file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locks.hold_lock(path.with_name(f".{path.name}.lock"), _PATIENCE):
        before = path.read_text(encoding="utf-8") if path.exists() else _HEAD
        with replacing(path, private=True) as draft:
            draft.write_text(
                before + ("" if before.endswith("\n") else "\n") + line + "\n", encoding="utf-8"
            )
