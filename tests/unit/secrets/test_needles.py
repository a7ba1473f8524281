"""What the quick passes point at is what the slow ones find, and a search costs a few passes."""

import base64
import random
import re
import time

import pytest

from tape_jupyter.secrets import leaks, nested_encodings, registry, spellings
from tape_jupyter.secrets.needles import Needles, long_runs, table_of
from tape_jupyter.secrets.registry import Secrets

LETTERS = "abAB01 -_é漢"


def random_text(rng, size):
    return "".join(rng.choice(LETTERS) for _ in range(size))


@pytest.mark.parametrize("seed", range(20))
def test_each_place_of_each_needle_is_found(seed):
    rng = random.Random(seed)
    ascii_letters = [letter for letter in LETTERS if letter.isascii()]
    needles = {"".join(rng.choices(ascii_letters, k=rng.randint(2, 6))) for _ in range(40)}
    text = random_text(rng, 5000)
    wanted = {
        (at, needle) for needle in needles for at in range(len(text)) if text.startswith(needle, at)
    }
    assert set(Needles(needles).find_places(text)) == wanted


@pytest.mark.parametrize("size", [0, 1, 3, 128 * 1024 - 1, 128 * 1024, 128 * 1024 + 3])
def test_a_needle_at_the_edge_of_a_block_is_found(size):
    text = "x" * size + "sk-ant-" + "x" * size + "Q~"
    found = list(Needles(["sk-ant-", "sk-", "Q~"]).find_places(text))
    assert found == [(size, "sk-"), (size, "sk-ant-"), (2 * size + 7, "Q~")]


def test_long_runs_are_the_maximal_ones():
    rng = random.Random(3)
    data = bytes(rng.choice(b"aaaaaab ") for _ in range(3000))
    wanted = [match.span() for match in re.finditer(rb"a{5,}", data)]
    assert list(long_runs(data, table_of(b"a"), 5)) == wanted


NAMES = ("access_token", "Password", "api_key", "my-api_key", "sessionToken", "max_tokens", "foo")


@pytest.mark.parametrize("seed", range(20))
def test_fields_are_found_as_by_searching_all_of_the_text(seed):
    rng, text = random.Random(seed), ""
    for _ in range(60):
        name, value = rng.choice(NAMES), "x7" * rng.randint(1, 9)
        quote = rng.choice(['"', '\\"', '\\\\\\"'])
        forms = (f"{quote}{name}{quote}: {quote}{value}{quote}", f"{name}={value}", f"&{name}={value}",
                 f"<{name}>{value}</{name}>", f"#{name}={value}", f'"{name}"\r\n\r\n{value}\r\n--', f'"{name}":"say {name}=1"')  # fmt: skip
        text += rng.choice(forms) + rng.choice(["", " ", "\n", ",", "}"])
    starts = registry._find_field_starts(text, registry._find_field_places(text))
    for fields in registry._FIELDS:
        wanted = [match.span() for match in fields.finditer(text)]
        assert [match.span() for match in registry._find_fields(fields, text, starts)] == wanted


@pytest.mark.parametrize("size", [0, 79, 80, 81, 500])
def test_a_field_with_a_long_name_is_masked(size):
    text = f'{{"a": 1, "{"x" * size}_access_token": "abc123"}}'
    assert "abc123" not in Secrets().scrub(text)[0]


def test_known_values_are_found_as_by_searching_all_of_the_text():
    values = {"k9/Zx+qW3 ab&cd": "A", "!!--@@..##": "B", "pässwörd99": "C"}
    finder = spellings.finder(values)
    forms = [
        "k9/Zx+qW3 ab&cd", "k9%2FZx%2BqW3+ab%26cd", "6b392f5a782b715733206162266364", "azkvWngrcVczIGFiJmNk",
        "!!--@@..##", "pässwörd99", "p\\u00e4ssw\\u00f6rd99",
    ]  # fmt: skip
    text = ("nothing here é " * 900).join(["", *forms, ""])
    wanted = [
        (*match.span(), match.lastindex - 1) for match in finder._compiled_pattern.finditer(text)
    ]
    assert len(wanted) == len(forms)
    assert list(finder.find_spans(text)) == wanted
    assert sum(finder.replace(text).count(mark) for mark in "ABC") == len(forms)


@pytest.mark.parametrize("sign", " :.-")
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\\n"])
@pytest.mark.parametrize("width", [2, 3, 8, 11, 16])
def test_separated_hex_is_found_once_in_lines_of_any_width(sign, line_break, width):
    pairs = b"sk-ant-api03-abcdefghijklmno".hex(" ").split(" ")
    lines = [sign.join(pairs[at : at + width]) for at in range(0, len(pairs), width)]
    text = f"2024-01-28 12:30:11 before {line_break.join(lines)} after"
    (run,) = nested_encodings.encoded_runs(text)
    assert run.text == "sk-ant-api03-abcdefghijklmno"


def test_a_key_in_a_picture_in_base64_is_found():
    rng = random.Random(1)
    key = b"sk-ant-api03-" + bytes(rng.choices(b"abcdefgh0123456789XYZ", k=90))
    picture = rng.randbytes(20_000) + b"\0" + key + b"\0" + rng.randbytes(20_000)
    text = f"<img src='data:,{base64.b64encode(picture).decode()}'>".encode()
    assert [leak.kind for leak in leaks.scan({"a.html": text}, Secrets())] == ["anthropic-key"]


FLOOR = re.compile(b"[\0\1]")


def make_words(rng):
    words = ["".join(rng.choices("etaoinshrdlucm", k=rng.randint(2, 9))) for _ in range(5000)]
    return " ".join(rng.choices(words, k=350_000))


def make_numbers(rng):
    return repr([rng.random() for _ in range(100_000)])


def make_rows(rng):
    return "\n".join(f"{n},{rng.random()},name{n},2024-01-28" for n in range(50_000))


@pytest.mark.parametrize("make", [make_words, make_numbers, make_rows])
def test_a_search_costs_a_few_passes_over_the_bytes(make):
    """One pass with a regular expression of two letters is the floor: of the processor's time, in
    this run.
    """
    data, secrets = make(random.Random(5)).encode(), Secrets()
    secrets.learn("KEY", "sk-ant-api03-k3jv9d8fk20dk3jv9d8fk20d")
    leaks.scan({"warm": data[:1000]}, secrets)
    spent, passes = [], []
    for _ in range(3):
        began = time.process_time()
        assert FLOOR.search(data) is None
        passes.append(time.process_time() - began)
        began = time.process_time()
        assert leaks.scan({"data.txt": data}, secrets) == []
        spent.append(time.process_time() - began)
    assert min(spent) <= 20 * min(passes), (spent, passes)
