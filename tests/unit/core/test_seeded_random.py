import os
import threading

import pytest

from tape_jupyter.core.seeded_random import Chance

SEED = bytes(range(32))


def test_the_same_seed_gives_the_same_draws():
    one, other = Chance(SEED), Chance(SEED)
    assert [one.draw(5, "m", "") for _ in range(4)] == [other.draw(5, "m", "") for _ in range(4)]


def test_every_draw_is_another_and_as_long_as_asked():
    chance = Chance(SEED)
    drawn = [
        chance.draw(16, drawer, strand)
        for drawer in "ab"
        for strand in ("", "0", "0.1")
        for _ in range(5)
    ]
    assert len(set(drawn)) == 30 and {len(each) for each in drawn} == {16}
    assert chance.draw(0, "a", "") == b""
    assert len(chance.draw(1_000_000, "a", "")) == 1_000_000


def test_another_seed_gives_other_draws():
    assert Chance(SEED).draw(8, "m", "") != Chance(SEED[::-1]).draw(8, "m", "")


def test_what_one_drawer_draws_does_not_shift_another_nor_one_strand_another():
    plain, busy = Chance(SEED), Chance(SEED)
    for _ in range(7):
        busy.draw(16, "a library", "")
        busy.draw(16, "m", "3")
    assert plain.draw(16, "m", "") == busy.draw(16, "m", "")


def test_the_persons_own_module_may_be_called_otherwise_in_the_replay():
    assert Chance(SEED, "__main__").draw(8, "__main__", "") == Chance(SEED, "program").draw(
        8, "program", ""
    )


def test_names_of_any_characters_can_draw():
    assert len(Chance(SEED).draw(4, "m\ud800\n", "é")) == 4


def test_what_is_fixed_stays_and_is_no_draw():
    chance = Chance(SEED)
    first = chance.draw(8, "m", "")
    assert chance.fixed(6, "node") == chance.fixed(6, "node") != chance.fixed(6, "other")
    assert Chance(SEED).draw(8, "m", "") == first


def test_threads_draw_from_strands_of_their_own_whatever_their_order():
    def drawn(order):
        chance, found = Chance(SEED), {}
        for strand in order:
            thread = threading.Thread(
                target=lambda s=strand: found.__setitem__(s, chance.draw(8, "m", s))
            )
            thread.start()
            thread.join()
        return found

    assert drawn(["0", "1", "2"]) == drawn(["2", "0", "1"])


def test_a_seed_of_another_length_is_refused():
    with pytest.raises(ValueError, match="32 bytes"):
        Chance(b"short")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_knows_that_it_is_one():
    chance = Chance(SEED)
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.write(writer, b"y" if chance.forked else b"n")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"y" and not chance.forked
    os.close(reader), os.close(writer)
