"""What is kept beside a result comes back with it, and what is no parcel is refused."""

import json

import pytest

from tape_jupyter.errors import CassetteError
from tape_jupyter.encoding.values.registry import freeze, thaw
from tape_jupyter.encoding.values.tool_results import Exchange, Retrieved


@pytest.mark.parametrize(
    "parcel",
    [
        Exchange(
            {"content": []},
            [{"notification": "notifications/progress", "params": {"progress": 1}, "at": 0.1}],
        ),
        Exchange(None),
        Retrieved([("a", 1)], [{"id": "a", "score": 0.5}], "letters-8"),
        Retrieved([]),
    ],
)
def test_a_parcel_is_what_it_was(parcel):
    assert thaw(json.loads(json.dumps(freeze(parcel)))) == parcel


@pytest.mark.parametrize(
    "broken",
    [
        {"<type>": "mcp exchange", "heard": ["x"], "result": 1},
        {"<type>": "mcp exchange", "result": 1},
        {"<type>": "retrieved", "chunks": [3], "documents": []},
        {"<type>": "retrieved", "chunks": [], "embedding": 7, "documents": []},
    ],
)
def test_what_is_no_parcel_is_an_error_that_says_where(broken):
    with pytest.raises(CassetteError):
        thaw(broken)
