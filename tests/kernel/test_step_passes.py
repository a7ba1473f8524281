"""The passes of a stepped cell: what a cell changed is put back before it runs again; its outputs are those of one run."""

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider
from tests.harness.stepped import ASK, LOAD, Stepper

CELL = """import os, random
rows.append(len(rows))
table["total"] = table.get("total", 0) + 1
os.environ["STEPPED"] = "yes"
with open("log.txt", "a") as file:
    file.write("line\\n")
drawn = random.random()
first = ask("one")
second = ask("two")
len(rows)"""


@pytest.fixture
def page(tmp_path):
    notebook(tmp_path / "nb.ipynb", LOAD)
    with (
        Provider() as provider,
        Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}) as kernel,
    ):
        setup = "rows, table = [], {}\nrows_before = rows\nimport random\nrandom.seed(3)"
        for code in (LOAD, ASK.replace("URL", provider.url), setup, f"%%tape record\n{CELL}"):
            assert kernel.execute(code).ok
        page = Stepper(kernel)
        page.hello()
        yield page


def value(page, code):
    return page.kernel.execute(code).result


def test_going_back_undoes_names_objects_files_and_the_environment(page, tmp_path):
    page.kernel.execute("del first, second, os.environ['STEPPED']")
    page.run(f"%%tape step\n{CELL}")
    page.stop_at()
    for _ in range(3):
        page.moved("over")
        page.moved("back")
    assert (tmp_path / "log.txt").read_text() == "line\n" * 2
    page.do("continue")
    ran = page.end()
    assert ran.ok and ran.result == "2" and page.cleared == 3
    assert value(page, "rows, table, rows is rows_before") == "([0, 1], {'total': 2}, True)"
    assert (tmp_path / "log.txt").read_text() == "line\n" * 2


def test_stop_leaves_nothing_of_the_cell_and_one_line_says_so(page, tmp_path):
    page.kernel.execute("del first, second, os.environ['STEPPED']")
    page.run(f"%%tape step\n{CELL}")
    page.stop_at()
    page.moved("over")
    page.do("stop")
    ran = page.end()
    assert (
        ran.status == "error"
        and ran.traceback.count("\n") == 0
        and "tape step: stepping was stopped" in ran.traceback
    )
    assert (
        value(page, "rows, table, 'first' in globals(), 'STEPPED' in os.environ")
        == "([0], {'total': 1}, False, False)"
    )
    assert (tmp_path / "log.txt").read_text() == "line\n"


def test_what_cannot_be_put_back_is_named_below_the_cell(page):
    page.kernel.execute(
        "lines = iter(open('log.txt'))\ndef numbers():\n    yield from range(9)\ngenerator = numbers()"
    )
    source = "next(generator)\na = ask('one')\nb = ask('two')"
    assert page.kernel.execute(f"%%tape record more\n{source}").ok
    page.run(f"%%tape step more\n{source}")
    page.stop_at()
    page.moved("over")
    page.moved("back")
    page.do("continue")
    assert "generator could not be put back" in page.end().summary


def test_code_that_hides_that_it_is_left_does_not_keep_the_person_there(page):
    source = "for word in ('one', 'two'):\n    try:\n        ask(word)\n    except BaseException:\n        pass\nprint('end')"
    page.run(f"%%tape step\n{source}")
    page.stop_at()
    page.moved("over")
    state = page.moved("back")
    assert [each["call"]["place"] for each in state["strands"]] == [":1"]
    page.do("continue")
    assert page.end().stdout == "end\n"


def test_an_error_of_the_cells_own_is_shown_as_ever(page):
    page.run("%%tape step\nask('one')\n1 / 0")
    page.stop_at()
    page.do("continue")
    ran = page.end()
    assert ran.ename == "ZeroDivisionError" and page.states[-1]["state"] == "over"
    assert page.kernel.execute("%%tape replay\nask('one')").ok
