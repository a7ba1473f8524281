"""Programs that execute notebooks from a command line: which notebook runs is known, also where its
output lies beside it and holds the same cells.
"""

import subprocess
import sys

import nbformat
import pytest

from tests.harness.notebook import clean_env, notebook
from tests.harness.tapes import ASK


def cells(url):
    return ("%load_ext tape_jupyter\n" + ASK.replace("URL", url), "%%tape record\nprint(ask('Hi'))")


COPIES = """
import asyncio, os, sys
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

async def run(name, told):
    client = NotebookClient(nbformat.read(name, 4), kernel_name="python3")
    more = {"TAPE_NOTEBOOK": os.path.abspath(name)} if told else {}
    try:
        await client.async_execute(env={**os.environ, **more})
    except CellExecutionError as error:
        print(error.evalue)

async def both(told):
    await asyncio.gather(run("a.ipynb", told), run("b.ipynb", told))

asyncio.run(both(sys.argv[1] == "told"))
"""
NBCONVERT = "nbconvert --to notebook --execute"
COMMANDS = {
    "nbconvert": f"{NBCONVERT} shop.ipynb --output out.ipynb",
    "nbconvert, the output first": f"{NBCONVERT} --output out shop.ipynb",
    "jupyter execute": "jupyter execute shop.ipynb --output=out.ipynb",
}


def run(where, words):
    words = words.split()
    program = [sys.executable, "-m", *words]
    return subprocess.run(
        program, cwd=where, env=clean_env(where), capture_output=True, text=True, timeout=170
    )


def shown(path):
    """What the last cell printed, and whether a line under it names several notebooks."""
    outputs = nbformat.read(path, 4).cells[-1].outputs
    told = [str(each.get("data", {}).get("text/plain", "")) for each in outputs]
    return outputs[0]["text"], any("several notebooks" in text for text in told)


@pytest.mark.slow
@pytest.mark.spread(2)  # the order of nbconvert's words: at night
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_executed_twice_it_is_still_the_notebook_that_was_named(words, tmp_path, provider):
    notebook(tmp_path / "shop.ipynb", *cells(provider.url))
    for _ in range(2):
        done = run(tmp_path, words)
        assert done.returncode == 0, done.stderr
        assert shown(tmp_path / "out.ipynb")[1] is False
    assert (tmp_path / "shop.tapes" / "main.tape.yaml").is_file()
    assert not (tmp_path / "out.tapes").exists() and len(provider.requests) == 2


@pytest.mark.slow
def test_papermill_from_and_for_another_folder_with_its_output_elsewhere(tmp_path, provider):
    (tmp_path / "work").mkdir()
    notebook(tmp_path / "notebooks" / "shop.ipynb", *cells(provider.url))
    words = f"papermill ../notebooks/shop.ipynb {tmp_path / 'made.ipynb'} -k python3"
    done = run(tmp_path / "work", words)
    assert done.returncode == 0, done.stderr
    # Then made to work in a folder where an output of before holds the same cells.
    (tmp_path / "made.ipynb").rename(tmp_path / "work" / "older.ipynb")
    done = run(tmp_path, "papermill notebooks/shop.ipynb made.ipynb -k python3 --cwd work")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "notebooks" / "shop.tapes" / "main.tape.yaml").is_file()
    for place, names in (
        (tmp_path, ["made.ipynb", "notebooks", "work"]),
        (tmp_path / "work", ["older.ipynb"]),
    ):
        assert sorted(each.name for each in place.iterdir() if each.name[0] != ".") == names


@pytest.mark.slow
def test_copies_that_a_script_runs_at_once_are_asked_for_or_told_by_the_environment(
    tmp_path, provider
):
    for name in ("a.ipynb", "b.ipynb"):
        notebook(tmp_path / name, *cells(provider.url))
    (tmp_path / "both.py").write_text(COPIES)
    words = [sys.executable, "both.py"]
    env = clean_env(tmp_path)
    asked, told = (
        subprocess.run([*words, how], cwd=tmp_path, env=env, capture_output=True, text=True)
        for how in ("", "told")
    )
    assert asked.stdout.count("several notebooks hold this cell (a.ipynb, b.ipynb)") == 2
    assert asked.stdout.count("set TAPE_NOTEBOOK to the notebook's path") == 2
    assert told.returncode == 0 and told.stdout == ""
    assert all((tmp_path / f"{name}.tapes" / "main.tape.yaml").is_file() for name in "ab")
    assert len(provider.requests) == 2
