"""What a tool's body draws is drawn in replay too, though the body does not run: the caller's numbers stay."""

import asyncio
import random

import pytest

import tape_jupyter as tape
from tests.harness.twice import twice


def test_numbers_after_a_tool_that_draws_are_those_of_the_recording(tmp_path):
    @tape.tool
    def roll(sides):
        return random.randint(1, sides)

    def program():
        return [
            random.random(),
            roll(6),
            random.random(),
            roll(6),
            random.gauss(0, 1),
            random.random(),
        ]

    recorded, replayed, _ = twice(tmp_path, program)
    assert recorded == replayed


def test_a_tool_that_draws_a_normal_number_leaves_its_spare_one(tmp_path):
    @tape.tool
    def noise():
        return random.gauss(0, 1)

    recorded, replayed, _ = twice(tmp_path, lambda: [noise(), random.gauss(0, 1), random.random()])
    assert recorded == replayed


def test_a_tool_that_seeds_has_seeded_in_replay(tmp_path):
    @tape.tool
    def seeded(n):
        random.seed(n)
        return random.random()

    recorded, replayed, _ = twice(tmp_path, lambda: [seeded(3), random.random()])
    assert recorded == replayed
    assert recorded[1] == [random.seed(3), random.random(), random.random()][2]


def test_a_tool_that_draws_a_hundred_thousand_numbers_has_drawn_them_in_replay(tmp_path):
    @tape.tool
    def many():
        return sum(random.random() for _ in range(100_000)) > 0

    recorded, replayed, _ = twice(tmp_path, lambda: [many(), random.random()])
    assert recorded == replayed


def test_numpys_global_numbers_after_a_tool_are_those_of_the_recording(tmp_path):
    numpy = pytest.importorskip("numpy")

    @tape.tool
    def sample():
        return float(numpy.random.normal())

    def program():
        return [
            float(numpy.random.rand()),
            sample(),
            float(numpy.random.rand()),
            float(numpy.random.normal()),
        ]

    recorded, replayed, _ = twice(tmp_path, program)
    assert recorded == replayed


def test_a_tool_within_a_tool_moves_the_numbers_once(tmp_path):
    @tape.tool
    def inner():
        return random.random()

    @tape.tool
    def outer():
        return [random.random(), inner(), random.random()]

    recorded, replayed, report = twice(tmp_path, lambda: [outer(), random.random()])
    assert recorded == replayed
    assert "moved" not in "".join(report.warnings)


def test_a_tool_that_fails_has_drawn_as_well(tmp_path):
    @tape.tool
    def fails():
        random.random()
        raise ValueError("no")

    def program():
        with pytest.raises(ValueError, match="no"):
            fails()
        return random.random()

    recorded, replayed, _ = twice(tmp_path, program)
    assert recorded == replayed


def test_awaited_tools_one_after_another(tmp_path):
    @tape.tool
    async def roll():
        await asyncio.sleep(0)
        return random.random()

    async def both():
        return [await roll(), random.random(), await roll(), random.random()]

    recorded, replayed, report = twice(tmp_path, lambda: asyncio.run(both()))
    assert recorded == replayed
    assert "moved" not in "".join(report.warnings)


def test_that_two_tools_drew_at_once_is_said_while_recording(tmp_path):
    @tape.tool
    async def roll(n):
        await asyncio.sleep(0)
        return random.random()

    async def both():
        return await asyncio.gather(roll(1), roll(2))

    with tape.recording(tmp_path / "a.tape.yaml") as block:
        asyncio.run(both())
    assert "roll used random while other code ran" in "\n".join(block.report.warnings)


def test_a_tool_that_draws_nothing_leaves_no_word_of_it(tmp_path):
    @tape.tool
    def plain():
        return 1

    _, _, _ = twice(tmp_path, plain)
    assert "\n  moved:" not in (tmp_path / "a.tape.yaml").read_text()


def test_a_hand_made_number_of_draws_is_named_and_not_followed(tmp_path):
    @tape.tool
    def roll():
        return random.random()

    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        roll()
    path.write_text(path.read_text().replace("words: 2", "words: 99999999999"))
    with tape.replaying(path) as block:
        roll()
    assert "how far a function moved it cannot be read" in "\n".join(block.report.warnings)


def test_a_generator_that_draws_between_its_items_is_named(tmp_path):
    @tape.tool
    def rolls():
        for _ in range(3):
            yield random.random()

    with tape.recording(tmp_path / "a.tape.yaml") as block:
        list(rolls())
    assert "rolls used random while other code ran" in "\n".join(block.report.warnings)


def test_without_the_pin_nothing_is_counted(tmp_path):
    @tape.tool
    def roll():
        return random.random()

    with tape.recording(tmp_path / "a.tape.yaml", no_pin=["random"]):
        roll()
    assert "words: 2" not in (tmp_path / "a.tape.yaml").read_text()
