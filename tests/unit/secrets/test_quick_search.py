"""What the quick search finds is what a slow one does, which takes every text apart whole, layer by layer."""

import base64
import gzip
import html
import json
import os
import random
from urllib.parse import quote

import pytest

from tape_jupyter.secrets import key_patterns, leaks, nested_encodings, passages
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.encoding.values.registry import freeze
from tests.harness.plants import KINDS, MORE, made
from tests.harness.recorder import SSE, Recorder, reply, request

COUNT = int(os.environ.get("TAPE_PROPERTY_COUNT", "60"))
KNOWN = "vault9Qx7-plain/word+5"


def known_secrets():
    secrets = Secrets()
    secrets.learn("VAULT", KNOWN)
    secrets.learn("DOOR", "hunter2")
    return secrets


def find_slowly(text, known, depth=nested_encodings.DEPTH):
    """The values in a text and in all that it wraps: each layer whole, with no shortcut; of those that
    are known their names, since they may be found in several spellings.
    """
    found = {each.value for each in key_patterns.find_keys(text)}
    for start, end, kind in leaks._find_known_values(text, known):
        found.add(kind if kind.startswith("known") else text[start:end])
    if depth:
        runs = nested_encodings.encoded_runs(text)
        inner = {nested_encodings.legible_parts(run.text) for run in runs}
        inner |= {nested_encodings.without_escapes(text), nested_encodings.uncoloured(text)} - {
            None
        }
        for each in inner:
            found |= find_slowly(each, known, depth - 1)
    return found


def plain(value):
    """A value as it is spelled with no encoding around it: two searches may give it in different spellings."""
    for _ in range(4):
        value = nested_encodings.without_escapes(value) or value
    return value


WRAPS = (
    str,
    lambda s: base64.b64encode(s.encode()).decode(),
    lambda s: base64.encodebytes(b"x" * 50 + s.encode() + b"y" * 90).decode(),
    lambda s: base64.urlsafe_b64encode(b"??>" + s.encode()).decode().rstrip("="),
    lambda s: base64.b32encode(s.encode()).decode(),
    lambda s: base64.b32encode(s.encode()).decode().lower().rstrip("="),
    lambda s: s.encode().hex(),
    lambda s: s.encode().hex(" "),
    lambda s: "\n".join(s.encode()[at : at + 16].hex(" ") for at in range(0, len(s), 16)),
    lambda s: base64.a85encode(s.encode(), adobe=True).decode(),
    lambda s: base64.b64encode(gzip.compress(s.encode(), mtime=0)).decode(),
    lambda s: base64.b64encode(s.encode("utf-16-le")).decode(),
    lambda s: json.dumps({"a": s, "b": [s]}),
    lambda s: json.dumps(s).replace("/", "\\/"),
    lambda s: "é漢" + json.dumps("é" + s + "漢"),
    lambda s: "".join(f"\\u{ord(c):04x}" for c in s),
    lambda s: quote(s, safe=""),
    lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    lambda s: html.escape(s),
    lambda s: "".join(f"&#{ord(c)};" for c in s),
    lambda s: "".join(f"\x1b[3{n % 8}m{s[at : at + 5]}\x1b[0m" for n, at in enumerate(range(0, len(s), 5))),
    lambda s: "".join(f"<span class='k'>{s[at : at + 7]}</span>" for at in range(0, len(s), 7)),
    lambda s: f"/usr/lib/{s}",
)  # fmt: skip
FILLERS = (
    "the quick brown fox, said: \"max_tokens\": 400, total_tokens ",
    "\n\t\\n \\\"id\\\": \\\"msg_01abcdefABCDEF\\\", ",
    "https://example.com/a/b?q=1%202&x=y&amp;z ",
    "<p>words</p> 12:30:11 2024-01-28 ",
    "0.12345, -0.0456, 1e-05 ",
    "password: api_key= secret token Bearer ",
)  # fmt: skip


def spoil(rng, text):
    """The text wrapped once to three times, among words."""
    for _ in range(rng.randint(1, 3)):
        before, after = rng.choices(FILLERS, k=2)
        text = rng.choice(WRAPS)(rng.choice(("", before)) + text + rng.choice(("", " " + after)))
    noise = base64.b64encode(rng.randbytes(rng.choice((30, 300, 5000)))).decode()
    parts = [*rng.choices(FILLERS, k=rng.randint(0, 60)), text, rng.choice((" ", "\n", "")), noise]
    if rng.random() < 0.5:
        parts.reverse()
    return "".join(parts)


def secret(rng):
    if rng.random() < 0.2:
        return rng.choice(
            (KNOWN, f"say hunter2 {KNOWN}", f'{{"access_token": "{rng.randbytes(9).hex()}"}}')
        )
    return made(rng.choice(sorted({**KINDS, **MORE})), rng)[0]


@pytest.mark.parametrize("seed", range(COUNT))
def test_what_a_slow_search_finds_is_found(seed):
    rng, known = random.Random(seed), known_secrets()
    for _ in range(10):
        text = spoil(rng, secret(rng))
        hits = list(leaks.hunt({"a.txt": text.encode("utf-8", "surrogatepass")}, known))
        found = {plain(hit.value) for hit in hits} | {hit.kind for hit in hits}
        found |= {"known VAULT"} if any(KNOWN in each for each in found) else set()
        missed = {
            value for value in map(plain, find_slowly(text, known))
            if not any(value in each for each in found)
        }  # fmt: skip
        assert not missed, text


@pytest.mark.parametrize("size", [*range(0, 60, 7), *range(4000, 4006)])
@pytest.mark.parametrize("before", ["", "x", "xy", "xyz"])
def test_twelve_legible_bytes_are_read_at_every_place_of_base64(size, before):
    rng = random.Random(size)
    high = bytes(byte | 0x80 for byte in rng.randbytes(size))
    letters = base64.b64encode(high + b"twelve bytes" + high + bytes(9)).decode()
    runs = nested_encodings.encoded_runs(f"{before}{letters} and a word", whole=False)
    assert any("twelve bytes" in run.text for run in runs)


SAID = [{"role": "user", "content": "which region?\n" * 9}] * 2
CALLS = {
    "body": lambda text: (request({"messages": [{"role": "user", "content": text}]}), reply()),
    "history": lambda text: (request({"messages": [*SAID, {"role": "user", "content": text}]}), reply()),
    "lines": lambda text: (request({"cell": text.splitlines(keepends=True)}), reply()),
    "reply": lambda text: (request({"q": 1}), reply(text)),
    "pieces": lambda text: (request({"q": 2}), Reply(200, SSE, tuple(in_pieces(text)), (0.1,))),
    "tool": lambda text: (FunctionCall("look_up", {"note": text}), Value(freeze([text]))),
    "header": lambda text: (request({"q": 3}), Reply(200, (("x-trace", ascii(text)),), (b"{}",), (0.1,))),
}  # fmt: skip


def in_pieces(text):
    for number, at in enumerate(range(0, len(text), 40)):
        event = {"type": f"delta_{number % 2}", "delta": {"text": text[at : at + 40]}}
        yield f"data: {json.dumps(event)}\n\n".encode()


@pytest.mark.parametrize("seed", range(COUNT // 4))
def test_what_reading_each_record_of_a_cassette_finds_its_lines_do_not_hide(seed, tmp_path):
    rng = random.Random(seed)
    text = spoil(rng, secret(rng)) if rng.random() < 0.6 else rng.choice(WRAPS)(secret(rng))
    text = text.encode("utf-8", "replace").decode()
    path = tmp_path / "main.tape.yaml"
    recorder = Recorder(path, secrets=Secrets())
    for name in rng.sample(sorted(CALLS), 3):
        recorder.add(*CALLS[name]("harmless words of a note\n" * 3))
        recorder.add(*CALLS[name](text))
    recorder.end()
    data, known = path.read_bytes(), known_secrets()
    read = passages.file_passages("main.tape.yaml", data)
    told = {f"{number}.txt": passage.text.encode() for number, passage in enumerate(read)}
    found = {hit.value for hit in leaks.hunt({"main.tape.yaml": data}, known)}
    assert {hit.value for hit in leaks.hunt(told, known)} <= found


@pytest.mark.parametrize("behind", ["a", "ab", "abc", "abcd", "abcde"])
def test_a_word_behind_a_picture_in_base64_stops_no_search(behind):
    picture = "iVBORw0KGgo" + "A" * 25
    assert leaks.scan({"a.txt": f"{picture} word{behind}".encode()}, Secrets()) == []
