"""Where a cell that runs again is shown: by the browser, in the name of who asked for it, or below."""

from types import SimpleNamespace

import pytest

from tape_jupyter.jupyter.rerun import routes
from tape_jupyter.jupyter.rerun.routes import Here, InBrowser, Parents


def asked(cell, session, message="m1"):
    return {"header": {"session": session, "msg_id": message}, "metadata": {"cellId": cell}}


class Kernel:
    def __init__(self, now):
        self.now, self.said = now, []
        self._parent_ident = {"shell": [b"page"]}

    def get_parent(self, _channel):
        return self.now

    def set_parent(self, ident, parent, channel):
        self.now = parent
        self.said.append((ident, parent["header"]["msg_id"], channel))

    def _publish_status(self, state, channel):
        self.said.append(state)


@pytest.fixture
def parents():
    return Parents(SimpleNamespace(kernel=Kernel(asked("c-9", "page-1", "m9"))))


def test_a_page_that_was_loaded_again_does_not_listen_any_more(parents):
    parents.remember_message(0, asked("c-1", "page-1"))
    parents.remember_message(1, asked("c-2", "page-0"))
    assert [parents.listens(entry) for entry in (0, 1, 2)] == [True, False, False]
    assert parents.cell_id(0) == "c-1" and parents.cell_id(2) is None


def test_one_speaks_for_another_cell_and_then_for_oneself_again(parents):
    before = parents.now()
    with parents.speaking_for(asked("c-1", "page-1")):
        assert parents.now()["header"]["msg_id"] == "m1"
    assert parents.now() is before
    assert parents.kernel.said == [
        ([b"tape"], "m1", "shell"),
        "busy",
        "idle",
        ([b"page"], "m9", "shell"),
    ]


def test_who_speaks_already_is_not_interrupted(parents):
    with parents.speaking_for(parents.now()):
        pass
    assert parents.kernel.said == []


def test_without_a_kernel_the_cell_just_runs_and_says_how_it_fared():
    ran, told = [], []
    shell = SimpleNamespace(
        run_cell=lambda source, **more: (
            ran.append((source, more)) or SimpleNamespace(success="bad" not in source)
        )
    )
    route = Here(Parents(shell))
    route.run(0, "x = 1", lambda *how: told.append(how))
    route.run(1, "bad", lambda *how: told.append(how))
    assert told == [("ok", ""), ("error", "")] and ran[0] == (
        "x = 1",
        {"store_history": True, "cell_id": None},
    )


def test_the_browser_runs_cells_that_it_named(parents, monkeypatch):
    monkeypatch.setattr(routes.labextension, "on_main", lambda do: do())
    told, wanted = [], []
    page = SimpleNamespace(
        run=lambda cell, done: wanted.append((cell, done)), cancel=lambda: wanted.append("cancel")
    )
    route = InBrowser(page, parents)
    parents.remember_message(0, asked("c-1", "page-1"))
    route.run(0, "", lambda *how: told.append(how))
    wanted[0][1](SimpleNamespace(state="ok", text=""))
    route.run(7, "", lambda *how: told.append(how))
    route.cancel()
    assert (
        wanted[0][0] == "c-1"
        and wanted[-1] == "cancel"
        and told[0] == ("ok", "")
        and told[1][0] == "missing"
    )
