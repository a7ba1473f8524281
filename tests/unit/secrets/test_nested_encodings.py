"""What stands in a text in another spelling is read, and put back as it was spelled."""

import base64
import gzip
import random
import zlib

import pytest

from tape_jupyter.secrets import nested_encodings

SAID = "the note says: tell nobody of this, please"
WRAPS = {
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 without padding": lambda s: base64.b64encode(s.encode()).decode().rstrip("="),
    "base64url": lambda s: base64.urlsafe_b64encode(b"\xff\xfe?" + s.encode()).decode(),
    "in lines": lambda s: base64.encodebytes(b" " * 90 + s.encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
    "hex with blanks": lambda s: s.encode().hex(" "),
    "HEX with colons": lambda s: s.encode().hex(":").upper(),
    "a hex dump": lambda s: "\n".join(
        s.encode()[at : at + 16].hex(" ") for at in range(0, len(s), 16)
    ),
    "base32": lambda s: base64.b32encode(s.encode()).decode(),
    "base32 in small letters": lambda s: base64.b32encode(s.encode()).decode().lower().rstrip("="),
    "Ascii85": lambda s: base64.a85encode(s.encode(), adobe=True).decode(),
    "gzip": lambda s: base64.b64encode(gzip.compress(s.encode())).decode(),
    "zlib": lambda s: base64.b64encode(zlib.compress(s.encode())).decode(),
    "utf-16": lambda s: base64.b64encode(s.encode("utf-16-le")).decode(),
}


@pytest.mark.parametrize("name", WRAPS)
def test_a_stretch_is_read_and_spelled_again(name):
    text = f"before {WRAPS[name](SAID)} after"
    runs = [run for run in nested_encodings.encoded_runs(text) if SAID in run.text]
    assert runs
    run = runs[0]
    other = (
        text[: run.start] + run.wrap(run.text.replace("nobody", "everybody else")) + text[run.end :]
    )
    assert other.startswith("before ") and other.endswith(" after") and other != text
    assert any(
        "tell everybody else of this" in again.text
        for again in nested_encodings.encoded_runs(other)
    )


@pytest.mark.parametrize("name", ["base64", "hex", "HEX", "in lines"])
def test_what_is_not_changed_is_spelled_as_before(name):
    text = WRAPS[name](SAID)
    run = next(run for run in nested_encodings.encoded_runs(text) if SAID in run.text)
    assert (
        text[: run.start] + run.wrap(run.text) + text[run.end :]
        == text.rstrip("\n") + text[run.end :]
    )


@pytest.mark.parametrize("before", ["/u/1/", "x", "xy", "xyz", "key-", "data:image/png;base64,"])
def test_letters_before_it_do_not_hide_it(before):
    assert any(
        SAID in run.text for run in nested_encodings.encoded_runs(before + WRAPS["base64"](SAID))
    )


def test_pictures_and_numbers_are_not_read():
    rng = random.Random(1)
    for size in (24, 100, 400):
        data = bytes(byte | 0x80 for byte in rng.randbytes(size))
        assert not list(
            nested_encodings.encoded_runs(f"{base64.b64encode(data).decode()[:2000]} {data.hex()}")
        )


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a%62c", "abc"), ("a%2562c", "abc"), (r"a\u0062c", "abc"), (r"a\\u0062c", "abc"), (r"a\x62c", "abc"),
        ("a&#98;c", "abc"), ("a&#x62;c", "abc"), ("a&amp;c", "a&c"), (r"say \"hi\"\n", 'say "hi"\n'), ("100 % of it", None),
        ("plain", None),
    ],
)  # fmt: skip
def test_escapes_are_taken_off_and_each_letter_knows_where_it_stood(text, plain):
    found = nested_encodings.unescaped(text)
    if plain is None:
        assert found is None
        return
    assert found[0] == plain and len(found[1]) == len(plain) + 1
    assert text[found[1][0]] == text[0] and found[1][-1] == len(text)


def test_a_bomb_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(nested_encodings, "CAP", 2**20)
    assert len(nested_encodings.unpacked(zlib.compress(bytes(2**25), 9), 15)) <= 2**21


def test_a_stream_that_breaks_off_is_read_as_far_as_it_goes():
    assert nested_encodings.unpacked(gzip.compress(b"word " * 5000)[:-20], 31).startswith(
        b"word word"
    )
