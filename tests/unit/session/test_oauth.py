"""OAuth between taped cells: which requests ask for a token, and what they get where the secret is a placeholder."""

import json

import pytest

from tape_jupyter.core.call import Request
from tape_jupyter.session import oauth
from tape_jupyter.secrets.registry import Secrets


@pytest.mark.parametrize(
    ("method", "body", "grant"),
    [
        ("POST", b"grant_type=client_credentials&client_id=me&client_secret=x", True),
        ("POST", b'{"grant_type": "refresh_token", "refresh_token": "x"}', True),
        ("GET", b"grant_type=client_credentials", False),
        ("POST", b"text=what+is+a+grant_type", False),
        ("POST", b'{"text": "grant_type"}', False),
        ("POST", b'["grant_type"]', False),
        ("POST", b"", False),
    ],
)
def test_a_request_for_a_token_names_its_grant_type(method, body, grant):
    assert oauth.is_grant(Request(method, "https://login.example/token", (), body)) is grant


def test_the_token_is_a_placeholder_that_is_told_by_the_secret_it_was_asked_with():
    secrets = Secrets()
    reply = oauth.granted(secrets, "MY_CLIENT_SECRET").reply
    token = json.loads(b"".join(reply.chunks))["access_token"]
    assert secrets.is_placeholder(token)
    assert secrets.stood_for(f"Bearer {token}") == "MY_CLIENT_SECRET"
