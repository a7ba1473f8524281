"""A seeded part of tests/plant_secrets.py: what is planted is refused, and masked it is nowhere to be found."""

import os

from tests.plant_secrets import BATCH, PLACES, plants, run
from tests.harness.plants import ENCODINGS, KINDS

COUNT = 2000 if os.environ.get("TAPE_NIGHTLY") else 40


def test_planted_secrets_are_refused_and_masked_they_are_gone(tmp_path):
    lines = []
    summary = run(4, COUNT, tmp_path / "kept", 0, lines.append)
    assert not [line for line in lines if line["missed"] or line["leaks"] or not line["refused"]]
    assert (summary["planted"], summary["seen"], summary["leaked"]) == (COUNT, COUNT, 0)
    assert (tmp_path / "kept" / "planted.json").exists() and (
        tmp_path / "kept" / "batch-000.tape.zip"
    ).exists()


def test_two_thousand_plants_are_every_kind_in_every_encoding_at_every_place():
    made = list(plants(1, 2000))
    assert (
        len({(each.kind, each.encoding, each.place) for each in made})
        == 2000
        == len(KINDS) * len(ENCODINGS) * len(PLACES)
    )
    assert len({core for each in made for core in each.cores}) > 2000 and 2000 % BATCH == 0
    assert [each.cores for each in plants(1, 5)] == [each.cores for each in plants(1, 5)]
