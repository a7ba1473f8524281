"""The part of a call's record that is known before its reply: `request:`, as text and proven.

A record is made of parts that stand one below the other, so that this one can be made while the
network answers. Pure: nothing is written here; whoever commits the call asks `is_current` whether it may
still be written as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tape_jupyter.cassette import external_texts, records
from tape_jupyter.cassette.match_key import MatchedRequest
from tape_jupyter.cassette.request_refs import RequestFolder
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import CassetteError
from tape_jupyter.secrets.registry import Secrets

UNPROVEN = "a record did not survive being written and read; please report this"


@dataclass(frozen=True, slots=True)
class Beginning:
    """`section` is what stands under `request:`, `text` its lines, `clean` the Secrets.version that
    found nothing there (0: not known). `remember` is called with the call's id once the record is
    committed; `body` is what was folded.
    """

    section: dict[str, Any]
    text: str
    clean: int
    remember: Callable[[str], None]
    run: str
    body: Any
    folder: RequestFolder
    known: int

    def is_current(self, folder: RequestFolder) -> bool:
        """Whether its references are those that would be made now: other calls may have been
        committed meanwhile.
        """
        if self.folder is not folder:
            return False
        return self.known == folder.known or folder.fold(self.run, self.body)[
            0
        ] == self.section.get("body")


def begin_record(
    run: str,
    call: Request | FunctionCall,
    matched_request: MatchedRequest,
    secrets: Secrets,
    folder: RequestFolder,
) -> Beginning:
    """What a call's record begins with. One so long that texts of it will be put away is not proven
    yet.

    Raises CassetteError where it cannot be written.
    """
    version, known = secrets.version, folder.known
    section = records.request_section(
        call,
        secrets,
        matched_request.json,
        digest=not matched_request.exact,
        spelled=matched_request.spelled,
    )  # `exact` is one
    records.require_address(section)
    body = section.get("body")
    folded, remember = folder.fold(run, body)
    if "body" in section:
        section["body"] = folded
    part = {"request": section}
    text = emitter.part_lines(part)
    if (
        len(text) <= external_texts.LIMIT
        and emitter.parse_record(emitter.whole_record(text)) != part
    ):
        raise CassetteError(UNPROVEN)
    clean = matched_request.clean == version or not secrets.suspicious(text)
    return Beginning(section, text, version if clean else 0, remember, run, body, folder, known)
