"""The lock of a bundle: `pylock.toml` (PEP 751), hashed requirements, and what no index has beside
them.

The digests are those of the person's own index; a private one is not named: its files stand under a
host that does not exist, and are found again, by their digests, in whatever index the reader has.
Where no index can be asked the list is without digests, and says why. Paths in the lock are
relative to it.

Reads the lock of a stranger's bundle: what is to be installed, and what of it is odd. Asks nobody.

Nothing in it is believed: names, versions, digests and paths are checked, and its addresses are
only shown.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from packaging.tags import Tag, compatible_tags, cpython_tags, sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tape_jupyter.bundle.environment import build_backend, own_wheel
from tape_jupyter.bundle.environment.index import (
    IndexAnswer,
    IndexFile,
    configured,
    forbidden,
    is_public,
    query_index,
)
from tape_jupyter.bundle.environment.requirements import (
    OURS,
    Local,
    installed_as,
    read_distribution,
)
from tape_jupyter.bundle.proof.collection import Collected
from tape_jupyter.core.parse_limits import count_toml_values
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError

NOWHERE = "index.invalid"
"""Stands for the host of a private index (a name that RFC 2606 keeps from ever being one)."""
TOOL = "tape-jupyter"
LONGEST = 8 << 20
"""Bytes of a lock: one of 500 packages, each with 50 wheels, has 7 MB."""
MOST_PACKAGES = 5_000
MOST_VALUES = 1_500_000
"""Values, keys and lines of a lock; one of 7 MB has 350,000."""
MOST_STEPS = 20_000_000
"""What reading a lock may take: a key of n parts (`a.b.c`) takes the square of n. A lock of 7 MB
takes 6 million.
"""


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One package. `digests`: sha256 of its files; `path` in `environment/`, "" from an index.
    `urls`: address and digest of each file that names both. `foreign`: it can be had only from
    where the bundle says. `built`: its sources are listed, and no wheel that can be installed here.
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


def locked_python(pylock: bytes) -> str:
    """The Python that a lock is for, `3.11`; "" where it does not say."""
    try:
        return _parse_python(_load_tables(pylock))
    except BundleError:
        return ""


def _parse_python(tables: Mapping[str, Any]) -> str:
    requires_python = str(tables.get("requires-python", ""))
    match = re.fullmatch(r"==(\d\.\d{1,3})\.\*", requires_python)
    return match[1] if match else ""


def oddities(pylock: bytes) -> list[str]:
    """What a reader should see before anything of a lock is installed, one sentence each; []
    nothing.

    Files of this machine, repositories, other hosts than the public index's, what has no digest.
    Pure: asks nobody. Raises BundleError for what is no lock.
    """
    who: dict[str, list[str]] = {}
    for package in locked_packages(pylock):
        for odd in package.odd:
            who.setdefault(odd, []).append(package.name)
    return [f"{_format_names(names)}: {odd}" for odd, names in who.items()]


def _format_names(names: list[str]) -> str:
    if len(names) < 4:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} and {format_count(len(names) - 2, 'more package')}"


def locked_packages(pylock: bytes) -> list[LockedPackage]:
    """The packages of a lock, checked; nothing in it is believed. Raises BundleError for what is no
    lock.
    """
    tables = _load_tables(pylock)
    if not str(tables.get("lock-version", "")).startswith("1."):
        raise BundleError("environment/pylock.toml is not a lock of version 1 (PEP 751)")
    entries = tables.get("packages", [])
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise BundleError("environment/pylock.toml: `packages` is not a list of tables")
    tags = _list_supported_tags(_parse_python(tables))
    return [*(_parse_package(each, tags) for each in entries), *_list_unhashed(tables)]


def _list_supported_tags(python: str) -> frozenset[Tag]:
    """The tags of wheels that this machine can install for a Python, `3.11`; "" for this one."""
    version = tuple(map(int, python.split("."))) if python else sys.version_info[:2]
    if version == sys.version_info[:2]:
        return frozenset(sys_tags())
    name = "cp" + "".join(map(str, version))
    return frozenset((*cpython_tags(version, [name]), *compatible_tags(version, name)))


def _is_for_here(wheel: Mapping[str, Any], tags: frozenset[Tag]) -> bool:
    """Whether a wheel can be installed here; one whose name says nothing is taken for one that can."""
    place = wheel.get("name") or wheel.get("url") or wheel.get("path") or ""
    try:
        return not tags.isdisjoint(
            parse_wheel_filename(unquote(str(place).partition("?")[0].rpartition("/")[2]))[3]
        )
    except InvalidWheelFilename:
        return True


def _load_tables(pylock: bytes) -> dict[str, Any]:
    """The tables of a lock. Raises BundleError for what is no TOML, or would take long to read."""
    if len(pylock) > LONGEST:
        raise BundleError(
            f"environment/pylock.toml has {len(pylock):,} bytes, at most {LONGEST:,} are read"
        )
    if (count := pylock.count(b"[[packages]]")) > MOST_PACKAGES:
        raise BundleError(
            f"environment/pylock.toml has {count:,} packages, at most {MOST_PACKAGES:,} are read"
        )
    if (count := count_toml_values(pylock)) > MOST_VALUES:
        raise BundleError(
            f"environment/pylock.toml holds {count:,} values and lines, at most {MOST_VALUES:,} are read"
        )
    if sum(line.count(b".") ** 2 for line in pylock.split(b"\n")) > MOST_STEPS:
        raise BundleError("environment/pylock.toml has keys of more parts (`a.b.c`) than are read")
    try:
        return tomllib.loads(pylock.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # also of numbers and dates that are none
        raise BundleError(f"environment/pylock.toml is not TOML: {str(error)[:200]}") from error


def _list_unhashed(tables: Mapping[str, Any]) -> Iterator[LockedPackage]:
    """What the lock lists without digests, in our own table."""
    tools = tables.get("tool")
    ours = tools.get(TOOL) if isinstance(tools, dict) else None
    listed = ours.get("unhashed", []) if isinstance(ours, dict) else []
    for each in listed if isinstance(listed, list) else []:
        name, _, version = str(each).partition("==")
        _check_name(name, version)
        yield LockedPackage(name, version, odd=(_NO_DIGEST,))


def _check_name(name: str, version: str) -> None:
    if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
        raise BundleError(
            f"environment/pylock.toml: {name[:80]!r} {version[:80]!r} names no version of a package"
        )


def _parse_package(entry: Mapping[str, Any], tags: frozenset[Tag]) -> LockedPackage:
    name, version = str(entry.get("name", "")), str(entry.get("version", ""))
    _check_name(name, version)
    odd = [f"installed from a repository, {_format_shown(entry['vcs'])}"] if "vcs" in entry else []
    if "index" in entry and not is_public(str(entry["index"])):
        odd.append(f"an index of its own, {_format_shown(entry['index'])}")
    places = [
        each
        for kind in ("directory", "archive", "sdist")
        if isinstance(each := entry.get(kind), dict)
    ]
    wheels = entry.get("wheels", [])
    wheels = [
        each for each in (wheels if isinstance(wheels, list) else []) if isinstance(each, dict)
    ]
    places += wheels
    digests: list[str] = []
    urls: list[tuple[str, str]] = []
    path = ""
    for place in places:
        if "path" in place:
            path = str(place["path"]).removeprefix("./")
            if not _INSIDE.fullmatch(path):
                odd.append(
                    f"installed from a path that is not in the bundle, {_format_shown(place['path'])}"
                )
                path = ""
        if "url" in place:
            urls += [(str(place["url"]), digest) for digest in _read_digests(place)]
            odd += _find_odd_address(str(place["url"]), archive=place is entry.get("archive"))
        digests += _read_digests(place)
    if not digests and not path and "vcs" not in entry:
        odd.append(_NO_DIGEST)
    foreign = not path and ("vcs" in entry or "archive" in entry or "directory" in entry)
    built = (
        not path
        and not foreign
        and "sdist" in entry
        and not any(_is_for_here(each, tags) for each in wheels)
    )
    if built:
        where = " for this machine" if wheels else ""
        odd.append(
            f"has no wheel{where}: it would have to be built, which runs its code. "
            "A replay does so only with --allow-build"
        )
    return LockedPackage(
        name,
        version,
        tuple(sorted(set(digests))),
        tuple(urls),
        path,
        foreign,
        built,
        tuple(dict.fromkeys(odd)),
    )


def _read_digests(place: Mapping[str, Any]) -> list[str]:
    hashes = place.get("hashes")
    sha = str(hashes.get("sha256", "")).lower() if isinstance(hashes, dict) else ""
    return [sha] if re.fullmatch(r"[0-9a-f]{64}", sha) else []


def _find_odd_address(url: str, *, archive: bool) -> list[str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return [f"an address that is none, {_format_shown(url)}"]
    if host == NOWHERE:
        return ["from a private index, which is not named: your own index must have it"]
    if parts.scheme != "https":
        return [f"installed from {_format_shown(url)}"]
    if archive:
        return [f"installed from an archive of {_format_shown(host)}"]
    if is_public(url):
        return []
    return [f"files on another host, {_format_shown(host)}: only the digest counts"]


def _format_shown(what: object) -> str:
    """In one line, without control characters, at most 200 characters of it; passwords are not
    repeated.
    """
    text = re.sub(r"//[^/@\s]*@", "//…@", str(what))
    return "".join(char if char.isprintable() else "?" for char in text)[:200]


__all__ = ["Lock", "lock_needs", "oddities"]

CARRIED = 100 << 20
"""Bytes of an installed package that no index has and that is carried all the same."""
_FOLDER = "environment"
_BUILD = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
_NATIVE = (".so", ".pyd", ".dylib", ".dll")


@dataclass(frozen=True, slots=True)
class Lock:
    """`files`: all that a bundle holds under `environment/`, by its path there; pylock and
    requirements too.

    `hashed`: every package has digests or is carried. `index`: public, private or none; `why` it is
    not the public one or not hashed. `unhashed`: the packages (`name==version`) that have no
    digests.
    """

    pylock: bytes
    requirements: bytes
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    hashed: bool = True
    index: str = "public"
    why: str = ""
    unhashed: tuple[str, ...] = ()


def lock_needs(
    collected: Collected, *, ask_index: bool = True, on_progress: Tell = ignore_progress
) -> Lock:
    """The lock of what a run needed. Asks the index that pip is configured for, unless told not to.

    Raises BundleError where tape-jupyter itself is not installed.
    """
    indexes = configured() if ask_index else []
    if indexes:
        answers = query_index(collected.distributions, indexes, on_progress)
    else:
        answers = _build_unasked(collected, ask_index=ask_index)
    carried, unhashed = list(collected.local), dict[str, str]()
    for name, answer in answers.items():
        if not answer.files:
            package = None
            if answer.answered and indexes:
                package = _find_carried(collected.infos.get(name, ""))
            if package is None:
                unhashed[name] = answer.why
            else:
                carried.append(package)
    files: dict[str, bytes | Path] = {}
    wheel_name, data = own_wheel.own_wheel()
    files[f"{_FOLDER}/wheels/{wheel_name}"] = data
    for each in sorted(carried, key=lambda local: local.name):
        files.update(_yield_sources(each, collected.python.get("tag", "")))
    hashed = {name: answer for name, answer in answers.items() if answer.files}
    index = _find_index_kind(hashed.values())
    why = "; ".join(
        sorted({f"{reason} ({_format_few(unhashed, reason)})" for reason in unhashed.values()})
    )
    pylock = _build_pylock(collected, hashed, carried, (wheel_name, data), unhashed, index)
    requirements = _build_requirements(hashed, unhashed, wheel_name, carried)
    files |= {f"{_FOLDER}/pylock.toml": pylock, f"{_FOLDER}/requirements.txt": requirements}
    return Lock(
        pylock,
        requirements,
        dict(sorted(files.items())),
        not unhashed,
        index,
        why,
        tuple(sorted(unhashed)),
    )


def _build_unasked(collected: Collected, *, ask_index: bool) -> dict[str, IndexAnswer]:
    why = "no index was asked"
    if ask_index:
        unknown = "no package index is known here (there is no pip, and none is configured)"
        why = "pip is configured to use no index" if forbidden() else unknown
    return {name: IndexAnswer(why=why, answered=False) for name in collected.distributions}


def _format_few(unhashed: Mapping[str, str], reason: str) -> str:
    names = sorted(name for name, why in unhashed.items() if why == reason)
    return names[0] if len(names) == 1 else f"{len(names)} packages, {names[0]} among them"


def _find_index_kind(answers: Iterable[IndexAnswer]) -> str:
    kinds = {answer.public for answer in answers}
    if not kinds:
        return "none"
    return "public" if kinds == {True} else "private"


# ---- what is carried


def _find_carried(info: str) -> Local | None:
    """What is installed from no index that we know (a wheel of somebody's own), where it is not too
    large.
    """
    if not info or not Path(info).is_dir():
        return None
    installed = installed_as(read_distribution(info))
    try:
        size = sum(Path(path).stat().st_size for path in installed.files.values())
    except OSError:
        return None
    if size <= CARRIED and f"{installed.dist_info}/METADATA" in installed.files:
        return installed
    return None


def _yield_sources(local: Local, tag: str) -> Iterator[tuple[str, bytes | Path]]:
    """Its files as they are imported, below a folder that pip can build with nothing else."""
    root = f"{_FOLDER}/sources/{local.name}"
    yield f"{root}/pyproject.toml", _BUILD.encode()
    yield f"{root}/backend.py", Path(build_backend.__file__).read_bytes()
    for inside, path in local.files.items():
        yield f"{root}/{build_backend.FOLDER}/{inside}", Path(path)
    about = f"{local.dist_info}/WHEEL"
    native = local.kind == "editable" and any(inside.endswith(_NATIVE) for inside in local.files)
    if native or about not in local.files:
        pure, tag = ("false", tag) if native else ("true", "py3-none-any")
        text = f"Wheel-Version: 1.0\nGenerator: tape-jupyter\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
        yield f"{root}/{build_backend.FOLDER}/{about}", text.encode()


# ---- the two files


def _build_pylock(
    collected: Collected,
    hashed: Mapping[str, IndexAnswer],
    carried: Iterable[Local],
    wheel: tuple[str, bytes],
    unhashed: Mapping[str, str],
    index: str,
) -> bytes:
    import tomli_w

    name, data = wheel
    ours = {
        "path": f"wheels/{name}",
        "size": len(data),
        "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
    }
    packages = [
        *(_build_package(requirement, answer) for requirement, answer in hashed.items()),
        *(
            {"name": each.name, "version": each.version, "directory": _build_directory(each)}
            for each in carried
        ),
        {"name": OURS, "version": name.split("-")[1], "wheels": [ours]},
    ]
    python = ".".join(collected.python.get("version", "3.11").split(".")[:2])
    written = {
        "lock-version": "1.0",
        "requires-python": f"=={python}.*",
        "created-by": TOOL,
        "packages": sorted(packages, key=lambda each: str(each["name"])),
        "tool": {TOOL: {"index": index, "unhashed": sorted(unhashed)}},
    }
    return tomli_w.dumps(written).encode()


def _build_directory(local: Local) -> dict[str, Any]:
    return {"path": f"sources/{local.name}", "editable": False}


def _build_package(requirement: str, answer: IndexAnswer) -> dict[str, Any]:
    name, _, version = requirement.partition("==")
    package: dict[str, Any] = {"name": name, "version": version}
    sdists = sorted(
        (each for each in answer.files if not each.name.endswith(".whl")),
        key=lambda each: each.name[::-1],
    )
    wheels = sorted(each for each in answer.files if each.name.endswith(".whl"))
    if sdists:
        package["sdist"] = _build_file(sdists[-1], public=answer.public)
    if wheels:
        package["wheels"] = [_build_file(each, public=answer.public) for each in wheels]
    if yanked := sorted({each.yanked for each in answer.files} - {""}):
        package["tool"] = {TOOL: {"yanked": "; ".join(yanked)}}
    return package


def _build_file(file: IndexFile, *, public: bool) -> dict[str, Any]:
    url = file.url if public else f"https://{NOWHERE}/{quote(file.name)}"
    size = {"size": file.size} if file.size else {}
    return {"name": file.name, "url": url, **size, "hashes": {"sha256": file.sha256}}


def _build_requirements(
    hashed: Mapping[str, IndexAnswer],
    unhashed: Mapping[str, str],
    wheel_name: str,
    carried: Iterable[Local],
) -> bytes:
    """For any pip. Its mode with digests takes no line without: such lines are comments where
    others have digests.
    """
    lines = [
        "# The packages of this session. With our wheel and the sources beside this file it is the whole environment",
        "# (in this folder; pip, or uv pip):",
        "#   pip install --no-deps --require-hashes -r requirements.txt",
        f"#   pip install --no-deps ./wheels/{wheel_name}"
        + "".join(f" ./sources/{each.name}" for each in carried),
    ]
    if not hashed:
        lines[2] = "#   pip install --no-deps -r requirements.txt"
    for name, answer in hashed.items():
        digests = sorted({file.sha256 for file in answer.files})
        lines += [f"{name} \\", *(f"    --hash=sha256:{digest} \\" for digest in digests[:-1])]
        lines.append(f"    --hash=sha256:{digests[-1]}")
    for name, why in sorted(unhashed.items()):
        lines += [f"# without digests: {why}", f"# {name}" if hashed else name]
    return ("\n".join(lines) + "\n").encode()
