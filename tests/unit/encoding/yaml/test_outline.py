"""Reading by outlines is quicker, and says nothing else than reading line by line."""

import pytest

from tape_jupyter.encoding.yaml import outline as yaml_outline
from tape_jupyter.errors import CassetteError
from tape_jupyter.encoding.yaml.outline import Outline, Outlines
from tape_jupyter.encoding.yaml.parser import HEAD, TAIL, Reader
from tape_jupyter.encoding.yaml.emitter import emit, parse_record
from tests.harness.timing import ratio


def reply(number, text, **more):
    return {
        "status": 200,
        "headers": {"request-id": f"req_{number}", "Content-Length": str(1000 + number)},
        "body": {
            "content": [{"type": "text", "text": text}, [1, 2.5], []],
            "stop": None,
            "usage": {"tokens": number},
        },
        "waits": [0.001 * number],
        **more,
    }


def reading(record):
    return Reader(record if isinstance(record, str) else emit(record), 1)


def spans(reader):
    return HEAD, len(reader.text) - TAIL


def outline(record):
    reader = reading(record)
    return Outline.build(reader, *spans(reader))


@pytest.mark.parametrize(
    "text", ["North\nfell 31 %\n", "no\n\n  indented\nlast", "x\n" * 500, "a\nb\n\n\n", "a" * 200]
)
def test_a_part_is_read_by_the_outline_of_one_like_it(text):
    drawn, other = outline(reply(1, "North\nfell")), reply(-22, text)
    reader = reading(other)
    assert repr(drawn.read(reader, *spans(reader))) == repr(other)


@pytest.mark.parametrize(
    "told",
    ["no", "null", "yes it is", "", "1:20", '"', "\\", "\t", "日本", "x" * 80, 7, 0.5, True, None],
)
def test_whatever_stands_on_one_line_may_stand_there(told):
    drawn, other = outline(reply(1, "1\n2", note="word")), reply(2, "3\n4", note=told)
    reader = reading(other)
    assert repr(drawn.read(reader, *spans(reader))) == repr(other)


@pytest.mark.parametrize(
    "change",
    [
        ("status: 200", "status: yes"),
        ("status: 200", "status: 200 "),
        ("status: 200", "status: [1, x]"),
        ("status: 200", "status: |-"),
        ("status: 200", "status: " + "9" * 500),
        ("status: 200", "stadt: 200"),
        ("status: 200", 'status: "a\\qb"'),
        ("status: 200\n", ""),
        ("  request-id", "   request-id"),
        ("        2\n", "       2\n"),
        ("        1\n", "         1\n"),
        ("        1\n", "\n"),
    ],
)
def test_what_is_refused_line_by_line_fits_no_outline(change):
    record = reply(1, "1\n2")
    drawn, text = outline(record), emit(record).replace(*change)
    assert text != emit(record)
    reader = reading(text)
    assert drawn.read(reader, *spans(reader)) is None


def test_a_flaw_is_told_as_if_there_were_no_outlines():
    kept = Outlines()
    for number in range(100):
        reader = reading(reply(number, "1\n2"))
        assert repr(kept.read(reader, *spans(reader))) == repr(reply(number, "1\n2"))
    for flawed in ("status: 200 ", "status: yes", "status: \x00", 'status: "\\q"'):
        text = emit(reply(1, "1\n2")).replace("status: 200", flawed)
        reader = reading(text)
        with pytest.raises(CassetteError) as told:
            kept.read(reader, *spans(reader))
        with pytest.raises(CassetteError) as plain:
            parse_record(text)
        assert (told.value.reason, told.value.line) == (plain.value.reason, plain.value.line)


def test_records_of_many_sorts_are_read_as_they_are_and_few_outlines_are_kept():
    kept = Outlines()
    for number in range(2000):
        record = {f"key{number % 37}": number, "more": ["a\nb"] * (number % 11)}
        reader = reading(record)
        assert repr(kept.read(reader, *spans(reader))) == repr(record)
    assert 1 <= len(kept._kept) <= yaml_outline._KEPT


def test_what_would_take_long_to_draw_is_read_line_by_line():
    kept = Outlines()
    for number in range(100):
        record = {f"{place} {'#' * 900}": number for place in range(30)}
        reader = reading(record)
        assert kept.read(reader, *spans(reader)) == record
    assert kept._kept == ()


def test_what_was_read_shares_nothing_with_what_is_read_next():
    drawn = outline(reply(1, "1\n2", empty={}))
    reader = reading(reply(1, "1\n2", empty={}))
    first, second = (drawn.read(reader, *spans(reader)) for _ in range(2))
    first["waits"].append(9)
    first["empty"]["x"] = 1
    first["body"]["content"].clear()
    assert repr(second) == repr(reply(1, "1\n2", empty={}))


def test_records_that_are_alike_are_read_sooner():
    readers = [
        reading(reply(number, f"Ticket {number}\nNorth fell", note="word")) for number in range(300)
    ]
    kept = Outlines()

    def read_with(read):
        return lambda: [read(reader, *spans(reader)) for reader in readers]

    assert ratio(read_with(kept.read), read_with(Reader.read)) < 0.9
