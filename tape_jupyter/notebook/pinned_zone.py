"""Notebook room: the pin of the time zone: a replayed cell sees the zone that it was recorded in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tape_jupyter import zones
from tape_jupyter.notebook.taped import Cell


def pin(cell: Cell, recorded: Mapping[str, Any] | None) -> Callable[[], None]:
    """Tell the zone to the run record; in replay put the recorded one in its place."""
    told = recorded.get("pins", {}).get("timezone", {}) if recorded is not None else {}
    own = told.get("zone")
    here = zones.here()
    cell.pins["timezone"] = {"zone": own if isinstance(own, str) else here}
    if not isinstance(own, str) or own == here:
        return _nothing
    if not zones.HELD or not zones.known(own):
        why = "this system knows no such zone" if zones.HELD else "this system cannot change a program's zone"
        cell.warn(f"timezone {own} of the recording is not held ({why}): local times differ", cold=True)
        return _nothing
    return zones.hold(own)


def _nothing() -> None:
    """The zone is the recorded one already."""
