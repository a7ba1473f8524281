"""OAuth between taped cells. A program that has no client secret here asks for a token with a
placeholder: nothing is sent, and it gets a placeholder of a token, so that its client is built and
replays.
"""

from __future__ import annotations

import json
from urllib.parse import parse_qs

from tape_jupyter.cassette.match_key import json_value
from tape_jupyter.core.call import Play, Reply, Request
from tape_jupyter.secrets.registry import Secrets

_SECONDS = 3600
_HEAD = (("content-type", "application/json"), ("cache-control", "no-store"))


def is_grant(request: Request) -> bool:
    """Whether a request asks an OAuth server for a token (RFC 6749): a POST that names its
    `grant_type`.
    """
    if request.method != "POST" or b"grant_type" not in request.body:
        return False
    if request.body.lstrip().startswith(b"{"):
        body = json_value(request.body)
        return isinstance(body, dict) and "grant_type" in body
    return "grant_type" in parse_qs(request.body.decode("latin-1"))


def granted(secrets: Secrets, lacking: str) -> Play:
    """What answers it. `lacking`: the secret that is not set, for which the token stands as well."""
    token = secrets.create_placeholder(f"{lacking}_ACCESS_TOKEN", lacking)
    body = json.dumps(
        {"access_token": token, "token_type": "Bearer", "expires_in": _SECONDS}
    ).encode()
    head = (*_HEAD, ("content-length", str(len(body))))
    return Play(Reply(200, head, (body,), (0.0,), reason="OK"))
