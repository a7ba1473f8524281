"""One environment variable is not another; how pandas shows a number is not how it adds them."""

import ast
import os

import pytest

from tape_jupyter.dataflow.tracing.ambient import options_read, options_set, variables_of

NAMES = {"os": os, "env": os.environ, "getenv": os.getenv}


@pytest.mark.parametrize(
    ("source", "reads", "writes"),
    [
        ("print(os.environ['A'])", {"A"}, set()),
        ("x = os.getenv('A') or env.get('B', '')", {"A", "B"}, set()),
        ("os.environ['A'] = f(getenv('B'))", {"B"}, {"A"}),
        ("del env['A']", set(), {"A"}),
        ("x = 'A' in os.environ and 'B' not in env", {"A", "B"}, set()),
        ("os.environ.update({'A': '1'}, B=b)", set(), {"A", "B"}),
        ("x = env.pop('A')", {"A"}, {"A"}),
        ("os.environ.setdefault('A', '1')", {"A"}, {"A"}),
        ("x = 1", set(), set()),
    ],
)
def test_the_variables_that_stand_in_a_text_are_those_it_is_about(source, reads, writes):
    def as_resources(names):
        return {f"ambient:environment[{name!r}]" for name in names}

    assert variables_of(ast.parse(source), NAMES.get) == (as_resources(reads), as_resources(writes))


@pytest.mark.parametrize(
    "source",
    [
        "os.environ[key]",
        "dict(env)",
        "os.environ.update(settings)",
        "os.environ.update(A='1', **settings)",
        "os.environ.update({key: '1'}, A='1')",
        "f(os.environ)",
        "os.getenv(key)",
        "os.environ['A'], env",
    ],
)
def test_who_handles_the_environment_as_a_whole_is_about_all_of_it(source):
    assert variables_of(ast.parse(source), NAMES.get) is None


def test_options_of_showing_are_apart_from_those_of_reckoning():
    assert options_set(["display.precision", "a text"]) == "ambient:pandas['display']"
    assert options_set(["mode.copy_on_write", "display.width"]) == "ambient:pandas"
    assert options_set(["precision"]) == "ambient:pandas"
    assert set(options_read(["pandas.core.frame.DataFrame.sum"])) == {"ambient:pandas['mode']"}
    assert "ambient:pandas['display']" in set(options_read(["pandas.io.formats.format.repr"]))
