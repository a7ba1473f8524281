"""Every error tape-jupyter raises, in one tree.

    TapeError (Exception)            something is wrong with what a person gave us
    ├── CassetteError                a cassette that cannot be read or written; names file:line
    ├── BundleError                  a bundle that cannot be made, read or trusted; names the bundle and the file in it
    │   └── NotExported              a session that does not repeat itself, or holds a secret
    ├── TapeUsageError               a magic, option, name or environment value that makes no sense
    ├── NotebookUnknown              no rung of the path ladder found the notebook
    └── RefusedInPool                a TapeRefusal, told to who waits for a ThreadPool's result

    TapeRefusal (BaseException)      replay refuses to let something leave the machine
    ├── UnmatchedCall                no recorded call is the same as this one; carries the nearest and a diff
    ├── BlockedConnection            a socket that no tap saw, or a call whose cell has ended
    └── SteppedAway                  a person who steps stopped at this call, or went back before it

A refusal derives from BaseException because SDKs retry and re-wrap every Exception that a transport
raises: as an Exception a miss would show as "Connection error." after seconds of retries.
"""

from __future__ import annotations

from collections.abc import Sequence


class TapeError(Exception):
    """Base of the errors a person can mend."""


class CassetteError(TapeError):
    """A cassette is not what it should be.

    `path` and `line` (1-based, in the file) say where; `reason` says what and what to do about it.
    """

    def __init__(self, reason: str, *, path: str | None = None, line: int | None = None) -> None:
        self.reason, self.path, self.line = reason, path, line
        where = f"{path or 'cassette'}:{line}" if line is not None else path or ""
        super().__init__(f"{where}: {reason}" if where else reason)

    def at(self, *, path: str | None = None, first_line: int = 1) -> CassetteError:
        """The same error seen from the file: `first_line` is where the record it speaks of begins."""
        line = None if self.line is None else self.line + first_line - 1
        return type(self)(self.reason, path=path or self.path, line=line)


class BundleError(TapeError):
    """A bundle is not what it should be, or cannot be made. Nothing of it was used, nothing was
    written.

    `reason` says what is wrong and what to do about it, `place` which bundle it is. `problems` are
    all that is wrong, where that is more than one thing; the first is the reason.
    """

    def __init__(self, reason: str, *, place: str = "", problems: Sequence[str] = ()) -> None:
        self.reason, self.place, self.problems = reason, place, tuple(problems) or (reason,)
        super().__init__(f"{place}: {reason}" if place else reason)

    def at(self, place: str) -> BundleError:
        """The same error, of a bundle that has a name."""
        if self.place:
            return self
        return type(self)(self.reason, place=place, problems=self.problems)


class NotExported(BundleError):
    """A session that is whole and not exported: a cell differs in its proof, or a secret was found
    in it.
    """


class TapeUsageError(TapeError):
    """A magic's line, an option, a name or an environment value that cannot be used; the message
    says what can.
    """


class NotebookUnknown(TapeUsageError):
    """The notebook's path cannot be found out; the message says how to name the cassette."""


class RefusedInPool(TapeError):
    """A TapeRefusal (its `__cause__`) in an item of a `multiprocessing.pool.ThreadPool`; the
    message is the same.

    The pool hands only an Exception to who waits; with anything else its worker dies and the wait
    never ends.
    """


class TapeRefusal(BaseException):
    """Replay refused. Not an Exception, so that no SDK retries it and no `except Exception` hides
    it.
    """


class UnmatchedCall(TapeRefusal):
    """A call that the cassette does not hold, or holds fewer times than it is made.

    `report` is the readable account: the call, the nearest recorded call, a field diff, what to do
    now. `reordered`: it says what the nearest recorded call says, in another order.
    """

    def __init__(self, report: str, *, reordered: bool = False) -> None:
        self.report, self.reordered = report, reordered
        super().__init__(report)


class BlockedConnection(TapeRefusal):
    """A connection (or a call) that replay does not let out, with the line of user code that made
    it.
    """


class SteppedAway(TapeRefusal):
    """Takes the cell's code away from a call at which a person stopped it, or went back (`%%tape
    step`).
    """
