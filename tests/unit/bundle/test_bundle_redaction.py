"""What is exported masked holds no secret, is the same session, and nothing on the disk was touched."""

import base64
import gzip
import json
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape_jupyter.secrets import environment, leaks
from tape_jupyter.bundle import redaction
from tape_jupyter.core.call import Request
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import BundleError
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.cassette.cell_sources import source_hash
from tests.harness.plants import ENCODINGS, KINDS, Plant, Search, made, opened
from tests.harness.recorder import reply, request
from tests.unit.secrets.test_leaks import NOBODY, cell, notebook, places, taped

COUNT = int(os.environ.get("TAPE_PROPERTY_COUNT", "25"))
TOKEN, _ = made("github", random.Random(1))
MARK = "redacted-github-token-001"


def bytes_of(content):
    return {
        path: data if isinstance(data, bytes) else data.read_bytes()
        for path, data in content.items()
    }


@settings(max_examples=COUNT, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(ENCODINGS)))
def test_nothing_of_any_secret_is_left_at_any_place_in_any_encoding(
    tmp_path_factory, seed, kind, encoding
):
    rng = random.Random(seed)
    text, cores = made(kind, rng)
    told = ENCODINGS[encoding](text.replace("\n", "\\n"))
    content = rng.choice([make for _, make in places(told, rng, tmp_path_factory.mktemp("p"))])()
    clean = redaction.redact(content, NOBODY)
    search = Search([Plant(kind, encoding, "", text, cores)])
    assert any(
        search.found(each) for data in bytes_of(content).values() for each in opened(data)
    ) or "tape" in str(content)
    assert not any(
        search.found(each) for data in bytes_of(clean.content).values() for each in opened(data)
    )
    assert clean.redactions and leaks.scan(clean.content, NOBODY) == []


def session(folder):
    book = notebook(
        cell(
            f'%%tape record\nTOKEN = "{TOKEN}"\nask(TOKEN)',
            {"output_type": "stream", "name": "stdout", "text": [f"{TOKEN}\n"]},
        )
    )
    files = taped(
        folder,
        (request({"token": TOKEN}, f"https://api.example.com/{TOKEN}/me"), reply(f"yes, {TOKEN}")),
        (request({"q": 1}), reply()),
    )
    return {
        "session/n.ipynb": book,
        **files,
        "session/data/a.csv": f"id,token\n1,{TOKEN}\n".encode(),
        "session/b.csv": b"1,2\n",
    }


def test_the_same_value_has_the_same_mark_everywhere_so_that_the_session_still_replays(tmp_path):
    content = session(tmp_path / "n.tapes")
    before = bytes_of(content)
    clean = redaction.redact(content, NOBODY)
    assert (
        bytes_of(content) == before and clean.content["session/b.csv"] is content["session/b.csv"]
    )
    assert f'TOKEN = "{MARK}"' in "".join(
        json.loads(clean.content["session/n.ipynb"])["cells"][0]["source"]
    )
    assert clean.content["session/data/a.csv"] == f"id,token\n1,{MARK}\n".encode()
    (tmp_path / "again.tape.yaml").write_bytes(clean.content["session/n.tapes/main.tape.yaml"])
    tape = Cassette.open(tmp_path / "again.tape.yaml", check="whole")
    asked = Request(
        "POST",
        f"https://api.example.com/{MARK}/me",
        (("content-type", "application/json"),),
        json.dumps({"token": MARK}, separators=(",", ":")).encode(),
    )
    assert (
        tape.matching(match_key(asked, Secrets()))[0].reply().body
        == f'{{"content":"yes, {MARK}"}}'.encode()
    )
    assert {leak.kind for leak in clean.redactions} == {"github-token"} and not clean.left_out


def test_a_cassette_without_its_last_line_end_is_masked_alike(tmp_path):
    content, name = session(tmp_path / "n.tapes"), "session/n.tapes/main.tape.yaml"
    whole = redaction.redact(content, NOBODY).content[name]
    data = bytes_of(content)[name]
    cut = redaction.redact({**content, name: data.removesuffix(b"\n")}, NOBODY).content[name]
    assert cut.removesuffix(b"\n") == whole.removesuffix(b"\n") != data.removesuffix(b"\n")
    call = data.rindex(b"---\nend:")
    cut = redaction.redact({**content, name: data[: call - 1]}, NOBODY).content[name]
    assert whole.startswith(cut) and MARK.encode() in cut


def test_a_known_name_is_masked_as_the_recorder_masks_it_and_clients_may_spell_the_mark(tmp_path):
    value = "Zq7rTq1v9WcX2bLk"
    secrets = environment.environment_secrets(tmp_path, {"ACME_TOKEN": value}, tmp_path)
    recorded = Request("POST", f"https://api.example.com/{value}/me", (), b"{}")
    asked = Request("POST", "https://api.example.com/%3Csecret:ACME_TOKEN%3E/me", (), b"{}")
    assert match_key(recorded, secrets) == match_key(asked, Secrets())
    clean = redaction.redact({"session/a.txt": f"{value} {value.encode().hex()}".encode()}, secrets)
    assert (
        clean.content["session/a.txt"]
        == b"<secret:ACME_TOKEN> " + b"<secret:ACME_TOKEN>".hex().encode()
    )


def test_two_values_have_two_marks_and_one_spelled_in_two_ways_has_one(tmp_path):
    other, _ = made("github", random.Random(2))
    text = f"{TOKEN} {other} {ENCODINGS['json'](TOKEN)} {ENCODINGS['url'](other)}".encode()
    clean = redaction.redact({"session/a.txt": text}, NOBODY).content["session/a.txt"]
    assert clean == f"{MARK} redacted-github-token-002 {MARK} redacted-github-token-002".encode()


def test_the_cells_of_a_recording_keep_their_cell(tmp_path):
    folder = tmp_path / "n.tapes"
    content = session(folder)
    path = folder / "main.tape.yaml"
    path.write_text(
        path.read_text().replace(
            "source: x",
            f'source: "{source_hash(f"TOKEN = {chr(34)}{TOKEN}{chr(34)}{chr(10)}ask(TOKEN)")}"',
        )
    )
    clean = redaction.redact(content, NOBODY)
    assert (
        source_hash(f'TOKEN = "{MARK}"\nask(TOKEN)').encode()
        in clean.content["session/n.tapes/main.tape.yaml"]
    )


def test_what_is_no_text_is_left_out(tmp_path):
    content = {
        "session/a.bin": b"\0\xff" + TOKEN.encode(),
        "session/a.csv.gz": gzip.compress(f"1,{TOKEN}".encode()),
        "session/ok.bin": b"\0\xff",
    }
    clean = redaction.redact(content, NOBODY)
    assert clean.left_out == (
        ("session/a.bin", redaction.BINARY),
        ("session/a.csv.gz", redaction.BINARY),
    )
    assert set(clean.content) == {"session/ok.bin"}


def test_a_files_own_name_is_not_masked_but_refused():
    with pytest.raises(BundleError, match="rename it") as caught:
        redaction.redact({f"session/{TOKEN}.csv": b"1"}, NOBODY)
    assert TOKEN not in str(caught.value)


def test_what_holds_nothing_is_given_as_it_came():
    content = {"session/a.csv": b"1,2"}
    clean = redaction.redact(content, NOBODY)
    assert clean.content == content and not clean.redactions


def test_a_pattern_that_is_the_very_name_masks_itself_and_stays_a_pattern():
    book = notebook(cell("%tape set redact.who=Ada Roy\n"), cell("ask('Ada Roy')"))
    secrets = Secrets()
    environment.with_patterns(secrets, book)
    clean = redaction.redact({"session/n.ipynb": book}, secrets).content["session/n.ipynb"]
    assert b"Ada" not in clean and environment.notebook_patterns(clean) == [("who", "<secret:who>")]


@pytest.mark.parametrize("length", range(16, 22))
def test_base64_around_a_mark_is_as_long_as_it_was_but_for_whole_groups(length):
    """So a program that puts the mark in base64 gets what the recording has, padded or not."""
    told = f"Authorization: Bearer {'Hq7rTq1v9WcX2bLk4711ZZ'[:length]}Aab7Kd0Pw2Xz"
    plain = redaction.redact({"session/a.txt": told.encode()}, NOBODY).content["session/a.txt"]
    assert plain != told.encode()
    for spell in (base64.b64encode, lambda data: base64.urlsafe_b64encode(data).rstrip(b"=")):
        clean = redaction.redact({"session/a.txt": spell(told.encode())}, NOBODY).content[
            "session/a.txt"
        ]
        assert clean == spell(plain)


def test_a_traceback_stays_the_list_that_it_was_and_source_the_lines(tmp_path):
    error = {
        "output_type": "error",
        "ename": "E",
        "evalue": TOKEN,
        "traceback": ["-" * 9, f"E: {TOKEN}\n at", "end", TOKEN],
    }
    book = notebook(cell(f"a = '{TOKEN}'\n\nb = '{TOKEN}'", error))
    clean = json.loads(
        redaction.redact({"session/n.ipynb": book}, NOBODY).content["session/n.ipynb"]
    )["cells"][0]
    assert clean["outputs"][0]["traceback"] == ["-" * 9, f"E: {MARK}\n at", "end", MARK]
    assert "".join(clean["source"]) == f"a = '{MARK}'\n\nb = '{MARK}'"


def test_what_a_recording_calls_the_value_is_the_same_mark(tmp_path):
    """Sent in a header, a value has a name in the recording from then on; the notebook has its value."""
    content = {
        "session/a.txt": f"{TOKEN} <secret:authorization> %3Csecret%3Aauthorization%3E <secret:other>".encode()
    }
    named = Secrets()
    named.learn("authorization", TOKEN)
    told = redaction.redact(content, NOBODY, None, named.carried()).content["session/a.txt"]
    assert told == f"{MARK} {MARK} {MARK} <secret:other>".encode()
    named.learn("authorization", "another that was not found")  # then the name may mean either
    told = redaction.redact(content, NOBODY, None, named.carried()).content["session/a.txt"]
    assert told.startswith(f"{MARK} <secret:authorization>".encode())


def test_a_field_that_held_a_secret_back_holds_its_mark_back_too():
    """So that what is asked with the mark is what was recorded."""
    ask = [
        Request("POST", "https://api.example.com/", (), json.dumps({"api_key": key}).encode())
        for key in (TOKEN, MARK)
    ]
    assert match_key(ask[0], Secrets()) == match_key(ask[1], Secrets())


@pytest.mark.parametrize("encoding", [each for each in ENCODINGS if each != "gzip"])
def test_where_only_a_beginning_of_it_stands_that_is_masked_too(encoding, tmp_path):
    """The recorder cuts names and titles, people print the first letters of a key."""
    told = ENCODINGS[encoding](TOKEN)
    files = taped(
        tmp_path / "n.tapes", (request({"q": 1}, f"https://api.example.com/v1/{told}/me"), reply())
    )
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    cut = told[: len(told) * 3 // 4]
    path.write_text(
        path.read_text().replace(
            "kind: model", f"kind: host\nname: {json.dumps('api.example.com/v1/' + cut)}"
        )
    )
    book = notebook(
        cell("x", {"output_type": "stream", "name": "stdout", "text": [f"{TOKEN[:20]}...\n"]})
    )
    clean = redaction.redact({"session/n.ipynb": book, **files}, NOBODY).content
    for name, data in bytes_of(clean).items():
        assert told[:12] not in data.decode() and TOKEN[:12] not in data.decode(), name
    assert f"{MARK[:20]}...".encode() in bytes_of(clean)["session/n.ipynb"]


def test_a_word_that_a_secret_begins_with_is_left_alone():
    content = {
        "session/a.txt": f"{TOKEN} ghp_ is what they begin with; ghp_DOC is no beginning".encode()
    }
    clean = redaction.redact(content, NOBODY).content["session/a.txt"]
    assert clean == f"{MARK} ghp_ is what they begin with; ghp_DOC is no beginning".encode()
