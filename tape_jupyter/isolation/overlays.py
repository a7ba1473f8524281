"""A command that sees a folder at its own path and cannot change it: what it writes there goes into
a layer that is thrown away. Linux, where a person may have mounts of one's own (`unshare`) and
overlays.

Nothing is copied, whatever the folder's size, and every path is what it was: absolute ones, `..`,
links.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tape_jupyter.isolation.namespaces import program

_MOUNTS = ("--mount",)
_OWN_MOUNTS = ("--user", "--map-root-user", "--mount")
_SECONDS = 20
_SCRIPT = r"""
set -e
path=$PATH; PATH=/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin; unshare=$1; shift
top=$1; layers=$2; kept=$3; options=$4; user=$5; group=$6; folder=$7; shift 7
mount --bind "$top" "$layers/lower"
if [ -n "$kept" ]; then mount --bind "$kept" "$layers/kept"; fi
mount -t overlay overlay \
  -o "lowerdir=$layers/lower,upperdir=$layers/upper,workdir=$layers/work$options" "$top"
if [ -n "$kept" ]; then mount --bind "$layers/kept" "$kept"; fi
if [ -s "$layers/gone" ]; then xargs -0 rm -rf -- < "$layers/gone"; fi
cd "$folder"
PATH=$path
if [ -n "$user" ]; then exec "$unshare" --user --map-user="$user" --map-group="$group" -- "$@"; fi
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Overlay:
    """`top` is layered over, `layers` is an empty folder for what is written. `kept`: a folder in
    it that is not layered over: what is written there stays. `hidden`: paths that the command does
    not find; files to be found there instead of the person's lie in `upper` before it starts.
    """

    top: Path
    layers: Path
    kept: Path | None = None
    hidden: Sequence[Path] = ()

    @property
    def upper(self) -> Path:
        return self.layers / "upper"

    def prepare(self) -> None:
        for name in ("lower", "upper", "work", "kept"):
            (self.layers / name).mkdir(parents=True, exist_ok=True)
        (self.layers / "gone").write_bytes(
            b"".join(os.fsencode(path) + b"\0" for path in self.hidden)
        )

    def commands(self, folder: Path) -> Iterator[list[str]]:
        """What may stand before a command that is to run in `folder`, best first: root has mounts
        anyway, and others' files too; who is not root gets the own number back, or is shown as root
        where an older `unshare` cannot.
        """
        if os.getuid() == 0:
            yield self._build_command(_MOUNTS, folder, "", ("", ""))
        else:
            yield self._build_command(
                _OWN_MOUNTS, folder, ",userxattr", (str(os.getuid()), str(os.getgid()))
            )
        yield self._build_command(_OWN_MOUNTS, folder, ",userxattr", ("", ""))

    def _build_command(
        self, mounts: Sequence[str], folder: Path, options: str, user: tuple[str, str]
    ) -> list[str]:
        kept = str(self.kept) if self.kept else ""
        unshare = program("unshare")
        script = [unshare, *mounts, program("sh"), "-c", _SCRIPT, "sh", unshare]
        return [*script, str(self.top), str(self.layers), kept, options, *user, str(folder)]


def prefix(overlay: Overlay, folder: Path) -> list[str] | None:
    """What stands before a command so that it runs there; None where this machine, or this folder,
    has no overlays.
    """
    if sys.platform != "linux" or not program("unshare") or _has_mounts(overlay.top):
        return None
    overlay.prepare()
    for command in overlay.commands(folder):
        try:
            done = subprocess.run(  # noqa: S603 - ours
                [*command, program("true")], check=False, capture_output=True, timeout=_SECONDS
            )
        except (OSError, subprocess.SubprocessError):
            return None
        if done.returncode == 0:
            return command
    return None


def select_tops(folders: Iterable[Path]) -> list[Path]:
    """What can be layered over so that these folders are: their real paths but for what has mounts
    below it and for `/`, none inside another. A folder that is not there counts as the one that it
    would be made in.
    """
    existing = (_find_existing_folder(each).resolve() for each in folders)
    return select_outermost(
        each for each in existing if each != Path("/") and not _has_mounts(each)
    )


def are_covered(folders: Iterable[Path], tops: Sequence[Path]) -> bool:
    """Whether what is written in each of the folders goes into a layer over one of `tops`."""
    existing = [_find_existing_folder(each).resolve() for each in folders]
    return all(any(each.is_relative_to(top) for top in tops) for each in existing)


def select_outermost(folders: Iterable[Path]) -> list[Path]:
    """Those that lie in none of the others, sorted."""
    paths = sorted(set(folders))
    return [each for each in paths if not any(other in paths for other in each.parents)]


def _find_existing_folder(path: Path) -> Path:
    return path if path.is_dir() else _find_existing_folder(path.parent)


def _has_mounts(top: Path) -> bool:
    """Whether something is mounted below the folder: an overlay would not show it, and Linux refuses
    one to who is not root.
    """
    inside = f"{top}{os.sep}"
    try:
        lines = (
            Path("/proc/self/mountinfo")
            .read_text(encoding="utf-8", errors="surrogateescape")
            .splitlines()
        )
    except OSError:
        return True
    encoded = (line.split(" ")[4].encode("utf-8", "surrogateescape") for line in lines)
    places = (os.fsdecode(_unescape_octal(place)) for place in encoded)
    return any(place.startswith(inside) for place in places)


def _unescape_octal(place: bytes) -> bytes:
    """The kernel writes blanks and backslashes as three octal digits."""
    head, *parts = place.split(b"\\")
    return head + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in parts)
