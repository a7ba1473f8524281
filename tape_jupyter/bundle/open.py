"""`tape open`: the viewer's page of a bundle's recordings, made anew by this installation; nothing
runs.

The page that lies in a bundle is never shown: it is a stranger's, and may run or claim anything.
Ours is sent to the browser from this machine's loopback while it is made, so that a long session is
seen at once. It answers who knows its address, which nobody can guess, as long as `show_page` waits;
the page then needs nothing more.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tape_jupyter.bundle.archive import Bundle, locations, opened
from tape_jupyter.bundle.verify import SESSION
from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError, CassetteError, TapeUsageError
from tape_jupyter.reports import page

HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    # the rest of the policy stands in the page
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Say = Callable[[str], None]
"""Hears the address, once it answers."""


@dataclass(frozen=True)
class BundlePage:
    """A bundle's page: `page` is its address or its file; `recordings` are all there are, the shown
    one first.
    """

    place: str
    digest: str
    page: str
    recordings: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> Iterator[str]:
        yield f"{self.place}: intact; its page was made here, and nothing in it was run"
        if not self.page.startswith("http"):
            yield self.page
        if len(self.recordings) > 1:
            yield f"shown: {self.recordings[0]}; there is more: {', '.join(self.recordings[1:])} (-n NAME)"
        yield from (f"  ! {note}" for note in self.notes)


def write_page_file(
    place: str | Path,
    name: str | None = None,
    take: str | None = None,
    on_progress: Tell = ignore_progress,
) -> BundlePage:
    """The page as a file in a new folder for temporary files. Raises BundleError, TapeUsageError."""
    with recordings(place, name, take, on_progress) as (it, cassettes):
        out = Path(tempfile.mkdtemp(prefix="tape-open-"), page.default_page(cassettes[0].path).name)
        _, notes = page.write_page(
            cassettes[0], out, lambda done, total: on_progress("making the page", done, total)
        )
        return BundlePage(it.place, it.digest, str(out), _list_names(cassettes), tuple(notes))


def show_page(
    place: str | Path,
    name: str | None = None,
    take: str | None = None,
    *,
    on_progress: Tell = ignore_progress,
    on_address: Say | None = None,
) -> BundlePage:
    """Open the page in the browser, and wait until it is there whole; where there is no browser, as
    a file.

    Raises BundleError, TapeUsageError.
    """
    with recordings(place, name, take, on_progress) as (it, cassettes):
        pages = Pages(cassettes[0], on_progress)
        with pages.served() as address:
            if webbrowser.open(pages.once):
                if on_address is not None:
                    on_address(address)
                pages.sent.wait()
                if pages.wrong is not None:
                    raise BundleError(
                        f"a recording cannot be shown: {pages.wrong.reason}", place=it.place
                    )
                return BundlePage(
                    it.place, it.digest, address, _list_names(cassettes), tuple(pages.notes)
                )
    return write_page_file(place, name, take, on_progress)


@contextlib.contextmanager
def recordings(
    place: str | Path,
    name: str | None = None,
    take: str | None = None,
    on_progress: Tell = ignore_progress,
) -> Iterator[tuple[Bundle, list[Cassette]]]:
    """The opened bundle, and its recordings in a folder for as long as the context lasts; the
    wanted one first.
    """
    with (
        opened(place, on_progress) as it,
        tempfile.TemporaryDirectory(prefix="tape-open-") as folder,
    ):
        unpacked = it.extract(Path(folder, "bundle"), SESSION)
        cassette_paths = sorted(
            it.names("cassette"),
            key=lambda each: (paths.stem(Path(each)) != (name or paths.MAIN), each),
        )
        if not cassette_paths or (name and paths.stem(Path(cassette_paths[0])) != name):
            have = ", ".join(paths.stem(Path(each)) for each in cassette_paths) or "none"
            raise TapeUsageError(
                f"{locations.shown_place(place)}: no recording {name or 'in it'}; there are: {have}"
            )
        try:
            cassettes = [Cassette.open(unpacked / each, check="marks") for each in cassette_paths]
            if take is not None:
                cassettes.insert(
                    0, Cassette.open(files.require_take(cassettes[0].path, take), check="marks")
                )
        except CassetteError as error:
            raise TapeUsageError(f"{locations.shown_place(place)}: {error.reason}") from error
        yield it, cassettes


def _list_names(cassettes: list[Cassette]) -> tuple[str, ...]:
    return tuple(" / ".join(each.chain) for each in cassettes)


class Pages:
    """One page, at one address of this machine that cannot be guessed; `sent` when one reader has
    all of it.
    """

    def __init__(self, cassette: Cassette, on_progress: Tell = ignore_progress) -> None:
        self.cassette, self.notes, self.sent = cassette, list[str](), threading.Event()
        self.wrong: CassetteError | None = None
        self.host = ""
        self._on_step = on_progress
        self._path = f"/{secrets.token_urlsafe(24)}/{page.default_page(cassette.path).name}"
        self._once, self._lock = f"/{secrets.token_urlsafe(24)}", threading.Lock()

    @contextlib.contextmanager
    def served(self) -> Iterator[str]:
        """The address, which answers as long as the context lasts."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _build_handler(self))
        server.daemon_threads = True
        thread = threading.Thread(
            target=server.serve_forever, args=(0.05,), name="tape-open", daemon=True
        )
        thread.start()
        try:
            self.host = f"127.0.0.1:{server.server_port}"
            yield f"http://{self.host}{self._path}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    @property
    def once(self) -> str:
        """An address that leads to the page one time: other users of the machine can read a
        browser's command line.
        """
        return f"http://{self.host}{self._once}"

    def redeemed(self, host: str, path: str) -> str:
        """The page's own path, for the first who asks for the address that leads there; else ""."""
        with self._lock:
            if (
                not self._once
                or host != self.host
                or not secrets.compare_digest(path.encode(), self._once.encode())
            ):
                return ""
            self._once = ""
            return self._path

    def is_page_request(self, host: str, path: str) -> bool:
        """Whether a request is for the page; by another name of this machine's it is not (DNS
        rebinding).
        """
        return host == self.host and secrets.compare_digest(path.encode(), self._path.encode())

    def pieces(self) -> Iterator[bytes]:
        """The page, as it is made for one reader."""
        notes: list[str] = []
        cassette = Cassette.open(self.cassette.path, check="marks")
        for piece in page.stream_page(
            cassette, notes, lambda done, total: self._on_step("making the page", done, total)
        ):
            yield piece.encode("utf-8", "replace")
        self.notes = notes


def _build_handler(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 60

        def do_GET(self) -> None:
            host = self.headers.get("Host", "")
            if page := pages.redeemed(host, self.path):
                self.send_response(303)
                self.send_header("Location", page)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if not pages.is_page_request(host, self.path):
                self.send_error(
                    404,
                    explain="An address of tape open is good for one time, and for this machine alone.",
                )
                return
            self.send_response(200)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError, TimeoutError):  # the tab was closed
                try:
                    self.wfile.writelines(pages.pieces())
                except CassetteError as error:
                    pages.wrong = error
                finally:
                    pages.sent.set()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler
