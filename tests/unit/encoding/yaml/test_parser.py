"""What a broken, hostile or hand-written record gets: the values it plainly says, or a refusal that names the line."""

import pytest

from tape_jupyter.errors import CassetteError
from tape_jupyter.encoding.yaml.emitter import emit, head, keys, parse_record, top
from tests.harness.timing import at_once, passes


def refusal(body, *, whole=False):
    with pytest.raises(CassetteError) as caught:
        parse_record(body if whole else f"---\nz: 1\n{body}\n...\n")
    return caught.value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("a:\n\tb: 1", "a tab: indent with spaces"),
        ("a:\n  - b\n\t- c", "a tab"),
        ("a: &x b", "anchors are not part of a tape"),
        ("a: *x", "anchors are not part of a tape"),
        ("a:\n  - &x [1]", "anchors are not part of a tape"),
        ("a: !!python/object:os.system x", "tags are not part of a tape"),
        ("a:\n  - !x y", "tags are not part of a tape"),
        ("a:\n  <<: b", "merge keys are not part of a tape"),
        ("a: 1\nb: 2\na: 3", "the key 'a' a second time"),
        ("a:\n  - b: 1\n    b: 1", "the key 'b' a second time"),
        ('a: 1\n"a": 2', "the key 'a' a second time"),
        ("a: NaN", "NaN"),
        ("a: -Infinity", "NaN and infinity are not part of a tape"),
        ("a: .nan", "NaN and infinity are not part of a tape"),
        ("a: [1, NaN]", "plain numbers only"),
        ("a: 1e400", "infinite or has over 400 digits"),
        ("a: [1e400]", "infinite or has over 400 digits"),
        ("a: " + "9" * 401, "over 400 digits"),
        ("a: [" + "9" * 401 + "]", "over 400 digits"),
        ("<<<<<<< HEAD", "a merge-conflict marker"),
        ("a: |-\n  b\n=======\nc: 1", "a merge-conflict marker"),
        (">>>>>>> branch", "a merge-conflict marker"),
        ("||||||| base", "a merge-conflict marker"),
        ("a: {b: 1}", "a map in braces"),
        ("a: [b]", "plain numbers only"),
        ("a: [[1]]", "plain numbers only"),
        ("a: [true]", "plain numbers only"),
        ("a: ['1']", "plain numbers only"),
        ("a: [01]", "plain numbers only"),
        ("# hello", "comments are not part of a tape"),
        ("a: 1 # hello", "comments are not part of a tape"),
        ("a: b # hello", "comments are not part of a tape"),
        ("a:\n  # hello\n  b: 1", "comments are not part of a tape"),
        ("a: 'b'", "single quotes"),
        ("a: >-\n  b", "a text block begins with"),
        ("a: |2-\n   b", "a text block begins with"),
        ("? a\n: b", "write `key: value`"),
        ("a:", "`a:` has no value"),
        ("a:\nb: 1", "`a:` has no value"),
        ("a:\n   b: 1", "exactly 2 spaces"),
        ("a:\n- b", "exactly 2 spaces"),
        ("a: 1\n  b: 2", "indented by 2 spaces where 0 belong"),
        ("a:\n  b:\n    c: 1\n     d: 2", "indented by 5 spaces where 4 belong"),
        ("a:\n  - b\n  c: 1", "write `- c: ...`"),
        ("a:\n  b: 1\n  - c", "a list item among keys"),
        ("- a", "a list item among keys"),
        ("a:\n  -", "a list item without a value"),
        ("a:\n  - ", "a list item without a value"),
        ("a:\n  -b", "a dash without a space"),
        ("a:  b", "two spaces where one belongs"),
        ("a: b ", "a space at the end of the line"),
        ("a: 1\n\nb: 2", "an empty line"),
        ("a: |-\n  b\n \nc: 1", "indented by 1 spaces|an empty line"),
        ("a: |-", "exactly 2 spaces"),
        ("a: |-\n   b", "exactly 2 spaces"),
        ("a: |-\n\n  b", "exactly 2 spaces"),
        ("hello", "a text alone on its line"),
        ("a b, c: d", "a key with other characters"),
        ("1: a", "a key with other characters"),
        ("no: a", 'misread the key no: write "no"'),
        ('a: "b', "ends on its line"),
        ('a: "b" c', "ends on its line"),
        ('a: "b\tc"', "a tab in it is"),
        (r'a: "\x41"', "a bad escape"),
        (r'a: "\ud8"', "a bad escape"),
        (r'a: "\U0001f600"', "a bad escape"),
        (r'"\q": 1', "a bad escape"),
        ("a: 12 %", 'in double quotes: "12 %"'),
        ("a: Hello, world", 'in double quotes: "Hello, world"'),
        ("a: nancy's", 'in double quotes: "nancy\'s"'),
        ("a: 1_000", 'in double quotes: "1_000"'),
        ("...\n---\nb: 1", "a record mark inside a record"),
        ("%YAML 1.2", "in double quotes"),
        ("a: b\x00c", r"U\+0000 as it is: write it \\u0000"),
        ("a: |-\n  b\x1bc", r"U\+001B"),
        ("a: b\rc", r"U\+000D"),
        ("a: |-\n  b\u2028c", r"U\+2028"),
        ("a: \x85", r"U\+0085"),
        ("a: \ud800", r"U\+D800"),
    ],
)
def test_a_line_that_is_not_part_of_a_tape_is_refused_with_what_to_do(body, reason):
    assert pytest.raises(CassetteError, parse_record, f"---\n{body}\n...\n").match(reason)


@pytest.mark.parametrize(
    "word", ["no", "Yes", "on", "OFF", "y", "Null", "TRUE", "NaN", "1:20", "2001-01-01", "0o7", "~"]
)
def test_a_word_that_yaml_tools_disagree_on_must_be_quoted(word):
    assert f'"{word}"' in refusal(f"a: {word}").reason
    assert f'"{word}"' in refusal(f"a:\n  - {word}").reason
    assert parse_record(f'---\na: "{word}"\n...\n') == {"a": word}


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("a: !x", 3),
        ("a: |-\n  x\n\n  y\nb: !x", 7),
        ("a: |-\n  x\nb:", 6),
        ("a: |-\n  x\n  \x00", 5),
    ],
)
def test_a_refusal_names_the_line(body, line):
    text = f"---\nz: 1\n{body}\n...\n"
    assert refusal(text, whole=True).line == line
    assert refusal(text.replace("\n", "\r\n"), whole=True).line == line
    assert str(refusal(text, whole=True).at(path="main.tape.yaml", first_line=11)).startswith(
        f"main.tape.yaml:{line + 10}: "
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "restore these lines"),
        ("---\na: 1\n", "restore these lines"),
        ("a: 1\n...\n", "restore these lines"),
        ("---\n...\n", "an empty record"),
        ("\ufeff---\na: 1\n...\n", "without BOM"),
        ("---\n[]\n...\n", "plain numbers only"),
        ("---\nhello\n...\n", "a text alone on its line"),
    ],
)
def test_a_text_that_is_no_record_is_refused(text, reason):
    assert pytest.raises(CassetteError, parse_record, text).match(reason)
    for read in (keys, lambda t: top(t, "a"), lambda t: head(t, "a")):
        if reason.startswith(("restore", "without")):
            assert pytest.raises(CassetteError, read, text).match(reason)


@pytest.mark.parametrize(
    "body",
    [
        "a: " + "[" * 200_000,
        "[" * 200_000,
        "a: " + "{" * 200_000,
        "- " * 100_000 + "a",
        "a:\n  " + "- " * 100_000 + "a",
    ]
    + [
        "a: " + "9" * 1_000_000,
        "a: [" + "9" * 1_000_000 + "]",
        "a: 0." + "9" * 1_000_000,
        "a: -" + "1" * 1_000_000,
    ]
    + [
        "\n".join("  " * i + "a:" for i in range(700)),
        'a: "' + "\\" * 200_001,
        " " * 500_000 + "a",
        "a: &a " * 50_000,
    ],
    ids=lambda body: body[:12],
)
def test_hostile_size_is_refused_at_once(body):
    at_once(lambda: refusal(body), units=5)  # measured: 0.3


def test_a_long_quoted_text_takes_time_in_proportion():
    text = emit({"a": ' \\"\n\x00\ud83d' * 100_000})
    assert len(parse_record(text)["a"]) == 600_000
    assert passes(lambda: parse_record(text), text) < 50  # measured: 4


@pytest.mark.parametrize("text", ["a\nb\n\n", "\r\n\r", "a\r\nb", "\\\r\n"])
def test_line_ends_that_git_changed_give_the_same_bytes(text):
    record = {"a": text, "b": [{"c": text}]}
    assert parse_record(emit(record).replace("\n", "\r\n")) == record
    assert top(emit(record).replace("\n", "\r\n"), "b") == record["b"]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (r'a: "\u0041\/\b\f\uD800"', "A/\b\f\ud800"),
        ("a: 1e5", 1e5),
        ("a: -0", 0),
        ("a: [1,2]", [1, 2]),
        ("a: [ ]", []),
        ("a: |-\n  b\n\n\n", "b"),
        ("a: |\n  b\n\n\n", "b\n"),
        ("a: |+\n  b\n\n", "b\n\n\n"),
        ("a: |-\n  b\n  ", "b"),
        ("a:\n  - - - 1\n      - 2\n    - 3\n  - 4", [[[1, 2], 3], 4]),
        ("a: " + "word " * 50 + "word", "word " * 50 + "word"),
    ],
)
def test_what_a_person_writes_by_hand_is_read_as_yaml_means_it(body, value):
    assert repr(parse_record(f"---\n{body}\n...\n")) == repr({"a": value})


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_record_whose_last_line_end_an_editor_left_out_is_one(end):
    text = "---\na: 1\n...\n".replace("\n", end)
    assert parse_record(text.removesuffix(end)) == parse_record(text) == {"a": 1}
