"""Doors room: reads the lock of a stranger's bundle: what is to be installed, and what of it is odd. Asks nobody.

Nothing in it is believed: names, versions, digests and paths are checked, and its addresses are only shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tape_jupyter.bundle.indexes import is_public
from tape_jupyter.errors import BundleError

NOWHERE = "index.invalid"
"""Stands for the host of a private index (a name that RFC 2606 keeps from ever being one)."""
TOOL = "tape-jupyter"
LONGEST = 8 << 20
"""Bytes of a lock: one of 500 packages, each with 50 wheels, has 7 MB."""
MOST_PACKAGES = 5_000
MOST_STEPS = 20_000_000
"""What reading a lock may take: a key of n parts (`a.b.c`) takes the square of n. A lock of 7 MB takes 6 million."""


@dataclass(frozen=True, slots=True)
class Locked:
    """One package. `digests`: sha256 of its files; `path` in `environment/`, "" from an index. `urls`: address and
    digest of each file that names both. `foreign`: it can be had only from where the bundle says. `built`: only its
    sources are listed.
    """

    name: str
    version: str
    digests: tuple[str, ...] = ()
    urls: tuple[tuple[str, str], ...] = ()
    path: str = ""
    foreign: bool = False
    built: bool = False
    odd: tuple[str, ...] = ()


_NO_DIGEST = "no digest, whatever the index gives for that version is installed"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_INSIDE = re.compile(r"(?:wheels|sources)/[A-Za-z0-9][A-Za-z0-9._+-]*")


def python(pylock: bytes) -> str:
    """The Python that a lock is for, `3.11`; "" where it does not say."""
    try:
        told = str(_loaded(pylock).get("requires-python", ""))
    except BundleError:
        return ""
    found = re.fullmatch(r"==(\d\.\d{1,3})\.\*", told)
    return found[1] if found else ""


def oddities(pylock: bytes) -> list[str]:
    """What a reader should see before anything of a lock is installed, one sentence each; [] nothing.

    Files of this machine, repositories, other hosts than the public index's, what has no digest. Pure: asks nobody.
    Raises BundleError for what is no lock.
    """
    who: dict[str, list[str]] = {}
    for package in packages(pylock):
        for odd in package.odd:
            who.setdefault(odd, []).append(package.name)
    return [f"{_several(names)}: {odd}" for odd, names in who.items()]


def _several(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]} and {len(names) - 2} more packages"


def packages(pylock: bytes) -> list[Locked]:
    """The packages of a lock, checked; nothing in it is believed. Raises BundleError for what is no lock."""
    told = _loaded(pylock)
    if not str(told.get("lock-version", "")).startswith("1."):
        raise BundleError("environment/pylock.toml is no lock of version 1 (PEP 751)")
    entries = told.get("packages", [])
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise BundleError("environment/pylock.toml: `packages` is no list of tables")
    return [*(_locked(each) for each in entries), *_without(told)]


def _loaded(pylock: bytes) -> dict[str, Any]:
    """The tables of a lock. Raises BundleError for what is no TOML, or would take long to read."""
    if len(pylock) > LONGEST:
        raise BundleError(f"environment/pylock.toml has {len(pylock):,} bytes, at most {LONGEST:,} are read")
    if (count := pylock.count(b"[[packages]]")) > MOST_PACKAGES:
        raise BundleError(f"environment/pylock.toml has {count:,} packages, at most {MOST_PACKAGES:,} are read")
    if sum(line.count(b".") ** 2 for line in pylock.split(b"\n")) > MOST_STEPS:
        raise BundleError("environment/pylock.toml has keys of more parts (`a.b.c`) than are read")
    try:
        return tomllib.loads(pylock.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # also of numbers and dates that are none
        raise BundleError(f"environment/pylock.toml is no TOML: {str(error)[:200]}") from error


def _without(told: Mapping[str, Any]) -> Iterator[Locked]:
    """What the lock lists without digests, in our own table."""
    tools = told.get("tool")
    ours = tools.get(TOOL) if isinstance(tools, dict) else None
    listed = ours.get("unhashed", []) if isinstance(ours, dict) else []
    for each in listed if isinstance(listed, list) else []:
        name, _, version = str(each).partition("==")
        _check(name, version)
        yield Locked(name, version, odd=(_NO_DIGEST,))


def _check(name: str, version: str) -> None:
    if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
        raise BundleError(f"environment/pylock.toml: {name[:80]!r} {version[:80]!r} names no version of a package")


def _locked(entry: Mapping[str, Any]) -> Locked:
    name, version = str(entry.get("name", "")), str(entry.get("version", ""))
    _check(name, version)
    odd = [f"installed from a repository, {_shown(entry['vcs'])}"] if "vcs" in entry else []
    if "index" in entry and not is_public(str(entry["index"])):
        odd.append(f"an index of its own, {_shown(entry['index'])}")
    places = [each for kind in ("directory", "archive", "sdist") if isinstance(each := entry.get(kind), dict)]
    wheels = entry.get("wheels", [])
    places += [each for each in (wheels if isinstance(wheels, list) else []) if isinstance(each, dict)]
    digests: list[str] = []
    urls: list[tuple[str, str]] = []
    path = ""
    for place in places:
        if "path" in place:
            path = str(place["path"]).removeprefix("./")
            if not _INSIDE.fullmatch(path):
                odd.append(f"installed from a path that is not in the bundle, {_shown(place['path'])}")
                path = ""
        if "url" in place:
            urls += [(str(place["url"]), digest) for digest in _digests(place)]
            odd += _odd_address(str(place["url"]), archive=place is entry.get("archive"))
        digests += _digests(place)
    if not digests and not path and "vcs" not in entry:
        odd.append(_NO_DIGEST)
    foreign = not path and ("vcs" in entry or "archive" in entry or "directory" in entry)
    built = not path and not foreign and "sdist" in entry and not wheels
    if built:
        odd.append("has no wheel: it would have to be built, which runs its code. A replay does not install it")
    return Locked(
        name, version, tuple(sorted(set(digests))), tuple(urls), path, foreign, built, tuple(dict.fromkeys(odd))
    )


def _digests(place: Mapping[str, Any]) -> list[str]:
    hashes = place.get("hashes")
    sha = str(hashes.get("sha256", "")).lower() if isinstance(hashes, dict) else ""
    return [sha] if re.fullmatch(r"[0-9a-f]{64}", sha) else []


def _odd_address(url: str, *, archive: bool) -> list[str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return [f"an address that is none, {_shown(url)}"]
    if host == NOWHERE:
        return ["from a private index, which is not named: your own index must have it"]
    if parts.scheme != "https":
        return [f"installed from {_shown(url)}"]
    if archive:
        return [f"installed from an archive of {_shown(host)}"]
    return [] if is_public(url) else [f"files on another host, {_shown(host)}: only the digest counts"]


def _shown(what: object) -> str:
    """In one line, without control characters, at most 200 characters of it; passwords are not repeated."""
    text = re.sub(r"//[^/@\s]*@", "//…@", str(what))
    return "".join(char if char.isprintable() else "?" for char in text)[:200]
