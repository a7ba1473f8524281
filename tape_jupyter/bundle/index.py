"""Doors room: asks the package index for the digests of a version's files (the Simple API, PEP 691 and 503).

It is the person's own index (indexes.py). What was answered is kept in the user's cache folder: a version's files do
not change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from tape_jupyter.bundle.indexes import Index, plain
from tape_jupyter.drafts import replacing
from tape_jupyter.telling import Tell, nobody

THREADS = 8
PATIENCE = 20.0
"""Seconds that one request may take."""
LARGEST = 64 << 20
"""Bytes of an answer that are read."""
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class File:
    """A file of a version: `url` without query, password and fragment; `yanked` is the reason, "yes" without one."""

    name: str
    sha256: str
    url: str
    size: int = 0
    yanked: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The files of one version, or why there are none. `public`: they are the public index's."""

    files: tuple[File, ...] = ()
    public: bool = False
    why: str = ""
    asked: bool = True
    """Whether an index answered at all."""


def ask(wanted: Iterable[str], indexes: Sequence[Index], tell: Tell = nobody) -> dict[str, Answer]:
    """For each `name==version` the answer of the first index that has it; several at a time. Raises nothing."""
    names = sorted(set(wanted))
    down: dict[str, str] = {}
    answers: dict[str, Answer] = {}
    with ThreadPoolExecutor(THREADS, "index") as pool:
        waiting = {pool.submit(_first, name, indexes, down): name for name in names}
        for done, future in enumerate(as_completed(waiting), 1):
            answers[waiting[future]] = future.result()
            tell("asking the package index for digests", done, len(names))
    return dict(sorted(answers.items()))


def _first(wanted: str, indexes: Sequence[Index], down: dict[str, str]) -> Answer:
    """Of the first index that has it. One that did not answer once (`down`: why) is not asked again."""
    name, _, version = wanted.partition("==")
    why, asked = "no package index is configured", False
    for each in indexes:
        if each.url in down:
            why = down[each.url]
            continue
        try:
            files = _kept(each, name, version)
        except _Refused as refusal:
            asked, why = True, str(refusal)
        except (OSError, ValueError) as error:
            down[each.url] = why = f"the package index cannot be reached ({type(error).__name__})"
        else:
            asked, why = True, f"the index has no {wanted}"
            if files:
                return Answer(files, each.public)
    return Answer(why=why, asked=asked)


class _Refused(Exception):
    """The index answered, and not with a list of files; says how."""


def _said(code: int) -> str:
    if code == 404:
        return "the index has no package of that name"
    if code in (401, 403):
        return f"the package index refuses ({code}): log in where pip is configured"
    return f"the package index answered {code}"


# ---- one version


def _kept(index: Index, name: str, version: str) -> tuple[File, ...]:
    """From the user's cache, or asked; an answer without files is not kept: it may be published tomorrow."""
    place = cache() / "index" / hashlib.sha256(index.url.encode()).hexdigest()[:16] / f"{name}-{version}.json"
    try:
        return tuple(File(**each) for each in json.loads(place.read_bytes()))
    except (OSError, ValueError, TypeError):
        files = tuple(sorted(_of_version(_listed(index, name), name, version)))
    if files:
        _keep(place, json.dumps([asdict(each) for each in files]).encode())
    return files


def _keep(place: Path, data: bytes) -> None:
    with suppress(OSError):  # a cache that cannot be written is none
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as draft:
            draft.write_bytes(data)


def cache() -> Path:
    """The user's cache folder of tape-jupyter."""
    from platformdirs import user_cache_path

    return user_cache_path("tape-jupyter", appauthor=False)


def _listed(index: Index, name: str) -> list[File]:
    """All files of a package, as its index lists them."""
    page = urljoin(index.url.rstrip("/") + "/", f"{name}/")
    if page.startswith("file:"):
        page += "index.html"
    elif not page.startswith(("http://", "https://")):
        raise ValueError("no address of an index")
    request = urllib.request.Request(page, headers={"Accept": _ACCEPT, "User-Agent": "tape-jupyter"})  # noqa: S310 - checked above
    if index.login:
        request.add_header("Authorization", index.login)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE, context=_tls()) as reply:  # noqa: S310
            data, kind, where = reply.read(LARGEST), reply.headers.get("Content-Type", ""), reply.geturl()
    except urllib.error.HTTPError as error:
        error.close()
        raise _Refused(_said(error.code)) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError):  # an index that is a folder
            raise _Refused(_said(404)) from None
        raise
    return list(_from_json(data, where) if "json" in kind else _from_html(data, where))


def _from_json(data: bytes, where: str) -> Iterator[File]:
    for each in json.loads(data).get("files", []):
        sha = str(each.get("hashes", {}).get("sha256", "")).lower()
        if _SHA256.fullmatch(sha):
            yanked = each.get("yanked") or ""
            told = "yes" if yanked is True else str(yanked)
            yield File(str(each["filename"]), sha, plain(urljoin(where, each["url"])), int(each.get("size") or 0), told)


def _from_html(data: bytes, where: str) -> Iterator[File]:
    anchors = _Anchors()
    anchors.feed(data.decode("utf-8", "replace"))
    for link in anchors.found:
        address = urljoin(where, link.get("href") or "")
        digest = re.fullmatch(r"sha256=([0-9a-f]{64})", urlsplit(address).fragment)
        if digest:
            yanked = (link["data-yanked"] or "yes") if "data-yanked" in link else ""
            name = unquote(urlsplit(address).path.rpartition("/")[2])
            yield File(name, digest[1], plain(address), 0, yanked)


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append(dict(attrs))


def _of_version(files: Iterable[File], name: str, version: str) -> Iterator[File]:
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
    from packaging.version import Version

    goal = Version(version)
    for each in files:
        try:
            whose = parse_wheel_filename(each.name) if each.name.endswith(".whl") else parse_sdist_filename(each.name)
        except (InvalidSdistFilename, InvalidWheelFilename, ValueError):
            continue  # eggs, installers
        if (whose[0], whose[1]) == (name, goal):
            yield each


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    own = next(
        (os.environ[name] for name in ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE") if os.environ.get(name)), None
    )
    return ssl.create_default_context(cafile=own)
