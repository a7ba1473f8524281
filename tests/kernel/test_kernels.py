"""A taped cell in real kernels and front ends behaves as the same cell untaped. Bad lines: tests/hostile/."""

import http.server
import itertools
import textwrap
import threading

import pytest

from tests.harness.notebook import (
    Kernel,
    jupyter_execute,
    jupyterlab,
    notebook,
    papermill,
    run_notebook,
    terminal,
    typed_terminal,
)

LOAD = "%load_ext tape_jupyter"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    where = tmp_path_factory.mktemp("kernel")
    env = {"TAPE_NOTEBOOK": str(notebook(where / "churn.ipynb", "x"))}
    with Kernel(where, env) as running:
        assert running.execute(LOAD).ok
        yield running


@pytest.fixture(scope="module")
def site():
    """A host on loopback that counts its visitors: a replayed visit shows an old number."""
    visits = itertools.count(1)

    class Visit(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = f"visit {next(visits)}".encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Visit)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def visit(site, path="/"):
    return f"import httpx\nprint(httpx.get('{site}{path}').text)"


def taped(source):
    return "%%tape record\n" + textwrap.dedent(source).lstrip("\n")


def test_a_taped_cell_gives_its_last_expression_and_one_line_of_summary(kernel):
    ran = kernel.execute(taped("1 + 1"))
    assert ran.ok
    assert ran.result == "2"
    assert ran.summary.startswith("● recorded  no calls")
    assert "churn.tapes/main" in ran.summary


def test_a_taped_cell_can_await(kernel):
    ran = kernel.execute(
        taped("""
        import asyncio
        await asyncio.sleep(0.01)
        both = await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))
        both""")
    )
    assert ran.ok
    assert ran.result == "[1, 2]"
    assert ran.summary
    assert kernel.execute("both").result == "[1, 2]"


def test_displays_and_prints_come_in_order(kernel):
    ran = kernel.execute(
        taped("""
        print("a")
        display("b")
        print("c")""")
    )
    assert [out["output_type"] for out in ran.outputs][:3] == ["stream", "display_data", "stream"]
    assert ran.displays == ["'b'"]


def test_other_magics_below_the_tape_line_work(kernel):
    assert "Wall time" in kernel.execute("%%tape record\n%%time\n2 + 2").stdout
    assert kernel.execute("%%tape record\n\n%%capture caught\nprint('hidden')").stdout == ""
    assert kernel.execute("caught.stdout").result == repr("hidden\n")
    assert kernel.execute("%%tape record\n!echo from the shell").stdout.strip() == "from the shell"
    assert kernel.execute("%%tape record\n%%bash\necho bash").stdout.strip() == "bash"


def test_a_capture_below_the_tape_line_runs_inside_the_taped_cell(kernel):
    ran = kernel.execute(
        "%%tape record\n%%capture c\nfrom tape_jupyter.session import session as deck\nseen = deck.get().active is not None"
    )
    assert ran.summary.count("● recorded") == 1
    assert kernel.execute("seen").result == "True"


@pytest.mark.parametrize("lead", ["", "\n\n", "  "])
def test_tracebacks_show_the_lines_of_the_cell_as_it_is_seen(kernel, lead):
    lines = ["{}", "a = 1", "b = 1 / 0"]
    body = lead.strip(" ") + "\n".join(lead.strip("\n") + line for line in lines)
    plain, ran = (
        kernel.execute(body.format("# a comment")),
        kernel.execute(body.format("%%tape record")),
    )
    assert ran.ename == "ZeroDivisionError"
    arrow = [line for line in ran.traceback.splitlines() if line.startswith("---->")]
    assert arrow == [line for line in plain.traceback.splitlines() if line.startswith("---->")]
    assert arrow[0].split()[1] == "3"


def test_blank_lines_and_indentation_below_the_tape_line_do_not_matter(kernel):
    ran = kernel.execute("%%tape record\n\n    x = 5\n    1 / 0")
    assert "----> 4" in ran.traceback
    assert kernel.execute("x").result == "5"


def test_a_syntax_error_is_shown_as_such(kernel):
    ran = kernel.execute("%%tape record\nx = (\n")
    assert ran.ename in ("SyntaxError", "_IncompleteInputError")
    assert "line 2" in ran.traceback.lower()
    assert kernel.execute("1").ok


def test_an_error_stops_run_all(kernel):
    ran = kernel.run_all("%%tape record\n1 / 0", "after = 1")
    assert [each.status for each in ran] == ["error", "aborted"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%%tape record a b", "unrecognized arguments: b"),
        ("%%tape record 'a", "No closing quotation"),
        ("%%tape record --strct", "unrecognized arguments: --strct"),
        ("%%tape record --on-divergence live", "goes with replay"),
        ("%%tape step --live llm", "at each stop you decide"),
        ("%%tape replay --break tool", "--break goes with step"),
        ("%%tape step --break modle", "is not a breakpoint"),
    ],
)
def test_a_bad_tape_line_is_explained_and_the_cell_does_not_run(kernel, line, said):
    ran = kernel.execute(line + "\nprint('it ran')")
    assert (ran.status, ran.ename, ran.stdout) == ("error", "TapeUsageError", "")
    assert said in ran.traceback
    assert "Traceback" not in ran.traceback
    assert ran.evalue in ran.traceback


def test_a_nested_run_cell_does_not_end_the_taped_cell(kernel):
    ran = kernel.execute(
        taped("""
        from tape_jupyter.session import session as deck
        get_ipython().run_cell("y = 1")
        get_ipython().run_cell("")
        deck.get().active is not None""")
    )
    assert ran.result == "True"
    assert ran.summary.count("● recorded") == 1
    assert kernel.execute("deck.get().active is None").result == "True"


def test_silent_executions_are_left_alone_and_cannot_be_taped(kernel):
    assert kernel.execute("z = 1", silent=True).ok
    assert kernel.execute("%%tape record\nz = 2", silent=True).ename == "TapeUsageError"
    assert kernel.execute("%%tape record\nz").result == "1"


def test_an_interrupted_cell_is_ended(kernel):
    for wait in ("import time; time.sleep(30)", "import asyncio; await asyncio.sleep(30)"):
        asked = kernel.send("%%tape record\nprint('waiting', flush=True)\n" + wait)
        kernel.wait_for(asked, "waiting")
        kernel.interrupt()
        assert kernel.collect(asked).status != "ok"
        assert kernel.execute("deck.get().active is None").result == "True"


def test_a_recorded_visit_is_replayed_and_summed_up(kernel, site):
    first = kernel.execute("%%tape record visits\n" + visit(site))
    assert "1 call" in first.summary
    again = kernel.execute("%%tape replay visits\n" + visit(site))
    assert again.stdout == first.stdout
    assert again.summary.startswith("● replayed  1 call")
    assert kernel.execute(visit(site)).stdout != first.stdout
    assert "1 call, " in kernel.execute("%tape show visits").stdout
    assert "host" in kernel.execute("%tape calls visits").stdout
    assert "code version" in kernel.execute("%tape gaps visits").displays[0]


SWALLOW = """
{wait}
try:
    {call}
except BaseException:
    pass
"went on"
"""


@pytest.mark.parametrize("wait", ["", "import asyncio; await asyncio.sleep(0)"])
def test_a_cell_that_swallows_a_refusal_fails_at_its_end(kernel, site, wait):
    assert kernel.execute("%%tape record swallow\n" + visit(site)).ok
    call = visit(site, "/other").replace("\n", "; ")
    ran, after = kernel.run_all("%%tape replay swallow" + SWALLOW.format(wait=wait, call=call), "1")
    assert (ran.status, ran.ename) == ("error", "UnmatchedCall")
    assert "/other" in ran.traceback
    assert "caught this" in ran.traceback
    assert "UnmatchedCall" in ran.summary and "Nothing was sent" not in ran.summary  # told above
    assert after.status == "aborted"
    assert kernel.execute(visit(site)).stdout.startswith("visit")


def test_nbclient_stops_at_a_swallowed_refusal(tmp_path, site):
    call = visit(site, "/other").replace("\n", "; ")
    cells = [
        LOAD,
        "%%tape once\n" + visit(site),
        "%%tape replay" + SWALLOW.format(wait="", call=call),
        "1",
    ]
    assert [each.status for each in run_notebook(cells, tmp_path)] == ["ok", "ok", "error", ""]


def test_the_session_mode_tapes_every_following_cell_but_not_set_up(kernel):
    assert "recorded" in kernel.execute("%tape record").stdout
    active = "from tape_jupyter.session import session as deck\ndeck.get().active is not None"
    assert kernel.execute(active).result == "True"
    assert kernel.execute("%tape status").stdout.startswith("mode:         record")
    assert "neither recorded nor replayed" in kernel.execute("%tape off").stdout
    assert kernel.execute(active).result == "False"


def test_a_session_mode_set_in_the_midst_of_a_cell_holds_for_its_rest(kernel):
    ran = kernel.execute(
        "from tape_jupyter.session import session as deck\n%tape record\ndeck.get().active is not None"
    )
    assert ran.result == "True"
    assert kernel.execute("%tape off").ok


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%tape recrod", "did you mean record?"),
        ("%tape prune --all", "[--dry-run]"),
        ("%tape record A", "cannot name"),
    ],
)
def test_a_bad_tape_word_is_explained(kernel, line, said):
    ran = kernel.execute(line)
    assert (ran.status, ran.ename) == ("error", "TapeUsageError")
    assert said in ran.traceback
    assert "magics.py" not in ran.traceback and "line_commands.py" not in ran.traceback


def test_tape_words_complete(kernel):
    assert "record" in kernel.complete("%tape re")
    assert kernel.is_complete("%%tape record\nx = 1") == "incomplete"
    assert kernel.is_complete("%%tape record\nx = 1\n\n") == "complete"


def test_unloading_takes_everything_out(tmp_path):
    hooks = "ip = get_ipython(); [len(x) for x in (ip.input_transformers_cleanup, ip.ast_transformers, ip.events.callbacks['pre_run_cell'], ip.events.callbacks['post_run_cell'])]"
    with Kernel(tmp_path) as kernel:
        before = kernel.execute(hooks).result
        for _ in range(2):
            assert kernel.execute(LOAD).ok
            assert kernel.execute(hooks).result != before
            assert kernel.execute("%unload_ext tape_jupyter").ok
            assert kernel.execute(hooks).result == before
        assert kernel.execute("%%tape record\n1").status == "error"


@pytest.mark.parametrize(
    "line", ["%tape off", "%reload_ext tape_jupyter", "%unload_ext tape_jupyter"]
)
def test_the_rest_of_a_replayed_cell_does_not_go_live_after(kernel, site, line):
    assert kernel.execute("%%tape record rest\n" + visit(site)).ok
    ran = kernel.execute(f"%%tape replay rest\n{line}\n{visit(site, '/other')}")
    assert (ran.status, "visit" in ran.stdout) == ("error", False)
    assert ran.ename == ("UnmatchedCall" if line == "%tape off" else "TapeUsageError")
    assert kernel.execute("%reload_ext tape_jupyter").ok
    assert kernel.execute(visit(site)).stdout.startswith("visit")


def test_a_cell_that_takes_the_tape_off_says_that_it_stays_taped_itself(kernel, site):
    ran = kernel.execute("%%tape record off\n%tape off\n" + visit(site))
    assert "this one ends as it began (record)" in ran.stdout and "1 call" in ran.summary
    assert (
        kernel.execute("%tape off").stdout == "tape off: cells are neither recorded nor replayed\n"
    )


def test_tape_mode_tapes_the_rest_of_the_load_cell(tmp_path):
    source = (
        LOAD
        + "\nfrom tape_jupyter.session import session as deck\ncell = deck.get().active\ncell.request"
    )
    ran = run_notebook([source], tmp_path, {"TAPE_MODE": "record"})[0]
    assert ran.ok
    assert "nb.ipynb" in ran.result


def test_the_cell_id_of_a_front_end_reaches_the_tape(tmp_path):
    notebook(tmp_path / "nb.ipynb")
    ask = "\nfrom tape_jupyter.session import session as deck\ndeck.get().active.request.cell_id, deck.get().active.request.count"
    with Kernel(
        tmp_path, {"TAPE_MODE": "record", "JPY_SESSION_NAME": str(tmp_path / "nb.ipynb")}
    ) as kernel:
        assert kernel.execute(LOAD + ask, cell_id="first").result == "('first', 1)"
        assert kernel.execute("%%tape record" + ask, cell_id="second").result == "('second', 2)"


ASK = taped(
    "from tape_jupyter.session import session as deck\nprint('cassette', deck.get().active.path)"
)


@pytest.mark.slow
@pytest.mark.parametrize("app", [run_notebook, jupyter_execute, papermill])
def test_the_notebook_is_found_in_headless_front_ends(tmp_path, app):
    churn = notebook(tmp_path / "churn.ipynb", LOAD, ASK)
    args = {
        run_notebook: (churn, tmp_path),
        papermill: (churn, tmp_path / "out.ipynb"),
        jupyter_execute: (churn,),
    }
    ran = app(*args[app])[1]
    assert (
        ran.stdout.strip() == f"cassette {churn.resolve().with_suffix('.tapes')}/main.tape.yaml"
    ), ran.traceback


@pytest.mark.slow
def test_jupyter_execute_from_another_folder_finds_the_notebook(tmp_path):
    churn = notebook(tmp_path / "deep" / "churn.ipynb", LOAD, ASK)
    assert (
        str(churn.resolve().with_suffix(".tapes")) in jupyter_execute(churn, cwd=tmp_path)[1].stdout
    )


@pytest.mark.slow
def test_the_notebook_is_found_in_jupyterlab_also_with_unsaved_cells(tmp_path):
    churn = notebook(tmp_path / "churn.ipynb", "nothing like it")
    with jupyterlab(churn) as kernel:
        kernel.execute(LOAD)
        assert str(churn.resolve().with_suffix(".tapes")) in kernel.execute(ASK).stdout


def test_where_no_notebook_is_known_a_change_of_directory_moves_no_cassette(tmp_path, site):
    (tmp_path / "data").mkdir()
    with Kernel(tmp_path) as kernel:
        assert kernel.execute(LOAD).ok
        known = kernel.execute("%%tape once demo\n" + visit(site)).stdout
        assert kernel.execute("import os; os.chdir('data')").ok
        for mode in ("once", "replay"):
            assert kernel.execute(f"%%tape {mode} demo\n" + visit(site)).stdout == known
        assert "1 call, " in kernel.execute("%tape show demo").stdout
        assert "cassettes:    demo" in kernel.execute("%tape status").stdout
        assert kernel.execute("%%tape record new\n" + visit(site)).ok
    assert sorted(path.parent.name for path in tmp_path.rglob("*.tape.yaml")) == [
        "demo.tapes",
        "new.tapes",
    ]
    assert not [*(tmp_path / "data").iterdir()]


def test_a_typed_console_waits_for_the_whole_cell(tmp_path):
    with typed_terminal(tmp_path) as child:
        child.send(f"{LOAD}\r")
        child.expect(r"In \[2\]:")
        for line in ("%%tape record demo", "x = 40", "print('sum', x + 2)", "", ""):
            child.send(line + "\r")
        child.expect("sum 42")
        child.expect("recorded  ")


def test_a_shell_line_that_may_reach_the_network_fails_the_replayed_cell_in_the_kernel_itself(
    kernel, site
):
    assert kernel.execute(f"%%tape record shell\nimport httpx\nhttpx.get('{site}/shell').text").ok
    pid = kernel.execute("import os\nos.getpid()").result
    reply = kernel.execute(f"%%tape replay shell\n!curl -s {site}/shell\nos.getpid()")
    assert (
        reply.ename == "UnmatchedCall" and reply.result is None
    )  # at once, and not in a copy of the kernel
    assert "curl -s" in reply.evalue
    assert kernel.execute("os.getpid()").result == pid
    assert kernel.execute("%%tape replay shell\n!echo from a child").ok
    named = kernel.execute("%%tape record shell\n!true")
    assert named.ok and "`true`" in named.summary
