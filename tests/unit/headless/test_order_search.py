"""`tape replay --shuffle`: the order of replies that breaks a notebook is found, said, and found again by its seed."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.cli import tape as command
from tests.harness.notebook import ROOT, notebook

RACE = """
import asyncio
import tape_jupyter as tape
state = {"last": 0, "seen": []}
@tape.tool
async def fetch(number):
    await asyncio.sleep(number / 100)
    return number
async def update(number):
    got = await fetch(number)
    state["seen"].append(got)
    state["last"] = got
async def main():
    await asyncio.gather(*(update(number) for number in range(1, 6)))
"""


def raced(path, **options):
    """Runs the program under a tape; the order in which its five calls ended."""
    scope = {}
    exec(RACE, scope)
    with tape.replaying(path, **options):
        asyncio.run(scope["main"]())
    return scope["state"]["seen"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("shuffle") / "race.tape.yaml"
    assert raced(path, mode="record") == [1, 2, 3, 4, 5]
    return path


def test_a_seed_gives_the_same_order_again_and_others_give_others(recorded):
    orders = [tuple(raced(recorded, shuffle=seed)) for seed in range(40)]
    assert orders == [tuple(raced(recorded, shuffle=seed)) for seed in range(40)]
    assert len(set(orders)) > 25
    assert {order[-1] for order in orders} == {1, 2, 3, 4, 5}
    assert raced(recorded) == raced(recorded, pace="order") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("begins", [[5, 4], [3, 1], [4, 2]])
def test_a_race_that_one_order_in_twenty_shows_is_found_in_fewer_than_100(recorded, begins):
    seed = next(seed for seed in range(1, 100) if raced(recorded, shuffle=seed)[:2] == begins)
    assert raced(recorded, shuffle=seed)[:2] == begins


def test_threads_are_shuffled_too(tmp_path):
    turns = [threading.Event() for _ in range(6)]
    turns[1].set()

    @tape.tool
    def fetch(number):
        assert turns[number].wait(60)
        return number

    def program():
        seen = []
        with ThreadPoolExecutor(4) as pool:
            for done in as_completed([pool.submit(fetch, number) for number in range(1, 5)]):
                seen.append(done.result())
                turns[done.result() + 1].set()
        return seen

    with tape.recording(tmp_path / "t.tape.yaml"):
        assert program() == [1, 2, 3, 4]
    found = []
    for seed in [1, 2, 3, 4, 1, 2, 3, 4]:
        with tape.replaying(tmp_path / "t.tape.yaml", shuffle=seed):
            found.append(tuple(program()))
    assert found[:4] == found[4:] and len(set(found)) > 1


# ---------------------------------------------------------------- the command


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words], env={"PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A notebook whose second cell holds as long as the call that was asked first is not the last to come back."""
    cell = "await main()\nassert state['last'] != 1, state\nprint('well')"
    path = notebook(tmp_path_factory.mktemp("planted") / "race.ipynb", RACE, cell)
    done = run("record", path)
    assert done.exit_code == 0, done.output
    return path


def test_the_command_finds_the_order_that_breaks_a_notebook_and_says_its_seed(planted):
    done = run("replay", planted, "--shuffle", 1, "--tries", 30)
    assert done.exit_code == 1, done.output
    first, *_, last = done.stdout.strip().splitlines()
    assert first.startswith("seed 1: ") and "AssertionError" in done.output
    assert (
        last
        == f"seed {last.split()[1]} breaks it; see it again with: tape replay {planted} --shuffle {last.split()[1]}"
    )
    again = run("replay", planted, "--shuffle", last.split()[1], "--json")
    assert again.exit_code == 1
    assert [cell["status"] for cell in json.loads(again.stdout)[0]["cells"]] == ["same", "failed"]


def test_an_order_that_breaks_nothing_is_said_to(planted):
    seed = next(seed for seed in range(1, 100) if raced_like(planted, seed)[-1] != 1)
    done = run("replay", planted, "--shuffle", seed)
    assert done.exit_code == 0 and "1 order tried, all as saved" in done.stdout, done.output


def raced_like(planted, seed):
    """The order that a seed gives the notebook's calls, found without a kernel."""
    cassette = tape.open(planted.parent / "race.tapes" / "main.tape.yaml")
    from tape_jupyter.determinism.scheduler import Timeline

    timeline = Timeline(cassette.calls, str(seed))
    ordered = sorted(cassette.calls, key=lambda call: timeline.order(call.id, 0, last=True))
    return [call.reply().value for call in ordered]
