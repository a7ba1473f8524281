"""States of generators: taken, written as text, put back; and how far from one to the next."""

import random
import subprocess
import sys
import textwrap

import pytest

from tape_jupyter.determinism import random_state
from tape_jupyter.determinism.random_state import (
    GeneratorState,
    further,
    of_variables,
    are_same,
    list_generators,
    words_between,
    write_state,
)


def own(name, value):
    return next(found for found in of_variables({name: value}))


def numpy_kinds():
    numpy = pytest.importorskip("numpy")
    r = numpy.random
    bits = (r.PCG64, r.PCG64DXSM, r.MT19937, r.Philox, r.SFC64)
    return [r.RandomState(1), *(r.Generator(kind(1)) for kind in bits)]


def drawn(generator):
    draw = getattr(generator, "normal", None) or (lambda: generator.gauss(0, 1))
    integers = getattr(generator, "integers", None) or getattr(generator, "randint", None)
    return [float(draw()) for _ in range(3)] + [int(integers(0, 1000)) for _ in range(3)]


def test_a_python_generator_goes_on_where_it_stood():
    generator = random.Random(1)
    generator.gauss(0, 1)
    state = write_state(generator.getstate())
    expected = drawn(generator)
    other = random.Random(2)
    own("r", other).restore_state(state)
    assert drawn(other) == expected


@pytest.mark.parametrize("place", range(6))
def test_numpys_generators_go_on_where_they_stood(place):
    generator, other = numpy_kinds()[place], numpy_kinds()[place]
    drawn(generator)
    state = write_state(own("g", generator).get())
    expected = drawn(generator)
    drawn(other), drawn(other)
    own("g", other).restore_state(state)
    assert drawn(other) == expected


def test_numpys_global_generator_goes_on_where_it_stood_whatever_it_is_made_of():
    numpy = pytest.importorskip("numpy")
    before = numpy.random.get_bit_generator()
    try:
        for bits in (numpy.random.MT19937(5), numpy.random.PCG64(5)):
            numpy.random.set_bit_generator(bits)
            numpy.random.normal()
            found = next(each for each in list_generators() if each.name == "numpy")
            state, expected = (
                write_state(found.get()),
                [float(numpy.random.rand()) for _ in range(3)],
            )
            found.restore_state(state)
            assert [float(numpy.random.rand()) for _ in range(3)] == expected
    finally:
        numpy.random.set_bit_generator(before)


def test_a_state_survives_the_tape():
    from tape_jupyter.encoding.yaml import emitter

    for generator in (*numpy_kinds(), random.Random(3)):
        drawn(generator)
        state = write_state(own("g", generator).get())
        record = {"run": "r-1", "at": dict(state.at), "words": state.encoded}
        read = emitter.parse_record(emitter.emit({k: v for k, v in record.items() if v != {}}))
        assert GeneratorState(read["words"], read.get("at", {})) == state


def test_the_long_part_of_a_state_stays_the_same_for_hundreds_of_draws():
    generator = random.Random(1)
    generator.random()
    before = write_state(generator.getstate())
    for _ in range(300):
        generator.random()
    after = write_state(generator.getstate())
    assert before.encoded == after.encoded and before.at != after.at


@pytest.mark.parametrize(
    "state",
    [
        GeneratorState("", {"index": 1}),
        GeneratorState("AAAA", {"index": 1}),
        GeneratorState("not base64!", {"index": 1}),
        GeneratorState("A" * 30_000, {"index": 1}),
        GeneratorState(write_state(random.Random(1).getstate()).encoded, {"index": 625}),
        GeneratorState(write_state(random.Random(1).getstate()).encoded, {"index": True}),
        GeneratorState(write_state(random.Random(1).getstate()).encoded),
    ],
)
def test_a_state_that_is_none_is_refused_and_changes_nothing(state):
    generator = random.Random(1)
    before = generator.getstate()
    with pytest.raises((ValueError, TypeError)):
        own("g", generator).restore_state(state)
    assert generator.getstate() == before


def test_a_state_of_another_kind_of_generator_is_refused():
    numpy = pytest.importorskip("numpy")
    generator = numpy.random.default_rng(1)
    before = generator.bit_generator.state
    other = write_state(numpy.random.Generator(numpy.random.Philox(1)).bit_generator.state)
    for state in (
        other,
        write_state(random.Random(1).getstate()),
        GeneratorState("[]"),
        GeneratorState("{}"),
    ):
        with pytest.raises((ValueError, TypeError, KeyError)):
            own("g", generator).restore_state(state)
    assert generator.bit_generator.state == before


def test_variables_that_hold_generators_are_found_each_once():
    numpy = pytest.importorskip("numpy")
    rng = numpy.random.default_rng(1)
    names = {
        "a": rng,
        "b": rng,
        "dice": random.Random(),
        "real": random.SystemRandom(),
        "n": 3,
        "legacy": numpy.random.RandomState(1),
    }
    assert [found.name for found in of_variables(names)] == ["a", "dice", "legacy"]


def test_states_are_compared_by_what_they_hold():
    numpy = pytest.importorskip("numpy")
    for make in (
        lambda: random.Random(1).getstate(),
        lambda: numpy.random.RandomState(1).get_state(legacy=False),
    ):
        assert are_same(make(), make())
    generator = numpy.random.RandomState(1)
    before = generator.get_state(legacy=False)
    generator.rand()
    assert not are_same(before, generator.get_state(legacy=False))


@pytest.mark.parametrize("start", [0, 1, 311, 312, 623, 1000])
@pytest.mark.parametrize("count", [0, 1, 2, 311, 312, 313, 700, 4000])
def test_draws_are_counted_and_gone_after(start, count):
    generator = random.Random(start)
    for _ in range(start):
        generator.getrandbits(32)
    before = generator.getstate()
    for _ in range(count):
        generator.random()
    after = generator.getstate()
    assert words_between(before, after) == 2 * count
    assert further(before, 2 * count, None) == after


def test_numpys_global_draws_are_counted_as_well():
    numpy = pytest.importorskip("numpy")
    generator = numpy.random.RandomState(1)
    before = generator.get_state(legacy=False)
    generator.rand(500)
    after = generator.get_state(legacy=False)
    assert words_between(before, after) == 1000
    assert are_same(further(before, 1000, None), after)


def test_a_generator_that_was_seeded_meanwhile_is_not_counted():
    assert words_between(random.Random(1).getstate(), random.Random(2).getstate()) is None
    generator = random.Random(1)
    generator.random()
    later = generator.getstate()
    assert words_between(later, random.Random(1).getstate()) is None


@pytest.mark.parametrize("words", [-1, 1.5, True, "2", None, 10**9])
def test_a_number_of_draws_that_is_none_is_refused(words):
    with pytest.raises(ValueError, match="not a number of words"):
        further(random.Random(1).getstate(), words, None)


TORCH = """
import sys, types, random
class Tensor(list):
    def tolist(self): return list(self)
state = [Tensor([1, 2, 3])]
torch = types.ModuleType("torch")
torch.uint8 = "uint8"
torch.tensor = lambda data, dtype: Tensor(data)
torch.get_rng_state = lambda: state[0]
torch.set_rng_state = lambda tensor: state.__setitem__(0, tensor)
torch.manual_seed = lambda seed: state.__setitem__(0, Tensor([seed % 251]))
sys.modules["torch"] = torch
from tape_jupyter.determinism import random_state as generators
found = {each.name: each for each in generators.list_generators()}
kept = generators.write_state(found["torch"].get())
state[0] = Tensor([9])
found["torch"].restore_state(kept)
assert state[0] == [1, 2, 3], state
found["torch"].begin(b"")
assert state[0] == [67280421310721 % 251]
"""


def test_torchs_state_is_taken_and_put_by_its_documented_functions():
    subprocess.run([sys.executable, "-c", textwrap.dedent(TORCH)], check=True)


def test_a_library_that_is_not_imported_is_not_looked_for():
    code = "import sys; from tape_jupyter.determinism import random_state as generators; print([g.name for g in generators.list_generators()], 'numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "['random'] False"
    assert random_state.list_generators()[0].name == "random"


def test_the_real_torch_goes_on_where_it_stood():
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    torch.rand(5), torch.randn(3)
    found = next(each for each in list_generators() if each.name == "torch")
    state, expected = write_state(found.get()), [torch.rand(4).tolist(), torch.randn(3).tolist()]
    own_generator = torch.Generator()
    own_state, own_expected = (
        write_state(own("g", own_generator).get()),
        torch.rand(3, generator=own_generator).tolist(),
    )
    torch.seed()
    found.restore_state(state), own("g", own_generator).restore_state(own_state)
    assert [torch.rand(4).tolist(), torch.randn(3).tolist()] == expected
    assert torch.rand(3, generator=own_generator).tolist() == own_expected
    found.begin(b"")
    assert (
        torch.initial_seed() == torch.default_generator.initial_seed() == random_state._TORCH_SEED
    )
