"""Loading the extension costs little until something is taped; and nothing is lost by that. In real kernels."""

import json

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.tapes import ASK

LOAD = "%load_ext tape_jupyter"
OURS = (
    "import sys\nlen([each for each in sys.modules if each.partition('.')[0] == 'tape' '_jupyter'])"
)
HOOKS = """def hooks():
    ip = get_ipython()
    return [list(map(str, each)) for each in (ip.input_transformers_cleanup, ip.ast_transformers, *ip.events.callbacks.values())]
was = None"""


@pytest.fixture
def kernel(tmp_path):
    path = notebook(tmp_path / "nb.ipynb", LOAD, "x = 1")
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(path)}, imports=True) as kernel:
        yield kernel


def ours(kernel):
    """How many modules of this package the kernel has loaded."""
    return int(kernel.execute(OURS).result)


def test_a_notebook_that_tapes_nothing_loads_little_until_it_gets_a_cassette(kernel, tmp_path):
    assert kernel.execute(LOAD).ok
    for source in ("todo = ['milk']", "open('a.txt', 'w').write('a')", "1/1", OURS):
        assert kernel.execute(source).ok
    assert ours(kernel) <= 60
    (tmp_path / "nb.tapes").mkdir()
    (tmp_path / "nb.tapes" / "main.tape.yaml").touch()  # somebody pulled it
    assert kernel.execute("kept = [1]").ok and ours(kernel) > 60
    # The very cell in which it was found is known, as those before it.
    told = kernel.execute(
        "from tape_jupyter.jupyter import magics\n"
        "print([sorted(each.changed) for each in magics.loaded(get_ipython()).history])"
    ).stdout
    assert "['todo']" in told and "['kept']" in told


def test_the_first_taped_cell_loads_the_rest_and_the_cells_before_it_are_known(kernel, provider):
    for source in (LOAD, "todo = ['milk']", ASK.replace("URL", provider.url)):
        assert kernel.execute(source).ok
    few = ours(kernel)
    taped = kernel.execute("%%tape record\nsaid = ask(todo[0])", "taped")
    assert taped.ok and "recorded" in taped.summary and few <= 60 < ours(kernel)
    assert kernel.execute("shown = said.upper(), todo", "after").ok
    tell = "print([entry.source[:12] for entry in cells.history], sorted(cells.history[0].changed))"
    told = kernel.execute(
        f"from tape_jupyter.jupyter import magics\ncells = magics.loaded(get_ipython())\n{tell}"
    ).stdout
    assert "todo = ['mil" in told and "'todo'" in told and "%load_ext" not in told
    plan = kernel.execute("%tape plan said").stdout
    assert "Traceback" not in plan


def test_a_taped_block_of_a_module_whose_cell_does_not_say_so(kernel, provider, tmp_path):
    (tmp_path / "asks.py").write_text(
        "import tape_jupyter\n\ndef run(ask):\n    with tape_jupyter.recording('b.tapes/main.tape.yaml') as block:\n"
        "        return ask('hi'), len(block.report.calls) if block.report else 0\n"
    )
    for source in (LOAD, "kept = [1]", ASK.replace("URL", provider.url), "from asks import run"):
        assert kernel.execute(source).ok
    assert ours(kernel) <= 60
    assert kernel.execute("kept.append(run(ask))").ok
    assert (tmp_path / "b.tapes/main.tape.yaml").exists()
    tell = "print([(entry.source[:8], entry.calls) for entry in cells.history])"
    told = kernel.execute(
        f"from tape_jupyter.jupyter import magics\ncells = magics.loaded(get_ipython())\n{tell}"
    ).stdout
    assert "('kept = [', False)" in told and "('kept.app', True)" in told


LOADED_BY_A_THREAD = """import threading
def load_elsewhere(info):
    hooks.remove(load_elsewhere)
    thread = threading.Thread(target=ip.run_line_magic, args=("ta" "pe", "status"))
    thread.start()
    if IN_TIME: thread.join()
ip = get_ipython()
hooks = ip.events.callbacks["pre_run_cell"]
hooks.insert(0, load_elsewhere)"""
"""As the page does that wants to see something, while the next cell begins."""


@pytest.mark.slow
@pytest.mark.parametrize("in_time", [True, False])
@pytest.mark.parametrize("source", ["%%tape record\nsaid = ask('hi')", "said = ['hi']"])
def test_a_cell_that_begins_while_a_thread_loads_the_rest_is_taped_and_known(
    kernel, provider, in_time, source
):
    load = LOADED_BY_A_THREAD.replace("IN_TIME", str(in_time))
    for cell in (LOAD, ASK.replace("URL", provider.url), load):
        assert kernel.execute(cell).ok
    ran = kernel.execute(source, "first")
    assert ran.ok, ran.traceback
    assert ("recorded" in ran.summary) == source.startswith("%%tape")
    known = (
        "from tape_jupyter.jupyter import magics\ncells = magics.loaded(get_ipython())\n"
        "print([sorted(entry.changed) for entry in cells.history if entry.source.endswith(SOURCE)])"
    ).replace("SOURCE", repr(source.splitlines()[-1]))
    assert "said" in kernel.execute(known).stdout


def test_a_taped_cell_that_runs_silently_is_refused_not_run(kernel):
    assert kernel.execute(LOAD).ok
    ran = kernel.execute("%%tape record\nran = 1", silent=True, store_history=False)
    assert ran.status == "error" and kernel.execute("'ran' in globals()").result == "False"
    assert kernel.execute("%tape status").ok


def test_magics_and_completion_load_the_rest(kernel):
    assert kernel.execute(LOAD).ok and "record" in kernel.complete("%tape rec")
    assert "mode:" in kernel.execute("get_ipython().run_line_magic('ta' 'pe', 'status')").stdout


def test_a_notebook_with_a_cassette_is_ready_at_once(kernel, provider, tmp_path):
    (tmp_path / "nb.tapes").mkdir()
    for source in (LOAD, ASK.replace("URL", provider.url), "%%tape record\nask('hi')"):
        assert kernel.execute(source).ok
    kernel.restart()
    assert kernel.execute(f"{LOAD}\nkept = [1]").ok and ours(kernel) > 60
    assert kernel.execute("kept.append(2)").ok and kernel.execute("%tape status").ok
    told = kernel.execute(
        "from tape_jupyter.jupyter import magics\n"
        "print([(entry.source[-9:], sorted(entry.changed)) for entry in magics.loaded(get_ipython()).history][:1])"
    ).stdout
    assert "['kept']" in told


def test_unloading_leaves_nothing_whether_something_was_taped_or_not(kernel, provider):
    assert kernel.execute(HOOKS).ok
    assert kernel.execute(ASK.replace("URL", provider.url)).ok
    assert kernel.execute("was = hooks()").ok
    for between in ("x = 1", "%%tape record\nask('hi')", "%reload_ext tape_jupyter"):
        for source in (LOAD, between, "%unload_ext tape_jupyter"):
            assert kernel.execute(source).ok
        assert kernel.execute("hooks() == was").result == "True", kernel.execute("hooks()").result
        gone = kernel.execute("%tape status")
        assert gone.ename == "UsageError" or "not found" in gone.stream("stderr")


def test_where_the_rest_cannot_be_loaded_no_taped_cell_runs_and_others_do(kernel):
    broken = "import sys\nsys.modules['tape' '_jupyter.session.session'] = None"
    for source in (broken, LOAD, "x = 1"):
        assert kernel.execute(source).ok
    for _ in range(2):
        ran = kernel.execute("%%tape replay\nx = 2")
        assert ran.status == "error" and "could not be loaded" in ran.evalue
    assert kernel.execute("x").result == "1"


def test_the_cell_that_loads_it_is_noted_where_it_does_more(kernel):
    assert kernel.execute(f"before = [1]\n{LOAD}\nafter = 2").ok
    assert kernel.execute("%tape status").ok
    told = kernel.execute(
        "import json\nfrom tape_jupyter.jupyter import magics\n"
        "json.dumps([entry.source for entry in magics.loaded(get_ipython()).history][:1])"
    ).result
    assert "after = 2" in json.loads(told.strip("'").replace("\\\\", "\\"))[0]


def test_it_is_loaded_under_what_the_notebook_patched_before(kernel, provider):
    for source in (
        "import nest_asyncio; nest_asyncio.apply()",
        LOAD,
        "import time; real = time.time; time.time = lambda: real()",
        ASK.replace("URL", provider.url),
    ):
        assert kernel.execute(source).ok
    taped = kernel.execute("%%tape record\nask('hi')")
    assert taped.ok and "recorded" in taped.summary
