"""Programs that end as their replies come end in replay as they were recorded, or the tape says which pair it could not
tell apart. TAPE_RACE_COUNT says how many rounds of each program (tests/trials/race_rounds.py) are made.
"""

import os

import pytest

from tests.trials.race_rounds import PER_BLOCK, PROGRAMS, provider, rounds

COUNT = int(os.environ.get("TAPE_RACE_COUNT", str(PER_BLOCK)))


@pytest.fixture(scope="module")
def url():
    with provider() as url:
        yield url


@pytest.mark.spread(6)
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_round_ends_otherwise_in_silence(program, url):
    assert rounds(PROGRAMS[program], url, COUNT, tell=True)["otherwise_in_silence"] == 0
