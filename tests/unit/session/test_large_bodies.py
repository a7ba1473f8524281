"""Bodies too large for memory come back as they were, and take none of it. TAPE_NIGHTLY asks for a gigabyte of each client
(tests/trials/large_bodies.py).
"""

import os

import pytest

from tests.trials.large_bodies import MOST, PROGRAMS, provider, rounds

NIGHTLY = bool(os.environ.get("TAPE_NIGHTLY"))
SOME = ("httpx_reply", "requests_upload_file", "aiohttp_upload")


@pytest.mark.spread(2)
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak is read there")
@pytest.mark.parametrize(
    "program",
    [
        each
        for each in PROGRAMS
        if each in SOME or (NIGHTLY and each not in ("floor", "httpx_reply_whole"))
    ],
)
def test_a_large_body_comes_back_and_takes_no_memory(program):
    with provider() as url:
        row = rounds(program, url, 1000 if NIGHTLY else 160, 1)
    assert row["same"] and row["above_mb"] <= MOST, row
