"""Codec of the HTTP objects that errors hold: `response` and `request` of httpx, httpx2 and
requests.

A response keeps status, reason, headers (no cookies), the decoded body and its URL; a request keeps
method and URL, for its headers hold keys. A response that was not read to its end cannot be frozen.
Nothing is imported here.
"""

from __future__ import annotations

import sys
from typing import Any

from tape_jupyter.encoding.values.stdlib import freeze_bytes, thaw_bytes
from tape_jupyter.encoding.values.user_classes import ModuleAbsent
from tape_jupyter.encoding.values.walker import (
    At,
    CannotFreeze,
    Codec,
    Freezer,
    Thawer,
    need,
    place_text,
)
from tape_jupyter.errors import CassetteError

LIBRARIES = ("httpx", "httpx2", "requests")


def _name_library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _find_library(s: dict[str, Any], at: At) -> Any:
    name = s["library"]
    if name not in LIBRARIES:
        raise CassetteError(
            f"{place_text(at)}: {name!r} is not a library whose objects can be recorded"
        )
    if name not in sys.modules:
        raise ModuleAbsent(
            f"{place_text(at)}: an object of {name} was recorded: import {name!r} before it is replayed"
        )
    return sys.modules[name]


def _freeze_response(response: Any, walk: Freezer, at: At) -> dict[str, Any]:
    library = _name_library(response)
    body = getattr(response, "_content", None)
    if not isinstance(body, bytes):
        raise CannotFreeze(at, response, "its body was not read to the end")
    request = getattr(response, "request" if library == "requests" else "_request", None)
    if library == "requests":
        headers = response.headers.items()
    else:
        headers = response.headers.multi_items()
    fields = {
        "library": library,
        "status": response.status_code,
        "headers": [[k, v] for k, v in headers if k.lower() != "set-cookie"],
        "body": freeze_bytes(body),
        "request": walk.freeze(request, (at, "request")),
    }
    if library == "requests":
        fields |= {"url": response.url, "reason": response.reason, "encoding": response.encoding}
    return fields


def _thaw_response(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    library = _find_library(s, at)
    request = walk.thaw(s["request"], (at, "request"))
    body = thaw_bytes(need(s["body"], dict, (at, "body")), at)
    headers = [(need(k, str, at), need(v, str, at)) for k, v in s["headers"]]
    if s["library"] != "requests":
        response = library.Response(need(s["status"], int, at), content=body, request=request)
        response.headers = library.Headers(headers)  # not given before: the body is decoded already
        return response
    response = library.Response()
    response.status_code = need(s["status"], int, at)
    response.url = s["url"]
    response.reason = s["reason"]
    response.headers.update(headers)
    response.encoding, response.request = s["encoding"], request
    response._content, response._content_consumed = body, True  # noqa: SLF001  # no public way in
    return response


def _freeze_request(request: Any, _walk: Freezer, _at: At) -> dict[str, Any]:
    return {"library": _name_library(request), "method": request.method, "url": str(request.url)}


def _thaw_request(s: dict[str, Any], _walk: Thawer, at: At) -> Any:
    library = _find_library(s, at)
    method, url = need(s["method"], str, at), need(s["url"], str, at)
    if s["library"] != "requests":
        return library.Request(method, url)
    request = library.PreparedRequest()
    request.method = method
    request.url = url
    request.headers = library.structures.CaseInsensitiveDict()
    return request


_RESPONSE = Codec("http response", _freeze_response, _thaw_response, shared=True)
_REQUEST = Codec("http request", _freeze_request, _thaw_request, shared=True)
BY_NAME = {codec.name: codec for codec in (_RESPONSE, _REQUEST)}


def codec_for(kind: type) -> Codec | None:
    """The codec of a class of these libraries."""
    if kind.__name__ == "Response":
        return _RESPONSE
    request = "PreparedRequest" if kind.__module__.startswith("requests") else "Request"
    return _REQUEST if kind.__name__ == request else None
