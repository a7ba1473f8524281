"""Tracebacks without the frames of packages: a person's own lines, the names and messages of errors stay."""

import asyncio
import json
import traceback

import pytest
from IPython.core import ultratb

from tape_jupyter.comparison import outputs as comparison_outputs, outputs
from tape_jupyter.comparison.outputs import places


def mine(text="{"):
    return json.loads(text)


def again():
    try:
        mine()
    except ValueError as error:
        raise KeyError("no answer") from error


def raised(program):
    try:
        program()
    except BaseException as error:  # noqa: BLE001 - groups too
        return error
    raise AssertionError("nothing was raised")


def plain(error):
    return "".join(traceback.format_exception(error))


def notebooks(error):
    """As IPython shows it."""
    lines = ultratb.VerboseTB(theme_name="nocolor").structured_traceback(
        type(error), error, error.__traceback__
    )
    return outputs._ANSI.sub("", "\n".join(lines))


SHOWN = {"python": plain, "ipython": notebooks}


@pytest.mark.parametrize("shown", SHOWN)
def test_frames_of_python_itself_go_and_own_frames_stay(shown):
    whole = SHOWN[shown](raised(mine))
    cut = comparison_outputs.own_frames(whole)
    assert "decoder.py" in whole and "raw_decode" in whole
    assert "decoder.py" not in cut and "raw_decode" not in cut and "\n\n\n" not in cut
    assert "return json.loads(text)" in cut and "in mine" in cut
    assert cut.rstrip().endswith(
        "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    )


@pytest.mark.parametrize("shown", SHOWN)
def test_an_error_behind_the_last_stays_where_an_own_frame_is_in_it(shown):
    cut = comparison_outputs.own_frames(SHOWN[shown](raised(again)))
    assert (
        "JSONDecodeError" in cut
        and "direct cause" in cut
        and "KeyError: 'no answer'" in cut
        and "decoder.py" not in cut
    )


@pytest.mark.parametrize("shown", SHOWN)
def test_an_error_that_only_packages_raised_and_caught_goes_with_its_joint(shown):
    def refused():
        import requests

        requests.get("http://127.0.0.1:9/x", timeout=3)

    error = raised(refused)
    whole, cut = SHOWN[shown](error), comparison_outputs.own_frames(SHOWN[shown](error))
    assert whole.count("Traceback (most recent") > 2 and cut.count("Traceback (most recent") == 1
    assert "requests.get(" in cut and "Max retries exceeded" in cut and "site-packages" not in cut
    error.__context__ = None  # as a replay may give it
    without = comparison_outputs.own_frames(SHOWN[shown](error))
    assert [line for line in without.splitlines() if not line.startswith("ConnectionError  ")] == [
        line for line in cut.splitlines() if not line.startswith("ConnectionError  ")
    ]


def test_a_group_of_errors_keeps_its_tree():
    async def both():
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            raise ExceptionGroup("two", [raised(mine), raised(again)])

    cut = comparison_outputs.own_frames(plain(raised(lambda: asyncio.run(both()))))
    assert (
        "decoder.py" not in cut and "base_events" not in cut and "in run_until_complete" not in cut
    )
    assert (
        cut.count("in mine") == 2
        and "1 sub-exception" in cut
        and "  | ExceptionGroup: two (2 sub-exceptions)" in cut
    )


@pytest.mark.parametrize(
    "path",
    [
        "~/venv/lib/python3.11/site-packages/httpx/_client.py", "/usr/lib/python3/dist-packages/requests/api.py",
        "/usr/lib/python3.13t/json/decoder.py", "C:\\Python311\\Lib\\json\\decoder.py",
        "C:\\u\\cpython-3.12.1-windows\\Lib\\ssl.py", "<frozen importlib._bootstrap>",
        "/src/tape-jupyter/tape_jupyter/instrumentation/http/httpx.py", "/src/tape_jupyter/isolation/network_guard.py",
    ],
)  # fmt: skip
def test_where_packages_lie(path):
    assert comparison_outputs.INSTALLED.search(path)


@pytest.mark.parametrize(
    "path", ["~/proj/lib/mine.py", "/home/ada/python3/mine.py", "/tmp/ipykernel_1/77.py", "mine.py"]
)
def test_where_a_persons_own_modules_lie(path):
    assert not comparison_outputs.INSTALLED.search(path)


def test_a_text_that_speaks_of_files_is_left_as_it_is():
    text = 'File "/usr/lib/python3.11/json/decoder.py", line 3, in f\n  said the model\n'
    assert comparison_outputs.own_frames(text) is text


def error(*lines):
    return [
        {
            "output_type": "error",
            "ename": "E",
            "evalue": "no",
            "traceback": ["E  Traceback (most recent call last)", *lines],
        }
    ]


def test_a_package_that_is_imported_from_where_it_lies_is_installed_elsewhere(tmp_path):
    where = places(tmp_path / "notebooks", tmp_path, [str(tmp_path / "src" / "pack")])
    mine, there = (
        "Cell In[1], line 1\n----> 1 go()\n",
        "File /x/lib/python3.11/site-packages/pack/a.py:3, in go()\n      3 raise\n",
    )
    for here in (f"{tmp_path}/src/pack/a.py", "~/src/pack/a.py"):
        assert outputs.same_outputs(
            error(mine, f"File {here}:3, in go()\n      3 raise\n", "E: no"),
            error(mine, there, "E: no"),
            where,
        )
    assert not outputs.same_outputs(
        error(mine, "File ~/src/other.py:3, in go()\n      3 raise\n", "E: no"),
        error(mine, there, "E: no"),
        where,
    )


def test_of_own_frames_every_line_counts():
    saved = error("File ~/p/mine.py:3, in go()\n----> 3 fetch()\n", "E: no")
    assert outputs.same_outputs(
        saved, error("File /q/mine.py:3, in go()\n----> 3 fetch()\n", "E: no")
    )
    assert not outputs.same_outputs(
        saved, error("File /q/mine.py:4, in go()\n----> 4 fetch()\n", "E: no")
    )
