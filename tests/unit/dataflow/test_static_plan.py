"""`tape.plan(cells, changed)`: what depends on a change, from the text of cells alone."""

import nbformat
import pytest

import tape_jupyter as tape

PIPELINE = [
    "import json",
    "mood = llm('classify')",
    "rows = json.loads('[1, 2]')",
    "answer = llm('answer ' + mood)",
    "print(rows)",
    "print(answer)",
]


def cells(planned):
    return [cell.entry for cell in planned.cells]


def test_the_pipeline_of_the_readme():
    planned = tape.plan(PIPELINE, 1)
    assert cells(planned) == [1, 3, 5] and planned.downstream == [3, 5]
    assert planned.cells[1].reasons == ("reads `mood`, set by [2]",) and planned.total == 6


@pytest.mark.parametrize(
    ("sources", "downstream"),
    [
        (
            [
                "r = llm('q')",
                "def f():\n    return r",
                "def g():\n    return f()",
                "print(g())",
                "print(1)",
            ],
            [3],
        ),
        (["log = []", "view = log", "log.append(llm('q'))", "print(view)"], [3]),
        (["r = llm('q')", "r = 1", "print(r)"], []),
        (["r = llm('q')", "%%capture out\nprint(r)", "out.stdout"], [1, 2]),
        (["r = llm('q')", "!echo $r", "print('k')"], [1]),
        (["open('a', 'w').write(llm('q'))", "text = open('a').read()", "print(text)"], [1, 2]),
        (["llm('q')", "print(_)"], [1]),
        (["r = llm('q')", "print(globals())"], [1]),
        (["memo = {}", "def ask(p):\n    memo[p] = llm(p)", "ask('q')", "print(memo)"], [3]),
    ],
)
def test_what_depends_is_found(sources, downstream):
    changed = next(i for i, source in enumerate(sources) if "'q'" in source)
    assert set(downstream) <= set(tape.plan(sources, [changed]).downstream)
    assert not downstream or len(sources) > len(downstream)


def test_a_notebook_by_the_ids_of_its_cells(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# A"),
            *(nbformat.v4.new_code_cell(s, id=f"c{i}") for i, s in enumerate(PIPELINE)),
        ]
    )
    nbformat.write(notebook, tmp_path / "n.ipynb")
    assert [c.cell for c in tape.plan(tmp_path / "n.ipynb", "c1").cells] == ["c1", "c3", "c5"]


def test_a_cell_that_is_not_there_and_a_notebook_that_is_none(tmp_path):
    with pytest.raises(tape.TapeUsageError, match="no cell 9; the code cells are 0 to 5"):
        tape.plan(PIPELINE, [9])
    (tmp_path / "n.ipynb").write_text("{")
    with pytest.raises(tape.TapeUsageError, match="not a notebook"):
        tape.plan(tmp_path / "n.ipynb", 0)


def test_text_that_is_no_python_may_read_anything():
    assert 1 in tape.plan(["r = llm('q')", "this is no python"], 0).downstream
