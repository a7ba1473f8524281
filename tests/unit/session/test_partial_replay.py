"""Partial replay: one boundary goes live and the rest stays on the tape; what ran live goes to a take, the base never."""

import hashlib
import json
import re
import socket
import threading
from contextlib import contextmanager

import httpx
import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette, Overridden
from tape_jupyter.errors import BlockedConnection, CassetteError, TapeUsageError, UnmatchedCall
from tape_jupyter.session.partial_replay import sessions_own
from tape_jupyter.session.cell import CellRequest
from tests.harness.taped_cells import ask
from tests.harness.tool_runs import Witness

RAN = Witness()
RATE = [1]


@pytest.fixture(autouse=True)
def fresh():
    RAN.clear()
    RATE[0] = 1


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nb.tapes" / "main.tape.yaml"


@tape.tool
def lookup(order):
    RAN.append(order)
    return {"order": order, "rate": RATE[0]}


@tape.tool
def send_mail(to, text="hello"):
    RAN.append(f"mail to {to}")
    return {"sent": to}


def program(provider):
    """A model call, a tool, a model call that quotes the tool's result."""
    first = ask(provider, "which order?")
    found = lookup("r_8821")
    return [first, found, ask(provider, f"say {found}")]


@contextmanager
def unchanged(path):
    before = hashlib.sha256(path.read_bytes()).digest()
    yield
    assert hashlib.sha256(path.read_bytes()).digest() == before, "the base was written"


@pytest.fixture
def recorded(provider, path):
    with tape.recording(path):
        result = program(provider)
    RAN.clear()
    provider.requests.clear()
    return result


def take(path, name):
    return tape.open(path).take(name)


# ---------------------------------------------------------------- live


def test_a_live_tool_runs_and_the_model_stays_on_the_tape(provider, path, recorded):
    with unchanged(path), tape.replaying(path, live=["tool:lookup"]) as block:
        assert program(provider) == recorded
    assert RAN == ["r_8821"] and provider.requests == []
    assert (
        block.report.take == "live" and "what ran live is in the take live" in block.report.notes[0]
    )
    (made,) = take(path, "live").overrides
    assert (
        made.by
        and made.reply().value == {"order": "r_8821", "rate": 1}
        and made.recorded.run != made.by
    )


def test_what_ran_live_replays_from_its_take(provider, path, recorded):
    RATE[0] = 2
    with (
        pytest.raises(UnmatchedCall, match='now:      ".*2'),
        tape.replaying(path, live=["tool:lookup"], take="fix"),
    ):
        program(provider)
    with unchanged(path), tape.replaying(path, live=["tool:lookup", "llm"], take="fix") as block:
        live = program(provider)
    assert live[1]["rate"] == 2 and len(provider.requests) == 2
    assert block.report.take == "fix"
    RAN.clear()
    provider.stop()
    with unchanged(take(path, "fix").path), tape.replaying(path, take="fix") as block:
        assert program(provider) == live
    assert RAN == [] and block.report.take == "fix"
    with tape.replaying(path) as block:
        assert program(provider) == recorded
    assert block.report.take == ""


def test_a_recorded_request_is_overridden_and_a_new_one_is_a_new_call(provider, path, recorded):
    with tape.replaying(path, live="llm", take="t"):
        ask(provider, "which order?")
        ask(provider, "something new")
    made = take(path, "t")
    assert [entry.id for entry in made.overrides] == [tape.open(path).calls[0].id]
    own = [
        entry for entry in made.calls if entry.book is made and not isinstance(entry, Overridden)
    ]
    assert [json.loads(entry.request().body)["messages"][-1]["content"] for entry in own] == [
        "something new"
    ]
    run = made.runs[-1]
    assert (
        run["parent"] == made.runs[0]["run"] and run["live"] == ["llm"] and run["mode"] == "replay"
    )
    assert made.ended[run["run"]]["outcome"] == "ok"


def test_running_it_again_into_the_same_take_the_newest_answer_counts(provider, path, recorded):
    for rate in (2, 3):
        RATE[0] = rate
        with tape.replaying(path, live="tools", take="t"):
            ask(provider, "which order?")
            assert lookup("r_8821")["rate"] == rate
            lookup("other")
    with tape.replaying(path, take="t"):
        assert (lookup("r_8821")["rate"], lookup("other")["rate"]) == (3, 3)
    made = take(path, "t")
    assert len(made.overrides) == 3 and len(made.calls) == 4
    assert made.overrides[0].reply().value["rate"] == 2, "the older answer is still in the file"


def test_repeated_calls_keep_their_order_when_they_go_live(provider, path):
    with tape.recording(path):
        recorded = [lookup("a"), lookup("a"), lookup("a")]
    assert recorded[0] == recorded[2]
    with tape.replaying(path, live="call:" + tape.open(path).calls[1].id, take="t"):
        RATE[0] = 9
        assert [lookup("a")["rate"] for _ in range(3)] == [1, 9, 1]
    with tape.replaying(path, take="t"):
        assert [lookup("a")["rate"] for _ in range(3)] == [1, 9, 1]


def test_a_replay_with_nothing_live_makes_no_take(provider, path, recorded):
    with tape.replaying(path, live="tool:never_called") as block:
        assert program(provider) == recorded
    assert tape.open(path).takes() == [] and block.report.take == ""
    assert (
        block.report.notes == ["nothing ran live: no take was made"] and block.report.path == path
    )


def test_each_cell_that_runs_live_gets_a_take_of_its_own(provider, path, recorded):
    for name in ("live", "live-2", "live-3"):
        with tape.replaying(path, live="tools") as block:
            program(provider)
        assert block.report.take == name


def test_a_live_host_is_a_boundary_too(provider, path, recorded):
    with tape.replaying(path, live=f"host:127.0.0.1:{provider.port}", take="t"):
        program(provider)
    assert len(provider.requests) == 2 and RAN == []
    with tape.replaying(path, live="host:127.0.0.1:1", take="t"):
        program(provider)
    assert len(provider.requests) == 2


def test_a_live_cell_is_one_boundary(provider, path, recorded):
    source = tape.open(path).runs[0]["source"]
    with tape.replaying(path, live=f"cell:{source[:8]}", take="t"):
        program(provider)
    assert len(provider.requests) == 2 and RAN == ["r_8821"]


def test_a_word_for_less_beats_one_for_more(provider, path, recorded):
    with tape.recording(path, take="mail"):
        send_mail("ada")
    RAN.clear()
    with tape.replaying(path, take="mail", live="tools", freeze="tool:send_mail"):
        lookup("r_8821")
        send_mail("ada")
    assert RAN == ["r_8821"]


def test_a_live_tool_may_have_frozen_http_inside_and_its_new_calls_are_its_children(provider, path):
    answers = {}

    @tape.tool
    def research(topic):
        RAN.append(topic)
        found = ask(provider, f"about {topic}")
        answers[topic] = lookup(topic) if RATE[0] == 2 else found
        return found

    with tape.recording(path):
        before = research("owls")
    nested = tape.open(path).calls[0]
    assert nested.head()["parent"] == tape.open(path).calls[1].id
    provider.requests.clear()
    RATE[0] = 2
    with tape.replaying(path, live=["tool:research", "tool:lookup"], take="t"):
        assert research("owls") == before
    assert provider.requests == [] and RAN == ["owls", "owls", "owls"]
    own = [
        entry
        for entry in take(path, "t").calls
        if not isinstance(entry, Overridden) and entry.run != nested.run
    ]
    assert [entry.head()["name"] for entry in own] == ["lookup"]
    assert own[0].head()["parent"] == tape.open(path).calls[1].id
    with (
        pytest.raises(UnmatchedCall, match="as well: --live tool:lookup"),
        tape.replaying(path, live="tool:research"),
    ):
        research("owls")


def test_only_the_named_hosts_connections_are_let_through_and_that_is_said(
    provider, path, recorded
):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=server.accept, daemon=True).start()
        with pytest.raises(BlockedConnection, match="--live host:127.0.0.1"), tape.replaying(path):
            socket.create_connection(("127.0.0.1", port)).close()
        with tape.replaying(path, live=f"host:127.0.0.1:{port}") as block:
            socket.create_connection(("127.0.0.1", port)).close()
            program(provider)
        assert f"127.0.0.1:{port} was let through (--live host)" in "\n".join(block.report.notes)
        with pytest.raises(BlockedConnection), tape.replaying(path, live="host:127.0.0.1:1"):
            socket.create_connection(("127.0.0.1", port)).close()
        with pytest.raises(BlockedConnection), tape.replaying(path, live="llm"):
            socket.create_connection(("127.0.0.1", port)).close()


def test_a_live_error_and_a_live_stream_that_breaks_are_kept(provider, path, recorded):
    from tests.harness.provider import Scripted

    with tape.replaying(path, live="llm", take="t"):
        provider.script("/v1/messages", Scripted(429, {"content-type": "application/json"}, [b'{"error": {"mes'], then="end"))  # fmt: skip
        reply = httpx.post(f"{provider.url}/v1/messages", json={"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "which order?"}]})  # fmt: skip
        assert reply.status_code == 429
    with tape.replaying(path, take="t"):
        again = httpx.post(f"{provider.url}/v1/messages", json={"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "which order?"}]})  # fmt: skip
    assert (again.status_code, again.content) == (429, b'{"error": {"mes')


def test_a_live_answer_never_covers_what_a_person_put_there(provider, path, recorded):
    main = tape.open(path)
    call = next(entry for entry in main.calls if entry.head()["kind"] == "tool")
    by_hand = main.override(call, value={"order": "x", "rate": 7}, take="angry")
    before = by_hand.path.read_bytes()
    with tape.replaying(path, take="angry", live="tool:lookup") as block:
        assert lookup("r_8821")["rate"] == 1
    assert block.report.take == "angry-2" and "take of: main > angry" in block.report.notes
    assert by_hand.path.read_bytes() == before
    with tape.replaying(path, take="angry", live="llm") as block:
        assert lookup("r_8821")["rate"] == 7
        ask(provider, "which order?")
    assert block.report.take == "angry", "nothing a person made is in the way"


def test_a_placeholder_for_a_key_is_not_sent(provider, path, recorded, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    import os

    with (
        pytest.raises(BlockedConnection, match="ANTHROPIC_API_KEY is not set"),
        tape.replaying(path, live="llm"),
    ):
        httpx.post(f"{provider.url}/v1/messages", json={"new": 1}, headers={"x-api-key": os.environ["ANTHROPIC_API_KEY"]})  # fmt: skip
    assert provider.requests == [] and tape.open(path).takes() == []


def test_a_take_is_told_of_a_newer_recording_below(provider, path, recorded):
    with tape.replaying(path, live="tool:lookup", take="t"):
        program(provider)
    from tests.harness.tapes import Recorder, answered, asked

    run = tape.open(path).runs[0]
    newer = Recorder(path, "another kernel").run(run["source"], (asked("q"), answered("a")))
    with tape.replaying(path, take="t") as block:
        assert program(provider) == recorded
    assert any(f"main.tape.yaml has a newer one, {newer}" in note for note in block.report.notes)


# ---------------------------------------------------------------- freeze and stub


def test_a_frozen_tool_never_runs_while_recording_and_its_call_is_on_the_tape_marked(
    provider, path
):
    with tape.recording(path):
        send_mail("ada")
        first = ask(provider, "one")
    RAN.clear()
    with tape.recording(path, freeze="tool:send_mail") as block:
        assert send_mail("ada") == {"sent": "ada"}
        second = ask(provider, "one")
    assert RAN == [] and second != first
    assert [row.name for row in block.report.calls][0] == "send_mail"
    cassette = Cassette.open(path, check="whole")
    old, new = [entry for entry in cassette.calls if entry.head()["kind"] == "tool"]
    assert new.head()["frozen"] == f"{old.run}/{old.id}" and "frozen" not in old.head()
    assert cassette.runs[1]["freeze"] == ["tool:send_mail"]
    with tape.replaying(path):
        assert send_mail("ada") == {"sent": "ada"}


def test_a_frozen_call_without_a_recording_is_refused_before_it_runs(provider, path, recorded):
    with pytest.raises(UnmatchedCall, match="tool send_mail is frozen .* It did not run"):  # fmt: skip
        with tape.recording(path, freeze="tool:send_mail"):
            send_mail("eve")
    assert RAN == []
    with pytest.raises(
        UnmatchedCall, match="frozen, recorded once in main.tape.yaml, and now made once more"
    ):
        with tape.recording(path, freeze="tools"):
            lookup("r_8821")
            lookup("r_8821")
    assert RAN == []


def test_a_frozen_tool_is_answered_from_whatever_recording_has_it_the_newest_first(provider, path):
    import secrets

    from tape_jupyter.session import session as deck

    for rate in (1, 2):
        RATE[0] = rate
        deck.get().session = secrets.token_hex(4)  # as another kernel would
        with tape.recording(path):
            lookup("a")
    deck.get().session = secrets.token_hex(4)
    with tape.recording(path):
        ask(provider, "the newest recording never came to the tool")
    RAN.clear()
    with tape.recording(path, freeze="tools"):
        ask(provider, "first the model")
        assert lookup("a")["rate"] == 2
    assert RAN == []


def plain_mail(to):
    RAN.append(f"mail to {to}")


class Post:
    def send(self, to):
        RAN.append(f"mail to {to}")
        return to


def test_a_tool_that_nobody_decorated_is_held_as_well(provider, path):
    with tape.recording(path, stub={"plain_mail": "held", "nobody": 1}) as block:
        assert plain_mail("ada") == "held"
    assert RAN == []
    assert [said for said in block.report.warnings] == [
        "tool:nobody was not stopped: no function of that name was found here. If the cell called one, it ran. "
        "Now: put @tape.tool on it"
    ]
    plain_mail("eve")
    assert RAN == ["mail to eve"]


def test_a_held_tool_that_the_cell_itself_defines_is_refused_before_it_runs(path):
    from tape_jupyter.session.session import CellRequest, TapeSession

    deck = TapeSession()
    for source in ("def send(to):\n    pass\nsend(1)", "if 1:\n    async def send(to): pass"):
        with pytest.raises(TapeUsageError, match="this cell defines send itself"):
            deck.begin(
                CellRequest("record", path=path, source=source, options={"freeze": ["tool:send"]})
            )
    decorated = "@tape.tool\n@other\ndef send(to):\n    pass\nx = 1\ndef sender(): pass"
    deck.end(
        deck.begin(
            CellRequest("record", path=path, source=decorated, options={"freeze": ["tool:send"]})
        ),
        None,
    )


def test_what_goes_wrong_while_a_tool_is_held_does_not_let_it_run(provider, path, monkeypatch):
    with tape.recording(path):
        send_mail("ada")
    RAN.clear()
    monkeypatch.setattr(Cassette, "reply", lambda *_: 1 / 0)
    with (
        pytest.raises(UnmatchedCall, match="division"),
        tape.recording(path, freeze="tool:send_mail"),
    ):
        send_mail("ada")
    assert RAN == []


def test_a_stub_answers_a_tool_that_was_never_recorded(provider, path):
    with tape.recording(path, stub={"tool:send_mail": {"sent": "nobody"}}):
        assert send_mail("ada") == {"sent": "nobody"} and send_mail("eve") == {"sent": "nobody"}
        lookup("a")
    assert RAN == ["a"]
    assert [entry.head().get("frozen") for entry in tape.open(path).calls] == ["stub", "stub", None]
    with tape.replaying(path):
        assert send_mail("eve") == {"sent": "nobody"}


def test_a_frozen_model_costs_nothing_while_the_tools_are_recorded_anew(provider, path, recorded):
    RATE[0] = 1
    with tape.recording(path, freeze="llm"):
        assert program(provider) == recorded
    assert provider.requests == [] and RAN == ["r_8821"]
    provider.stop()
    with tape.replaying(path):
        assert program(provider) == recorded


def test_a_stub_in_a_replay_goes_to_a_take(provider, path, recorded):
    with (
        unchanged(path),
        tape.replaying(path, stub={"lookup": {"order": "r_8821", "rate": 1}}) as block,
    ):
        assert program(provider) == recorded
    assert block.report.take == "live"
    (made,) = take(path, "live").overrides
    assert made.head()["frozen"] == "stub" and RAN == []


def test_freeze_holds_in_new_episodes(provider, path, recorded):
    with (
        pytest.raises(UnmatchedCall, match="frozen"),
        tape.replaying(path, mode="new_episodes", freeze="tools"),
    ):
        ask(provider, "a new question")
        lookup("another")
    assert RAN == [] and len(provider.requests) == 1
    with tape.replaying(path, mode="new_episodes", stub={"lookup": 5}):
        assert lookup("r_8821")["rate"] == 1, "what is recorded is played"
        assert lookup("another") == 5


# ---------------------------------------------------------------- asked for in a way that makes no sense


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            {"live": "llm", "freeze": "llm"},
            "--live and --freeze llm: a boundary is one or the other",
        ),
        ({"live": ["tool:a", "tool:b"], "freeze": ["tool:b"]}, "--live and --freeze tool:b"),
        ({"live": "tool:a", "stub": {"a": 1}}, "--live and --stub tool:a"),
        ({"freeze": "tool:a", "stub": {"tool:a": 1}}, "--freeze and --stub tool:a"),
        ({"live": "model"}, "'model' names no calls: write llm, tools, tool:NAME"),
        ({"live": "tool:"}, "names no calls"),
        ({"live": "llm", "mode": "new_episodes"}, "--live goes with replay"),
        ({"stub": {"host:x": 1}}, "names no tool"),
        ({"stub": {"a": object()}}, "--stub a"),
        ({"take": "no-such"}, "main.tape.yaml has no take 'no-such'; it has no takes yet"),
        ({"take": "../x"}, "cannot name a take"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(provider, path, recorded, told, said):
    with pytest.raises(TapeUsageError, match=said), tape.replaying(path, **told):
        pytest.fail("the block ran")


def test_a_take_whose_base_was_edited_plays_nothing(provider, path, recorded):
    with tape.replaying(path, live="tools", take="t"):
        program(provider)
    path.write_text(path.read_text().replace("r_8821", "r_8822", 1))
    with (
        pytest.raises(CassetteError, match="t.tape.yaml: is a take of .*main.tape.yaml"),
        tape.replaying(path, take="t"),
    ):
        pytest.fail("the block ran")


def test_a_session_that_is_strict_is_strict_in_cells_with_words_of_their_own():
    ask = CellRequest("record", options={"strict": False})
    assert sessions_own(ask, {"strict": True}, sealed=True).options["strict"] is True
    assert not sessions_own(ask, {}, sealed=True).options["strict"]


# ---------------------------------------------------------------- words that fit nothing


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (
            {"live": "tool:lokup"},
            "--live tool:lokup: no recorded call fits it: did you mean lookup?",
        ),
        (
            {"freeze": "tool:lookupp"},
            "--freeze tool:lookupp: no recorded call fits it: did you mean",
        ),
        (
            {"stub": {"lookpu": 1}},
            "--stub tool:lookpu: no recorded call fits it: did you mean lookup?",
        ),
        ({"live": "call:0"}, "--live call:0: no recorded call fits it; tape calls lists them"),
    ],
)
def test_a_word_that_is_nearly_one_of_the_tape_is_refused_before_anything_runs(
    provider, path, recorded, words, wrong
):
    with pytest.raises(TapeUsageError, match=re.escape(wrong)), tape.replaying(path, **words):
        program(provider)
    assert RAN == [] and provider.requests == []


@pytest.mark.parametrize("word", ["tool:never_called", "host:db.example", "cell:c0ffee"])
def test_a_word_that_fits_no_recorded_call_is_said_once_before_anything_runs(
    provider, path, recorded, capsys, word
):
    for _ in range(2):
        with tape.replaying(path, live=word):
            said = capsys.readouterr().err
            assert RAN == []
            assert program(provider) == recorded
        assert said == "" or f"tape: --live {word}: no recorded call fits it" in said
    assert said == ""


def test_a_tool_that_is_defined_but_not_recorded_yet_is_no_mistake(
    provider, path, recorded, capsys
):
    with tape.replaying(path, live="tool:send_mail"):
        assert program(provider) == recorded
    assert capsys.readouterr().err == ""
