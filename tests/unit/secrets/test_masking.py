"""A secret is masked wherever and however it stands, and what is around it stays what it was."""

import base64
import gzip
import html
import json
import random
from urllib.parse import unquote

import pytest

from tape_jupyter.secrets import masking, passages
from tape_jupyter.secrets.masking import Masking, recut_masked
from tape_jupyter.secrets.registry import Secrets
from tests.harness.plants import ENCODINGS, made
from tests.unit.secrets.test_passages import png

TOKEN, _ = made("github", random.Random(1))
MARK = "redacted-github-token-1"


@pytest.fixture(scope="module")
def mask():
    return Masking(Secrets(), {TOKEN: MARK})


READ = {
    "plain": str,
    "base64": lambda s: base64.b64decode(s).decode(),
    "base64url": lambda s: base64.urlsafe_b64decode(s + "=" * (-len(s) % 4)).decode(),
    "hex": lambda s: bytes.fromhex(s).decode(),
    "url": unquote,
    "json": lambda s: json.loads(f'"{s}"'),
    "html": html.unescape,
    "gzip": lambda s: gzip.decompress(base64.b64decode(s)).decode(),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_was_encoded_still_decodes(mask, encoding):
    text = f"the note says {TOKEN}, to nobody"
    clean, changed = mask.scrub(ENCODINGS[encoding](text))
    assert (
        changed and READ[encoding](clean).removeprefix("? ") == f"the note says {MARK}, to nobody"
    )
    assert mask.scrub(clean) == (clean, False)


@pytest.mark.parametrize("first", ["base64", "hex", "url", "json", "gzip"])
@pytest.mark.parametrize("second", ["base64", "hex", "url", "json", "gzip"])
def test_what_was_encoded_twice_still_decodes_twice(mask, first, second):
    text = f"the note says {TOKEN}, to nobody"
    clean, _ = mask.scrub(ENCODINGS[second](ENCODINGS[first](text)))
    assert READ[first](READ[second](clean)) == f"the note says {MARK}, to nobody"


def test_what_holds_nothing_is_given_as_it_is(mask):
    value = {"a": ["b", 1, None], "events": [{"data": {"t": "x"}}]}
    assert mask.scrub_structure(value) == (value, False) and mask.scrub_structure(value)[0] is value


def test_a_name_that_is_known_here_has_the_mark_that_recordings_have():
    known = Secrets()
    known.learn_environment({"ACME_API_KEY": "Zq7rTq1v9WcX2bLk"})
    known.pattern("C-[0-9]+", "customer")
    mask = Masking(known, {})
    assert mask.scrub("use Zq7rTq1v9WcX2bLk for C-17") == (
        "use <secret:ACME_API_KEY> for <secret:customer>",
        True,
    )
    assert mask.scrub_structure({"text/html": "<b>C-17</b>"})[0] == {
        "text/html": "<b>&lt;secret:customer&gt;</b>"
    }


def test_code_that_names_a_secret_stays_code(mask):
    source = "client = Client(access_token=creds.access_token, password=ask('password'))"
    assert mask.scrub(source) == (source, False)


def test_a_stream_is_masked_across_its_pieces(mask):
    pieces = [TOKEN[:4], TOKEN[4:19], TOKEN[19:]]
    entries = [
        each
        for piece in pieces
        for each in ({"data": {"delta": {"text": piece}, "index": 0}}, {"data": {"type": "ping"}})
    ]
    entries = [
        {"data": {"delta": {"text": "say "}, "index": 0}},
        *entries,
        {"data": {"delta": {"text": " now"}, "index": 0}},
    ]
    clean, changed = mask.scrub_structure({"events": entries})
    assert changed and [entry["data"] for entry in clean["events"]] == [
        {"delta": {"text": "say "}, "index": 0}, {"delta": {"text": MARK}, "index": 0}, {"type": "ping"}, {"delta": {"text": ""}, "index": 0},
        {"type": "ping"}, {"delta": {"text": ""}, "index": 0}, {"type": "ping"}, {"delta": {"text": " now"}, "index": 0},
    ]  # fmt: skip
    assert (
        any(MARK in text for text in passages.joined_texts(clean["events"]))
        and entries[1]["data"]["delta"]["text"] == TOKEN[:4]
    )


@pytest.mark.parametrize("seed", range(30))
def test_a_whole_that_changed_is_cut_as_it_was(seed):
    rng = random.Random(seed)
    texts = ["".join(rng.choices("abc", k=rng.randint(0, 5))) for _ in range(rng.randint(1, 8))]
    whole = "".join(texts)
    start = rng.randint(0, len(whole))
    end = rng.randint(start, len(whole))
    clean = whole[:start] + "MASK" * (end > start) + whole[end:]
    again = recut_masked(texts, clean)
    assert "".join(again) == clean and len(again) == len(texts)
    assert clean != whole or again == texts


def test_a_picture_loses_its_comments_and_stays_a_picture(mask):
    picture = png((b"IHDR", bytes(13)), (b"tEXt", b"Comment\0" + TOKEN.encode()), (b"IEND", b""))
    clean, _ = mask.scrub(base64.b64encode(picture).decode())
    assert (
        base64.b64decode(clean)
        == masking.without_texts(picture)
        == png((b"IHDR", bytes(13)), (b"IEND", b""))
    )


def test_bytes_keep_their_length(mask):
    data = b"\0\1\2 " + TOKEN.encode() + b"\0\0end of it"
    clean, _ = mask.scrub(base64.b64encode(data).decode())
    assert len(base64.b64decode(clean)) == len(data) and b"redacted-github" in base64.b64decode(
        clean
    )


def test_a_stream_is_masked_across_pieces_that_are_written_once_and_said_twice():
    mask = Masking(Secrets(), {"hush-00-47xy": MARK})

    def entry(text, **more):
        return {"data": {"delta": {"text": text}}, **more}

    ping = {"data": {"type": "ping"}, "times": 3}
    clean, changed = mask.scrub_structure({
        "events": [ping, entry("hush-"), entry("0", times=2), entry("-47xy!"), ping]
    })  # fmt: skip
    assert changed and clean["events"] == [
        ping,
        entry(MARK),
        entry(""),
        entry(""),
        entry("!"),
        ping,
    ]
    assert clean["events"][0] is ping  # what holds nothing is as it was
