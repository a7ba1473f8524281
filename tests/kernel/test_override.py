"""Overriding a streamed reply in a notebook, as a person does it: record, override, replay, choose, undo."""

import hashlib
import re

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider

ASK = """import anthropic
claude = anthropic.Anthropic(base_url="URL", api_key="sk-ant-test")
def ask(text):
    with claude.messages.stream(model="claude-sonnet-5", max_tokens=99, messages=[{"role": "user", "content": text}]) as stream:
        return "".join(stream.text_stream)"""


def test_a_streamed_reply_is_overridden_replayed_chosen_and_undone(tmp_path):
    notebook(tmp_path / "nb.ipynb")
    env = {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}
    with Provider() as provider, Kernel(tmp_path, env) as kernel:
        kernel.run_all("%load_ext tape_jupyter", ASK.replace("URL", provider.url))
        recorded = kernel.execute("%%tape record\nask('classify: where is my order?')").result
        provider.stop()
        (cassette,) = tmp_path.glob("*.tapes/main.tape.yaml")
        before = hashlib.sha256(cassette.read_bytes()).hexdigest()
        call = re.search(r'^call: "?([0-9a-f]{8})', cassette.read_text(), re.MULTILINE)[1]
        said = kernel.execute(
            f"%tape override {call} --text 'very angry {{x}} $HOME' --take angry"
        ).stdout
        assert "take angry: call" in said and "usage stale" in said
        again = "%%tape replay\nask('classify: where is my order?')"
        angry = kernel.execute(again.replace("replay", "replay --take angry")).result
        assert angry == "'very angry {x} $HOME'" and kernel.execute(again).result == recorded
        assert (
            "take angry is replayed when no take is named"
            in kernel.execute("%tape takes default angry").stdout
        )
        assert kernel.execute(again).result == angry
        assert kernel.execute(again.replace("replay", "replay --take main")).result == recorded
        assert "answers as recorded again" in kernel.execute("%tape takes undo angry").stdout
        assert kernel.execute(again).result == recorded
        failed = kernel.execute("%tape override nobody --text x")
        assert "no call 'nobody' in main.tape.yaml" in failed.traceback
        assert hashlib.sha256(cassette.read_bytes()).hexdigest() == before


def test_calls_and_takes_are_found_in_whatever_cassette_of_the_notebook_they_are(tmp_path):
    notebook(tmp_path / "nb.ipynb")
    env = {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}
    with Provider() as provider, Kernel(tmp_path, env) as kernel:
        kernel.run_all("%load_ext tape_jupyter", ASK.replace("URL", provider.url))
        kernel.execute("%%tape record\none = ask('one')\nprint(one)", "c1")
        kernel.execute("%%tape record other\ntwo = ask('two')\nprint(two)", "c2")
        (text,) = (path.read_text() for path in tmp_path.glob("*.tapes/main.tape.yaml"))
        call = re.search(r'^call: "?([0-9a-f]{8})', text, re.MULTILINE)[1]
        said = kernel.execute(f"%tape override {call} --text East --take fix").stdout
        assert "take fix: call" in said and "main.tape.yaml is as it was" in said
        for ask_for in ("%tape plan fix", "%tape plan"):
            plan = kernel.execute(ask_for).stdout
            assert "take fix is of main.tape.yaml" in plan and "holds the changed reply" in plan
        assert "fix" in kernel.execute("%tape takes").stdout
        rerun = kernel.execute("%tape rerun fix").stdout
        assert "take fix is of main.tape.yaml" in rerun and "+East" in rerun
        kernel.execute("%%tape replay other\ntwo = ask('two')\nprint(two)", "c2")
        assert (
            "main.tape.yaml: take fix is called calm now"
            in kernel.execute("%tape takes rename fix calm").stdout
        )
        missing = kernel.execute("%tape override nobody --text x")
        assert "in any cassette of the notebook: " in missing.traceback


def test_the_body_of_a_cell_is_the_new_text_and_is_not_run(tmp_path):
    notebook(tmp_path / "nb.ipynb")
    env = {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}
    with Provider() as provider, Kernel(tmp_path, env) as kernel:
        kernel.run_all("%load_ext tape_jupyter", ASK.replace("URL", provider.url))
        kernel.execute("%%tape record\none = ask('one')\nprint(one)", "c1")
        (text,) = (path.read_text() for path in tmp_path.glob("*.tapes/main.tape.yaml"))
        call = re.search(r'^call: "?([0-9a-f]{8})', text, re.MULTILINE)[1]
        said = kernel.execute(
            f"%%tape override {call} --take letter\nDear {{x}} of $HOME,\n\nwe're sorry:\n  1/0\n",
            "o",
        )
        assert said.ok and "take letter: call" in said.stdout, said.traceback
        rerun = kernel.execute("%tape rerun letter").stdout
        assert (
            "+Dear {x} of $HOME," in rerun
            and "override" not in kernel.execute("%tape plan letter").stdout
        )
        letter = kernel.execute("one").result
        assert letter == repr("Dear {x} of $HOME,\n\nwe're sorry:\n  1/0")
        kernel.execute("%tape record")
        again = kernel.execute(f"%%tape override {call} --take other\nplain", "o2")
        assert "take other: call" in again.stdout and "calls" not in again.stdout
