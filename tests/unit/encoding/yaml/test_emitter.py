"""The cassette text as a person sees it: what a record looks like, and that it comes back."""

import json
import re

import pytest
import yaml

from tape_jupyter.errors import CassetteError
from tape_jupyter.encoding.yaml.emitter import emit, head, keys, parse_record, top
from tests.harness.timing import ratio

CALL = {
    "call": "78a670b1",
    "run": "r-5f2c",
    "span": "summarise/ask",
    "at": "2026-11-21T20:41:07.512Z",
    "request": {
        "post": "https://api.anthropic.com/v1/messages",
        "sha256": "78a670b1ec53dd23c743c6639b3a9b496e5b8226d51054cb5c515efaff9b818e",
        "json": "compact",
        "body": {
            "model": "claude-sonnet-5",
            "max_tokens": 200,
            "stream": True,
            "system": "You are a careful analyst.\nAnswer in at most two sentences.",
            "messages": [
                {"<from>": "78a670b1 messages[0:17]"},
                {
                    "role": "user",
                    "content": "Which region lost most customers?\n\n| North  | 0.31  |",
                },
            ],
            "tools": [],
            "metadata": {},
        },
    },
    "response": {
        "status": 200,
        "headers": [["content-type", "text/event-stream"], ["set-cookie", "a=1"]],
        "reads": [582, 150],
        "waits": [0.412, 1.204],
        "events": [
            {
                "event": "content_block_delta",
                "data": {"index": 0, "delta": {"text": ""}},
                "cuts": [10, 15, 23],
            },
            {"event": "message_stop", "data": None},
        ],
    },
}
TEXT = """\
---
call: "78a670b1"
run: r-5f2c
span: summarise/ask
at: "2026-11-21T20:41:07.512Z"
request:
  post: "https://api.anthropic.com/v1/messages"
  sha256: "78a670b1ec53dd23c743c6639b3a9b496e5b8226d51054cb5c515efaff9b818e"
  json: compact
  body:
    model: claude-sonnet-5
    max_tokens: 200
    stream: true
    system: |-
      You are a careful analyst.
      Answer in at most two sentences.
    messages:
      - "<from>": "78a670b1 messages[0:17]"
      - role: user
        content: |-
          Which region lost most customers?

          | North  | 0.31  |
    tools: []
    metadata: {}
response:
  status: 200
  headers:
    - - content-type
      - text/event-stream
    - - set-cookie
      - "a=1"
  reads: [582, 150]
  waits: [0.412, 1.204]
  events:
    - event: content_block_delta
      data:
        index: 0
        delta:
          text: ""
      cuts: [10, 15, 23]
    - event: message_stop
      data: null
...
"""


def short(value):
    return ascii(value)[:30]


def written(value):
    """How a value is written behind its key, as lines; checked to come back, and to be the same YAML."""
    text = emit({"a": value})
    assert repr(parse_record(text)) == repr({"a": value})
    if not re.search(r"\\ud[89a-f]", text):
        assert repr(yaml.safe_load(text)) == repr({"a": value})
    return text.removeprefix("---\na:").removesuffix("\n...\n").removeprefix(" ")


def test_a_call_looks_like_the_format_says_and_comes_back():
    assert emit(CALL) == TEXT
    assert repr(parse_record(TEXT)) == repr(CALL)
    assert yaml.safe_load(TEXT) == CALL


def test_one_part_can_be_read_without_the_others():
    assert keys(TEXT) == ["call", "run", "span", "at", "request", "response"]
    assert top(TEXT, "response") == CALL["response"]
    assert top(TEXT, "request") == CALL["request"]
    assert top(TEXT, "call") == "78a670b1"
    assert top(TEXT, "usage") is None
    assert head(TEXT, "request") == {k: CALL[k] for k in ("call", "run", "span", "at")}
    assert head(TEXT, "usage") == CALL
    assert head(TEXT, "call") == {}


def test_a_last_part_is_read_with_what_follows_it():
    assert top(TEXT, "response", last=True) == CALL["response"]
    assert top(TEXT.replace("...\n", "more: 1\n...\n"), "response", last=True) == CALL["response"]
    for flaw in ("response: 1\n", "more: &x 1\n", "lost its indentation\n"):
        with pytest.raises(CassetteError) as caught:
            top(TEXT.replace("...\n", flaw + "...\n"), "response", last=True)
        assert caught.value.line == TEXT.count("\n")


def test_a_flaw_elsewhere_does_not_keep_a_part_from_being_read():
    assert (
        top(TEXT.replace("max_tokens: 200", "max_tokens: &x 200"), "response") == CALL["response"]
    )


def test_a_flaw_in_a_part_names_the_line_in_the_file():
    broken = TEXT.replace("status: 200", "status: 200 OK")
    line = broken[: broken.index("status")].count("\n") + 1
    for read in (
        lambda: parse_record(broken, first_line=101),
        lambda: top(broken, "response", first_line=101),
    ):
        with pytest.raises(CassetteError, match="in double quotes") as caught:
            read()
        assert caught.value.line == 100 + line


def test_a_part_that_stands_twice_is_not_read():
    with pytest.raises(CassetteError, match="a second time"):
        top(TEXT.replace("...\n", "response: 1\n...\n"), "response")


@pytest.mark.parametrize(
    "word",
    ["user", "claude-sonnet-5", "text/event-stream", "You are (very) kind", "_x", "f2fe2850"],
)
def test_a_simple_text_stands_bare(word):
    assert written(word) == word


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "no",
        "Yes",
        "NULL",
        "~",
        "on",
        "n",
        "true",
        "nan",
        "Infinity",
        "1",
        "-1.5",
        "1e5",
        "1:20",
        "2001-01-01",
    ]
    + [
        "0o7",
        "0x1f",
        "1_000",
        ".5",
        ".inf",
        "<<",
        "=",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
    ]
    + [
        "[a]",
        "{a}",
        "'a'",
        "a\n",
        "\n",
        "a\tb",
        "?",
        "-",
        "---",
        "...",
        "a ",
        " a",
        "naïve",
        "日本",
        "<<<<<<< HEAD",
    ],
)
def test_a_text_another_tool_could_mistake_is_quoted(text):
    assert written(text) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nb", "|-\n  a\n  b"),
        ("a\nb\n", "|\n  a\n  b"),
        ("a\nb\n\n\n", "|+\n  a\n  b\n\n"),
        ("a\n\n\n\n b\n", "|\n  a\n\n\n\n   b"),
        ("- a: |\n#b\n---\n...\n<<<<<<< x", "|-\n  - a: |\n  #b\n  ---\n  ...\n  <<<<<<< x"),
        ("if x:\n\treturn  \n   \nend", "|-\n  if x:\n  \treturn  \n     \n  end"),
        ("a" * 101, "|-\n  " + "a" * 101),
        ("日本\n😀\xa0", "|-\n  日本\n  😀\xa0"),
    ],
    ids=short,
)
def test_a_text_of_several_lines_or_a_long_one_is_a_literal(text, lines):
    assert written(text) == lines


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a\r\nb", r'"a\r\nb"'),
        ("\n a\nb", r'"\n a\nb"'),
        (" a\nb", r'" a\nb"'),
        ("\ta\nb", r'"\ta\nb"'),
        ("\n\n\n", r'"\n\n\n"'),
        (
            "a\n\x00\x1b\x7f\x85\u2028\u2029\ufeff\uffff",
            r'"a\n\u0000\u001b\u007f\u0085\u2028\u2029\ufeff\uffff"',
        ),
        ("a\\b\n\x07", r'"a\\b\n\u0007"'),
        ("\ud800", r'"\ud800"'),
        ("a\nb\udfff", r'"a\nb\udfff"'),
        ("😀", '"😀"'),
    ],
)
def test_what_a_literal_cannot_carry_is_quoted(text, quoted):
    assert written(text) == quoted


def test_two_halves_of_a_character_stay_two_and_one_character_stays_one():
    halves = "\ud83d" + "\ude00"
    assert written(halves) == r'"\ud83d\U0000de00"'
    assert written("C:\\U0000de00 " + halves + "\\" + halves)
    assert parse_record('---\na: "\\ud83d\\ude00"\n...\n') == {"a": "😀"}


@pytest.mark.parametrize(
    "key", ["", "no", "1", "<<", "a: b", "<from>", "\ud800", "a\nb", "日本", "x" * 998], ids=short
)
def test_any_key_comes_back(key):
    text = emit({key: {key: 1}, "z": [{key: [2]}]})
    assert parse_record(text) == {key: {key: 1}, "z": [{key: [2]}]}
    assert keys(text) == [key, "z"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-1, "-1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e16, "1.0e+16"),
        (1.5e-07, "1.5e-07"),
        (5e-324, "5.0e-324"),
    ]
    + [
        (10**400 - 1, "9" * 400),
        (True, "true"),
        (None, "null"),
        ([1, 2.0, -3e22], "[1, 2.0, -3.0e+22]"),
        ([], "[]"),
    ],
    ids=short,
)
def test_a_number_keeps_its_type(number, text):
    assert written(number) == text


def test_lists_in_lists_and_maps_in_lists_stand_without_empty_lines():
    assert written([[1, 2], [[], ["a"]], [{"b": [True]}], {}]) == (
        "\n  - [1, 2]\n  - - []\n    - - a\n  - - b:\n        - true\n  - {}"
    )


def test_the_same_number_of_levels_can_be_written_and_read():
    def nested(levels):
        value = "a"
        for level in range(levels - 1):
            value = [value] if level % 3 else {"k": value}
        return {"k": value}

    assert parse_record(emit(nested(64))) == nested(64)
    with pytest.raises(CassetteError, match="64 levels"):
        emit(nested(65))
    for inner in ("a:", "- a:", "- - a:"):
        lines = [f"{'  ' * level}a:" for level in range(63)] + ["  " * 63 + inner + " 1"]
        text = "\n".join(["---", *lines, "...\n"])
        if inner == "a:":
            assert emit(parse_record(text)) == text
        else:
            with pytest.raises(CassetteError, match="64 levels"):
                parse_record(text)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        [1, -float("inf")],
        [1, float("nan")],
        [10**400],
        [-(10**400)],
        [10**5000],
        (1,),
        b"a",
    ]
    + [{1: 2}, {"k" * 1001: 1}, {"\x00" * 200: 1}, {None: 1}, {1, 2}, object(), [[[object()]]]],
)
def test_what_the_text_cannot_carry_is_refused_before_it_is_written(value):
    with pytest.raises(CassetteError) as caught:
        emit({"a": value})
    assert "cannot be written" in caught.value.reason


def test_a_list_that_holds_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(CassetteError, match="64 levels"):
        emit({"a": loop})


def test_a_record_without_keys_comes_back():
    assert parse_record(emit({})) == {}


def test_a_long_text_costs_little_to_write_and_to_read():
    prose = "The quick brown fox jumps over the lazy dog: 31 % of them.\n\n  - and so on\n" * 260
    record = {**CALL, "response": {"body": {"content": [{"type": "text", "text": prose}]}}}
    text = emit(record)
    ours, theirs = (
        lambda: (top(text, "response"), parse_record(emit(record))),
        lambda: json.loads(json.dumps(record)),
    )
    assert ratio(ours, theirs, rounds=20) < 25  # measured: 4.2
