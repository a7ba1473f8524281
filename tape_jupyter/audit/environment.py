"""The automatic part of a run's kit: what a replay elsewhere would need besides the replies.

Reads the environment, the interpreter and git; changes nothing, patches nothing, opens no
connection. Two steps, since a cell that makes no call must cost next to nothing: `collect_fast`
when the cell starts (what changes by the moment), `collect` when its first call is about to be
written (what it takes milliseconds to find out; cached).
"""

from __future__ import annotations

import hashlib
import os
import platform
import random
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from tape_jupyter.audit.installed_packages import distributions, not_installed
from tape_jupyter.core.libraries import imported_module
from tape_jupyter.core.real_clock import monotonic
from tape_jupyter.determinism import random_state, timezone
from tape_jupyter.isolation import network_guard
from tape_jupyter.isolation.namespaces import git_command

VERTEX = (
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "ANTHROPIC_VERTEX_PROJECT_ID",
)
CLOUD = (*VERTEX, "AZURE_TENANT_ID", "AZURE_CLIENT_ID")
"""Settings that clients of Vertex AI and Azure AD cannot be built without; URLs name them as well."""
_VALUES = re.compile(
    r"LANG|LC_\w+|TZ|PYTHONHASHSEED|PYTHONUTF8|TOKENIZERS_PARALLELISM|\w+_NUM_THREADS|CUDA_VISIBLE_DEVICES"
    rf"|\w+_(?:BASE_URL|REGION|ENDPOINT|API_VERSION)|CI|CONDA_DEFAULT_ENV|OLLAMA_HOST|{'|'.join(CLOUD)}"
)
_GIT_HOLDS = 30.0  # seconds that one look at the working tree is good for
_GIT_PATIENCE = 2.0
_MODULES = 500  # digests of local modules at most: beyond that a folder is no project


def collect_fast() -> dict[str, Any]:
    """Clock and states of the generators at this moment; under 1 ms."""
    return {"clock": _read_clock(), "random": _digest_generators()}


def collect(
    namespace: Mapping[str, Any] | None = None,
    tags: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
) -> dict[str, Any]:
    """The rest, as plain structure: what is not there is absent (`gaps` names it).

    `namespace` is the notebook's (for generators of its own, by variable name), `tags` what the
    person told (`user_id`, ...), `folder` where the notebook lies: modules under it are the
    person's own. About 50 ms the first time, then under 15 ms.
    """
    home = (folder or Path.cwd()).absolute()
    fields = {
        **{str(name): value for name, value in (tags or {}).items()},
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": _read_platform(),
        "git": git(home),
        "environment": settings_of_environment(os.environ),
        "variables": " ".join(sorted(os.environ)),
        "generators": _digest_own_generators(namespace or {}),
        "modules": local_modules(home),
        "distributions": distributions(),
    }
    return {name: value for name, value in fields.items() if value not in ("", {}, [], None)}


# ---- the moment


def _read_clock() -> dict[str, str]:
    now = datetime.now(UTC)
    local = now.astimezone()
    return {
        "utc": now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "zone": timezone.current_zone(),
        "offset": local.strftime("%z"),
    }


def _digest_generators() -> dict[str, str]:
    """16 hex of the state of each global generator there is; only digests, since a seed cannot be
    told from a state.
    """
    digests = {"random": _compute_digest(repr(random.getstate()).encode())}
    if (numpy_random := imported_module("numpy.random")) is not None:
        digests["numpy"] = _digest_numpy(numpy_random)
    return digests


def _digest_numpy(numpy_random: Any) -> str:
    state = random_state.write_state(numpy_random.get_state(legacy=False))
    return _compute_digest(repr((state.encoded, sorted(state.at.items()))).encode())


def _digest_own_generators(namespace: Mapping[str, Any]) -> dict[str, str]:
    """States of generators that notebook variables hold (`rng = numpy.random.default_rng(7)`)."""
    numpy_random = imported_module("numpy.random")
    kinds = () if numpy_random is None else (numpy_random.Generator,)
    digests: dict[str, str] = {}
    for name, value in list(namespace.items()):
        if isinstance(value, random_state.Random):
            digests[name] = _compute_digest(repr(value.getstate()).encode())
        elif kinds and isinstance(value, kinds):
            digests[name] = _compute_digest(repr(value.bit_generator.state).encode())
    return digests


def _compute_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


# ---- the machine


@lru_cache(maxsize=1)
def _read_platform() -> str:
    with network_guard.unwatched():
        return platform.platform()


def settings_of_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables whose values are settings and never secrets; an address with a password or a
    query is left out.
    """
    return {
        name: value
        for name, value in sorted(environ.items())
        if _VALUES.fullmatch(name) and not ("://" in value and ("@" in value or "?" in value))
    }


# ---- git


def git(folder: Path) -> dict[str, Any]:
    """Commit, branch, dirty flag and, if dirty, 16 hex of the diff to HEAD (cassettes left out); {}
    outside git.

    `unknown` says why git could not tell. Looked at every 30 seconds at most.
    """
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)
    if root is None:
        return {}
    moved = tuple(
        _read_modified_time(root / ".git" / name) for name in ("HEAD", "index", "logs/HEAD")
    )
    return dict(_read_git_state(root, moved, int(monotonic() / _GIT_HOLDS)))


_NOT_INSIDE = "--ignore-submodules=dirty"
"""A submodule's files are looked at by the settings of its own repository."""


@lru_cache(maxsize=4)
def _read_git_state(root: Path, _moved: tuple[int, ...], _window: int) -> dict[str, Any]:
    try:
        status = _run_git(
            root, "status", "--porcelain=v2", "--branch", "--untracked-files=no", _NOT_INSIDE
        ).decode("utf-8", "replace")
        dirty = any(not line.startswith("#") for line in status.splitlines())
        plain = ("--no-ext-diff", "--no-textconv", _NOT_INSIDE)
        diff = _run_git(root, "diff", *plain, "HEAD") if dirty else b""
    except OSError as problem:
        return {"unknown": str(problem)[:200]}
    except subprocess.TimeoutExpired:
        return {"unknown": f"git took longer than {_GIT_PATIENCE:g} s"}
    except subprocess.CalledProcessError as problem:
        return {"unknown": problem.stderr.decode("utf-8", "replace").strip()[:200] or "git failed"}
    headers = dict(line[2:].split(" ", 1) for line in status.splitlines() if line.startswith("# "))
    state = {
        "commit": headers.get("branch.oid", ""),
        "branch": headers.get("branch.head", ""),
        "dirty": dirty,
    }
    record: dict[str, Any] = dict(state)
    if dirty:
        record["diff"] = _compute_digest(diff)
    return record


def _run_git(root: Path, command: str, *arguments: str) -> bytes:
    """Output of a git command over the whole tree but cassettes; runs nothing that the repository's
    config names.
    """
    everything = ("--", ":/", ":(exclude,top,glob)**/*.tapes/**")
    with network_guard.unwatched():
        done = subprocess.run(  # noqa: S603  # a fixed command line
            git_command(root, command, *arguments, *everything),
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_PATIENCE,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    return done.stdout


def _read_modified_time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def local_modules(folder: Path) -> dict[str, str]:
    """16 hex of the source of every imported module that lies under `folder` and was not installed
    there.
    """
    inside = str(folder) + os.sep
    digests: dict[str, str] = {}
    for name, path in not_installed():
        if path.startswith(inside) and not path.startswith(_OURS) and len(digests) < _MODULES:
            try:
                digests[name] = _digest_file(path, Path(path).stat().st_mtime_ns)
            except OSError:  # deleted since
                continue
    return dict(sorted(digests.items()))


_OURS = str(Path(__file__).parents[1]) + os.sep


@lru_cache(maxsize=2 * _MODULES)
def _digest_file(path: str, _modified_ns: int) -> str:
    return _compute_digest(Path(path).read_bytes())


# ---- what people told


_FOUND = frozenset(
    {
        "clock",
        "random",
        "python",
        "platform",
        "git",
        "environment",
        "variables",
        "generators",
        "modules",
    }
    | {"distributions", "redact"}
)


def tags_of(kit: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run's whole kit the tags: what a person told, or what was found of whom the run served."""
    return {
        name: value for name, value in kit.items() if name not in _FOUND and name.isidentifier()
    }
