"""The labextension's line to a kernel, with a page played by hand against a real kernel. In a browser: tests/browser/."""

import time

import pytest

from tests.harness.notebook import TIMEOUT, Kernel, notebook

LAB = "from tape_jupyter.jupyter import labextension as lab\nline = lab._labs[0]"


class Page:
    """What a browser's page says and hears on the two comms."""

    def __init__(self, kernel, name, subshell=None):
        self.kernel, self.name, self.subshell = kernel, name, subshell
        self.comm = f"comm-{name}"
        self._send("comm_open", target_name="tape-jupyter", data={"client": name})

    def say(self, **data):
        self._send("comm_msg", data=data)

    def close(self):
        self._send("comm_close", data={})

    def hear(self, wanted):
        """The next message to this page that `wanted` holds of."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            message = self.kernel._client.get_iopub_msg(
                timeout=max(0.01, deadline - time.monotonic())
            )
            data = message["content"].get("data", {}) if message["msg_type"] == "comm_msg" else {}
            if data.get("client") == self.name and wanted(data):
                return data

    def _send(self, kind, **content):
        message = self.kernel._client.session.msg(kind, {"comm_id": self.comm, **content})
        if self.subshell:
            message["header"]["subshell_id"] = self.subshell
        self.kernel._client.shell_channel.send(message)


@pytest.fixture
def kernel(tmp_path):
    notebook(tmp_path / "churn.ipynb", "x")
    with Kernel(tmp_path) as running:
        assert running.execute(f"%load_ext tape_jupyter\n{LAB}").ok
        yield running


def value(kernel, code):
    return kernel.execute(f"print({code})").stdout.strip()


def test_loading_opens_one_comm_that_pages_find_by_its_name(kernel):
    assert kernel.execute("%reload_ext tape_jupyter").ok
    found = "[name for name in line._manager.comms if name.startswith('tape-tell-')]"
    assert value(kernel, f"len({found}), len(lab._labs)") == "1 1"
    assert value(kernel, "lab.browser_route()") == "None"
    assert kernel.execute("%unload_ext tape_jupyter").ok
    assert (
        value(
            kernel,
            "lab._labs, [name for name in line._manager.comms if 'tape' in name], 'tape-jupyter' in line._manager.targets",
        )
        == "[] [] False"
    )


def test_a_page_that_knows_no_tape_closes_the_comm_and_others_find_it_still(kernel):
    message = kernel._client.session.msg(
        "comm_close", {"comm_id": value(kernel, "line._comm.comm_id"), "data": {}}
    )
    kernel._client.shell_channel.send(message)
    assert value(kernel, "line._comm.comm_id in line._manager.comms") == "True"
    page = Page(kernel, "late")
    page.say(type="view", view="v", message={"type": "ask", "id": "1", "about": "session"})
    assert page.hear(lambda data: "view" in data)["message"]["answer"]["mode"] == "off"


def test_a_page_tells_where_the_notebook_lies_and_where_it_was_moved(kernel, tmp_path):
    page = Page(kernel, "a")
    page.say(type="path", path="churn.ipynb", root=str(tmp_path))
    assert value(kernel, "line._ladder.hint.name") == "churn.ipynb"
    (tmp_path / "below").mkdir()
    (tmp_path / "churn.ipynb").rename(tmp_path / "below" / "leavers.ipynb")
    page.say(type="path", path="below/leavers.ipynb", root=str(tmp_path))
    assert value(kernel, "line._ladder.hint") == str(tmp_path / "below" / "leavers.ipynb")


def test_a_page_that_knows_no_root_tells_it_too(kernel, tmp_path):
    page = Page(kernel, "a")
    (tmp_path / "churn.ipynb").rename(tmp_path / "leavers.ipynb")
    page.say(type="path", path=f"{tmp_path.name}/leavers.ipynb", root="")
    assert value(kernel, "line._ladder.hint.name") == "leavers.ipynb"
    (tmp_path / "leavers.ipynb").rename(tmp_path.parent / "moved.ipynb")
    page.say(type="path", path="moved.ipynb", root="")
    assert value(kernel, "line._ladder.hint") == str(tmp_path.parent / "moved.ipynb")


def test_what_no_page_says_is_dropped_and_counted(kernel):
    page = Page(kernel, "a")
    forged = [{}, {"type": "nonsense"}, {"type": "path", "path": 1, "root": None}, {"type": "view", "view": "v"},
              {"type": "view", "view": "v", "message": "text"}, {"type": "ran", "id": "x", "state": "ok", "text": ""},
              {"type": "ran", "id": "x", "state": "fine", "text": ""}, {"type": "running", "id": []}]  # fmt: skip
    for each in forged:
        page.say(**each)
    assert value(kernel, "line.dropped, len(line.clients)") == f"{len(forged)} 1"


def test_cells_run_in_the_page_that_came_last_and_every_ask_is_answered_once(kernel):
    one, two = Page(kernel, "one"), Page(kernel, "two")
    kernel.send("fared = []\nlab.browser_route().run('cell-7', fared.append)")
    asked = two.hear(lambda data: data.get("type") == "run")
    assert asked["cell"] == "cell-7"
    one.say(type="ran", id=asked["id"], state="ok", text="forged by another page")
    two.say(type="running", id=asked["id"])
    two.say(type="ran", id=asked["id"], state="error", text="ValueError: no")
    two.say(type="ran", id=asked["id"], state="ok", text="a second time")
    assert (
        value(kernel, "[tuple(ran) for ran in fared], line.dropped")
        == "[('cell-7', 'error', 'ValueError: no')] 2"
    )


def test_what_runs_is_withdrawn_and_a_page_that_goes_is_not_waited_for(kernel):
    page = Page(kernel, "a")
    kernel.send(
        "fared = []\nlab.browser_route().run('cell-1', fared.append)\nlab.browser_route().cancel()"
    )
    asked = page.hear(lambda data: data.get("type") == "cancel")
    page.say(type="ran", id=asked["id"], state="canceled", text="")
    kernel.execute("lab.browser_route().run('cell-2', fared.append)")
    page.close()
    assert (
        value(kernel, "[(ran.cell, ran.state) for ran in fared], lab.browser_route()")
        == "[('cell-1', 'canceled'), ('cell-2', 'gone')] None"
    )


def test_a_page_is_heard_while_a_cell_runs(kernel):
    client = kernel._client
    client.control_channel.send(client.session.msg("create_subshell_request", {}))
    subshell = client.control_channel.get_msg(timeout=TIMEOUT)["content"]["subshell_id"]
    page = Page(kernel, "a", subshell)
    page.say(type="view", view="v", message={"type": "ask", "id": "0", "about": "session"})
    page.hear(lambda data: "view" in data)
    asked = kernel.send(
        "import threading\ncame = threading.Event()\nlab.browser_route().run('x', lambda _: came.set())\nprint(came.wait(20))"
    )
    run = page.hear(lambda data: data.get("type") == "run")
    page.say(type="view", view="v", message={"type": "ask", "id": "1", "about": "session"})
    assert (
        page.hear(lambda data: "view" in data and data["message"].get("id") == "1")["message"][
            "answer"
        ]["mode"]
        == "off"
    )
    page.say(type="ran", id=run["id"], state="ok", text="")
    assert kernel.collect(asked).stdout.strip() == "True"
