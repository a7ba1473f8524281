"""Traces of other systems become cassettes, as a shell sees it."""

import gzip
import json
import re
import sys
import types
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cli import tape as command
from tape_jupyter.core import plugins
from tape_jupyter.importers import recognise

ROOT = Path(__file__).parents[3]


def har(*entries):
    return json.dumps(
        {"log": {"version": "1.2", "creator": {"name": "t"}, "entries": list(entries)}}
    )


def entry(
    text="North",
    body='{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Who?"}]}',
    **more,
):
    asked = {"method": "POST", "url": "https://api.openai.com/v1/chat/completions", "headers": more.pop("headers", []),
             "postData": {"mimeType": "application/json", "text": body}}  # fmt: skip
    said = json.dumps(
        {"model": "gpt-4o-mini", "choices": [{"message": {"role": "assistant", "content": text}}]}
    )
    answer = {"status": 200, "headers": [{"name": "Content-Type", "value": "application/json"}],
              "content": {"mimeType": "application/json", "text": said}}  # fmt: skip
    return {
        "startedDateTime": "2026-03-01T12:00:00Z",
        "time": 120,
        "request": asked,
        "response": answer,
        **more,
    }


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def imported(folder, text, name="trace.har"):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return tape.import_trace(folder / name, cassette=folder / "x.tapes" / "main.tape.yaml")


def test_a_file_becomes_a_cassette_of_ordinary_calls_that_replay(tmp_path):
    import httpx

    done = imported(tmp_path, har(entry()))
    with tape.replaying(done.path):
        body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Who?"}]}
        said = httpx.post("https://api.openai.com/v1/chat/completions", json=body).json()
    assert said["choices"][0]["message"]["content"] == "North"


def test_the_command_says_what_it_found_and_writes_beside_the_notebook_that_is_named(tmp_path):
    (tmp_path / "a.har").write_text(har(entry()))
    done = run("import", tmp_path / "a.har", "--out", tmp_path / "nb.ipynb", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["cassette"] == str(tmp_path / "nb.tapes" / "main.tape.yaml")
    assert told["files"][0]["format"] == "har" and told["files"][0]["calls"] == 1
    assert "gpt-4o-mini" in run("calls", tmp_path / "nb.ipynb").stdout
    again = run("import", tmp_path / "a.har", "--out", tmp_path / "nb.ipynb")
    assert again.exit_code == 2 and "is not overwritten" in again.stderr


def test_of_a_folder_what_can_be_read_is_imported_and_the_rest_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.har").write_text(har(entry()))
    (tmp_path / "in" / "b.txt").write_text("a shopping list")
    done = run("import", "in")
    assert done.exit_code == 1 and "b.txt: is in no format that is known" in done.stdout
    assert len(Cassette.open(tmp_path / "in.tapes" / "main.tape.yaml", check="whole").calls) == 1


def test_keys_never_land(tmp_path):
    key = "sk-proj-" + "a1B2c3D4" * 5
    header = [{"name": "Authorization", "value": "Bearer " + "Zz9" * 9}]
    body = json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": f"my key {key} and {'Zz9' * 9}"}]}
    )
    done = imported(tmp_path, har(entry(body=body, headers=header)))
    text = done.path.read_text()
    assert key not in text and "Zz9" * 9 not in text and "<secret:" in text


BAD = {
    "empty": (b"", "is empty"),
    "no format": (b"hello", "in no format"),
    "gzip bomb": (
        gzip.compress(b'{"log":{"entries":[' + b" " * 100_000_000),
        "expands to more than",
    ),
    "deep": (b'{"log":{"entries":[' + b"[" * 100_000, "nested too deep"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_one_error_that_names_the_file(tmp_path, name):
    data, said = BAD[name]
    (tmp_path / "bad.har").write_bytes(data)
    done = (
        run("import", tmp_path / "bad.har", "--from", "har")
        if name == "gzip bomb"
        else run("import", tmp_path / "bad.har")
    )
    assert (
        done.exit_code == 2
        and said in done.stderr
        and "bad.har" in done.stderr
        and "Traceback" not in done.output
    )
    assert [each.name for each in tmp_path.iterdir()] == ["bad.har"]


def test_a_file_that_breaks_off_gives_what_was_whole_and_keeps_the_rest_as_text(tmp_path):
    text = har(entry("one"), entry("two"))
    done = imported(tmp_path, text[: text.rindex("two")])
    report = done.files[0]
    assert report.calls == 1 and any("breaks off" in reason for reason in report.reasons)
    assert "postData" in str(Cassette.open(done.path).ended)


def test_the_example_of_the_page_is_a_format_that_a_package_may_bring(tmp_path, monkeypatch):
    code = re.search(
        r"```python\n(.*?)```", (ROOT / "docs" / "importers.md").read_text(), re.DOTALL
    )[1]
    module = types.ModuleType("example_format")
    exec(compile(code, "example", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "example_format", module)
    monkeypatch.setattr(recognise, "known_formats", lambda: {"example": module})
    asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Who?"}]}
    rows = [
        {
            "example_id": "b",
            "type": "call",
            "trace": "t",
            "parent": "a",
            "provider": "OpenAI",
            "asked": asked,
            "said": {"choices": []},
        },
        {"example_id": "a", "type": "step", "name": "plan", "trace": "t", "asked": None},
    ]
    done = imported(tmp_path, "\n".join(map(json.dumps, rows)) + "\nnot json\n", "x.jsonl")
    cassette = Cassette.open(done.path, check="whole")
    head = cassette.calls[0].head()
    assert (
        head["span"] == "plan"
        and head["kit"]["grade"] == "J"
        and head["kit"]["origin"]["id"] == "b"
    )
    assert head["kit"]["assumed"] == ["url https://api.openai.com/v1/chat/completions"]
    assert done.files[0].reasons == {"a line that is no record": 1}


def test_our_own_formats_are_named_in_the_entry_point_group():
    import tomllib

    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
        recognise.GROUP
    ]
    own = {
        path.stem for path in (ROOT / "tape_jupyter" / "importers" / "formats").glob("[a-z]*.py")
    }
    assert set(told) == own and all(
        value.endswith(f".formats.{name}") for name, value in told.items()
    )


def test_an_importer_of_an_installed_package_is_found(monkeypatch):
    point = EntryPoint("theirs", "json", recognise.GROUP)
    monkeypatch.setattr(
        plugins, "entry_points_of", lambda group: {"theirs": point} if group == point.group else {}
    )
    recognise.known_formats.cache_clear()
    try:
        assert "theirs" in recognise.known_formats() and "har" in recognise.known_formats()
    finally:
        recognise.known_formats.cache_clear()


def test_an_interrupt_leaves_no_half_written_cassette(tmp_path):
    (tmp_path / "big.har").write_text(har(*(entry(str(number)) for number in range(1100))))

    def tell(what, done, total):
        if what == "writing calls":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tape.import_trace(
            tmp_path / "big.har", cassette=tmp_path / "x.tapes" / "main.tape.yaml", tell=tell
        )
    assert [each.name for each in tmp_path.iterdir()] == ["big.har"]


def test_what_a_zip_expands_to_is_bounded_and_its_names_are_no_paths(tmp_path):
    import zipfile

    from tape_jupyter.importers.source import Source, TraceError

    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../evil\x1b[2J.json", "{}")
    names = [each.name for each in Source(tmp_path / "a.zip").members()]
    assert len(names) == 1 and "\x1b" not in names[0] and not (tmp_path.parent / "evil").exists()
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.json", b"0" * 100_000_000)
    with pytest.raises(TraceError, match="expands to"):
        list(Source(tmp_path / "bomb.zip").members())


def test_a_line_that_is_too_long_is_one_error_with_its_number(tmp_path, monkeypatch):
    from tape_jupyter.importers import source

    monkeypatch.setattr(source, "RECORD_CAP", 100)
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"b": "' + "x" * 200 + '"}\n')
    with pytest.raises(source.TraceError, match="x.jsonl:2: the line is longer"):
        list(source.Source(tmp_path / "x.jsonl").lines())


def test_the_cassette_does_not_say_where_somebodys_home_is(tmp_path):
    done = imported(tmp_path, har(entry()))
    assert str(tmp_path) not in done.path.read_text()
