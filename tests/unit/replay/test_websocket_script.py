"""A recorded dialogue as it is played: order, matching, what is missing."""

import pytest

from tape_jupyter.core.websocket import WebSocketFrame
from tape_jupyter.cassette.match_key import IgnorePath
from tape_jupyter.replay.websocket_script import PATIENCE, Script, message_kind, message_key
from tape_jupyter.secrets.registry import Secrets


class Refused(Exception):
    pass


def got(text):
    return WebSocketFrame("got", "text", text.encode())


def sent(text):
    return WebSocketFrame("sent", "text", text.encode())


def close(by, code=1000):
    return WebSocketFrame(by, "close", b"", code)


def script(*frames, waits=(), **options):
    refuse = lambda now, recorded, place: Refused(
        now.data.decode(), recorded and recorded.data.decode(), place
    )
    return Script(
        list(frames), list(waits), lambda frame: message_key(frame, Secrets()), refuse, **options
    )


def due(script):
    """All that is due now."""
    return [
        each.frame.data.decode() or each.frame.kind for each in iter(script.take_due_frame, None)
    ]


def test_a_frame_is_due_once_all_that_was_said_before_it_is_said():
    played = script(got("hello"), sent("a"), got("A"), sent("b"), sent("c"), got("BC"))
    assert due(played) == ["hello"]
    played.receive_frame(sent("a"))
    assert due(played) == ["A"]
    played.receive_frame(sent("c"))
    assert due(played) == []
    played.receive_frame(sent("b"))
    assert due(played) == ["BC"]


def test_the_same_message_said_twice_counts_twice():
    played = script(sent("x"), got("1"), sent("x"), got("2"))
    played.receive_frame(sent("x"))
    assert due(played) == ["1"]
    played.receive_frame(sent("x"))
    assert due(played) == ["2"]
    with pytest.raises(Refused):
        played.receive_frame(sent("x"))


def test_a_refusal_names_the_recorded_message_of_the_same_kind():
    played = script(sent('{"type":"a","x":1}'), sent('{"type":"b","x":1}'))
    with pytest.raises(Refused) as refused:
        played.receive_frame(sent('{"type":"b","x":2}'))
    assert refused.value.args == ('{"type":"b","x":2}', '{"type":"b","x":1}', 2)
    with pytest.raises(Refused) as refused:
        played.receive_frame(sent('{"type":"c"}'))
    assert refused.value.args[1:] == ('{"type":"a","x":1}', 1)


def test_what_counts_of_a_message_is_its_json_without_what_varies():
    key = lambda text, *ignore: message_key(sent(text), Secrets(), ignore)
    assert key('{"type":"a","event_id":"1","x":1.0}') == key(
        '{"x": 1, "type": "a", "event_id": "2"}'
    )
    assert key('{"type":"a"}') != key('{"type":"b"}')
    assert key('{"a":{"t":1}}', IgnorePath("a.t")) == key('{"a":{"t":2}}', IgnorePath("a.t"))
    assert key("[1]") != key("1") != key('"1"')
    assert message_key(WebSocketFrame("sent", "binary", b"\xff"), Secrets()) == b"\xff"


def test_fragments_do_not_count():
    played = script(WebSocketFrame("sent", "text", b"ab", parts=(1, 1)), got("x"))
    played.receive_frame(sent("ab"))
    assert due(played) == ["x"]


def test_further_pieces_of_audio_are_let_go_once_all_recorded_ones_were_sent():
    piece = '{"type":"input_audio_buffer.append","audio":"%s"}'
    played = script(sent(piece % "AA"), sent(piece % "BB"), got("x"))
    played.receive_frame(sent(piece % "AA"))
    with pytest.raises(Refused):
        played.receive_frame(sent(piece % "CC"))
    played.receive_frame(sent(piece % "BB"))
    played.receive_frame(sent(piece % "CC"))
    with pytest.raises(Refused):
        played.receive_frame(sent('{"type":"response.create"}'))


def test_the_servers_close_that_answered_the_programs_waits_for_it():
    played = script(got("x"), close("sent", 4000), close("got", 4000))
    assert due(played) == ["x"]
    played.receive_frame(close("sent", 1000))
    assert [each.frame.code for each in iter(played.take_due_frame, None)] == [4000]


def test_a_program_that_closes_early_gets_the_close_alone():
    played = script(got("x"), sent("a"), got("y"), close("sent", 4000), close("got", 4001))
    played.receive_frame(close("sent", 1000))
    assert [each.frame.code for each in iter(played.take_due_frame, None)] == [4001]
    unfinished = script(sent("a"), got("y"))
    unfinished.receive_frame(close("sent", 1001))
    assert [each.frame.code for each in iter(unfinished.take_due_frame, None)] == [1001]


def test_a_lost_connection_is_lost_where_it_was():
    played = script(sent("a"), got("y"), lost=True)
    assert due(played) == []
    played.receive_frame(sent("a"))
    assert due(played) == ["y", "lost"]


def test_each_frame_has_its_wait_and_the_last_is_marked():
    played = script(got("x"), got("y"), close("sent"), waits=[0.5, 1.5, 9.0])
    assert [(each.seconds, each.last) for each in iter(played.take_due_frame, None)] == [
        (0.5, False),
        (1.5, True),
    ]


def test_what_a_program_that_waits_has_not_said_is_told():
    played = script(got("x"), sent("a"), sent("b"), got("y"))
    due(played)
    missing = played.missing()
    assert (missing.frame.data, missing.place, missing.count) == (b"a", 1, 2)
    played.receive_frame(sent("a"))
    assert (played.missing().frame.data, played.missing().count) == (b"b", 1)
    played.receive_frame(sent("b"))
    due(played)
    assert played.missing().frame is None


def test_a_program_may_take_longer_where_the_recorded_one_did():
    played = script(got("x"), sent("a"), got("y"), waits=[1.0, 31.0, 32.0])
    due(played)
    assert played.patience() == PATIENCE + 60
    assert script().patience() == PATIENCE


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"type":"a"}', "a"),
        ('{"setup":{}}', "setup"),
        ("{}", ""),
        ("x", ""),
        ('{"type":1}', "type"),
    ],
)
def test_the_kind_of_a_message_is_its_type_or_its_first_field(text, kind):
    assert message_kind(sent(text)) == kind
