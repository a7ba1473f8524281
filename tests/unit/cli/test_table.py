"""Every command of the command line holds to the same few promises: exit codes, JSON, help, what a bad word gets."""

import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from tape_jupyter.cli import tape
from tests.harness.notebook import ROOT, notebook
from tests.harness.tapes import churn

FILES = {  # what each command needs beside a first file, to be understood
    "override": ["ffffffff", "--text", "x"],
    "diff": ["other"],
    "merge": ["other.tape.yaml"],
    "resend": ["ffffffff"],
    "sample": ["ffffffff"],
    "why": ["--good", "a", "--bad", "b", "--check", "x"],
}
WITHOUT_FILES = {"doctor", "demo", "completion"}
COMMANDS = sorted(set(tape.commands) - WITHOUT_FILES)
ENV = {**os.environ, "NO_COLOR": "", "TERM": "xterm", "PYTHONPATH": str(ROOT)}


def run(*words):
    return CliRunner().invoke(tape, [str(word) for word in words])


def shell(line, **more):
    """A line of a real shell, with `tape` in it."""
    line = line.replace("tape ", f"{sys.executable} -m tape_jupyter ")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        env={**ENV, **more},
        capture_output=True,
        text=True,
        timeout=60,
    )


def is_one_line_of_ours(said):
    return said.startswith("tape: ") and said.count("\n") == 1 and "Traceback" not in said


@pytest.mark.parametrize("command", sorted(tape.commands))
def test_its_help_says_what_it_does_shows_examples_and_is_no_wider_than_a_page(command):
    said = run(command, "--help")
    assert said.exit_code == 0 and f"tape {command}" in said.output.partition("Examples:")[2]
    assert "--json" in said.output and max(map(len, said.output.splitlines())) <= 120
    assert tape.commands[command].get_short_help_str(limit=62)[-3:] != "..."


@pytest.mark.parametrize("command", COMMANDS)
def test_without_its_words_it_is_code_2_and_says_which_is_missing(command):
    done = run(command)
    assert done.exit_code == 2 and "Missing argument" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", sorted(tape.commands))
def test_an_option_that_is_none_is_code_2(command):
    done = run(command, "--frob")
    assert done.exit_code == 2 and "--frob" in done.stderr


@pytest.mark.parametrize("name", ["none.ipynb", "none.tape.zip", "none.tape.yaml", "none"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_there_is_code_2_and_one_line(command, name, tmp_path):
    done = run(command, tmp_path / name, *FILES.get(command, []))
    assert done.exit_code == 2 and is_one_line_of_ours(done.stderr), done.output
    assert done.stdout == "" and list(tmp_path.iterdir()) == []


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    "content", [b"", b"not what it is called", b"\x00\xff" * 300, b"PK\x03\x04 broken", b"[" * 9000]
)
@pytest.mark.parametrize("name", ["bad.ipynb", "bad.tape.zip", "bad.tape.yaml"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_what_it_should_be_is_code_2_and_stays_as_it_is(
    command, name, content, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # `tape try` keeps its rows where it was begun
    path = tmp_path / name
    path.write_bytes(content)
    if name == "bad.ipynb":
        (tmp_path / "bad.tapes").mkdir()
        (tmp_path / "bad.tapes" / "main.tape.yaml").write_bytes(content or b"x")
    done = run(command, path, *FILES.get(command, []))
    assert done.exit_code in ((0, 2) if not content else (2,)), (
        done.output
    )  # an empty file is an empty cassette
    assert "Traceback" not in done.output and (
        done.exception is None or isinstance(done.exception, SystemExit)
    )
    assert path.read_bytes() == content


READS = [
    ["show"], ["calls"], ["gaps"], ["takes"], ["prune", "--dry-run"], ["doctor"], ["show", "--html"],
]  # fmt: skip


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_json_is_all_that_is_printed_and_is_json(words, tmp_path):
    path = churn(tmp_path)
    notebook(tmp_path / "churn.ipynb", "1")
    done = run(words[0], path, *words[1:], "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) is not None and done.stderr == ""


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete_both_names(shell_name):
    said = run("completion", shell_name).stdout
    assert "_TAPE_COMPLETE" in said and "tape-jupyter" in said
    assert json.loads(run("completion", shell_name, "--json").stdout)["script"] == said.rstrip("\n")
    assert "completion" in run("completion", "--help").output


def test_bash_completes_commands_options_and_files(tmp_path):
    churn(tmp_path)
    script = tmp_path / "tape.bash"
    script.write_text(run("completion", "bash").stdout)
    wanted = tmp_path / "bin"
    wanted.mkdir()
    (wanted / "tape").write_text(f'#!/bin/sh\nexec {sys.executable} -m tape_jupyter "$@"\n')
    (wanted / "tape").chmod(0o755)

    def completed(*words):
        line = f"PATH={wanted}:$PATH; . {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        line += '_tape_completion tape; printf "%s\\n" "${COMPREPLY[@]}"'
        return subprocess.run(
            ["bash", "-c", line], env=ENV, capture_output=True, text=True
        ).stdout.split()

    assert {"record", "replay", "rerun", "resend"} == set(completed("tape", "re"))
    assert "--prefer" in completed("tape", "merge", "--")


@pytest.mark.parametrize(
    "line", ["tape calls FILE | head -1", "tape show FILE --json | head -c 1", "tape --help | true"]
)
def test_a_reader_that_stops_reading_is_no_error(line, tmp_path):
    done = shell(line.replace("FILE", str(churn(tmp_path))))
    assert done.stderr == "" and done.returncode in (0, 1)


def test_nothing_is_coloured_where_nobody_sees_it_or_wants_it(tmp_path):
    path = churn(tmp_path)
    assert "\x1b" not in shell(f"tape doctor {path}").stdout
    seen = f"script -qec '{sys.executable} -m tape_jupyter doctor {path}' /dev/null"
    assert "\x1b[32m" in shell(seen).stdout and "\x1b[32m" not in shell(seen, NO_COLOR="1").stdout


def test_every_command_is_a_click_command_with_words_of_its_own():
    for command in tape.commands.values():
        assert isinstance(command, click.Command) and command.help and command.epilog
