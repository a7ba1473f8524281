"""`tape import`: words that make no sense are one line and code 2."""

from click.testing import CliRunner

from tape_jupyter.cli import tape


def run(*words):
    return CliRunner().invoke(tape, [str(word) for word in words])


def test_a_format_that_is_none_names_those_there_are(tmp_path):
    (tmp_path / "x").write_text("{}")
    done = run("import", tmp_path / "x", "--from", "nonsense")
    assert done.exit_code == 2 and "there are: " in done.stderr and "har" in done.stderr


def test_out_is_a_notebook(tmp_path):
    (tmp_path / "x").write_text("{}")
    assert run("import", tmp_path / "x", "--out", tmp_path / "x.yaml").exit_code == 2
    assert run("import", tmp_path / "nothing.json").exit_code == 2
