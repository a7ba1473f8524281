"""Which names a bundle's files may have, so that each is one file, inside, on every system.

A name is relative, of parts with `/` between them, in Unicode's composed form (NFC). Windows'
device names, names that differ only in case, and characters that make a name look like another are
refused everywhere: a bundle is sent around.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from tape_jupyter.errors import BundleError

LONGEST = 1024
"""UTF-8 bytes of a name; each part has at most 255."""

_DEVICE = re.compile(
    r"(con|prn|aux|nul|clock\$|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])\s*(\..*)?",
    re.IGNORECASE,
)
_HIDDEN = {"Cc", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # of format characters these alone are part of words and emoji
_HOOK = re.compile(
    r"(sitecustomize|usercustomize|conftest)(\.[^/]*)?|.*\.pth|(jupyter|ipython)[a-z_]*_config\.(py|json)"
    r"|pyvenv\.cfg",
    re.IGNORECASE,
)


def check_file_name(name: str) -> str:
    """The name, if a file of a bundle may have it; else BundleError, which quotes it safely."""
    if wrong := _find_fault(name):
        raise BundleError(f"{name[:200]!a} {wrong}; the bundle is refused")
    return name


def check_all(names: Iterable[str]) -> None:
    """Refuse a name that may not be, and two that are one file, or a file and a folder, on some
    system.
    """
    files: dict[str, str] = {}
    for name in names:
        twin = files.setdefault(_fold_name(check_file_name(name)), name)
        if twin is not name:
            raise BundleError(
                f"{name!a} and {twin!a} are the same file on some systems; the bundle is refused"
            )
    for key, name in files.items():
        folder = key
        while folder := folder.rpartition("/")[0]:
            if folder in files:
                raise BundleError(
                    f"{files[folder]!a} is a file, and a folder for {name!a}; the bundle is refused"
                )


def startup_hook(name: str) -> str:
    """The part of a name for whose sake a file would run, or change what runs, by merely lying
    there; else "".
    """
    return next((part for part in name.split("/") if _HOOK.fullmatch(part)), "")


def _fold_name(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


def _find_fault(name: str) -> str:
    if not name or len(name) > LONGEST or len(name.encode("utf-8", "surrogatepass")) > LONGEST:
        return f"is not a name: it has {len(name)} characters" if name else "is not a name"
    if name.startswith("/") or "\\" in name or ":" in name:
        return "is not a path inside the bundle"
    for char in name:
        kind = unicodedata.category(char)
        if kind in _HIDDEN or (kind == "Cf" and char not in _JOINERS):
            return "holds a character that does not show"
    if not unicodedata.is_normalized("NFC", name):
        return "is not in Unicode's composed form (NFC)"
    return next((wrong for part in name.split("/") if (wrong := _find_part_fault(part))), "")


def _find_part_fault(part: str) -> str:
    if part in ("", ".", ".."):
        return "is not a path inside the bundle"
    if part[-1] in ". ":
        return "ends in a dot or a space, which some systems drop"
    if _DEVICE.fullmatch(part):
        return "is a device on some systems"
    if part.casefold() == ".git" or re.fullmatch(r"git~\d+", part, re.IGNORECASE):
        return "is a git repository's own, which may run programs"
    return "is too long" if len(part.encode()) > 255 else ""
