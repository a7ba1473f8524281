"""Doors room: which package indexes the person's pip and uv are configured for, and which of them is the public one.

Only the public one, pip's own default, is ever named in a bundle; of any other neither address, host nor password.
"""

from __future__ import annotations

import base64
import netrc
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit


@dataclass(frozen=True, slots=True)
class Index:
    """One package index. `url` has no password in it; `public`: it is pip's own default."""

    url: str
    public: bool
    login: str = ""


def plain(address: str) -> str:
    """Without password, query and fragment."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def configured(environ: Mapping[str, str] | None = None) -> list[Index]:
    """What pip is configured for, then uv; the default first. [] where it is to use none, or the default is unknown."""
    return [_index(url) for url in addresses(environ)]


def addresses(environ: Mapping[str, str] | None = None) -> list[str]:
    """The addresses of the indexes as configured, passwords and all: for an installer, never to be written."""
    environ = os.environ if environ is None else environ
    if forbidden(environ):
        return []
    pip, uv = _pip(environ), _uv(environ)
    default = pip.get("index-url") or uv.get("index-url") or _public()[0]
    found = [default, *pip.get("extra-index-url", "").split(), *uv.get("extra-index-url", "").split()]
    return list(dict.fromkeys(url for url in found if url))


def forbidden(environ: Mapping[str, str] | None = None) -> bool:
    """Whether pip is configured to use no index at all."""
    told = _pip(os.environ if environ is None else environ).get("no-index", "")
    return told.lower() in ("1", "true", "yes", "on")


def loose(environ: Mapping[str, str] | None = None) -> list[str]:
    """Folders and pages of wheels that pip looks at beside its indexes."""
    return _pip(os.environ if environ is None else environ).get("find-links", "").split()


def _index(url: str) -> Index:
    parts = urlsplit(url)
    address = plain(url)
    login = ""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    elif parts.hostname and (known := _netrc(parts.hostname)):
        login = known
    basic = "Basic " + base64.b64encode(login.encode()).decode() if login else ""
    return Index(address, is_public(address), basic)


def _netrc(host: str) -> str:
    try:
        found = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return ""
    return f"{found[0]}:{found[2]}" if found else ""


def is_public(url: str) -> bool:
    """Whether it is pip's default index, or a file of it."""
    index, files = _public()
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(index) and parts.netloc in (urlsplit(index).netloc, files)


@lru_cache(maxsize=1)
def _public() -> tuple[str, str]:
    """Address of the index that pip asks when it is not told another, and the host of its files; from pip itself."""
    found = re.search(r'PackageIndex\(\s*"(https://[^"]+?)/?",\s*file_storage_domain="([^"]+)"', _pips_own())
    return (f"{found[1]}/simple", found[2]) if found else ("", "")


def _pips_own() -> str:
    inside = "pip/_internal/models/index.py"
    spec = find_spec("pip")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parents[1].joinpath(inside).read_text("utf-8")
    try:  # environments that uv makes have no pip; the interpreter brings one
        import ensurepip

        wheel = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(inside).decode()
    except (ImportError, OSError, KeyError, StopIteration, zipfile.BadZipFile):
        return ""


def _pip(environ: Mapping[str, str]) -> dict[str, str]:
    """What pip is configured for, by option: its files, then the environment."""
    found = dict(_pips_files(tuple(sorted(environ.items()))))
    for option in ("index-url", "extra-index-url", "no-index", "find-links"):
        if value := environ.get("PIP_" + option.upper().replace("-", "_")):
            found[option] = value
    return found


@lru_cache(maxsize=4)
def _pips_files(environ: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    if find_spec("pip") is None:
        return ()
    line = [sys.executable, "-P", "-m", "pip", "config", "list", "--disable-pip-version-check"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60, env=dict(environ))  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.findall(r"^[\w:.-]+\.([\w-]+)='(.*)'$", done.stdout, re.MULTILINE)
    return tuple((name, value.replace("\\n", " ")) for name, value in found)


def _uv(environ: Mapping[str, str]) -> dict[str, str]:
    """uv's, in pip's words: its files, then the environment."""
    found: dict[str, str] = {}
    home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for place in (Path("/etc/uv/uv.toml"), home / "uv" / "uv.toml"):
        try:
            found.update(_from_uv(tomllib.loads(place.read_text("utf-8"))))
        except (OSError, tomllib.TOMLDecodeError):
            continue
    default = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    extra = " ".join(filter(None, (environ.get("UV_INDEX"), environ.get("UV_EXTRA_INDEX_URL"))))
    if default:
        found["index-url"] = default.partition("=")[2] if re.match(r"\w[\w-]*=", default) else default
    if extra:
        found["extra-index-url"] = " ".join(re.sub(r"^\w[\w-]*=", "", each) for each in extra.split())
    return found


def _from_uv(told: Mapping[str, Any]) -> dict[str, str]:
    entries = [each for each in told.get("index", []) if isinstance(each, dict) and isinstance(each.get("url"), str)]
    default = next((each["url"] for each in entries if each.get("default")), told.get("index-url", ""))
    extra = [each["url"] for each in entries if not each.get("default")] + list(told.get("extra-index-url", []))
    found = {"index-url": str(default), "extra-index-url": " ".join(map(str, extra))}
    return {name: value for name, value in found.items() if value}
