"""A taped cell as values: names of calls, things said once, refusals remembered."""

import asyncio
from decimal import Decimal

import pytest

from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.session.cell import TapedCell, CellRequest, ReportRow, current_task
from tape_jupyter.replay.player import Player
from tape_jupyter.providers.registry import Facts, Usage
from tape_jupyter.cassette.runs import CellIdentity


def cell(mode="record"):
    player = Player(lambda _: (), lambda: ())
    return TapedCell(CellRequest(mode), player.start(CellIdentity(), mode), player, None, None)


def test_calls_are_named_by_their_match_key_and_repeats_are_numbered():
    running = cell()
    keys = ["a" * 32, "b" * 32, "a" * 32, "a" * 32]
    assert [running.recording.next_name(key) for key in keys] == [
        "aaaaaaaa",
        "bbbbbbbb",
        "aaaaaaaa-2",
        "aaaaaaaa-3",
    ]


def test_a_warning_is_said_once_and_only_a_cold_one_marks_the_run():
    running = cell()
    for _ in range(3):
        running.warn("slow")
        running.warn("past the tape", cold=True)
    assert running.findings.warnings == ["slow", "past the tape"]
    assert running.findings.cold == ["past the tape"]


def test_a_refusal_is_remembered_and_given_back_to_raise():
    running, refusal = cell(), UnmatchedCall("no")
    assert running.refuse(refusal) is refusal
    assert running.findings.refusals == [refusal]


@pytest.mark.parametrize(
    ("mode", "replays"),
    [("replay", True), ("record", False), ("new_episodes", False), ("live", False)],
)
def test_only_a_cell_that_replays_is_closed_to_the_network(mode, replays):
    assert cell(mode).replaying is replays


def test_a_row_tells_tokens_and_price_where_its_provider_does():
    row = ReportRow("a", "model", "gpt-4o", Facts("openai", model="gpt-4o", usage=Usage(1000, 10)))
    assert (row.provider, row.tokens_in, row.tokens_out) == ("openai", 1000, 10)
    assert isinstance(row.cost, Decimal)
    assert (ReportRow("b", "host", "x").tokens_in, ReportRow("b", "host", "x").cost) == (None, None)


def test_the_task_of_a_cell_is_told_from_the_tasks_it_makes():
    running = cell()
    assert current_task() is None and not running.in_task_of_its_own() and not running.cancelling()

    async def inside():
        return running.in_task_of_its_own()

    async def main():
        running.task = current_task()
        mine, child = await inside(), await asyncio.create_task(inside())
        running.task.cancel()
        told = running.cancelling()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        running.task.uncancel()
        return mine, child, told

    assert asyncio.run(main()) == (False, True, True)
