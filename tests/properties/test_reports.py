"""The report of gaps over real traffic, and over records that somebody broke: it tells what it can, and never raises.

TAPE_GAPS_COUNT mutated cassettes (300; more at night), each from a seed of its own: a failure names the seed.
"""

import base64
import gzip
import itertools
import json
import os
import random
from pathlib import Path

import pytest

from tape_jupyter.reports import diff, gaps_html, gaps
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError
from tests.harness.seen_runs import chat, found, recorded, said, tool
from tests.harness.tapes import Recorder

COUNT = int(os.environ.get("TAPE_GAPS_COUNT", "300"))
EVERY = int(os.environ.get("TAPE_GAPS_EVERY", "8"))
CORPUS = (
    Path(os.environ.get("TAPE_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
    / "corpus_dev.jsonl.gz"
)
ODD = [
    "null",
    "7",
    "-1",
    "1e308",
    '""',
    "[]",
    "[1, 2]",
    "true",
    '"\\ud800"',
    "x",
    '"2026-13-45"',
    "{}",
    "- a",
]


def body_of(part):
    return (
        base64.b64decode(part["body_b64"])
        if "body_b64" in part
        else part.get("body_text", "").encode()
    )


def interactions():
    with gzip.open(CORPUS, "rt", encoding="utf-8") as file:
        for line in itertools.islice(file, 0, None, EVERY):
            record = json.loads(line)
            asked, answer = record["request"], record["response"]
            headers = [tuple(map(tuple, part["headers"])) for part in (asked, answer)]
            request = Request(asked["method"], asked["url"], headers[0], body_of(asked))
            if "://" in request.url:
                yield request, Reply(answer["status"], headers[1], (body_of(answer),), (0.1,))


@pytest.mark.skipif(not CORPUS.exists(), reason=f"no corpus at {CORPUS}; set TAPE_CORPUS")
def test_real_traffic_is_reported_whole(tmp_path):
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    Recorder(path).run("corpus", *interactions())
    made = gaps.report_gaps([path])
    assert not made.broken
    (run,) = made.runs
    assert len(run.calls) > 100 and not any(call.problem for call, _, _ in run.calls)
    assert all(items and fields for _, items, fields in run.calls)
    assert json.dumps(made.record()) and gaps.gaps_text(made) and gaps_html.gaps_html(made)
    models = [call for call, _, _ in run.calls if call.is_model]
    assert sum(bool(call.facts.answered) for call in models) > len(models) / 2


def broken(text, r):
    """The text with a few values, keys or lines replaced, dropped or said twice."""
    lines = text.splitlines()
    for _ in range(r.randrange(1, 5)):
        place = r.randrange(len(lines))
        key, colon, _ = lines[place].partition(": ")
        kind = r.random()
        if colon and kind < 0.7:
            lines[place] = f"{key}: {r.choice(ODD)}"
        elif kind < 0.85:
            del lines[place]
        else:
            lines[place] = lines[r.randrange(len(lines))]
    return "\n".join(lines) + "\n"


def test_a_record_that_somebody_broke_is_told_and_hides_nothing(tmp_path):
    whole = tmp_path / "whole.tape.yaml"
    calls = [
        (chat(), said(calls=["lookup"])),
        tool(),
        found([{"id": 1, "score": 2}]),
        (chat("2", user="a"), said()),
    ]
    recorded(
        whole,
        *calls,
        end={"cold": ["x"], "clock": {"a": [1]}, "flags": {"f": 1}},
        kit={"git": {"commit": "c"}},
    )
    recorded(whole, *calls, kit={"flags": {"new": 1}, "distributions": ["a==1"]}, source="bbbb")
    text, path, told = whole.read_text(), tmp_path / "main.tape.yaml", 0
    for seed in range(COUNT):
        path.write_text(broken(text, random.Random(seed)), encoding="utf-8", errors="surrogatepass")
        try:
            made = gaps.report_gaps([path])
            assert json.dumps(made.record()) and gaps.gaps_text(made) and gaps_html.gaps_html(made)
            told += not made.broken
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        try:
            diff.drifts(Cassette.open(whole), Cassette.open(path, check="marks"))
        except CassetteError:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    assert told > COUNT / 2
