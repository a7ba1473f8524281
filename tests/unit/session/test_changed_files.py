"""What a recorded cell tells of files stands on its end mark, once, in a real kernel."""

from tape_jupyter.cassette.cassette import Cassette
from tests.harness.notebook import Kernel, notebook


def told(folder):
    cassette = Cassette.open(folder / "n.tapes" / "main.tape.yaml")
    return [
        [(each["path"], each["before"]) for each in end.get("files", ())]
        for end in cassette.ended.values()
    ]


def test_each_change_is_told_once_by_the_cell_that_is_recorded_next_and_again_by_that_cell(
    tmp_path,
):
    folder = tmp_path / "work"
    log = "%%tape record\nopen('log.txt', 'a').write('1')"
    notebook(folder / "n.ipynb", log)
    (folder / "data.csv").write_text("1")
    with Kernel(folder, {"TAPE_NOTEBOOK": str(folder / "n.ipynb")}) as kernel:
        assert kernel.execute("%load_ext tape_jupyter").ok
        assert kernel.execute(
            "import sqlite3; c = sqlite3.connect('a.db'); c.execute('create table t (x)')"
        ).ok
        assert kernel.execute("%%tape record\nopen('data.csv').read()").ok, (
            "what is only read is not told"
        )
        assert kernel.execute(log).ok
        assert kernel.execute("%%tape record\nopen('data.csv', 'w').write('2')").ok
        assert kernel.execute(log).ok
    assert told(folder) == [
        [("a.db", "none")],
        [("log.txt", "none")],
        [("data.csv", "file")],
        [("log.txt", "none")],
    ]
