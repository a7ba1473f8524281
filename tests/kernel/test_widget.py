"""`%tape view` and `%tape frame` in real kernels, the comm spoken as a page speaks it."""

import time

import ipykernel
import pytest

from tests.harness.notebook import Kernel
from tests.harness.provider import Provider
from tests.harness.tapes import ASK


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    with Kernel(tmp_path_factory.mktemp("widget")) as kernel:
        (kernel.cwd / "n.ipynb").write_text("{}")
        kernel.execute("%load_ext tape_jupyter\nimport os; os.environ['TAPE_NOTEBOOK'] = 'n.ipynb'")
        kernel.execute(
            "from tape_jupyter.jupyter import widget; from tape_jupyter.reports import static_assets; widget.script = lambda name: 'export default {}'"
        )
        with Provider() as provider:
            kernel.url = provider.url
            assert kernel.execute("import warnings\n" + ASK.replace("URL", provider.url)).ok
            assert kernel.execute("%%tape record\nask('first')").ok
            yield kernel


class Page:
    """A page that opened a widget: its comm, as the front end's side of it."""

    def __init__(self, kernel):
        self.kernel = kernel
        ran = kernel.execute("w = get_ipython().run_line_magic('tape', 'view')\nw")
        assert ran.ok, ran.traceback
        self.output = next(out for out in ran.outputs if out["output_type"] == "execute_result")[
            "data"
        ]
        self.comm = self.output["application/vnd.jupyter.widget-view+json"]["model_id"]

    def ask(self, about, beside=None, **body):
        """Send a question (to a subshell `beside` the cell, or over "control"); its answer is among what `heard` gives."""
        content = {"type": "ask", "id": about, "about": about, **body}
        data = {"method": "custom", "content": content}
        message = self.kernel._client.session.msg("comm_msg", {"comm_id": self.comm, "data": data})
        if beside == "control":
            self.kernel._client.control_channel.send(message)
            return
        if beside is not None:
            message["header"]["subshell_id"] = beside
        self.kernel._client.shell_channel.send(message)

    def heard(self, wanted, timeout=30):
        """The first message of the widget that is wanted."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            message = self.kernel._client.get_iopub_msg(timeout=timeout)
            if message["msg_type"] == "comm_msg" and message["content"]["comm_id"] == self.comm:
                content = message["content"]["data"].get("content", {})
                if wanted(content):
                    return content
        raise AssertionError("the page heard nothing of the kind")


@pytest.fixture
def page(kernel):
    return Page(kernel)


def test_the_widget_answers_and_a_saved_notebook_shows_what_it_was(page):
    page.ask("spans", **{"from": 0, "limit": 100})
    answered = page.heard(lambda told: told.get("type") == "answer")
    assert answered["answer"]["name"][0].startswith("[") and answered["answer"]["total"] == 2
    assert (
        "tape view of main: 1 call" in page.output["text/plain"]
        and "1 call" in page.output["text/html"]
    )


def test_while_a_cell_blocks_the_kernel_its_spans_reach_the_page(page, kernel):
    page.ask("spans", **{"from": 0, "limit": 100})
    page.heard(lambda told: told.get("type") == "answer")
    cell = "%%tape record live\nprint(ask('while it runs'), flush=True)\nimport threading\nthreading.Event().wait(3)\nprint('over', flush=True)"
    asked = kernel.send(cell)
    shown = counted = False
    while not (shown and counted):  # in one message, or the count in the next
        told = page.heard(lambda told: told.get("about") == "changed" and told["running"])
        rows = told["page"] or {"name": [], "kind": []}  # a page may have no row yet
        named = zip(rows["name"], rows["kind"], strict=True)
        shown = shown or any("runs'" in name and kind == 2 for name, kind in named)
        counted = counted or told["running"]["calls"] == 1
    assert kernel.collect(asked, timeout=60).ok


def test_what_is_forged_is_dropped_and_the_kernel_lives(page, kernel):
    for about, body in (
        ("detail", {"span": 7}),
        ("nonsense", {}),
        ("override", {"span": "r-x/12345678", "edit": "x"}),
    ):
        page.ask(about, **body)
    page.ask("session")
    page.heard(lambda told: told.get("id") == "session")
    assert int(kernel.execute("w.viewer.dropped").result) >= 2


def test_the_editor_is_sent_when_it_is_asked_for_and_not_before(page, kernel):
    page.ask("editor")
    told = page.heard(lambda told: told.get("id") == "editor")
    assert "script" in told.get("answer", {}) or "node" in told["error"]
    assert "codemirror" not in kernel.execute("w._esm").result.lower()


def test_old_views_are_closed(kernel):
    ran = kernel.execute(
        "from tape_jupyter.jupyter.viewer import live as watch; from tape_jupyter.session import session as deck\nfor _ in range(10): get_ipython().run_line_magic('tape', 'view')\n"
        "len(watch.updates_of(deck.get())._views)"
    )
    assert ran.result == "6"


def test_a_frame_is_given_to_a_name(kernel):
    ran = kernel.execute("df = %tape frame\nlist(df['kind'])")
    assert ran.result == "['cell', 'model']", ran.traceback
    assert kernel.execute("%tape frame nothere").ename == "CassetteError"


@pytest.mark.parametrize("way", ["control", "subshell"])
def test_a_cell_is_stepped_from_the_widget_while_it_blocks_the_kernel(page, kernel, way):
    if way == "subshell" and ipykernel.version_info[0] < 7:
        pytest.skip("ipykernel 6 has no subshells")
    beside = subshell(kernel) if way == "subshell" else way
    page.ask("step")
    stood = page.heard(lambda told: told.get("id") == "step")["answer"]
    assert stood is None or stood["state"] == "over"
    kernel.execute("x = 'before'")
    asked = kernel.send("%%tape step\nx = ask('first')\nprint('over')")
    page.heard(lambda told: told.get("about") == "step.probe")
    page.ask("step.here", beside=beside)
    stopped = page.heard(lambda told: told.get("about") == "step" and told["state"] == "stopped")
    assert stopped["strands"][0]["call"]["place"] == ":1"
    page.ask("step.do", do="over", beside=beside)
    ran = kernel.collect(asked)
    assert ran.ok and ran.stdout == "over\n", ran.traceback


def subshell(kernel):
    """A thread of the kernel beside the main one, as JupyterLab makes one for each comm."""
    client = kernel._client
    message = client.session.msg("create_subshell_request")
    client.control_channel.send(message)
    while True:
        reply = client.get_control_msg(timeout=30)
        if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            return reply["content"]["subshell_id"]


def test_where_the_view_was_not_built_one_line_says_how_to_get_it(kernel):
    ran = kernel.execute(
        "from importlib import reload, resources\nfrom pathlib import Path\n"
        "widget.script = static_assets.script\nstatic_assets.resources = type('R', (), {'files': staticmethod(lambda name: Path('nowhere'))})\n"
        "%tape view"
    )
    assert (
        ran.ename == "TapeUsageError"
        and "built without node 20" in ran.evalue
        and len(ran.traceback.splitlines()) < 4
    )
