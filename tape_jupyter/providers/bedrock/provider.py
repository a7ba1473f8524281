"""Amazon Bedrock's runtime API: Converse and the models' own bodies."""

from __future__ import annotations

from tape_jupyter.providers.bedrock import view
from tape_jupyter.providers.protocol import Provider, plain_error

PROVIDER = Provider(
    wire="bedrock",
    view=view,
    paths=(
        (
            r"/model/(?P<model>[^/]+)/(?P<api>converse(?:-stream)?|invoke(?:-with-response-stream)?)$",
            "",
        ),
    ),
    host_patterns={
        r"(?:^|\.)bedrock[a-z-]*\.[a-z]{2}(?:-[a-z]+)+-\d\.(?:amazonaws\.com(?:\.cn)?|api\.aws)$": "bedrock"
    },
    model_addresses=r"/model/[^/]+/(?:converse|invoke|count-tokens)(?:-stream|-with-response-stream)?$",
    error_body=plain_error,
)
