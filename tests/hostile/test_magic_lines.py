"""What a person may type on a tape line, or do in a taped cell: cases 55 to 66, 80 and 81, in real kernels."""

import threading

import pytest

from tape_jupyter.cassette.cassette import Cassette
from tests.harness.notebook import Kernel, notebook, run_notebook, terminal
from tests.harness.provider import Provider, Scripted

LOAD = "%load_ext tape_jupyter"
STREAM = {"content-type": "text/event-stream"}


@pytest.fixture(scope="module")
def provider():
    with Provider(vary=True) as provider:
        yield provider


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    where = tmp_path_factory.mktemp("lines")
    with Kernel(where, {"TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x"))}) as running:
        assert running.execute(LOAD + "\nimport httpx").ok
        yield running


def post(provider, text="one", path="/v1/messages"):
    """Source of one call that prints its answer."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return f"print(httpx.post('{provider.url}{path}', json={body!r}).text)"


def on_tape(kernel, name="main"):
    return Cassette.open(kernel.cwd / "nb.tapes" / f"{name}.tape.yaml", check="whole")


def refused(kernel, line, said):
    ran = kernel.execute(line + "\nprint('it ran')")
    assert (ran.status, ran.ename, ran.stdout) == ("error", "TapeUsageError", "")
    assert said in ran.traceback
    assert "Traceback" not in ran.traceback
    return ran


def test_55_no_word_at_all_gets_the_usage(kernel):
    refused(kernel, "%%tape", "Usage: %%tape record|replay")


def test_56_a_misspelt_word_gets_the_nearest_and_the_cell_does_not_run(kernel):
    refused(kernel, "%%tape recrod", "did you mean record?")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "a/b", "A", "a.b", "x" * 65, "''", "é", "-"]
)
def test_57_a_name_is_never_a_path(kernel, name):
    ran = kernel.execute(f"%%tape replay {name}\nprint('it ran')")
    assert (ran.status, ran.ename, ran.stdout) == ("error", "TapeUsageError", "")


def test_58_a_shell_word_is_taken_literally(kernel):
    (kernel.cwd / "keep").touch()
    for word in ('"$(rm -rf keep)"', "`rm keep`", "$HOME", "; rm keep", "!rm"):
        assert kernel.execute(f"%%tape record {word}\nprint('it ran')").stdout == ""
    assert (kernel.cwd / "keep").exists()


def test_59_a_missing_cassette_is_told_before_the_cell_runs_with_those_that_there_are(
    kernel, provider
):
    assert kernel.execute("%%tape record other\n" + post(provider)).ok
    before = len(provider.requests)
    for wait in ("", "import asyncio; await asyncio.sleep(0)\n"):
        ran = kernel.execute("%%tape replay missing\n" + wait + post(provider))
        assert (ran.status, ran.ename, ran.stdout) == ("error", "TapeUsageError", "")
        assert "There are: " in ran.evalue and "other" in ran.evalue
    assert len(provider.requests) == before
    assert kernel.execute("1").ok


def test_a_disk_that_takes_no_more_is_a_line_without_a_traceback_and_changes_nothing(
    kernel, provider
):
    assert kernel.execute(f"%%tape record full\n{post(provider)}").ok
    call = on_tape(kernel, "full").calls[0].id
    assert kernel.execute(f"%tape override {call} --text other --take odd").ok
    limit = "import resource as r; was = r.getrlimit(r.RLIMIT_FSIZE)"
    kernel.execute(f"{limit}; r.setrlimit(r.RLIMIT_FSIZE, (0, was[1]))")
    ran = kernel.execute("%tape takes default odd")
    assert kernel.execute("r.setrlimit(r.RLIMIT_FSIZE, was)").ok
    assert (ran.status, ran.ename) == ("error", "OSError") and "File too large" in ran.traceback
    assert len(ran.traceback.splitlines()) == 1, ran.traceback
    takes = kernel.cwd / "nb.tapes" / "takes"
    assert [each.name for each in takes.iterdir()] == ["full.odd.tape.yaml"]


def test_60_an_empty_cell_does_nothing_and_says_so(kernel):
    for body in ("", "\n", "\n\n   \n"):
        ran = kernel.execute("%%tape record" + body)
        assert ran.ok
        assert "nothing to do" in ran.stdout


@pytest.mark.parametrize("lead", ["", "%%tape record\n", "%%tape once\n"])
@pytest.mark.parametrize(
    "cell",
    [
        "get_ipython().run_cell('%%tape record\\nran = 1').raise_error()",
        "%%time\n%%tape record\nran = 1",
        "%%capture\n%%tape record\nran = 1",
        "get_ipython().run_cell_magic('tape', 'record', 'ran = 1')",
        "source = '%%tape record\\nran = 1'\nawait get_ipython().run_cell_async(source, transformed_cell=get_ipython().transform_cell(source))",
    ],
)
def test_61_a_tape_inside_a_running_cell_is_refused(kernel, cell, lead):
    kernel.execute("globals().pop('ran', None)")
    kernel.execute(lead + cell)
    assert kernel.execute("'ran' in globals()").result == "False"


def test_62_a_cell_that_raises_keeps_the_calls_it_made_and_replays_them_and_its_raise(
    kernel, provider
):
    source = "\n".join(
        [
            post(provider, "first"),
            post(provider, "second"),
            "raise ValueError('before the third')",
            post(provider, "third"),
        ]
    )
    live = kernel.execute("%%tape record raises\n" + source)
    assert (live.ename, live.evalue) == ("ValueError", "before the third")
    assert "incomplete" in live.summary
    cassette = on_tape(kernel, "raises")
    assert len(cassette.calls) == 2
    assert [end["outcome"] for end in cassette.ended.values()] == ["raised"]
    before = len(provider.requests)
    again = kernel.execute("%%tape replay raises\n" + source)
    assert (again.ename, again.stdout) == ("ValueError", live.stdout)
    assert len(provider.requests) == before


def test_63_an_interrupted_reply_is_not_replayed_unasked_and_an_early_close_is_replayed_to_the_byte(
    kernel, provider
):
    chunks = [b"data: 1\n\n", b"data: 2\n\n"]
    provider.script("/v1/hangs", Scripted(200, STREAM, chunks, then="hang"))
    source = f"""
with httpx.stream("POST", "{provider.url}/v1/hangs", json={{}}, timeout=60) as response:
    for chunk in response.iter_raw():
        print(chunk, flush=True)
        if STOP and b"2" in chunk: break
"""
    kernel.execute("STOP = True")
    closed = kernel.execute("%%tape record closed" + source)
    assert (
        kernel.execute("%%tape replay closed" + source).stdout
        == closed.stdout
        == f"{chunks[0]}\n{chunks[1]}\n"
    )
    kernel.execute("STOP = False")
    assert kernel.execute("%%tape replay closed" + source).ename == "UnmatchedCall"
    asked = kernel.send("%%tape record cut" + source)
    kernel.wait_for(asked, "2")
    kernel.interrupt()
    assert kernel.collect(asked).ename == "KeyboardInterrupt"
    assert on_tape(kernel, "cut").calls[0].reply().end == "cut short"
    assert kernel.execute("%%tape replay cut" + source).ename == "UnmatchedCall"
    asked_for = kernel.execute("%%tape replay cut --cut-short" + source)
    assert (asked_for.ename, asked_for.stdout) == ("KeyboardInterrupt", closed.stdout)


THREAD = "import threading\nthread = threading.Thread(target=late)\nthread.start()"
TASK = """import asyncio
async def later():
    while not go.is_set(): await asyncio.sleep(0.01)
    late()
task = asyncio.get_running_loop().create_task(later())"""
JOIN = {THREAD: "thread.join()", TASK: "await asyncio.wait([task])"}


@pytest.mark.parametrize("outlives", [THREAD, TASK], ids=["thread", "task"])
def test_64_a_call_that_outlives_its_cell_is_kept_while_recording_and_refused_in_replay(
    kernel, provider, outlives
):
    name = "thread" if outlives is THREAD else "task"
    source = f"""
def late():
    go.wait(20)
    try:
        {post(provider, f"late {name}")}
    except BaseException as error:
        print(type(error).__name__)
{outlives}
{post(provider, f"early {name}")}
"""
    fresh = "import threading; go = threading.Event()"
    assert kernel.execute(fresh).ok
    assert kernel.execute(f"%%tape record {name}" + source).ok
    said = kernel.execute("go.set()\n" + JOIN[outlives])
    cassette = on_tape(kernel, name)
    assert len(cassette.calls) == 2
    assert {entry.run for entry in cassette.calls} == {cassette.runs[0]["run"]}
    assert (
        "type" in said.stdout or said.stdout == ""
    )  # under the cell that made it, or under this one
    before = len(provider.requests)
    assert kernel.execute(fresh).ok
    assert kernel.execute(f"%%tape replay {name}" + source).ok
    kernel.execute("printed = []\nimport builtins; print = lambda *a: printed.append(a[0])")
    kernel.execute("go.set()\n" + JOIN[outlives])
    assert kernel.execute("del print\nprinted").result == "['UnmatchedCall']"
    assert len(provider.requests) == before
    assert kernel.execute(post(provider, "live again")).ok
    assert len(provider.requests) == before + 1


def test_65_where_no_notebook_is_known_one_line_says_how_to_name_the_cassette(tmp_path, provider):
    lines = [
        LOAD,
        "import httpx",
        "%%tape record\nprint('it ran')\n\n",
        f"%%tape record demo\n{post(provider)}\n\n",
        "",
    ]
    said = terminal("\n".join(lines), tmp_path)
    assert "name the cassette (%%tape record NAME)" in said
    assert "it ran" not in said
    assert "demo.tapes/main" in said
    assert (tmp_path / "demo.tapes" / "main.tape.yaml").is_file()


def test_66_braces_and_dollars_are_not_expanded(kernel):
    assert kernel.execute("name = 'demo'").ok
    refused(kernel, "%%tape record {name}", "'{name}' cannot name a cassette")
    refused(kernel, "%%tape record $name", "'$name' cannot name a cassette")


def test_80_replay_of_the_session_wins_over_a_cells_record_and_says_so_once(tmp_path, provider):
    first_cell = "%%tape record\nimport httpx\n" + post(provider)
    cells = [
        LOAD,
        first_cell,
        "%%tape record\n2",
        "%tape off",
        "%tape live\n3",
        f"import httpx\n{post(provider)}",
    ]
    nb = notebook(tmp_path / "nb.ipynb", *cells[:-1])
    live = run_notebook(nb, tmp_path)
    before = len(provider.requests)
    ran = run_notebook(nb, tmp_path, {"TAPE_MODE": "replay"})
    assert [each.status for each in ran] == ["ok"] * 5
    assert ran[1].stdout == live[1].stdout
    assert ran[1].summary.startswith("● replayed")
    assert "TAPE_MODE=replay wins" in ran[1].summary
    assert "wins" not in ran[2].summary
    assert "%tape off is ignored" in ran[3].stdout
    notebook(tmp_path / "nb.ipynb", cells[0], cells[3], cells[5].replace("one", "never recorded"))
    assert run_notebook(nb, tmp_path, {"TAPE_MODE": "replay"})[2].ename == "UnmatchedCall"
    assert len(provider.requests) == before


def test_81_an_unknown_mode_of_the_session_is_an_error_at_load_and_nothing_runs_after(
    tmp_path, provider
):
    before = len(provider.requests)
    with Kernel(tmp_path, {"TAPE_MODE": "replya"}) as kernel:
        ran = kernel.execute(LOAD)
        assert (ran.status, ran.ename) == ("error", "TapeUsageError")
        assert "did you mean replay?" in ran.traceback
        for lead in ("", "%%tape record demo\n", "%%tape replay demo\n"):
            assert kernel.execute(lead + "import httpx\n" + post(provider)).stdout == ""
        assert len(provider.requests) == before
        assert kernel.execute("%tape off").ok
        assert kernel.execute("print('live')").stdout == "live\n"
