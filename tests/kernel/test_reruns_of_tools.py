"""A changed reply, re-run in a notebook whose tools keep state: what is there at the end is what a whole run leaves whose
call really gives the changed reply.
"""

import re

import pytest

from tests.trials import adversarial_agents

from tests.trials import adversarial_builders

from tests.trials import adversarial_kernel

from tests.trials import adversarial_state

from tests.trials import adversarial_strangers

from tests.trials import adversarial_tools
from tests.trials.kernel_reruns import (
    JOIN,
    aside,
    changed,
    judged,
    judged_fresh,
    run,
    session,
    whole,
)
from tests.harness.provider import Provider


@pytest.mark.spread(15)
@pytest.mark.parametrize("name", adversarial_tools.NOTEBOOKS)
def test_the_re_run_leaves_what_a_whole_run_leaves(name):
    how, why = judged(*adversarial_tools.NOTEBOOKS[name])
    assert how == "right", why


@pytest.mark.slow
@pytest.mark.spread(51)
@pytest.mark.parametrize("name", adversarial_kernel.NOTEBOOKS)
def test_what_only_a_kernel_shows_is_proved_as_it_shows_it(name):
    how, why = judged(*adversarial_kernel.NOTEBOOKS[name])
    assert how == "right" and "proved" in why, why


@pytest.mark.slow
@pytest.mark.spread(9)
@pytest.mark.parametrize("name", adversarial_agents.NOTEBOOKS)
def test_state_where_few_look_is_proved_as_a_whole_run_leaves_it(name):
    how, why = judged(*adversarial_agents.NOTEBOOKS[name])
    assert how == "right" and "'proved'" in why, why


@pytest.mark.night
@pytest.mark.parametrize("name", adversarial_agents.KINDS)
def test_state_of_any_kind_is_proved_as_a_whole_run_leaves_it(name):
    how, why = judged(*adversarial_agents.KINDS[name])
    assert how == "right" and "'proved'" in why, why


@pytest.mark.night
@pytest.mark.parametrize("name", adversarial_strangers.NOTEBOOKS)
def test_a_strangers_notebook_is_proved_as_a_whole_run_leaves_it(name):
    how, why = judged(*adversarial_strangers.NOTEBOOKS[name])
    assert how == "right" and "'proved'" in why, why


@pytest.mark.slow
@pytest.mark.spread(17)
@pytest.mark.parametrize("name", adversarial_builders.NOTEBOOKS)
def test_what_one_cell_begins_and_another_ends_is_proved_as_a_whole_run_leaves_it(name):
    how, why = judged(*adversarial_builders.NOTEBOOKS[name])
    assert how == "right" and "'proved'" in why, why


@pytest.mark.night
@pytest.mark.parametrize("name", adversarial_builders.SAID)
def test_what_is_not_as_a_whole_run_leaves_it_is_said(name):
    how, why = judged(*adversarial_builders.SAID[name])
    assert how in ("right", "fresh", "wrong and said"), why


def test_a_tool_that_reads_a_file_which_is_otherwise_now_goes_live_or_is_not_proved():
    cells, reply = adversarial_builders.NOTEBOOKS["a tool whose helper reads what a cell wrote"]
    how, why = judged(cells, reply)
    assert how == "right" and "'proved'" in why, why
    how, why = judged(cells, reply, "stop")
    assert how == "wrong and said" and "gave its recorded value, but `s.txt`" in why, why


FRESH = ("tools that fail and are tried again", "a tool that gives itself or what it keeps")
"""Tools that ask for what is otherwise by then."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FRESH)
def test_in_a_fresh_process_tools_go_live_that_read_what_is_not_as_it_was(name):
    how, why = judged_fresh(*adversarial_builders.NOTEBOOKS[name])
    assert how == "right" and why == "proved", why


def test_in_a_fresh_process_that_may_go_live_a_tool_adds_to_what_the_file_holds_by_then():
    how, why = judged_fresh(*adversarial_tools.TOOLS["file, with another text"])
    assert how == "right", why


@pytest.mark.night
@pytest.mark.parametrize("name", adversarial_builders.NOTEBOOKS)
def test_in_a_fresh_process_the_cells_show_what_a_whole_run_shows(name):
    how, why = judged_fresh(*adversarial_builders.NOTEBOOKS[name])
    assert how == "right", why


@pytest.mark.slow
@pytest.mark.parametrize("name", adversarial_agents.SAID)
def test_a_generator_that_is_seeded_by_what_changed_is_not_proved(name):
    how, why = judged(*adversarial_agents.SAID[name])
    assert how == "right" and "'differs'" in why, why


@pytest.mark.slow
@pytest.mark.parametrize("name", adversarial_tools.SAID)
def test_a_recorded_value_that_a_whole_run_may_not_give_is_never_proved(name):
    how, why = judged(*adversarial_tools.SAID[name])
    assert how == "wrong and said" and "'not provable'" in why, why


def test_an_earlier_turn_of_a_cell_that_ran_three_times_is_overridden(tmp_path):
    turn = "%%tape record\nn += 1\nr = ask() if n == 1 else ask(log[-1] + str(n))\nlog.append(r)"
    with session(tmp_path, "a") as kernel:
        run(kernel, ["log, n = [], 0"])
        for _ in range(3):
            assert kernel.execute(turn, "turn").ok
        tape = next(tmp_path.glob("nb.tapes/main.tape.yaml")).read_text()
        first = re.search(r'^call: "?([0-9a-f]{8})"?$', tape, re.MULTILINE)[1]
        said = kernel.execute(f"%tape override {first} --value '\"b\"' --take new", "o")
        assert "is from an earlier run of its cell" in said.stdout, said
        kernel.execute("%tape rerun new --on-divergence live", "r")
        proof = aside(kernel, JOIN, tmp_path / "compared.json")["proof"]
        assert kernel.execute("print(log, n)", "l").stdout == "['b', 're b2', 're re b23'] 3\n"
        assert proof["state"] == "proved", proof


@pytest.mark.slow
def test_cells_that_a_proof_named_are_adopted_with_a_word(tmp_path):
    cells, *_ = adversarial_state.SAID["copyreg and pickles"]
    taped = [f"%%tape record\n{cell}" if "ask()" in cell else cell for cell in cells]
    lines = ["%tape rerun new", "%tape rerun new --adopt"]
    *_, said, compared = changed(tmp_path / "live", taped, "b", lines=lines)
    assert "a fresh replay gave something else here" in said, said
    assert compared["ran"] == 3 and "not run: [4]" in said, said


R = "%%tape record\n"
BROKEN_OFF = {
    "a generator": ["g = (i for i in range(9))", R + "mood = ask()", R + "n = next(g)\nk = ask('z' + mood)", "print(n, k)"],
    "an iterator that is changed before, too": [
        "import itertools\ng = itertools.count()",
        "a = next(g)",
        R + "mood = ask(); b = next(g)",
        R + "n = next(g)\nk = ask('z' + mood)",
        "m = next(g)\nprint(a, b, n, m, k)",
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN_OFF)
def test_a_cell_that_stopped_at_a_divergence_runs_once_more_in_the_world_that_it_found(
    tmp_path, name
):
    lines = ["%tape rerun new", "%tape rerun --on-divergence live"]
    found, _, said, compared = changed(tmp_path / "live", BROKEN_OFF[name], "b", lines=lines)
    _, truth, _ = whole(tmp_path / "truth", BROKEN_OFF[name], "b")
    assert found == truth, said
    assert compared["proof"]["state"] == "proved", compared


def test_what_a_tool_did_live_in_one_cell_is_no_answer_to_the_next_cell(tmp_path):
    cells = [
        "import itertools\nn = itertools.count()\n@tape.tool\ndef nth(x): return f'{x}{next(n)}'",
        R + "mood = ask()",
        R + "a = nth(mood)",
        R + "b = nth(mood)",
    ]
    found, _, said, _ = changed(tmp_path / "live", cells, "b")
    assert "b0" in found["name a"] and "b1" in found["name b"], said


SIBLINGS = [
    "import csv, os, subprocess, sys, typing\nfrom os import environ as variables\nh = open('o.csv', 'w', newline='')\n"
    "rows = csv.DictWriter(h, ['m'])\ndef f(x: int): 'doc'",
    R + "mood = ask()",
    "os.environ['T_A'] = mood\nvariables['T_B'] = mood",
    "a = os.environb[b'T_A'], variables['T_B']",
    "b = subprocess.check_output(['sh', '-c', 'echo $T_A'], env={**os.environ}, text=True).strip()",
    "if mood == 'a': f.__annotations__['x'] = str; f.__doc__ = 'other'",
    "c = typing.get_type_hints(f)['x'].__name__, f.__doc__",
    "rows.writerow({'m': mood})",
    "h.close(); d = open('o.csv').read()",
    "stdout = sys.stdout; e = mood",
    "sys.path.insert(0, ''); os.mkdir('pk'); open('pk/__init__.py', 'w').close()\nopen('pk/sub.py', 'w').write(f'V = {mood!r} + \"b\" * {len(mood)}')",
    "from pk.sub import V\nprint(V)",
    "print(a, b, c, d, e)",
    "del h, rows, stdout, variables",
]


@pytest.mark.slow
def test_environments_by_any_name_annotations_and_what_writes_through_a_file_are_followed():
    how, why = judged(SIBLINGS, "bb")
    assert how == "right" and "proved" in why, why


def test_a_miss_before_is_no_doubt_and_what_went_live_is_planned_as_answered(tmp_path):
    with session(tmp_path, "a") as kernel:
        run(kernel, [R + "mood = ask()", R + "more = ask(mood)"])
        missed = kernel.execute("%%tape replay\nx = ask('never recorded')", "m")
        assert missed.ename == "UnmatchedCall"
        kernel.execute("print(more)", "p")
        tape = next(tmp_path.glob("nb.tapes/main.tape.yaml")).read_text()
        first = re.search(r'^call: "?([0-9a-f]{8})"?$', tape, re.MULTILINE)[1]
        kernel.execute(f"%tape override {first} --value '\"b\"' --take new", "o")
        said = kernel.execute("%tape rerun new --on-divergence live", "r").stdout
        assert "1 may go live: 1 of [3]" in said and "went live" in said, said
        proof = aside(kernel, JOIN, tmp_path / "compared.json")["proof"]
        assert proof["state"] == "proved", proof
        assert "2 recorded calls, 0 may go live" in kernel.execute("%tape plan new", "q").stdout


@pytest.mark.slow
def test_a_stream_that_is_read_leaves_its_client_as_it_was(tmp_path):
    stream = (
        "with claude.messages.stream(model='m', max_tokens=9, messages=[dict(role='user', content='{}')]) as s:\n"
        "    {} = s.get_final_text()"
    )
    with Provider() as provider, session(tmp_path, "a") as kernel:
        new = f"anthropic.Anthropic(base_url={provider.url!r}, api_key='k')"
        make = f"import anthropic\nclaude = {new}\nother = {new}"
        key = "def put_key(): other.api_key = mood\nput_key()"
        ask = "c = other.messages.create(model='m', max_tokens=9, messages=[dict(role='user', content='z')])"
        streams = [R + stream.format("x", "a"), R + stream.format("y", "b"), "print(b)"]
        run(kernel, [make, *streams, R + "mood = ask()", key, R + ask])
        tape = next(tmp_path.glob("nb.tapes/main.tape.yaml")).read_text()
        calls = re.findall(r'^call: "?([0-9a-f]{8})"?$', tape, re.MULTILINE)
        kernel.execute(f"%tape override {calls[0]} --text x --take one", "o")
        kernel.execute(f"%tape override {calls[2]} --value '\"b\"' --take two", "p")
        one = kernel.execute("%tape plan one", "q").stdout
        assert one.startswith("Re-run 1 of 8 cells"), one
        two = kernel.execute("%tape plan two", "r").stdout
        assert "c = create" in two and "1 may go live" in two, two
