"""A cassette's takes: opened and made, renamed and put aside; and where an override goes.

A cassette is never written for a take's sake. What the records hold is cassette/cassette.py's, how
files are named cassette/takes/files.py's.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.cassette.paths import stem
from tape_jupyter.cassette.reader import Book
from tape_jupyter.cassette.records import moment_text
from tape_jupyter.cassette.takes import edits, overrides
from tape_jupyter.cassette.takes import files as takes
from tape_jupyter.cassette.takes.edits import EditedReply
from tape_jupyter.cassette.takes.files import TakeBase
from tape_jupyter.cassette.takes.overrides import UNSET, Unset
from tape_jupyter.core.call import Reply, Value
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.secrets.registry import Secrets


class Derived(Book):
    """A book that takes are made of, and that may be one."""

    @abstractmethod
    def append_override(
        self, entry: Entry, reply: Reply | Value, metadata: Mapping[str, Any], secrets: Secrets
    ) -> Overridden:
        """Commit what answers a recorded call from now on."""

    @abstractmethod
    def append_again(
        self, entry: Overridden, replies: Sequence[Reply], at: str, secrets: Secrets
    ) -> None:
        """Commit what answers the same request when it is sent again: calls of a run that adds to
        the recorded one.
        """

    @property
    def chain(self) -> tuple[str, ...]:
        """Its name, after those of what it is a take of: ("main",), ("main", "angry", "angry-2")."""
        names = [
            takes.take_name(book.path) if book.base else stem(book.path)
            for book in overrides.base_chain(self)
        ]
        return tuple(reversed(names))

    @property
    def root(self) -> Path:
        """The cassette's own file: of a take, that of what it is in the end a take of."""
        return list(overrides.base_chain(self))[-1].path

    @property
    def played_path(self) -> Path:
        """Its own file; of a take that is not written yet, that of the book whose replies it gives."""
        chain = overrides.base_chain(self)
        return next(book.path for book in chain if book.base is None or book.path.exists())

    def takes(self) -> list[str]:
        """Names of the takes of this cassette, those of its takes among them."""
        return takes.take_names(self.root)

    def take(self, name: str) -> Self:
        """The take of that name: as it is, or a new one of this cassette (or take), written at its
        first record.

        Raises CassetteError where its base was changed, or where it is a take of another cassette,
        TapeUsageError where a new one may not be called so.
        """
        path = takes.path_of(self.root, name)
        if path == self.path:
            return self
        if path.is_symlink() or path.exists():
            take = type(self)(path, of=takes.take_base(path) or self._build_take_base(path))
            take.refresh()
            take.check_small()
            return self.require_own_take(take)
        takes.require_new_name(self.root, name)
        take = type(self)(path, of=self._build_take_base(path))
        take.refresh()
        return take

    def require_own_take(self, take: Self) -> Self:
        """The take itself. Raises CassetteError where it is a take of another cassette."""
        if take.root != self.root:
            raise CassetteError(
                f"is a take of {take.root}, not of {self.root}", path=str(take.path), line=2
            )
        return take

    def _build_take_base(self, take: Path) -> TakeBase:
        self.refresh()
        if not self.path.exists() or self._journal.committed == 0:
            raise TapeUsageError(f"{self.path} holds nothing to take from; record first")
        return TakeBase.from_file(take, self.path, self._journal.committed)

    def rename(self, new: str) -> Self:
        """Give a take another name; gives the take. Raises TapeUsageError where that name is taken."""
        self._require_take()
        return type(self).open(takes.rename(self.root, takes.take_name(self.path), new))

    def delete(self) -> Path:
        """Put a take aside, into takes/deleted/; gives the file. Raises TapeUsageError where takes
        are based on it.
        """
        self._require_take()
        return takes.delete(self.root, takes.take_name(self.path))

    def _require_take(self) -> None:
        if self.base is None:
            raise TapeUsageError(
                f"{self.path.name} is a cassette, not a take; it is not renamed or deleted from here"
            )

    def override(
        self,
        call: str | Entry,
        *,
        text: str | Unset = UNSET,
        message: Mapping[str, Any] | str | Unset = UNSET,
        fault: Mapping[str, Any] | str | Unset = UNSET,
        reply: Any = UNSET,
        value: Any = UNSET,
        error: Any = UNSET,
        take: str = "",
    ) -> Self:
        """Put another answer in a recorded call's place, and give the take that holds it: this one,
        or a new one.

        `text` takes the place of the reply's first text; `message`, a dict or JSON of one, that of
        the keys it names in the assembled message; `fault` is one of cassette/takes/faults.py
        ("rate_limit", "reset:after=2", {"name": "timeout"}); `reply`, `value`, `error`: see
        overrides.answer. The recorded wire form stays as it is.

        A cassette is never written: a take of it is made (called `take`, or override, override-2,
        ...). So is a take of this take where it overrides the call already. `call` is an id
        ("78a670b1", "RUN/78a670b1") or an entry. Raises TapeUsageError, also where the call was
        recorded again since.
        """
        self.refresh()
        entry = overrides.find_call(self, call)
        arguments = {
            "text": text,
            "message": message,
            "fault": fault,
            "reply": reply,
            "value": value,
            "error": error,
        }
        return self.commit_reply(entry, edits.given_edit(entry, **arguments), take)

    def commit_reply(self, entry: Entry, answer: EditedReply, take: str = "") -> Self:
        """Commit an answer that was made of an edit (cassette/takes/edits.py) to a take; gives the
        take. Raises as `override`.
        """
        overrides.require_newest(entry, self)
        goal, secrets = self._choose_take(entry, take), Secrets()
        secrets.learn_environment(os.environ)
        at = moment_text(datetime.now(UTC))
        overridden = goal.append_override(
            entry, answer.reply, {"at": at, **answer.details}, secrets
        )
        if answer.again:
            goal.append_again(overridden, answer.again, at, secrets)
        return goal

    def _choose_take(self, entry: Entry, name: str) -> Self:
        """The take that an override of the call goes to: never over one that a person made."""
        if name:
            goal = self.take(name)
            if any(
                override.id == entry.id and override.run == entry.run for override in goal.overrides
            ):
                raise TapeUsageError(
                    f"take {name} overrides call {entry.id} already. Now: name another take, or first take "
                    f"that override back: %tape takes undo {name}"
                )
            return goal
        if self.base is None:
            return self.take(takes.unused_name(self.root, "override"))
        if isinstance(entry, Overridden) and entry.book is self:
            return self.take(takes.unused_name(self.root, takes.take_name(self.path)))
        return self
