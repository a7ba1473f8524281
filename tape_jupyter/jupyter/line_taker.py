"""The `%%tape` line of a cell: taken off before IPython runs the rest as the cell itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tape_jupyter.dataflow.tracing.running_cells import count_running_cells

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

Lines = list[str]

_OPENING = re.compile(r"%%tape(?=\s|$)(?!\s+override\b)(.*)", re.DOTALL)
"""The line that tapes a cell; `%%tape override CALL` tapes nothing: its magic takes the cell as the
new reply.
"""


class LineTaker:
    """Input transformer: takes the `%%tape` line off the cell that is about to run. Pure, since
    IPython may transform a cell twice.

    Inside a running cell the line stays: `%%time` and others transform their body without running
    it as a cell, so no tape would begin. There the `%%tape` magic is reached, and refuses.
    """

    has_side_effects = True
    """IPython then leaves it out of is-complete checks: a console asks for lines until a blank one,
    as for any %%.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def __call__(self, lines: Lines) -> Lines:
        if self.opening(lines) is None or count_running_cells():
            return lines
        blank = 1 + next((i for i, line in enumerate(lines[1:]) if not line.isspace()), 0)
        body = self._apply_earlier_transforms(lines[blank:])
        magic = bool(body) and body[0].startswith("%%")
        return body if magic else ["\n"] * blank + body

    def split(self, raw: str) -> tuple[str | None, str]:
        """What follows `%%tape` in a cell as the front end sent it (None: it has no such line), and
        the rest.
        """
        if "%%tape" not in raw:
            return None, raw
        lines = self._apply_earlier_transforms(raw.splitlines(keepends=True))
        line = self.opening(lines)
        if line is None:
            return None, raw
        return line, "".join(lines[1:]).strip("\n")

    def opening(self, lines: Lines) -> str | None:
        match = _OPENING.fullmatch(lines[0]) if lines else None
        return match.group(1) if match else None

    def _apply_earlier_transforms(self, lines: Lines) -> Lines:
        """The lines after the transformers that come before this one (blank lines, indentation,
        prompts).
        """
        for transform in self._shell.input_transformers_cleanup:
            if transform is self:
                break
            lines = transform(lines)
        return lines
