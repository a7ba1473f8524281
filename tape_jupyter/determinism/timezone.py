"""The time zone of this process: which it is, and putting another in its place for a while.

`TZ` and the C library's idea of it are one per process: while a zone is held, every thread sees it.
Jupyter's message dates are in UTC and stay as they are.
"""

from __future__ import annotations

import os
import re
import time
import zoneinfo
from collections.abc import Callable
from pathlib import Path

HELD = hasattr(time, "tzset")
"""Whether this system lets a process change its zone (Windows does not)."""

_LOCALTIME = Path("/etc/localtime")
_POSIX = re.compile(
    r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)[+-]?\d{1,2}(?::\d\d)?(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)?[^/\n]*"
)


def current_zone() -> str:
    """The zone's IANA name (or what `TZ` says); where the system names none, its offset now, as
    POSIX writes it.
    """
    zone = os.environ.get("TZ", "").lstrip(":")
    if zone:
        return zone
    try:
        name = str(_LOCALTIME.readlink()).rpartition("zoneinfo/")[2]
    except OSError:
        name = ""
    return name or posix(time.localtime().tm_gmtoff)


def posix(offset: int) -> str:
    """A zone that is always that many seconds east of UTC, in the words of `TZ`: 7200 gives
    "<+02>-02".
    """
    if not offset:
        return "UTC0"
    hours, minutes = divmod(abs(offset) // 60, 60)
    east, west = ("+", "-") if offset > 0 else ("-", "+")
    more = f"{minutes:02}" if minutes else ""
    return f"<{east}{hours:02}{more}>{west}{hours:02}{f':{more}' if more else ''}"


def is_known_zone(zone: str) -> bool:
    """Whether this system knows a zone by that name. A POSIX zone needs no data."""
    if _POSIX.fullmatch(zone):
        return True
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def hold_zone(zone: str) -> Callable[[], None]:
    """Make this the zone of the process; gives what takes it back, unless the program has set
    another since.
    """
    before = os.environ.get("TZ")
    _set_zone(zone)

    def restore_zone() -> None:
        if os.environ.get("TZ") == zone:
            _set_zone(before)

    return restore_zone


def _set_zone(zone: str | None) -> None:
    if zone is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = zone
    time.tzset()
