"""A net below tools: at the end of a replayed cell, the tools that a played reply asked for, whose
recorded calls were not played, and whose functions the tape does not hold. Their bodies may have
run: that is said.

A tool that is taped cannot have run; why the program did not call it this time (a cache answered)
is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.errors import CassetteError, UnmatchedCall
from tape_jupyter.providers import registry
from tape_jupyter.session.cell import TapedCell


def refuse_untaped(cell: TapedCell) -> None:
    """Refuse, late, what ran untaped for all that can be told; warn of what may have."""
    left = _count_unmade_calls(cell) if cell.replaying and cell.execution.played else {}
    if not left:
        return
    from tape_jupyter.instrumentation.tools.discovery import decorated_names, find_functions

    functions = find_functions(left, cell.request.namespace)
    current = cell.tools.scanned.list_current_functions()
    loose = {
        name
        for name in left
        if any(function not in current for function in functions.get(name, ()))
    }
    missing = {
        name
        for name in left
        if not functions.get(name) and not decorated_names(name, cell.request.namespace)
    }
    for name in _find_asked_tools(cell.execution.played, loose | missing):
        if left[name] == 1:
            count = "a recorded call of it was"
        else:
            count = f"{left[name]} recorded calls of it were"
        message = f"tool {name}: a played reply asks for it, and {count} not played"
        if name in loose:
            cell.refuse(UnmatchedCall(f"{message}. {_LOOSE}"))
        else:
            cell.warn(f"{message}. {_MISSING}")


_LOOSE = (
    "The function of that name was defined after the last request, so it may be that "
    "its body ran. Now: define it before the request that declares it, or put @tape.tool on it."
)
_MISSING = "There is no function of that name here: if the cell called one, its body ran. Now: put @tape.tool on it"


def _count_unmade_calls(cell: TapedCell) -> dict[str, int]:
    """How many recorded calls of each tool the cell did not make, of the recording that it repeats.

    An edited cell of a front end without cell ids repeats none that is known: then of those that it
    was served from.
    """
    if cell.cassette is None or not cell.cassette.tools:
        return {}
    runs = cell.player.repeated(cell.execution) or {entry.run for entry in cell.execution.played}
    served = cell.execution.served
    counts = {
        name: sum(entry.run in runs and (entry.run, entry.id) not in served for entry in entries)
        for name, entries in cell.cassette.tools.items()
    }
    return {name: count for name, count in counts.items() if count}


def _find_asked_tools(served: Iterable[Entry], names: set[str]) -> Iterator[str]:
    """Those of the tools that played replies ask for, each once."""
    for entry in served:
        if not names:
            return
        yield from (requested := names & _read_asked_tools(entry))
        names = names - requested


def _read_asked_tools(entry: Entry) -> set[str]:
    try:
        request, reply = entry.request(), entry.reply()
    except CassetteError:
        return set()
    if not isinstance(request, Request) or not isinstance(reply, Reply):
        return set()
    return {call.name for call in registry.call_facts(request, reply).calls}
