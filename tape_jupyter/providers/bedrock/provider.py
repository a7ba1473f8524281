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
    hosts={"amazonaws.com": "bedrock", "api.aws": "bedrock"},
    error_body=plain_error,
)
