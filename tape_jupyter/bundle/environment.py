"""Doors room: the lock of a bundle: `pylock.toml` (PEP 751), hashed requirements, and what no index has beside them.

The digests are those of the person's own index; a private one is not named: its files stand under a host that does not
exist, and are found again, by their digests, in whatever index the reader has. Where no index can be asked the list is
without digests, and says why. Paths in the lock are relative to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tape_jupyter.bundle import backend, wheel
from tape_jupyter.bundle.collecting import Collected
from tape_jupyter.bundle.index import Answer, File, ask
from tape_jupyter.bundle.indexes import configured, forbidden
from tape_jupyter.bundle.locked import NOWHERE, TOOL, oddities
from tape_jupyter.bundle.needs import OURS, Local, at, installed_as
from tape_jupyter.telling import Tell, nobody

__all__ = ["Lock", "lock", "oddities"]

CARRIED = 100 << 20
"""Bytes of an installed package that no index has and that is carried all the same."""
_FOLDER = "environment"
_BUILD = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
_NATIVE = (".so", ".pyd", ".dylib", ".dll")


@dataclass(frozen=True, slots=True)
class Lock:
    """`files`: all that a bundle holds under `environment/`, by its path there; pylock and requirements too.

    `hashed`: every package has digests or is carried. `index`: public, private or none; `why` it is not the public one
    or not hashed. `unhashed`: the packages (`name==version`) that have no digests.
    """

    pylock: bytes
    requirements: bytes
    files: Mapping[str, bytes | Path] = field(default_factory=dict)
    hashed: bool = True
    index: str = "public"
    why: str = ""
    unhashed: tuple[str, ...] = ()


def lock(collected: Collected, *, ask_index: bool = True, tell: Tell = nobody) -> Lock:
    """The lock of what a run needed. Asks the index that pip is configured for, unless told not to.

    Raises BundleError where tape-jupyter itself is not installed.
    """
    indexes = configured() if ask_index else []
    answers = ask(collected.distributions, indexes, tell) if indexes else _unasked(collected, ask_index=ask_index)
    carried, unhashed = list(collected.local), dict[str, str]()
    for name, answer in answers.items():
        if not answer.files:
            found = _carried(collected.infos.get(name, "")) if answer.asked and indexes else None
            if found is None:
                unhashed[name] = answer.why
            else:
                carried.append(found)
    files: dict[str, bytes | Path] = {}
    own, data = wheel.own()
    files[f"{_FOLDER}/wheels/{own}"] = data
    for each in sorted(carried, key=lambda local: local.name):
        files.update(_sources(each, collected.python.get("tag", "")))
    hashed = {name: answer for name, answer in answers.items() if answer.files}
    index = _index(hashed.values())
    why = "; ".join(sorted({f"{reason} ({_few(unhashed, reason)})" for reason in unhashed.values()}))
    pylock = _pylock(collected, hashed, carried, (own, data), unhashed, index)
    requirements = _requirements(hashed, unhashed, own, carried)
    files |= {f"{_FOLDER}/pylock.toml": pylock, f"{_FOLDER}/requirements.txt": requirements}
    return Lock(pylock, requirements, dict(sorted(files.items())), not unhashed, index, why, tuple(sorted(unhashed)))


def _unasked(collected: Collected, *, ask_index: bool) -> dict[str, Answer]:
    why = "no index was asked"
    if ask_index:
        unknown = "no package index is known here (there is no pip, and none is configured)"
        why = "pip is configured to use no index" if forbidden() else unknown
    return {name: Answer(why=why, asked=False) for name in collected.distributions}


def _few(unhashed: Mapping[str, str], reason: str) -> str:
    names = sorted(name for name, why in unhashed.items() if why == reason)
    return names[0] if len(names) == 1 else f"{len(names)} packages, {names[0]} among them"


def _index(answers: Iterable[Answer]) -> str:
    kinds = {answer.public for answer in answers}
    return "none" if not kinds else "public" if kinds == {True} else "private"


# ---- what is carried


def _carried(info: str) -> Local | None:
    """What is installed from no index that we know (a wheel of somebody's own), where it is not too large."""
    if not info or not Path(info).is_dir():
        return None
    found = installed_as(at(info))
    try:
        size = sum(Path(path).stat().st_size for path in found.files.values())
    except OSError:
        return None
    return found if size <= CARRIED and f"{found.dist_info}/METADATA" in found.files else None


def _sources(local: Local, tag: str) -> Iterator[tuple[str, bytes | Path]]:
    """Its files as they are imported, below a folder that pip can build with nothing else."""
    root = f"{_FOLDER}/sources/{local.name}"
    yield f"{root}/pyproject.toml", _BUILD.encode()
    yield f"{root}/backend.py", Path(backend.__file__).read_bytes()
    for inside, path in local.files.items():
        yield f"{root}/{backend.FOLDER}/{inside}", Path(path)
    about = f"{local.dist_info}/WHEEL"
    native = local.kind == "editable" and any(inside.endswith(_NATIVE) for inside in local.files)
    if native or about not in local.files:
        pure, tag = ("false", tag) if native else ("true", "py3-none-any")
        text = f"Wheel-Version: 1.0\nGenerator: tape-jupyter\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
        yield f"{root}/{backend.FOLDER}/{about}", text.encode()


# ---- the two files


def _pylock(
    collected: Collected,
    hashed: Mapping[str, Answer],
    carried: Iterable[Local],
    own: tuple[str, bytes],
    unhashed: Mapping[str, str],
    index: str,
) -> bytes:
    import tomli_w

    name, data = own
    ours = {"path": f"wheels/{name}", "size": len(data), "hashes": {"sha256": hashlib.sha256(data).hexdigest()}}
    packages = [
        *(_package(wanted, answer) for wanted, answer in hashed.items()),
        *({"name": each.name, "version": each.version, "directory": _directory(each)} for each in carried),
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


def _directory(local: Local) -> dict[str, Any]:
    return {"path": f"sources/{local.name}", "editable": False}


def _package(wanted: str, answer: Answer) -> dict[str, Any]:
    name, _, version = wanted.partition("==")
    package: dict[str, Any] = {"name": name, "version": version}
    sdists = sorted((each for each in answer.files if not each.name.endswith(".whl")), key=lambda each: each.name[::-1])
    wheels = sorted(each for each in answer.files if each.name.endswith(".whl"))
    if sdists:
        package["sdist"] = _file(sdists[-1], public=answer.public)
    if wheels:
        package["wheels"] = [_file(each, public=answer.public) for each in wheels]
    if yanked := sorted({each.yanked for each in answer.files} - {""}):
        package["tool"] = {TOOL: {"yanked": "; ".join(yanked)}}
    return package


def _file(file: File, *, public: bool) -> dict[str, Any]:
    url = file.url if public else f"https://{NOWHERE}/{quote(file.name)}"
    size = {"size": file.size} if file.size else {}
    return {"name": file.name, "url": url, **size, "hashes": {"sha256": file.sha256}}


def _requirements(
    hashed: Mapping[str, Answer], unhashed: Mapping[str, str], own: str, carried: Iterable[Local]
) -> bytes:
    """For any pip. Its mode with digests takes no line without: such lines are comments where others have digests."""
    lines = [
        "# The packages of this session. With our wheel and the sources beside this file it is the whole environment",
        "# (in this folder; pip, or uv pip):",
        "#   pip install --no-deps --require-hashes -r requirements.txt",
        f"#   pip install --no-deps ./wheels/{own}" + "".join(f" ./sources/{each.name}" for each in carried),
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
