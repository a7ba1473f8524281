"""A notebook is held to nbformat's schema of its version, but for keys that it does not know; nbformat itself is asked only where
that schema is not there.
"""

import json
import subprocess
import sys

import nbformat
import pytest

from tape_jupyter.core.notebook_schema import wrong
from tape_jupyter.core.notebook_text import code_cells, parse_notebook
from tests.harness.bundles import notebook


@pytest.mark.parametrize("change", [
    {}, {"nbformat_minor": 4}, {"nbformat_minor": 0}, {"nbformat_minor": 9}, {"cells": 1}, {"cells": [{"cell_type": "evil"}]}, {"metadata": []},
    {"nbformat": 3, "nbformat_minor": 0}, {"nbformat": 99}, {"nbformat": "4"}, {"nbformat": None}, {"more": 1},
    {"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "execution_count": "1", "outputs": [], "source": ""}]},
    {"cells": [{"cell_type": "code", "id": "a b", "metadata": {}, "execution_count": 1, "outputs": [], "source": ""}]},
    {"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["a", "b"]}], "nbformat_minor": 4},
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_it_says_what_nbformat_says(change):
    data = json.dumps(json.loads(notebook()) | change).encode()
    try:
        told = nbformat.reads(data.decode(), as_version=nbformat.NO_CONVERT)
        nbformat.validate(told, relax_add_props=True)
        good = True
    except Exception:
        good = False
    assert (wrong(data) == "") == good, wrong(data)


def test_what_nbclient_does_without_may_be_left_out():
    told = json.loads(notebook())
    del told["nbformat_minor"]
    told["metadata"]["kernelspec"] = {"name": "python3"}
    shown = [
        {"output_type": "stream", "text": "x"},
        {"output_type": "display_data", "data": {"text/plain": "x"}},
        {"output_type": "execute_result", "data": {"text/plain": "x"}},
    ]
    code = {"cell_type": "code", "metadata": {}, "source": ["1"]}
    told["cells"] = [code, {**code, "outputs": shown}]
    assert wrong(json.dumps(told).encode()) == ""
    assert [len(cell.outputs) for cell in code_cells(json.dumps(told))] == [0, 3]
    assert len(parse_notebook(json.dumps(told)).cells[1].outputs[1].metadata) == 0


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"1", b"\xff", b"[" * 100_000, b'{"nbformat": 4}', b"{}"]
)
def test_what_is_no_notebook_at_all_is_told_in_one_line(data):
    said = wrong(data)
    assert said and "\n" not in said and len(said) <= 200


def test_a_notebook_of_today_needs_no_nbformat():
    told = "import sys; from tape_jupyter.core.notebook_schema import wrong; print([wrong(sys.argv[1].encode())], 'nbformat' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", told, notebook()], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[''] False\n"


@pytest.mark.parametrize(
    "version", [10**300, -1, 4.5, True, "4", None, [4]], ids=lambda v: f"{v}"[:4]
)
@pytest.mark.parametrize("name", ["nbformat", "nbformat_minor"])
def test_a_version_that_is_none_is_said_without_a_path_of_this_machine(name, version):
    book = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5, name: version}
    reason = wrong(json.dumps(book).encode())
    assert reason == f"its {name} is no version: a number from 0 to 999"
