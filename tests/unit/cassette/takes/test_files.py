"""Takes: a cassette derived from another. The base is never written, and a take whose base changed is refused."""

import hashlib
import json

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError, TapeUsageError
from tests.harness.tapes import JSON, Recorder, answered, asked, churn


@pytest.fixture
def path(tmp_path):
    return churn(tmp_path)


def calls(cassette):
    """What a replay would find: run, id and reply of every call."""
    return {(entry.run, entry.id): entry.reply() for entry in cassette.calls}


def model_call(cassette):
    """The model's call in the newest recording of its cell."""
    return [entry for entry in cassette.calls if not isinstance(entry.request(), FunctionCall)][-1]


def tool_call(cassette):
    return next(entry for entry in cassette.calls if isinstance(entry.request(), FunctionCall))


def words(reply):
    return json.loads(reply.body)["content"][0]["text"]


def test_a_take_reads_as_its_base_with_one_answer_replaced(path):
    main = tape.open(path)
    before = path.read_bytes()
    call = model_call(main)
    take = main.override(f"{call.run}/{call.id}", reply=answered("East"), take="angry-customer")
    assert take.path == path.parent / "takes" / "main.angry-customer.tape.yaml"
    again = tape.open(take.path)
    changed = {name for name, reply in calls(again).items() if reply != calls(main)[name]}
    assert changed == {(call.run, call.id)}
    assert words(calls(again)[call.run, call.id]) == "East"
    assert again.chain == ("main", "angry-customer") and again.root == path
    assert path.read_bytes() == before, "the base is never written"


def test_its_header_says_what_it_is_of_and_how_much_of_that(path):
    take = tape.open(path).override(
        model_call(tape.open(path)), error=TimeoutError("slow"), take="slow"
    )
    data = path.read_bytes()
    text = take.path.read_text()
    assert 'take of: "../main.tape.yaml"\n' in text
    assert f"  bytes: {len(data)}\n" in text and hashlib.sha256(data).hexdigest() in text


def test_an_overridden_call_is_found_by_its_request_and_keeps_its_place(path):
    main = tape.open(path)
    call = model_call(main)
    take = main.override(call, reply="no JSON at all", take="raw")
    found = [entry for entry in take.matching(call.match) if entry.run == call.run]
    assert [entry.id for entry in found] == [call.id] and found[0].order == call.order
    assert found[0].request() == call.request() and found[0].reply().body == b"no JSON at all"
    assert found[0].head()["kind"] == "model" and found[0].edited() is False
    assert [e.id for e in take.calls] == [e.id for e in main.calls]


def test_a_tools_value_keeps_its_type_and_an_exception_its_class(path):
    main = tape.open(path)
    call = tool_call(main)
    first = main.override(call, value={"name": "Bob", "tags": {"a", "b"}}, take="bob")
    assert tape_value(first, call) == {"name": "Bob", "tags": {"a", "b"}}
    second = main.override(call, error=KeyError("nobody"), take="nobody")
    assert calls(tape.open(second.path))[call.run, call.id].error["class"] == "builtins:KeyError"
    assert tape_value(main.override(call, value=None, take="none"), call) is None


def tape_value(cassette, call):
    from tape_jupyter.encoding.values import registry

    return registry.thaw(calls(tape.open(cassette.path))[call.run, call.id].value)


def test_a_whole_reply_may_be_given_with_its_status_and_an_early_end(path):
    main = tape.open(path)
    call = model_call(main)
    from tape_jupyter.encoding.values.registry import freeze_error

    reply = Reply(429, (*JSON, ("retry-after", "20")), (b'{"error": {"mess',), (0.2,), "error", freeze_error(ConnectionResetError(104, "reset")), reason="Too Many Requests")  # fmt: skip
    take = main.override(call, reply=reply, take="three-pm")
    assert calls(tape.open(take.path))[call.run, call.id] == reply


def test_a_structure_as_reply_is_the_new_json_body_under_the_recorded_head(path):
    main = tape.open(path)
    call = model_call(main)
    take = main.override(call, reply={"content": [{"type": "text", "text": "Größe"}]}, take="body")
    reply = calls(tape.open(take.path))[call.run, call.id]
    assert json.loads(reply.body)["content"][0]["text"] == "Größe"
    assert reply.status == 200 and reply.header("request-id") == "req_1"


@pytest.mark.parametrize(
    ("which", "given", "said"),
    [
        ("model", {}, "one of reply=, value= and error="),
        ("model", {"reply": "x", "error": ValueError()}, "not reply, error"),
        ("model", {"value": 1}, "override it with reply= or error="),
        ("tool", {"reply": "x"}, "override it with value= or error="),
        ("tool", {"error": "not an exception"}, "an exception, not a str"),
        ("model", {"reply": object()}, "bytes, text or JSON"),
    ],
)
def test_an_answer_that_cannot_be_one_is_refused_and_nothing_is_written(path, which, given, said):
    main = tape.open(path)
    call = model_call(main) if which == "model" else tool_call(main)
    with pytest.raises(TapeUsageError, match=said):
        main.override(call, **given)
    assert not (path.parent / "takes").exists()


def test_overriding_twice_makes_a_take_of_the_take_and_shows_the_chain(path):
    main = tape.open(path)
    call = model_call(main)
    first = main.override(call, reply=answered("East"), take="angry")
    kept = first.path.read_bytes()
    second = first.override(call, reply=answered("West"))
    assert second.chain == ("main", "angry", "angry-2")
    assert words(calls(tape.open(second.path))[call.run, call.id]) == "West"
    assert (
        words(calls(tape.open(first.path))[call.run, call.id]) == "East"
        and first.path.read_bytes() == kept
    )
    other = second.override(tool_call(second), value=7)
    assert other.chain == second.chain, "another call goes into the same take"
    with pytest.raises(TapeUsageError, match="overrides call .* already"):
        main.override(call, reply="x", take="angry")


def test_a_new_take_without_a_record_leaves_no_file(path):
    take = tape.open(path).take("idea")
    assert [e.id for e in take.calls] == [e.id for e in tape.open(path).calls]
    assert not take.path.exists() and tape.open(path).takes() == []


def test_a_base_that_only_grew_is_fine_and_the_take_is_as_it_was(path):
    main = tape.open(path)
    take = main.override(model_call(main), reply=answered("East"), take="angry")
    before = calls(tape.open(take.path))
    Recorder(path, "s9").run("cccc", (asked("Something else?"), answered("Yes")))
    assert calls(tape.open(take.path)) == before
    assert not take.refresh() and calls(take) == before, "an open take does not mind either"


def test_a_call_that_another_session_recorded_again_is_not_overridden(path):
    main = tape.open(path)
    call = model_call(main)
    take = main.override(tool_call(main), value=1, take="angry")
    newer = Recorder(path, "s9").run("aaaa", (asked("Which region?"), answered("East")))
    before = take.path.read_bytes()
    for cassette in (main, take):
        with pytest.raises(
            TapeUsageError, match=f"recorded again: run {newer} of 2026.* is the newer"
        ):
            cassette.override(f"{call.run}/{call.id}", reply="x")
    assert take.path.read_bytes() == before
    take.override(tool_call(main), value=2)


def test_a_base_that_was_changed_is_refused_naming_both_files(path):
    main = tape.open(path)
    take = main.override(model_call(main), reply=answered("East"), take="angry")
    path.write_text(path.read_text().replace("South", "Souse"))
    for opening in (
        lambda: tape.open(take.path),
        take.refresh,
        lambda: tape.open(path).take("angry"),
    ):
        with pytest.raises(
            CassetteError,
            match="takes/main.angry.tape.yaml: is a take of .*main.tape.yaml, and those",
        ):
            opening()
    path.write_text(path.read_text().replace("Souse", "South"))
    assert tape.open(take.path).calls


def test_a_base_that_is_gone_is_named(path):
    main = tape.open(path)
    take = main.override(model_call(main), reply=answered("East"), take="angry")
    path.rename(path.with_name("elsewhere.yaml"))
    with pytest.raises(
        CassetteError, match="main.tape.yaml, which is not there; put that file back"
    ):
        tape.open(take.path)


def test_a_base_under_another_name_is_found_by_its_bytes(path):
    main = tape.open(path)
    first = main.override(model_call(main), reply=answered("East"), take="angry")
    second = first.override(model_call(main), reply=answered("West"))
    renamed = first.rename("calm")
    assert tape.open(second.path).chain == ("main", "calm", "angry-2") and renamed.chain == (
        "main",
        "calm",
    )
    main.override(tool_call(main), value=1, take="angry")
    assert tape.open(second.path).chain == ("main", "calm", "angry-2"), (
        "whoever has the old name now is not it"
    )


def test_the_take_of_another_cassette_is_not_this_ones(path):
    other = Recorder(path.with_name("other.tape.yaml"))
    other.run("zzzz", (asked("Else?"), answered("Else")))
    take = other.cassette.override(other.cassette.calls[0], reply="x", take="angry")
    take.path.rename(files.path_of(path, "angry"))
    with pytest.raises(
        CassetteError, match="is a take of .*other.tape.yaml, not of .*main.tape.yaml"
    ):
        tape.open(path).take("angry")


def test_takes_are_listed_renamed_and_put_aside_and_never_lost(path):
    main = tape.open(path)
    take = main.override(model_call(main), reply=answered("East"), take="angry")
    main.override(tool_call(main), value=1, take="other")
    assert main.takes() == ["angry", "other"]
    with pytest.raises(TapeUsageError, match="'other' exists already; nothing is overwritten"):
        take.rename("other")
    with pytest.raises(TapeUsageError, match="cannot name a take"):
        take.rename("../x")
    with pytest.raises(TapeUsageError, match="is the recording itself"):
        take.rename("main")
    with pytest.raises(TapeUsageError, match="is the recording itself"):
        tape.open(path).take("main")
    data = take.path.read_bytes()
    calm = take.rename("calm")
    assert main.takes() == ["calm", "other"] and calm.path.read_bytes() == data
    aside = calm.delete()
    assert main.takes() == ["other"] and aside.read_bytes() == data
    again = main.override(model_call(main), reply=answered("West"), take="calm")
    assert again.delete() != aside and aside.read_bytes() == data
    with pytest.raises(TapeUsageError, match="no take 'gone'; there are: other"):
        files.delete(path, "gone")
    with pytest.raises(TapeUsageError, match="not a take"):
        main.delete()


def test_a_take_that_others_are_based_on_is_not_deleted(path):
    main = tape.open(path)
    first = main.override(model_call(main), reply=answered("East"), take="angry")
    second = first.override(model_call(main), reply=answered("West"))
    with pytest.raises(TapeUsageError, match="takes are based on 'angry': angry-2"):
        first.delete()
    second.delete()
    first.delete()


def test_names_that_are_free(path):
    main = tape.open(path)
    for name in ("live", "live-2", "live-4"):
        main.override(tool_call(main), value=1, take=name)
    assert (
        files.unused_name(path, "live") == "live-3"
        and files.unused_name(path, "x" * 64) == "x" * 64
    )


def test_runs_and_calls_of_its_own_refer_to_the_calls_below(path):
    long = "a long opening that is worth referring to " * 20
    recorder = Recorder(path.with_name("long.tape.yaml"))
    run = recorder.run("dddd", (asked(long), answered("one")))
    take = recorder.cassette.take("more")
    name = take.calls[0].id
    own = Recorder.__new__(Recorder)
    own.cassette, own.secrets, own.session = take, recorder.secrets, "s2"
    added = own.run("dddd", (asked(long, "one", "and then?"), answered("two")), parent=run)
    assert f'"<from>": "{run}/{name} messages[0:1]"' in take.path.read_text()
    again = Cassette.open(take.path, check="whole")
    entry = again.call(added, again.calls[-1].id)
    assert [m["content"] for m in json.loads(entry.request().body)["messages"]] == [
        long,
        "one",
        "and then?",
    ]
    assert [e.place for e in again.calls] == list(range(len(again.calls)))


def test_an_old_cassette_can_have_takes(tmp_path):
    path = tmp_path / "old.tape.yaml"
    path.write_text('---\ntape: 0\n...\n---\ncall: 1\nrequest:\n  post: "https://h/"\n  text: x\nreply:\n  status: 200\n  text: fine\n...\n')  # fmt: skip
    main = tape.open(path)
    take = main.override(main.calls[0], reply="z", take="t")
    assert tape.open(take.path).calls[0].reply().body == b"z"
    assert isinstance(main.calls[0].reply(), Reply) and not isinstance(main.calls[0].reply(), Value)


def test_how_much_of_a_cassette_its_takes_need(path):
    main = tape.open(path)
    assert files.extent(path) == 0
    take = main.override(model_call(main), reply="x", take="t")
    size = path.stat().st_size
    Recorder(path, "s9").run("cccc", (asked("Else?"), answered("Yes")))
    assert files.extent(path) == size
    take.override(model_call(main), reply="y")
    assert files.extent(path) == size
