"""`tape demo` does what it says, on this machine, in under a minute; its parts hold alone."""

import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import anthropic
import openai
import pytest

from tape_jupyter import demo
from tape_jupyter.demo import worker, local_model, provider, runs, texts
from tape_jupyter.errors import TapeUsageError
from tests.harness.notebook import clean_env
from tests.harness.provider import closed_port


@pytest.fixture
def stand_in(monkeypatch):
    """The address of the demo's provider; it wants the key "k"."""
    monkeypatch.setattr(provider.Handler, "key", "k")
    for wait in ("FIRST_TOKEN", "NEXT_TOKEN"):
        monkeypatch.setattr(provider, wait, (0, 0.001))
    server = provider.Server(("127.0.0.1", 0), provider.Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def ask(words, cwd, *, stdin=None):
    return subprocess.run(
        [sys.executable, "-m", "tape_jupyter", "demo", *words], cwd=cwd, env=clean_env(cwd), capture_output=True,
        text=True, timeout=150, check=False,
    )  # fmt: skip


# ---- the whole of it


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    where = tmp_path_factory.mktemp("demo")
    return where / "kept", ask(["--json", "--keep", "kept"], where)


@pytest.mark.slow
def test_the_demo_records_replays_edits_and_misses_as_it_says(played):
    done = played[1]
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    statuses = {act: [cell["status"] for cell in cells] for act, cells in told["acts"].items()}
    assert statuses["recorded"] == statuses["again"] == ["ok"] * 5
    assert statuses["replayed"] == ["same"] * 5
    assert statuses["edited"] == ["same", "same", "same", "differs", "same"]
    assert statuses["missed"] == ["same", "missed", "not run", "not run", "not run"]


@pytest.mark.slow
def test_the_demo_shows_the_edit_the_miss_and_its_figures(played):
    told = json.loads(played[1].stdout)
    edited, missed = told["acts"]["edited"][3], told["acts"]["missed"][1]
    assert f"+ {texts.EDITED}" in edited["said"]
    assert "edited by hand" in edited["tape"]
    assert any(texts.ANOTHER_TICKET in line for line in missed["said"])
    assert told["calls"]["model"] >= 5
    assert told["calls"]["tool"] >= 1
    assert told["tokens"]["in"] > 100
    assert float(told["cost"]) > 0
    assert told["connections"] == 0
    assert told["key_found"] is False
    assert told["seconds"]["replayed"] < told["seconds"]["live"]


@pytest.mark.slow
def test_what_the_demo_keeps_can_be_replayed_by_hand(played):
    kept = played[0]
    assert texts.EDITED in (kept / "support.tapes" / "main.tape.yaml").read_text(encoding="utf-8")
    words = ["-m", "tape_jupyter", "calls", str(kept / "support.ipynb")]
    listed = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=True
    ).stdout
    assert "claude-haiku-4-5" in listed


def test_a_folder_that_holds_something_is_not_played_in(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(TapeUsageError, match="not empty"):
        demo.main(keep=tmp_path)


# ---- the stand-in provider


def test_the_stand_in_answers_both_sdks_and_never_twice_the_same(stand_in):
    claude = anthropic.Anthropic(base_url=stand_in, api_key="k")
    words = {
        "model": "claude-x",
        "max_tokens": 60,
        "messages": [{"role": "user", "content": "Found: x\nSummary:"}],
    }
    plain = claude.messages.create(**words)
    with claude.messages.stream(**words) as stream:
        pieces = list(stream.text_stream)
        streamed = stream.get_final_message()
    assert "".join(pieces) == streamed.content[0].text != plain.content[0].text
    assert len(pieces) == streamed.usage.output_tokens > 10
    gpt = openai.OpenAI(base_url=f"{stand_in}/v1", api_key="k")
    asked = [
        {"role": "system", "content": "How"},
        {"role": "user", "content": "\nCustomer (positive): help\nCall:"},
    ]
    reply = gpt.chat.completions.create(model="gpt-x", messages=asked)
    assert json.loads(reply.choices[0].message.content)["tool"] in (
        "lookup_customer",
        "lookup_invoice",
    )
    claude.close()
    gpt.close()


def test_the_agent_comes_to_an_end():
    story = "\nCustomer (positive): help\nCall:\nlookup_customer\nResult: x\nCall:\nlookup_invoice\nResult: y\nCall:"
    assert json.loads(provider.think(story))["tool"] == "done"


def test_the_stand_in_refuses_a_request_without_the_key(stand_in):
    request = urllib.request.Request(f"{stand_in}/v1/messages", b"{}", {"x-api-key": "other"})
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(request)
    refused.value.close()


# ---- the parts


def test_the_tripwire_counts_who_connects():
    port = closed_port()
    with worker.Tripwire(port) as wire:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as visitor:
                visitor.recv(1)
        assert wire.count >= 2  # the last one may not be counted yet


def test_keys_proxies_and_other_sessions_do_not_reach_the_notebook(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "MY_TOKEN", "HTTPS_PROXY", "TAPE_MODE", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, "mine")
    assert "mine" not in runs.demo_environment().values()
    assert runs.demo_environment("k")["OPENAI_API_KEY"] == "k"


def test_the_pipeline_is_told_to_record_and_to_replay_without_another_change():
    source = texts.pipeline()
    recording = texts.to_record(source, texts.URL, {})
    assert recording.count("%%tape record\\n") == 3 + source.count("`%%tape record`\\n")
    assert texts.to_replay(recording) == source
    other = texts.to_record(source, "http://127.0.0.1:1", texts.STAND_IN_MODELS)
    assert texts.URL not in other
    assert 'AGENT = \\"gpt-5-mini\\"' in other


def test_the_last_reply_alone_is_edited_also_where_the_prompt_holds_the_same_words():
    cassette = 'request:\n  text: "say hi"\nresponse:\n  text: "hi"\n...\nrequest:\n  text: "hi"\nresponse:\n  text: "hi \\"you\\""\n'
    edited = texts.with_last_reply(cassette, 'hi "you"', "no")
    assert edited == cassette.replace('hi \\"you\\"', "no")
    with pytest.raises(TapeUsageError, match="0 times"):
        texts.with_last_reply(cassette, "ho", "no")


def test_a_free_port_is_found_where_the_wanted_one_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert local_model.free_port(taken.getsockname()[1]) != taken.getsockname()[1]


def test_the_demo_on_a_terminal_is_told_act_by_act(capsys):
    from tape_jupyter.demo.screen import Screen
    from tape_jupyter.headless.run import CellRun

    with Screen() as screen:
        screen.act("Replay", "how")
        screen.starting(1, 1, "# ask [x]")
        screen.print_cell(
            CellRun(
                1, "differs", "# ask [x]", 0.5, ("-a", "+b"), "tape replay\n  · edited by hand: 1"
            )
        )
        screen.came_out({"recorded": dict.fromkeys(("classify", "agent", "summary"), "said\nso")})
    shown = capsys.readouterr().out
    assert "1. Replay\n   how\n" in shown
    assert "[1/1] differs   0.50 s  ask [x]\n" in shown
    assert "edited by hand: 1" in shown
    assert "said / so" in shown
