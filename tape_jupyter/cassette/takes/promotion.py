"""Answers to requests that were sent again, put in the place of the calls they belong to."""

from __future__ import annotations

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.runs import RESENT
from tape_jupyter.cassette.takes import files, overrides
from tape_jupyter.cassette.takes.edits import EditedReply
from tape_jupyter.core.call import Reply
from tape_jupyter.errors import TapeUsageError

RESENT_CALL = "resend of"
"""Key of a run's record: the call whose request was sent again."""


def promote(take: Cassette) -> list[Entry]:
    """Put the answers of a take to requests that were sent again in their calls' places; gives
    those calls.

    Of a call that was sent again several times, the newest answer. Raises TapeUsageError where
    there is none, or where it is an error.
    """
    newest = {
        str(run[RESENT_CALL]): str(run["run"])
        for run in take.runs
        if run.get("mode") == RESENT and run.get(RESENT_CALL)
    }
    answers = {
        run: entry
        for entry in take.calls
        if (run := entry.run) in newest.values() and entry.book is take
    }
    pairs = [
        (overrides.find_call(take, of), answers[run])
        for of, run in newest.items()
        if run in answers
    ]
    done = {each.name: each.head().get("at", "") for each in take.overrides}
    pairs = [
        (old, new) for old, new in pairs if done.get(old.name, "") <= str(new.head().get("at", ""))
    ]
    if not pairs:
        raise TapeUsageError(
            f"take {files.take_name(take.path)} has no answer to promote; make one with: tape resend"
        )
    for old, new in pairs:
        reply = new.reply()
        if isinstance(reply, Reply) and (reply.end != "complete" or (reply.status or 0) >= 400):
            what = f"an error ({reply.status})" if reply.end == "complete" else "cut short"
            raise TapeUsageError(
                f"the answer to call {old.id} is {what}: it stays in take {files.take_name(take.path)}, and was "
                "not put in the call's place"
            )
    for old, new in pairs:
        take.commit_reply(old, EditedReply(new.reply(), {"edit": RESENT}))
    return [old for old, _ in pairs]
