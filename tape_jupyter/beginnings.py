"""Store room: the part of a call's record that is known before its reply: `request:`, as text and proven.

A record is made of parts that stand one below the other, so that this one can be made while the network answers. Pure:
nothing is written here; whoever commits the call asks `holds` whether it may still be written as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tape_jupyter import assets, records, tapetext
from tape_jupyter.calls import FunctionCall, Request
from tape_jupyter.errors import CassetteError
from tape_jupyter.matching import Asked
from tape_jupyter.secrets import Secrets
from tape_jupyter.slices import Folder

UNPROVEN = "a record did not survive being written and read; please report this"


@dataclass(frozen=True, slots=True)
class Beginning:
    """`section` is what stands under `request:`, `text` its lines, `clean` the Secrets.version that found nothing there
    (0: not known). `remember` is called with the call's id once the record is committed; `body` is what was folded.
    """

    section: dict[str, Any]
    text: str
    clean: int
    remember: Callable[[str], None]
    run: str
    body: Any
    folder: Folder
    known: int

    def holds(self, folder: Folder) -> bool:
        """Whether its references are those that would be made now: other calls may have been committed meanwhile."""
        if self.folder is not folder:
            return False
        return self.known == folder.known or folder.fold(self.run, self.body)[0] == self.section.get("body")


def begun(run: str, call: Request | FunctionCall, asked: Asked, secrets: Secrets, folder: Folder) -> Beginning:
    """What a call's record begins with. One so long that texts of it will be put away is not proven yet.

    Raises CassetteError where it cannot be written.
    """
    version, known = secrets.version, folder.known
    section = records.request_section(call, secrets, asked.json, digest=not asked.exact)  # `exact` is one
    records.require_address(section)
    body = section.get("body")
    folded, remember = folder.fold(run, body)
    if "body" in section:
        section["body"] = folded
    part = {"request": section}
    text = tapetext.lines(part)
    if len(text) <= assets.LIMIT and tapetext.parse(tapetext.whole(text)) != part:
        raise CassetteError(UNPROVEN)
    clean = asked.clean == version or not secrets.suspicious(text)
    return Beginning(section, text, version if clean else 0, remember, run, body, folder, known)
