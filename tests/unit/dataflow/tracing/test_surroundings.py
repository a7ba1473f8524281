"""Commands of the shell: which say, read, write."""

import pytest

from tape_jupyter.dataflow.tracing import surroundings
from tape_jupyter.dataflow.tracing.folders import may_write
from tape_jupyter.dataflow.static.uses import Touch


@pytest.mark.parametrize(("command", "says", "writes"), [
    ("echo hi", True, False), ("cat a.txt", False, False), ("echo hi > a", True, True), ("python x.py", False, True),
])  # fmt: skip
def test_commands(command, says, writes):
    assert surroundings._is_printing_command(command) is says and may_write(command) is writes


def test_a_call_that_sets_something_is_told_from_one_that_says_something():
    told = surroundings.Surroundings._is_for_effect
    assert told(Touch("csv", "method", "register_dialect", kept=False), "csv")
    assert not told(Touch("json", "method", "dump", kept=False), "json")
    assert not told(Touch("lg", "method", "info", kept=False), "logging")
