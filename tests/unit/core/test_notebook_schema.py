"""A notebook is one when nbclient can run it, whatever nbformat's schema says of the rest of it."""

import json
import subprocess
import sys

import pytest

from tape_jupyter.core.notebook_schema import wrong
from tape_jupyter.core.notebook_text import code_cells, parse_notebook
from tests.harness.bundles import notebook


CODE = {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": 1, "outputs": [], "source": "1"}  # fmt: skip
TEXT = {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["a", "b"]}
FLAWED = [
    ({"nbformat": 3, "nbformat_minor": 0}, "worksheets"),
    ({"nbformat": 99}, "nbformat"),
    ({"cells": 1}, "its cells are no list"),
    ({"cells": [1]}, "cell 1 is no object"),
    ({"cells": [CODE, {"metadata": {}, "source": ""}]}, "cell 2 has no cell_type"),
    ({"cells": [{**CODE, "source": None}]}, "the source of cell 1 is no text"),
    ({"cells": [{**CODE, "outputs": None}]}, "the outputs of cell 1 are no list"),
    ({"cells": [{**CODE, "metadata": {"tags": 1}}]}, "the tags of cell 1 are no texts"),
    (
        {"cells": [{**CODE, "outputs": [{"output_type": "stream", "text": 1}]}]},
        "output 1 of cell 1",
    ),
    ({"metadata": []}, "its metadata is no object"),
]


@pytest.mark.parametrize(("change", "flaw"), FLAWED, ids=[each for _, each in FLAWED])
def test_what_nobody_can_run_is_no_notebook_and_why_is_said(change, flaw):
    book = json.loads(notebook()) | change
    assert flaw in wrong(json.dumps(book).encode())


@pytest.mark.parametrize(
    "change",
    [
        {}, {"nbformat_minor": 0}, {"nbformat_minor": 9}, {"more": 1}, {"cells": [TEXT, CODE, CODE]},
        *({"cells": [CODE | {"id": each}]} for each in ("a b", "z" * 99, "", "\u00e9/1", 7, None)),
        *({"cells": [TEXT, CODE | {"execution_count": each}]} for each in (-1, "1", 1.5)),
        *({"cells": [CODE | {"metadata": each}]} for each in ({"tags": ["a", "a", "a,b"]}, {"name": "", "collapsed": 1})),
        {"cells": [{"cell_type": "heading", "metadata": {}, "level": 2}, CODE]},
        {"cells": [CODE | {"outputs": [{"output_type": "pyout", "text": 1}, {"output_type": "error"}]}]},
        {"metadata": {"language_info": None, "authors": "me", "kernelspec": {}}},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_what_nbclient_runs_is_a_notebook_though_its_schema_forbids_it(change):
    text = json.dumps(json.loads(notebook()) | change)
    assert wrong(text.encode()) == ""
    assert [cell.source for cell in code_cells(text)] == [
        cell.source for cell in parse_notebook(text).cells if cell.cell_type == "code"
    ]


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
