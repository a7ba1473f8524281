"""Concurrent tasks that are cancelled at random replay as they were recorded, and no reply is lost.
TAPE_NIGHTLY asks for ten thousand of them (tests/trials/cancelled_tasks.py).
"""

import os

import pytest

from tests.trials.cancelled_tasks import CLIENTS, one_round, provider

COUNT = 10_000 if os.environ.get("TAPE_NIGHTLY") else 200


@pytest.mark.spread(2)
@pytest.mark.parametrize("client", CLIENTS)
def test_cancelled_tasks_replay_and_no_reply_is_lost(client):
    with provider() as url:
        row = one_round(url, client, COUNT, seed=1)
    assert (row["lost"], row["differ"]) == (0, 0), row
