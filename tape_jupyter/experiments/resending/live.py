"""One HTTP exchange, live, with the reads and waits of its reply. Redirects are replies, not
followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse, IncompleteRead
from urllib.error import URLError
from urllib.request import HTTPErrorProcessor, build_opener
from urllib.request import Request as Asked

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.errors import TapeUsageError

_READ = 65536


class _AsTheyAre(HTTPErrorProcessor):
    """Errors and redirects are replies: a key goes nowhere else."""

    # as urllib calls it
    def http_response(self, request: Asked, response: HTTPResponse) -> HTTPResponse:  # noqa: ARG002
        return response

    https_response = http_response


def send_live(
    request: Request, timeout: float = 600.0, clock: Callable[[], float] = time.monotonic
) -> Reply:
    """The reply, whole; one that broke off has the error that it ended with. Raises TapeUsageError
    for no reply.
    """
    if not request.url.startswith(("http://", "https://")):
        raise TapeUsageError(
            f"{request.url.partition(':')[0]}: only HTTP requests can be sent again"
        )
    # looked at above
    http_request = Asked(  # noqa: S310
        request.url, request.body or None, dict(request.headers), method=request.method
    )
    start = clock()
    try:
        response: HTTPResponse = build_opener(_AsTheyAre).open(http_request, timeout=timeout)
    except (URLError, HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise TapeUsageError(
            f"{request.url.partition('?')[0]} gave no reply: {reason}; nothing was written"
        ) from error
    chunks: list[bytes] = []
    waits: list[float] = []
    failed = None
    with response:
        try:
            while data := response.read1(_READ):
                chunks.append(data)
                waits.append(round(clock() - start, 4))
            if response.length:  # of what was declared, so much did not come
                failed = freeze_error(IncompleteRead(b"", response.length))
        except (HTTPException, OSError) as error:
            failed = freeze_error(error)
    version = {10: "HTTP/1.0", 11: "HTTP/1.1"}.get(response.version, "HTTP/1.1")
    end = "error" if failed is not None else "complete"
    return Reply(
        response.status, tuple(response.getheaders()), tuple(chunks), tuple(waits), end, failed, version,  # type: ignore[arg-type]
        response.reason,
    )  # fmt: skip
