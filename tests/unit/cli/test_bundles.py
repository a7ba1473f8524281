"""The commands about bundles are there, and say how they are used."""

import pytest
from click.testing import CliRunner

from tape_jupyter.cli import tape


@pytest.mark.parametrize("word", ["export", "verify", "open"])
def test_each_command_shows_an_example(word):
    done = CliRunner().invoke(tape, [word, "--help"])
    assert done.exit_code == 0
    assert f"  tape {word} churn" in done.output


def test_a_command_without_its_file_is_bad_usage():
    assert CliRunner().invoke(tape, ["export"]).exit_code == 2
