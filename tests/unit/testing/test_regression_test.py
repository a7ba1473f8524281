"""`tape export --test`: a test file that pins a run: it passes as written, is the same every time, and is a person's."""

import ast
import importlib.util
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter import cli, testing
from tape_jupyter.testing import regression_test
from tape_jupyter.errors import NotExported
from tests.harness.exported import taped
from tests.harness.notebook import ROOT, clean_env
from tests.harness.tapes import ASK

TOOL = """import tape_jupyter as tape
@tape.tool
def lookup_order(order, user, note=""):
    return {"order": order, "user": user, "state": 'said "paid"\\n' + "x" * 90}
USERS = ["ada", "bob"]"""
SECRET = "sk-ant-api03-Zq8fJ2mV7tR4nB6xK1wL9cD3hG5yP0sA-uEoQiTz"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pinned")
    orders = "print([lookup_order(n, user)['state'] for n, user in enumerate(USERS)])"
    cells = ("%load_ext tape_jupyter", ASK, TOOL, "print(ask('one'))", orders)
    return taped(folder / "the orders-2.ipynb", *cells, vary=False, env=clean_env(folder))


@pytest.fixture(scope="module")
def run(recorded):
    return testing.run_notebook(recorded)


def text(recorded, run):
    return regression_test.regression_test_source(
        recorded, regression_test.regression_test_path(recorded), run
    )


def test_it_says_calls_arguments_and_output_and_whose_order_it_is(recorded, run):
    said = text(recorded, run)
    assert '    ("model", "claude-sonnet-4-5"),\n    ("tool", "lookup_order"),\n' in said
    assert '("lookup_order", {"order": 1, "user": "bob", "note": ""})' in said
    assert "def test_lookup_order_never_answers_about_another_user(run):" in said
    assert 'NOTEBOOK = Path(__file__).parent / "the orders-2.ipynb"' in said
    assert "def test_cell_5_shows_this(run):" in said


def test_it_fails_where_any_call_is_missing_or_gives_something_else(recorded, run):
    told = {}
    exec(text(recorded, run).replace("__file__", repr(str(recorded))), told)  # noqa: S102 - ours
    tests = [each for name, each in told.items() if name.startswith("test_it")]

    def fails(spans):
        other, failed = replace(run, spans=tuple(spans)), 0
        for each in tests:
            try:
                each(other)
            except AssertionError:
                failed += 1
        return failed > 0

    assert len(run.calls) == 3 and not fails(run.calls)
    for number, call in enumerate(run.calls):
        before, after = run.calls[:number], run.calls[number + 1 :]
        assert fails((*before, *after))
        other = (
            {"text": "else"}
            if call.kind == "model"
            else {"answered": {**call.answered, "state": "lost"}}
        )
        assert fails((*before, replace(call, **other), *after))


@pytest.mark.night
def test_it_passes_as_written_and_is_the_same_every_time(recorded, run):
    file = regression_test.write_regression_test(
        recorded, regression_test.regression_test_path(recorded)
    )
    assert file.name == "test_the_orders_2.py" and file.read_text() == text(recorded, run)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", str(file)],
        env={**clean_env(file.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=file.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert "8 passed" in done.stdout, done.stdout


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is of the lint group")
def test_it_is_formatted_as_ruff_formats_and_has_nothing_unused(recorded, run, tmp_path):
    file = tmp_path / "test_it.py"
    odd = [
        "it's",
        'say "x"',
        "both \" and '",
        "tab\t\x00é\u2028\U0001f600",
        "\\",
        {"k" * 80: ["v" * 60, {}]},
        (1.5, None),
        [],
        "y" * 200,
    ]
    file.write_text(
        text(recorded, run) + "\n\n" + regression_test._format_constant("ODD", odd) + "\n"
    )
    for words in (
        ["format", "--isolated", "--diff"],
        ["check", "--isolated", "--select", "E4,E7,E9,F,I"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, str(file)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "value",
    [
        "",
        "plain",
        "it's \"both\" '",
        "\x00\x1f\x7f\x85\ud800\u2028é😀\\n",
        {"a": [1, -2.5e300, None, True]},
        (("x",),),
        [{}] * 40,
    ],
)
def test_what_stands_in_it_is_the_value_itself(value):
    assert ast.literal_eval(regression_test.python_literal(value)) == value


def test_a_file_that_somebody_edited_or_wrote_is_never_written_over(recorded, run, tmp_path):
    file = regression_test.write_regression_test(recorded, tmp_path / "test_mine.py", run)
    assert (
        regression_test.write_regression_test(
            recorded, regression_test.regression_test_path(recorded, file), run
        )
        == file
    )
    for edit in (
        file.read_text() + "# mine\n",
        file.read_text().replace("ada", "eve"),
        "",
        "def test(): pass\n",
    ):
        file.write_text(edit)
        with pytest.raises(tape.TapeUsageError, match="not written over"):
            regression_test.regression_test_path(recorded, file)
        assert file.read_text() == edit
    for wrong in (tmp_path / "notes.txt", tmp_path / "gone" / "test_x.py"):
        with pytest.raises(tape.TapeUsageError):
            regression_test.regression_test_path(recorded, wrong)


def test_the_command_line_refuses_before_anything_runs(recorded, tmp_path):
    (tmp_path / "test_mine.py").write_text("def test(): pass\n")
    words = ["export", recorded, tmp_path / "out.tape.zip", "--test"]
    for file, why in (("test_mine.py", "not written over"), ("notes.txt", "ends in .py")):
        done = CliRunner().invoke(cli.tape, [*map(str, words), str(tmp_path / file)])
        assert done.exit_code == 2 and why in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]


def test_what_looks_like_a_secret_is_left_out_and_the_rest_stands(recorded, run):
    spoken = testing.Span("tool", "login", "c1", "r1", asked={"key": SECRET}, answered={})
    held = testing.Run(run.cells, (*run.spans, spoken), run.outputs)
    said = text(recorded, held)
    assert SECRET not in said and "TOOLS" not in said and '("tool", "login")' in said
    compile(said, "test.py", "exec")


def test_a_notebook_that_does_not_replay_is_not_pinned(recorded, tmp_path):
    bad = tmp_path / recorded.name
    bad.write_text(recorded.read_text().replace("print([lookup", "print(1, [lookup"))
    (tmp_path / "the orders-2.tapes").symlink_to(recorded.with_suffix(".tapes"))
    with pytest.raises(NotExported, match="does not replay as it was saved"):
        regression_test.write_regression_test(bad, tmp_path / "test_bad.py")
    assert not (tmp_path / "test_bad.py").exists()


def test_a_path_to_the_notebook_is_told_from_the_test(recorded, run, tmp_path):
    (recorded.parent / "tests").mkdir(exist_ok=True)
    said = regression_test.regression_test_source(
        recorded, recorded.parent / "tests" / "test_x.py", run
    )
    assert (
        'parent / "../the orders-2.ipynb"' in said
        and str(ROOT) not in said
        and str(recorded.parent) not in said
    )
