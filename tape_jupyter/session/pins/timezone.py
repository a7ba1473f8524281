"""The pin of the time zone: a replayed cell sees the zone that it was recorded in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.determinism import timezone
from tape_jupyter.session.cell import TapedCell


def pin(cell: TapedCell, recorded: Mapping[str, Any] | None) -> Callable[[], None]:
    """Tell the zone to the run record; in replay put the recorded one in its place."""
    record = recorded.get("pins", {}).get("timezone", {}) if recorded is not None else {}
    zone = record.get("zone")
    here = timezone.current_zone()
    cell.recording.pins["timezone"] = {"zone": zone if isinstance(zone, str) else here}
    if not isinstance(zone, str) or zone == here:
        return do_nothing
    if not timezone.HELD or not timezone.is_known_zone(zone):
        if timezone.HELD:
            why = "this system knows no such zone"
        else:
            why = "this system cannot change a program's zone"
        cell.warn(
            f"timezone {zone} of the recording is not used ({why}): local times differ", cold=True
        )
        return do_nothing
    return timezone.hold_zone(zone)
