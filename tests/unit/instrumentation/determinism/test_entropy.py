"""What takes fresh entropy in a taped cell gives the same in replay; what is not the person's stays real."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import pickle
import random
import secrets
import subprocess
import sys
import tempfile
import textwrap
import threading
import types
import uuid
from os import urandom
from pathlib import Path

import pytest

import tape_jupyter as tape
from tape_jupyter.instrumentation.determinism import entropy
from tests.harness.twice import scramble, twice

DRAWS = {
    "uuid4": lambda: str(uuid.uuid4()),
    "uuid1": lambda: (str(uuid.uuid1()), str(uuid.uuid1(node=5)), str(uuid.uuid1())),
    "token_hex": secrets.token_hex,
    "token_urlsafe": secrets.token_urlsafe,
    "choice of secrets": lambda: [secrets.choice("abcdefgh") for _ in range(20)],
    "randbelow": lambda: secrets.randbelow(10**20),
    "urandom": lambda: os.urandom(9),
    "a name that was imported before": lambda: urandom(4).hex(),
    "SystemRandom": lambda: (
        random.SystemRandom().random(),
        random.SystemRandom().randint(0, 10**9),
    ),
    "Random without a seed": lambda: random.Random().random(),
    "seed without a seed": lambda: (random.seed(), random.random(), random.gauss(0, 1)),
    "a subclass": lambda: type("Dice", (random.Random,), {})().random(),
    "temporary names": lambda: (tempfile.mktemp(), tempfile.mktemp()),
    "a temporary folder": lambda: _closed(tempfile.TemporaryDirectory()),
    "a temporary file": lambda: _closed(tempfile.NamedTemporaryFile()),
    "random": lambda: (
        random.random(),
        random.choice("abc"),
        random.sample(range(99), 5),
        random.gauss(0, 1),
    ),
}


def _of_langgraph():
    from langgraph.checkpoint.base.id import uuid6

    return str(uuid6()), str(uuid6())


DRAWS["a checkpoint's id"] = _of_langgraph


def _closed(temporary):
    with temporary as name:
        return getattr(name, "name", name)


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_is_the_same_in_replay(tmp_path, name):
    recorded, replayed, report = twice(tmp_path, DRAWS[name])
    assert recorded == replayed
    assert not [text for text in report.warnings if "not replayed" in text and "clock" not in text]


@pytest.mark.parametrize("name", [name for name in DRAWS if name != "random"])
def test_two_recordings_differ(tmp_path, name):
    seen = []
    for _ in range(2):
        with tape.recording(tmp_path / "a.tape.yaml"):
            seen.append(DRAWS[name]())
    assert seen[0] != seen[1]


NUMPY = {
    "default_rng": lambda numpy: numpy.random.default_rng().random(3).tolist(),
    "RandomState": lambda numpy: numpy.random.RandomState().rand(3).tolist(),
    "SeedSequence": lambda numpy: numpy.random.SeedSequence().entropy,
    "Generator(PCG64())": lambda numpy: numpy.random.Generator(numpy.random.PCG64()).random(),
    "rand": lambda numpy: (
        numpy.random.rand(3).tolist(),
        numpy.random.normal(),
        numpy.random.normal(),
    ),
    "seed()": lambda numpy: (numpy.random.seed(), numpy.random.rand())[1],
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpys_draws_are_the_same_in_replay(tmp_path, name):
    numpy = pytest.importorskip("numpy")
    recorded, replayed, _ = twice(tmp_path, lambda: NUMPY[name](numpy))
    assert recorded == replayed


def test_pandas_samples_the_same_rows(tmp_path):
    pandas = pytest.importorskip("pandas")
    recorded, replayed, _ = twice(
        tmp_path, lambda: pandas.DataFrame({"a": range(500)}).sample(9)["a"].tolist()
    )
    assert recorded == replayed


def test_threads_draw_what_they_drew_whatever_their_order(tmp_path):
    def program(order=iter([(0, 1, 2), (2, 0, 1)])):
        found, gates = {}, [threading.Event() for _ in range(3)]

        def draw(i):
            gates[i].wait(10)
            found[i] = [str(uuid.uuid4()), random.Random().random(), tempfile.mktemp()]

        threads = [threading.Thread(target=draw, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for i in next(order):
            gates[i].set()
            threads[i].join()
        return found

    recorded, replayed, _ = twice(tmp_path, program)
    assert recorded == replayed and len({repr(value) for value in recorded.values()}) == 3


def test_pools_and_to_thread_draw_what_they_drew(tmp_path):
    pool = concurrent.futures.ThreadPoolExecutor(3)  # its threads are older than the cell

    async def inner():
        return await asyncio.gather(*(asyncio.to_thread(uuid.uuid4) for _ in range(4)))

    def program():
        return [
            *pool.map(lambda _: uuid.uuid4(), range(6)),
            pool.submit(os.urandom, 4).result(),
            *asyncio.run(inner()),
        ]

    recorded, replayed, _ = twice(tmp_path, program)
    pool.shutdown()
    assert recorded == replayed and len(set(recorded)) == 11


def test_tasks_draw_what_they_drew(tmp_path):
    async def draw(turns):
        for _ in range(turns):
            await asyncio.sleep(0)
        return uuid.uuid4()

    async def program(turns):
        return await asyncio.gather(*(draw(n) for n in turns))

    turns = iter([(3, 1, 2), (1, 2, 3)])
    recorded, replayed, _ = twice(tmp_path, lambda: asyncio.run(program(next(turns))))
    assert recorded == replayed and len(set(recorded)) == 3


def test_what_a_tool_draws_does_not_shift_what_its_caller_draws(tmp_path):
    @tape.tool
    def make():
        return str(uuid.uuid4())

    recorded, replayed, _ = twice(
        tmp_path, lambda: [uuid.uuid4(), make(), uuid.uuid4(), make(), uuid.uuid4()]
    )
    assert recorded == replayed and len(set(recorded)) == 5


# ---- what stays real


def module(name, code):
    """A module of that name that runs this code when it is called."""
    made = types.ModuleType(name)
    exec(textwrap.dedent(code), made.__dict__)
    return made


@pytest.mark.parametrize(
    "name",
    [
        "jupyter_client.session",
        "comm.base_comm",
        "ipykernel.kernelbase",
        "tape_jupyter.cassette.cassette",
    ],
)
def test_ids_of_the_kernels_plumbing_are_real_and_shift_nothing(tmp_path, name):
    plumbing = module(
        name, "import os, uuid\ndef make(): return uuid.uuid4().hex + os.urandom(4).hex()"
    )
    made = []

    def program():
        made.append(plumbing.make())
        return uuid.uuid4()

    recorded, replayed, _ = twice(tmp_path, program)
    assert recorded == replayed and made[0] != made[1]


def test_threads_that_are_none_of_the_cells_draw_for_real(tmp_path):
    asked, answers, found = threading.Semaphore(0), threading.Semaphore(0), []

    def beside():
        for _ in range(2):
            asked.acquire()
            found.append(uuid.uuid4())
            answers.release()

    thread = threading.Thread(target=beside)
    thread.start()

    def program():
        asked.release()
        answers.acquire()
        return uuid.uuid4()

    recorded, replayed, _ = twice(tmp_path, program)
    thread.join()
    assert recorded == replayed and found[0] != found[1]


def test_after_the_cell_chance_is_real(tmp_path):
    seen = []
    for _ in range(2):
        twice(tmp_path, lambda: (uuid.uuid4(), random.seed()))
        seen.append(
            (
                uuid.uuid4(),
                secrets.token_hex(),
                random.SystemRandom().random(),
                tempfile.mktemp(),
                random.Random().random(),
            )
        )
    assert not set(seen[0]) & set(seen[1])


def test_a_thread_that_outlives_its_cell_draws_for_real_then(tmp_path):
    found = []

    def program():
        go = threading.Event()
        thread = threading.Thread(target=lambda: (go.wait(10), found.append(uuid.uuid4())))
        thread.start()
        return go, thread

    for mode in (tape.recording, tape.replaying):
        with mode(tmp_path / "a.tape.yaml"):
            uuid.uuid4()
            go, thread = program()
        go.set()
        thread.join()
    assert found[0] != found[1]


def test_after_a_cell_that_failed_chance_is_real(tmp_path):
    path, seen = tmp_path / "a.tape.yaml", []
    with tape.recording(path):
        uuid.uuid4()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), tape.replaying(path):
            1 / 0  # noqa: B018
        seen.append(uuid.uuid4())
    assert seen[0] != seen[1]


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_forked_children_do_not_share_what_they_draw(tmp_path):
    def draw(queue):
        queue.put((str(uuid.uuid4()), random.SystemRandom().random()))

    fork = multiprocessing.get_context("fork")
    with tape.recording(tmp_path / "a.tape.yaml"):
        queue = fork.SimpleQueue()
        children = [fork.Process(target=draw, args=(queue,)) for _ in range(3)]
        for child in children:
            child.start()
        drawn = {queue.get() for _ in children}
        for child in children:
            child.join()
    assert len(drawn) == 3


@pytest.mark.parametrize("name", ["uuid4", "urandom", "random", "temporary names"])
def test_without_the_pin_everything_is_real(tmp_path, name):
    tool = tape.tool(lambda: 1)
    recorded, replayed, _ = twice(tmp_path, lambda: (tool(), DRAWS[name]())[1], no_pin=["random"])
    assert recorded != replayed and "seed:" not in (tmp_path / "a.tape.yaml").read_text()


# ---- generators keep their meaning


def test_a_seed_from_before_the_cell_keeps_its_meaning(tmp_path):
    plain = random.Random(1)
    expected = [plain.random() for _ in range(4)]
    random.seed(1)
    first = random.random()
    with tape.recording(tmp_path / "a.tape.yaml"):
        second = random.random()
        with tempfile.TemporaryFile():
            uuid.uuid4(), uuid.uuid1(), random.Random(), secrets.token_hex()
        third = random.random()
    assert [first, second, third, random.random()] == expected
    scramble()
    with tape.replaying(tmp_path / "a.tape.yaml"):
        assert random.random() == second
        uuid.uuid4()
        assert random.random() == third
    assert random.random() == expected[3]  # it goes on as the recording did


def test_a_seed_within_the_cell_keeps_its_meaning(tmp_path):
    def program():
        random.seed(5)
        return random.random(), random.Random(5).random(), random.Random(x=5).random()

    recorded, replayed, _ = twice(tmp_path, program)
    assert recorded == replayed == (random.Random(5).random(),) * 3


def test_generators_in_variables_go_on_where_they_stood(tmp_path):
    numpy = pytest.importorskip("numpy")
    global rng, dice
    rng, dice = numpy.random.default_rng(), random.Random()
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        recorded = rng.random(), dice.random()
    rng, dice = numpy.random.default_rng(), random.Random()
    with tape.replaying(path):
        assert (rng.random(), dice.random()) == recorded


# ---- stand-ins are good citizens


def test_urandom_is_still_what_it_was(tmp_path):
    with tape.recording(tmp_path / "a.tape.yaml"):

        class Holder:
            urandom = os.urandom

        assert len(Holder().urandom(3)) == 3
        assert pickle.loads(pickle.dumps(os.urandom)) is os.urandom
        assert "built-in function urandom" in repr(os.urandom)
        assert os.urandom(0) == b""
        with pytest.raises(ValueError, match="negative"):
            os.urandom(-1)
        with pytest.raises(TypeError):
            os.urandom("3")
        with pytest.raises(TypeError):
            random.seed([])
        assert random.seed(3, version=1) is None
        assert len(os.getrandom(4, os.GRND_NONBLOCK)) == 4


def test_uuid1_is_one_of_its_kind_and_tells_no_machine(tmp_path):
    with tape.recording(tmp_path / "a.tape.yaml"):
        made = [uuid.uuid1() for _ in range(3)]
        assert uuid.uuid1(node=5).node == 5 and uuid.uuid1(clock_seq=7).clock_seq == 7
    assert (
        len(set(made)) == 3
        and {each.version for each in made} == {1}
        and {each.variant for each in made} == {uuid.RFC_4122}
    )
    assert made[0].node == made[1].node != uuid.getnode() and made[0].node >> 40 & 1


def test_the_taps_come_off_cleanly():
    code = """
    import os, random, tempfile, uuid
    before = os.urandom, random._urandom, random.Random.seed, random.seed, tempfile._get_candidate_names, uuid._generate_time_safe, os.getrandom
    from tape_jupyter.instrumentation.determinism import entropy
    undo = entropy.patch()
    assert os.urandom is not before[0]
    entropy.patch()()  # twice is harmless
    undo()
    assert before == (os.urandom, random._urandom, random.Random.seed, random.seed, tempfile._get_candidate_names, uuid._generate_time_safe, os.getrandom)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_where_the_system_makes_no_time_based_ids_uuid1_is_held_too(tmp_path):
    code = f"""
    import uuid
    uuid._generate_time_safe = None
    import tape_jupyter as tape
    path = {str(tmp_path / "a.tape.yaml")!r}
    with tape.recording(path): a = uuid.uuid1()
    with tape.replaying(path): b = uuid.uuid1()
    assert (a.node, a.clock_seq) == (b.node, b.clock_seq) and uuid.uuid1().node == uuid.getnode()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_a_name_that_is_taken_gives_another_and_says_so(tmp_path):
    path, left = tmp_path / "a.tape.yaml", []

    def program():
        handle, name = tempfile.mkstemp(dir=tmp_path)
        os.close(handle)
        left.append(name)

    with tape.recording(path):
        program()
    with tape.replaying(path) as block:
        program()
    assert left[0] != left[1] and "a file of an earlier run lies" in "\n".join(
        block.report.warnings
    )
    for name in left:
        Path(name).unlink()
    with tape.replaying(path) as block:
        program()
    assert left[2] == left[0] and not [
        text for text in block.report.warnings if "earlier run" in text
    ]


def test_that_secrets_are_none_any_more_is_said_while_recording(tmp_path):
    with tape.recording(tmp_path / "a.tape.yaml") as block:
        uuid.uuid4(), os.urandom(3), random.Random()
    assert not [text for text in block.report.warnings if "secrets" in text]
    with tape.recording(tmp_path / "a.tape.yaml") as block:
        secrets.token_hex()
    assert "whoever has this cassette can tell" in "\n".join(block.report.warnings)
    with tape.replaying(tmp_path / "a.tape.yaml") as block:
        secrets.token_hex()
    assert not [text for text in block.report.warnings if "secrets" in text]


IMPORTS = """
import sys
from pathlib import Path
import tape_jupyter as tape
path, mode, early = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
if early == "early":
    import numpy.random
    numpy.random.seed(int(mode == "recording"))
with getattr(tape, mode)(path):
    import numpy.random, uuid
    print(numpy.random.rand(), numpy.random.default_rng().random(), uuid.uuid4())
"""


@pytest.mark.parametrize("recorded", ["early", "late"])
@pytest.mark.parametrize("replayed", ["early", "late"])
def test_numpy_may_be_imported_before_the_cell_or_in_it(tmp_path, recorded, replayed):
    pytest.importorskip("numpy")

    def run(mode, early):
        arguments = [sys.executable, "-c", IMPORTS, str(tmp_path / "a.tape.yaml"), mode, early]
        return subprocess.run(
            arguments, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[4]
        ).stdout

    assert run("recording", recorded) == run("replaying", replayed)


def test_a_draw_costs_microseconds(tmp_path):
    import timeit

    plain = min(timeit.repeat(lambda: os.urandom(16), number=200, repeat=5))
    with tape.recording(tmp_path / "a.tape.yaml"):
        taped = min(timeit.repeat(lambda: os.urandom(16), number=200, repeat=5))
    floor = min(timeit.repeat(lambda: uuid.UUID(bytes=bytes(16)), number=200, repeat=5))
    assert taped < plain + 30 * floor


def test_nothing_is_remembered_of_earlier_time_based_ids():
    uuid._last_timestamp = 5
    entropy.forget_time_ids()
    assert uuid._last_timestamp is None
