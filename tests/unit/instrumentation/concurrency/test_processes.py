"""Children of multiprocessing: forked ones know the tape is not theirs, new interpreters are seen before they start."""

import multiprocessing
import multiprocessing.process
from concurrent.futures import ProcessPoolExecutor

import httpx
import pytest

import tape_jupyter as tape
from tape_jupyter.errors import BlockedConnection
from tape_jupyter.instrumentation.concurrency import processes
from tape_jupyter.instrumentation import unpatch_all
from tests.harness.provider import Provider

FORK = multiprocessing.get_context("fork")


def ask(url):
    return httpx.post(f"{url}/v1/filler", json={"p": "same"}).status_code


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tape.yaml"


def test_calls_of_forked_processes_are_named_and_leave_the_cassette_whole(provider, path):
    with tape.recording(path) as block:
        ask(provider.url)
        with ProcessPoolExecutor(2, mp_context=FORK) as pool:
            list(pool.map(ask, [provider.url] * 4))
    assert len(provider.requests) == 5
    assert len(tape.open(path)) == 1
    (warning,) = block.report.warnings
    assert warning.startswith("a forked process (test_processes.py:")
    assert "calls that it makes are not on the tape" in warning


@pytest.mark.parametrize("pooled", ["executor", "pool"])
def test_a_forked_process_in_replay_is_refused_and_its_parent_gets_the_refusal(
    provider, path, pooled
):
    with tape.recording(path):
        ask(provider.url)
    with pytest.raises(BlockedConnection, match="in a forked process"), tape.replaying(path):
        if pooled == "pool":
            with FORK.Pool(2) as pool:
                pool.map(ask, [provider.url] * 4)
        with ProcessPoolExecutor(2, mp_context=FORK) as executor:
            list(executor.map(ask, [provider.url] * 4))
    assert len(provider.requests) == 1


def swallow(url):
    try:
        ask(url)
    except BaseException:
        return "hidden"


def test_a_refusal_that_a_forked_process_hides_fails_its_parents_cell(provider, path):
    with tape.recording(path):
        ask(provider.url)
    with pytest.raises(BlockedConnection, match="in a forked process"), tape.replaying(path):
        with FORK.Pool(1) as pool:
            assert pool.map(swallow, [provider.url]) == ["hidden"]


def test_work_without_calls_goes_on_in_forked_pools(path, provider):
    with tape.recording(path):
        ask(provider.url)
    with tape.replaying(path) as block, FORK.Pool(2) as pool:
        assert pool.map(abs, [-1, 2]) == [1, 2]
        assert pool.apply_async(max, (1, 2)).get(10) == 2
        with pytest.raises(ZeroDivisionError):
            pool.apply(divmod, (1, 0))
    assert (block.report.misses, block.report.warnings) == ([], [])


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_new_interpreter_is_refused_in_replay(provider, path, method):
    with tape.recording(path):
        ask(provider.url)
    process = multiprocessing.get_context(method).Process(target=print, name="worker")
    with (
        pytest.raises(BlockedConnection, match=rf"multiprocessing \({method}\) worker"),
        tape.replaying(path),
    ):
        process.start()
    assert process.pid is None


def test_a_new_interpreter_is_named_while_recording(path):
    process = multiprocessing.get_context("spawn").Process(target=abs, args=(1,), name="worker")
    with tape.recording(path) as block:
        process.start()
        process.join()
    (warning,) = block.report.warnings
    assert "`multiprocessing (spawn) worker`" in warning and "not on the tape" in warning


def test_the_patch_is_taken_off_cleanly():
    base = multiprocessing.process.BaseProcess
    unpatch_all()
    before = base.start
    undo = processes.patch(multiprocessing.process)
    assert base.start is not before
    processes.patch(multiprocessing.process)()
    assert base.start is not before
    undo()
    assert base.start is before
