"""Asks the package index for the digests of a version's files (the Simple API, PEP 691 and 503).

It is the person's own index (bundle/environment/index.py). What was answered is kept in the user's
cache folder: a version's files do not change.

Which package indexes the person's pip and uv are configured for, and which of them is the public
one.

Only the public one, pip's own default, is ever named in a bundle; of any other neither address,
host nor password.
"""

from __future__ import annotations

import base64
import hashlib
import json
import netrc
import os
import re
import ssl
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError

_KEPT = re.compile(
    r"PATH|HOME|USER|USERNAME|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TERM|TMPDIR|TEMP|TMP|XDG_(?:CONFIG|CACHE|DATA)_\w+|LD_LIBRARY_PATH"
    r"|PIP_\w+|UV_\w+|(?:https?|all|no|ftp)_proxy|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NETRC"
    r"|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAM(?:DATA|FILES)\S*"
    # the last: where passwords are kept
    r"|PROCESSOR_ARCHITECTURE|NUMBER_OF_PROCESSORS|DBUS_SESSION_BUS_ADDRESS",
    re.IGNORECASE,
)
"""Variables that an installer gets: where programs and its own files lie, its options, the way to
the network.
"""


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """One package index. `url` has no password in it; `public`: it is pip's own default."""

    url: str
    public: bool
    login: str = ""


def plain_address(address: str) -> str:
    """Without password, query and fragment."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def installer_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Of these variables the ones that an installer gets."""
    return {name: value for name, value in environ.items() if _KEPT.fullmatch(name)}


def configured(environ: Mapping[str, str] | None = None) -> list[PackageIndex]:
    """What pip is configured for, then uv; the default first. [] where it is to use none, or the
    default is unknown.
    """
    return [_build_index(url) for url in addresses(environ)]


def addresses(environ: Mapping[str, str] | None = None) -> list[str]:
    """The addresses of the indexes as configured, passwords and all: for an installer, never to be
    written.
    """
    environ = os.environ if environ is None else environ
    if forbidden(environ):
        return []
    pip, uv = _read_pip_config(environ), _read_uv_config(environ)
    default = pip.get("index-url") or uv.get("index-url") or _find_public_index()[0]
    urls = [
        default,
        *pip.get("extra-index-url", "").split(),
        *uv.get("extra-index-url", "").split(),
    ]
    return list(dict.fromkeys(url for url in urls if url))


def forbidden(environ: Mapping[str, str] | None = None) -> bool:
    """Whether pip is configured to use no index at all."""
    no_index = _read_pip_config(os.environ if environ is None else environ).get("no-index", "")
    return no_index.lower() in ("1", "true", "yes", "on")


def loose(environ: Mapping[str, str] | None = None) -> list[str]:
    """Folders and pages of wheels that pip looks at beside its indexes."""
    return (
        _read_pip_config(os.environ if environ is None else environ).get("find-links", "").split()
    )


def _build_index(url: str) -> PackageIndex:
    parts = urlsplit(url)
    address = plain_address(url)
    login = ""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    elif parts.hostname and (known := _read_netrc(parts.hostname)):
        login = known
    basic = "Basic " + base64.b64encode(login.encode()).decode() if login else ""
    return PackageIndex(address, is_public(address), basic)


def _read_netrc(host: str) -> str:
    try:
        credentials = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return ""
    return f"{credentials[0]}:{credentials[2]}" if credentials else ""


def is_public(url: str) -> bool:
    """Whether it is pip's default index, or a file of it."""
    index, files = _find_public_index()
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (
        parts.scheme == "https" and bool(index) and parts.netloc in (urlsplit(index).netloc, files)
    )


@lru_cache(maxsize=1)
def _find_public_index() -> tuple[str, str]:
    """Address of the index that pip asks when it is not told another, and the host of its files;
    from pip itself.
    """
    match = re.search(
        r'PackageIndex\(\s*"(https://[^"]+?)/?",\s*file_storage_domain="([^"]+)"',
        _read_pip_source(),
    )
    return (f"{match[1]}/simple", match[2]) if match else ("", "")


def _read_pip_source() -> str:
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


def _read_pip_config(environ: Mapping[str, str]) -> dict[str, str]:
    """What pip is configured for, by option: its files, then the environment."""
    settings = dict(_read_pip_files(tuple(sorted(installer_variables(environ).items()))))
    for option in ("index-url", "extra-index-url", "no-index", "find-links"):
        if value := environ.get("PIP_" + option.upper().replace("-", "_")):
            settings[option] = value
    return settings


@lru_cache(maxsize=4)
def _read_pip_files(environ: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    if find_spec("pip") is None:
        return ()
    line = [sys.executable, "-P", "-m", "pip", "config", "list", "--disable-pip-version-check"]
    try:
        done = subprocess.run(  # noqa: S603
            line, capture_output=True, text=True, check=False, timeout=60, env=dict(environ)
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    pairs = re.findall(r"^[\w:.-]+\.([\w-]+)='(.*)'$", done.stdout, re.MULTILINE)
    return tuple((name, value.replace("\\n", " ")) for name, value in pairs)


def _read_uv_config(environ: Mapping[str, str]) -> dict[str, str]:
    """uv's, in pip's words: its files, then the environment."""
    settings: dict[str, str] = {}
    home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for place in (Path("/etc/uv/uv.toml"), home / "uv" / "uv.toml"):
        try:
            settings.update(_parse_uv_config(tomllib.loads(place.read_text("utf-8"))))
        except (OSError, tomllib.TOMLDecodeError):
            continue
    default = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    extra = " ".join(filter(None, (environ.get("UV_INDEX"), environ.get("UV_EXTRA_INDEX_URL"))))
    if default:
        settings["index-url"] = (
            default.partition("=")[2] if re.match(r"\w[\w-]*=", default) else default
        )
    if extra:
        settings["extra-index-url"] = " ".join(
            re.sub(r"^\w[\w-]*=", "", each) for each in extra.split()
        )
    return settings


def _parse_uv_config(config: Mapping[str, Any]) -> dict[str, str]:
    entries = [
        each
        for each in config.get("index", [])
        if isinstance(each, dict) and isinstance(each.get("url"), str)
    ]
    default = next(
        (each["url"] for each in entries if each.get("default")), config.get("index-url", "")
    )
    extra = [each["url"] for each in entries if not each.get("default")] + list(
        config.get("extra-index-url", [])
    )
    settings = {"index-url": str(default), "extra-index-url": " ".join(map(str, extra))}
    return {name: value for name, value in settings.items() if value}


THREADS = 8
PATIENCE = 20.0
"""Seconds that one request may take."""
LARGEST = 64 << 20
"""Bytes of an answer that are read."""
LARGEST_FILE = 512 << 20
"""Bytes of a file that are read; what is cut off has another digest."""
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class IndexFile:
    """A file of a version: `url` without query, password and fragment; `yanked` is the reason,
    "yes" without one.
    """

    name: str
    sha256: str
    url: str
    size: int = 0
    yanked: str = ""


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """The files of one version, or why there are none. `public`: they are the public index's."""

    files: tuple[IndexFile, ...] = ()
    public: bool = False
    why: str = ""
    answered: bool = True
    """Whether an index answered at all."""


def query_index(
    requirements: Iterable[str],
    indexes: Sequence[PackageIndex],
    on_progress: Tell = ignore_progress,
) -> dict[str, IndexAnswer]:
    """For each `name==version` the answer of the first index that has it; several at a time. Raises
    nothing.
    """
    names = sorted(set(requirements))
    down: dict[str, str] = {}
    answers: dict[str, IndexAnswer] = {}
    with ThreadPoolExecutor(THREADS, "index") as pool:
        waiting = {pool.submit(_ask_first, name, indexes, down): name for name in names}
        for done, future in enumerate(as_completed(waiting), 1):
            answers[waiting[future]] = future.result()
            on_progress("asking the package index for digests", done, len(names))
    return dict(sorted(answers.items()))


def _ask_first(
    requirement: str, indexes: Sequence[PackageIndex], down: dict[str, str]
) -> IndexAnswer:
    """Of the first index that has it. One that did not answer once (`down`: why) is not asked
    again.
    """
    name, _, version = requirement.partition("==")
    why, queried = "no package index is configured", False
    for each in indexes:
        if each.url in down:
            why = down[each.url]
            continue
        try:
            files = _find_files(each, name, version)
        except _Refused as refusal:
            queried, why = True, str(refusal)
        except (OSError, ValueError) as error:
            down[each.url] = why = f"the package index cannot be reached ({type(error).__name__})"
        else:
            queried, why = True, f"the index has no {requirement}"
            if files:
                return IndexAnswer(files, each.public)
    return IndexAnswer(why=why, answered=queried)


class _Refused(Exception):
    """The index answered, and not with a list of files; says how."""


def _describe_status(code: int) -> str:
    if code == 404:
        return "the index has no package of that name"
    if code in (401, 403):
        return f"the package index refuses ({code}): log in where pip is configured"
    return f"the package index answered {code}"


# ---- one version


def _find_files(index: PackageIndex, name: str, version: str) -> tuple[IndexFile, ...]:
    """From the user's cache, or asked; an answer without files is not kept: it may be published
    tomorrow.
    """
    place = (
        cache()
        / "index"
        / hashlib.sha256(index.url.encode()).hexdigest()[:16]
        / f"{name}-{version}.json"
    )
    try:
        return tuple(IndexFile(**each) for each in json.loads(place.read_bytes()))
    except (OSError, ValueError, TypeError):
        files = tuple(sorted(_select_version(_fetch_listing(index, name), name, version)))
    if files:
        _write_cache(place, json.dumps([asdict(each) for each in files]).encode())
    return files


def _write_cache(place: Path, data: bytes) -> None:
    with suppress(OSError):  # a cache that cannot be written is none
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as draft:
            draft.write_bytes(data)


def cache() -> Path:
    """The user's cache folder of tape-jupyter."""
    from platformdirs import user_cache_path

    return user_cache_path("tape-jupyter", appauthor=False)


def files_of(name: str, indexes: Sequence[PackageIndex]) -> Iterator[IndexFile]:
    """All files of a package, of each index that answers."""
    for each in indexes:
        with suppress(_Refused, OSError, ValueError):
            yield from _fetch_listing(each, name)


def downloaded(file: IndexFile, indexes: Sequence[PackageIndex]) -> bytes:
    """The bytes of a file; a login goes to its own index alone. Raises BundleError."""
    request = urllib.request.Request(file.url, headers={"User-Agent": "tape-jupyter"})  # noqa: S310
    host = urlsplit(file.url).netloc
    login = next((each.login for each in indexes if urlsplit(each.url).netloc == host), "")
    if login:
        request.add_header("Authorization", login)
    try:
        with urllib.request.urlopen(  # noqa: S310
            request, timeout=PATIENCE, context=_build_tls_context()
        ) as reply:
            return bytes(reply.read(LARGEST_FILE))
    except (OSError, ValueError) as error:
        raise BundleError(f"{file.name} cannot be downloaded: {error}") from error


def _fetch_listing(index: PackageIndex, name: str) -> list[IndexFile]:
    """All files of a package, as its index lists them."""
    page = urljoin(index.url.rstrip("/") + "/", f"{name}/")
    if page.startswith("file:"):
        page += "index.html"
    elif not page.startswith(("http://", "https://")):
        raise ValueError("no address of an index")
    request = urllib.request.Request(  # noqa: S310
        page, headers={"Accept": _ACCEPT, "User-Agent": "tape-jupyter"}
    )
    if index.login:
        request.add_header("Authorization", index.login)
    try:
        with urllib.request.urlopen(  # noqa: S310
            request, timeout=PATIENCE, context=_build_tls_context()
        ) as reply:
            data = reply.read(LARGEST)
            kind = reply.headers.get("Content-Type", "")
            where = reply.geturl()
    except urllib.error.HTTPError as error:
        error.close()
        raise _Refused(_describe_status(error.code)) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError):  # an index that is a folder
            raise _Refused(_describe_status(404)) from None
        raise
    return list(_parse_json(data, where) if "json" in kind else _parse_html(data, where))


def _parse_json(data: bytes, where: str) -> Iterator[IndexFile]:
    for each in json.loads(data).get("files", []):
        sha = str(each.get("hashes", {}).get("sha256", "")).lower()
        if _SHA256.fullmatch(sha):
            yanked = each.get("yanked") or ""
            reason = "yes" if yanked is True else str(yanked)
            yield IndexFile(
                str(each["filename"]),
                sha,
                plain_address(urljoin(where, each["url"])),
                int(each.get("size") or 0),
                reason,
            )


def _parse_html(data: bytes, where: str) -> Iterator[IndexFile]:
    anchors = _Anchors()
    anchors.feed(data.decode("utf-8", "replace"))
    for link in anchors.found:
        address = urljoin(where, link.get("href") or "")
        digest = re.fullmatch(r"sha256=([0-9a-f]{64})", urlsplit(address).fragment)
        if digest:
            yanked = (link["data-yanked"] or "yes") if "data-yanked" in link else ""
            name = unquote(urlsplit(address).path.rpartition("/")[2])
            yield IndexFile(name, digest[1], plain_address(address), 0, yanked)


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append(dict(attrs))


def _select_version(files: Iterable[IndexFile], name: str, version: str) -> Iterator[IndexFile]:
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )
    from packaging.version import Version

    goal = Version(version)
    for each in files:
        try:
            whose = (
                parse_wheel_filename(each.name)
                if each.name.endswith(".whl")
                else parse_sdist_filename(each.name)
            )
        except (InvalidSdistFilename, InvalidWheelFilename, ValueError):
            continue  # eggs, installers
        if (whose[0], whose[1]) == (name, goal):
            yield each


@lru_cache(maxsize=1)
def _build_tls_context() -> ssl.SSLContext:
    ca_file = next(
        (
            os.environ[name]
            for name in ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
            if os.environ.get(name)
        ),
        None,
    )
    return ssl.create_default_context(cafile=ca_file)
