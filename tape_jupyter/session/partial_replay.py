"""What --take, --live, --freeze and --stub mean for a cell: which take it plays and writes, what it
keeps without going out, what is told of it. Which calls they are for is replay/selection.py's, the
decision the player's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.cassette.runs import CellIdentity, newer_than, run_of, span_of
from tape_jupyter.cassette.takes import files
from tape_jupyter.cassette.takes.overrides import base_chain
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.core.plain_text import did_you_mean, join_some
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.providers import registry
from tape_jupyter.replay.player import POLICIES, Policy
from tape_jupyter.replay.selection import CallOrigin, Selection, Selector, call_origin
from tape_jupyter.session.cell import CellRequest, ReportRow, TapedCell
from tape_jupyter.session.http_recorder import RecorderBase, failure_word, row_of

OPTIONS = ("take", "live", "freeze", "stub", "on_divergence", "decided")
"""Their keys in a cell's options."""
FRESH = "live"
STEPPED = "step"
"""What the take is called that holds what was changed while stepping."""


def selection_of(options: Mapping[str, Any], mode: str) -> Selection:
    """What a cell's options except from its mode. Raises TapeUsageError for what makes no sense."""
    lists = {name: options.get(name) or () for name in ("live", "freeze")}
    selection = Selection.parse(lists["live"], lists["freeze"], options.get("stub") or {})
    if mode == "step" and selection:
        raise TapeUsageError(
            "step takes no --live, --freeze or --stub: at each stop you decide what happens to the call"
        )
    if selection.live and mode != "replay":
        if mode == "record":
            instead = f"every call goes live in {mode}"
        else:
            instead = f"{mode} writes the cassette itself"
        raise TapeUsageError(
            f"--live goes with replay, and what ran live goes to a take ({instead})"
        )
    if selection and mode == "live":
        raise TapeUsageError("live takes no --freeze or --stub: calls are only watched there")
    return selection


def policy_of(options: Mapping[str, Any], mode: str) -> Policy:
    """What becomes of a divergence. Raises TapeUsageError for what is none, and for a mode that has
    no divergences.
    """
    requested = options.get("on_divergence") or "stop"
    if requested not in POLICIES:
        raise TapeUsageError(
            f"{str(requested)[:80]!r} is not a choice at a changed request (there are: {', '.join(POLICIES)})"
        )
    if requested != "stop" and mode == "step":
        raise TapeUsageError(
            "step stops at a call that is not on the tape: you decide there what happens to it"
        )
    if requested != "stop" and mode != "replay":
        raise TapeUsageError(f"--on-divergence goes with replay: in {mode} no call is refused")
    policy: Policy = requested
    return policy


def writes(options: Mapping[str, Any], mode: str, selection: Selection) -> bool:
    """Whether a replay may write: what it answers otherwise than the tape does goes to a take."""
    if mode != "replay":
        return False
    if options.get("step") or selection.changes or policy_of(options, mode) != "stop":
        return True
    return bool(options.get("decided"))


def check_names(
    selection: Selection, books: Sequence[Cassette], is_defined: Callable[[str], object]
) -> list[str]:
    """What is to be said, before anything runs, of words that no recorded call fits and whose tool
    is not defined either.

    Raises TapeUsageError for a call that is not on the tape, and for a tool's name that is nearly
    one of the tape's: a mistyped --freeze would let the tool run.
    """
    notes = []
    words = [("--live", each) for each in selection.live]
    words += [("--freeze", each) for each in selection.freeze]
    words += [("--stub", Selector("tool", name)) for name in selection.stubs]
    for option, word in words:
        if _is_known(word, books, is_defined):
            continue
        names = sorted(_list_names(word.kind, books))
        likeness = _MISTYPED if word.kind == "tool" else 0.6
        text = f"{option} {word}: no recorded call fits it"
        near = did_you_mean(word.name, names, likeness)
        if word.kind == "call" or near:
            raise TapeUsageError(f"{text}{near or '; tape calls lists them.'} Nothing was run")
        notes.append(f"{text}{f' (there: {join_some(names, 5)})' if names else ''}")
    return notes


_MISTYPED = 0.8
"""How alike two tools' names are (difflib's ratio), of which one is taken for the other mistyped."""


def _is_known(
    word: Selector, books: Sequence[Cassette], is_defined: Callable[[str], object]
) -> bool:
    if word.kind in ("llm", "tools") or (word.kind == "tool" and is_defined(word.name)):
        return True
    if word.kind == "host":
        calls = (entry.request() for book in books for entry in book.calls)
        sites = (call_origin(call, "model", CellIdentity()) for call in calls)
        return any(word.selects(site, None) for site in sites if site.port is not None)
    if word.kind == "cell":
        cells = (run_of(run).cell for book in books for run in book.runs)
        return any(word.selects(CallOrigin("model", cell=cell), None) for cell in cells)
    return word.name in _list_names(word.kind, books)


def _list_names(kind: str, books: Sequence[Cassette]) -> set[str]:
    """What a word of this kind could name on these tapes; of hosts and cells nothing is listed."""
    if kind == "tool":
        return {each for book in books for name in book.tools for each in _name_tool(name)}
    if kind == "call":
        calls = [entry for book in books for entry in book.calls]
        return {name for call in calls for name in (call.id, span_of(call.run, call.id))}
    return set()


def _name_tool(name: str) -> tuple[str, str]:
    """A method goes by its own name as well."""
    return name, name.rpartition(".")[2]


def contains_name(source: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", source) is not None


def require_outside(request: CellRequest, selection: Selection) -> None:
    """Raises TapeUsageError for a tool that must not run and that the cell itself defines: it is
    not taped in time.
    """
    for name in selection.held_tools:
        definition = rf"^\s*(?:async\s+)?def\s+{re.escape(name)}\b"
        if re.search(definition, _remove_decorated_functions(request.source), re.MULTILINE):
            raise TapeUsageError(
                f"--freeze or --stub tool:{name}: this cell defines {name} itself, and it could run before it is "
                "replaced. Define it in an earlier cell, or put @tape.tool on it. Nothing was run"
            )


def _remove_decorated_functions(source: str) -> str:
    """The source without functions that a decorator stands over."""
    return re.sub(
        r"^[ \t]*@[^\n]*\n(?:[ \t]*@[^\n]*\n)*[ \t]*(?:async\s+)?def\s+\w+",
        "",
        source,
        flags=re.MULTILINE,
    )


def watched(cell: TapedCell) -> Callable[[], None]:
    """To be called at the cell's end: says which tools that must not run were never seen by the
    tape.
    """
    since = cell.tools.asked.moment() if cell.execution.selection.held_tools else 0

    def report_unseen_tools() -> None:
        for name in cell.execution.selection.held_tools:
            was_sought = cell.tools.scanned.sought.get(name, 0) >= 0
            if was_sought and not cell.tools.asked.has_run(name, since):
                cell.warn(
                    f"tool:{name} was not stopped: no function of that name was found here. If the cell called one, it "
                    "ran. Now: put @tape.tool on it",
                    cold=True,
                )

    return report_unseen_tools


def without(options: Mapping[str, Any]) -> dict[str, Any]:
    """What a cell that is replayed, whatever it says, keeps of its own options: all that makes
    nothing go live, and the take that it names.
    """
    return {name: value for name, value in options.items() if name == "take" or name not in OPTIONS}


def sessions_own(request: CellRequest, session: Mapping[str, Any], *, sealed: bool) -> CellRequest:
    """The cell in a session whose mode was told from outside (TAPE_MODE, `tape replay`), with what
    was told there.

    `sealed`: it replays, whatever the cell says, and nothing of the cell's own goes live; the cell
    may still name the take that it replays, and the session's pace is everybody's. Else the
    session's frozen boundaries and stubs hold besides the cell's own. What the session leaves out
    of what tools do (`no_effects`) every cell leaves out.
    """
    session_options = {name: session[name] for name in OPTIONS if session.get(name)}
    if session.get("no_effects"):
        own = request.options.get("no_effects", ())
        session_options["no_effects"] = tuple(dict.fromkeys((*own, *session["no_effects"])))
    if sealed:
        if session.get("strict"):
            session_options["strict"] = True
        if session.get("pace"):
            session_options["pace"] = session["pace"]
        return replace(
            request,
            mode="replay",
            options={**without(request.options), **session_options},
            sessions_take="take" in session_options,
        )
    session_options.pop("live", None)
    session_options.pop("on_divergence", None)
    if "freeze" in session_options:
        words = (*request.options.get("freeze", ()), *session_options["freeze"])
        session_options["freeze"] = list(dict.fromkeys(words))
    if "stub" in session_options:
        session_options["stub"] = {**request.options.get("stub", {}), **session_options["stub"]}
    return replace(request, options={**request.options, **session_options})


def opened_take(
    base: Cassette,
    request: CellRequest,
    selection: Selection,
    opened: Callable[[Cassette, str], Cassette],
    fresh: Callable[[], str],
) -> Cassette:
    """The take that the cell plays and writes, or the cassette itself.

    `opened` gives a take of a cassette by its name, `fresh` a free name for what runs live.

    Raises TapeUsageError for a take that is not there, CassetteError for one that cannot be read.
    """
    replays_more = writes(request.options, request.mode, selection)
    if request.options.get("step") and request.mode == "replay":
        return _open_stepped_take(base, request, opened)
    only_plays = request.mode == "replay" and not replays_more
    name = _find_take_name(base.root, request, chosen=base.base is None and only_plays)
    if not name and not replays_more:
        return base
    if name and only_plays and not files.path_of(base.root, name).exists():
        cells_own = request.explicit and not request.sessions_take
        if cells_own or not _is_notebooks_take(base.root, name):
            files.require_take(base.root, name)
        # a session's word for many cells: the take is of another cassette of the notebook
        return base
    take = opened(base, name or fresh())
    if covered_by_hand(take, selection):
        return opened(take, files.unused_name(base.root, files.take_name(take.path)))
    return take


def _is_notebooks_take(cassette: Path, name: str) -> bool:
    """Whether a cassette of the notebook has a take of that name, or is called so (that is its
    recording itself); also where there is none: then nothing is played, and each call is refused in
    words of its own.
    """
    cassettes = [each for each in paths.cassettes_beside(cassette) if each.exists()]
    return not cassettes or any(
        name == paths.stem(each) or files.path_of(each, name).exists() for each in cassettes
    )


def _open_stepped_take(
    base: Cassette, request: CellRequest, opened: Callable[[Cassette, str], Cassette]
) -> Cassette:
    """What is changed while stepping goes to a take: the one that is named, else a new one of what
    would replay.
    """
    name = str(request.options.get("take") or "")
    if name and name != paths.stem(base.root):
        return opened(base, name)
    if name or base.base is not None:
        chosen = ""
    else:
        chosen = _find_replaying_take(base.root, request)
    return opened(opened(base, chosen) if chosen else base, files.unused_name(base.root, STEPPED))


def _find_replaying_take(cassette: Path, request: CellRequest) -> str:
    """The take that is stepped where the cell names none: what the view shows in which the step
    began, else the default one. "" for the recording.
    """
    shown: Path | None = request.options.get("shown")
    if shown is None or not shown.exists() or files.cassette_of(shown) != cassette:
        return files.default_take(cassette)
    return "" if shown == cassette else files.take_name(shown)


def _find_take_name(cassette: Path, request: CellRequest, *, chosen: bool) -> str:
    """The take that is asked for: by name, else (`chosen`) the one that a person chose to replay
    without a word.

    The cassette's own name asks for the recording itself.
    """
    name = str(request.options.get("take") or "")
    if not name and chosen:
        return files.default_take(cassette)
    if name == paths.stem(cassette) and name not in files.take_names(cassette):
        return ""
    return name


def covered_by_hand(take: Cassette, selection: Selection) -> bool:
    """Whether a live answer could take the place of one that a person gave: it then goes to a take
    of the take.
    """
    cells = {run.id: run.cell for run in map(run_of, take.runs)}
    for override in take.newest_overrides():
        if override.by or override.run not in cells:
            continue
        site = site_of_entry(override, cells[override.run])
        if selection.how(site, override) in ("live", "stub"):
            return True
    return False


def site_of_entry(entry: Entry, cell: Any) -> CallOrigin:
    """Where a recorded call crossed."""
    return call_origin(entry.request(), entry.head().get("kind", "host"), cell)


def summarise_take(cell: TapedCell) -> tuple[str, Path | None, list[str]]:
    """Of a cell that is over: the take it played or wrote ("" for none), the file to name, and what
    to say of it.
    """
    tape = cell.cassette
    if tape is None or tape.base is None:
        return "", cell.path, []
    if not tape.path.exists():
        if cell.request.options.get("step"):
            why = "nothing was changed"
        else:
            why = "nothing ran live"
        played = tape.played_path
        name = "" if played == tape.root else files.take_name(played)
        return name, played, [f"{why}: no take was made"]
    name, notes = tape.chain[-1], []
    if len(tape.chain) > 2:
        notes.append(f"take of: {' > '.join(tape.chain[:-1])}")
    if cell.request.options.get("step") and cell.replaying:
        notes.append(f"what was changed is in the take {name}; {tape.root.name} is as it was")
    elif cell.request.options.get("step"):
        notes.append(
            f"from the first change on it is in the take {name}; {tape.root.name} holds what happened before"
        )
    elif cell.recording.run and cell.replaying:
        if any(row.live for row in cell.findings.rows):
            what = "what ran live is"
        else:
            what = "what was kept is"
        notes.append(f"{what} in the take {name}; {tape.root.name} is as it was")
    if newer := _find_newer_recording(cell, tape):
        notes.append(
            f"take {name} is of an earlier recording of this cell: {tape.root.name} has a newer one, {newer}"
        )
    return name, tape.path, notes


def _find_newer_recording(cell: TapedCell, tape: Cassette) -> str:
    """The recording of this cell that was made after the take was."""
    run = cell.player.repeats(cell.execution) if cell.replaying else ""
    if tape.base is None or run not in tape.base.by_run:
        return ""
    *_, root = base_chain(tape)
    try:
        # else nothing stands behind what the take is of
        grown = root.path.stat().st_size != root.size
        return newer_than(Cassette.open(root.path, check="marks").runs, run) if grown else ""
    except (CassetteError, OSError):
        return ""


def lacks(name: str) -> str:
    """What to tell a person whose program has a placeholder where it needs a key."""
    return (
        f"a placeholder for replay stands in for its key. {name} is not set, or was not when the client was built. "
        "Now: set it, build the client again (one built before keeps the placeholder), and run this cell again"
    )


class OfflineAnswer(RecorderBase):
    """A call that was answered without going out (--freeze, --stub): written all the same, and
    marked so.
    """

    goes_out = False

    def commit_answer(
        self,
        call: Request | FunctionCall,
        reply: Reply | Value,
        source: str,
        over: Entry | None = None,
    ) -> None:
        """Commit it. `source` is "stub", or the recorded call that answered ("RUN/ID")."""
        self.frozen = source
        self.takes_place_of(over)
        if isinstance(call, FunctionCall):
            error = ""
            if isinstance(reply, Value) and reply.error:
                error = str(reply.error.get("class", ""))
            self._commit_call(
                call, reply, {}, ReportRow(self.id, self.kind, call.name, error=error)
            )
        elif isinstance(reply, Reply):
            facts = registry.call_facts(call, reply)
            url = self.secrets.scrub_url(call.url)
            row = row_of(self.id, self.kind, facts, 0.0, name=url, error=failure_word(reply, None))
            self._commit_call(call, reply, facts.record(), row)
