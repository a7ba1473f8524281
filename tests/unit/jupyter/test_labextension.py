"""What a page says while a cell runs, over the kernel's control channel. In a browser: tests/browser/test_step.py."""

import queue
import threading
from types import SimpleNamespace

from tape_jupyter.jupyter.labextension import KINDS, Beside, listen_on_control
from tests.unit.bundle.test_lab import LAB, Page, kernel  # noqa: F401 - a fixture


class PageBeside(Page):
    """A page whose comm goes over the control channel."""

    def _send(self, kind, **content):
        message = self.kernel._client.session.msg(kind, {"comm_id": self.comm, **content})
        self.kernel._client.control_channel.send(message)


def test_the_first_comm_s_id_says_that_the_kernel_listens_there(kernel):  # noqa: F811
    assert kernel.execute("print(line._comm.comm_id)").stdout.startswith("tape-tell-beside-")


def test_a_page_that_is_opened_while_a_cell_runs_is_answered_at_once(kernel):  # noqa: F811
    running = kernel.send("import time\nwhile not line.dropped: time.sleep(0.01)")
    page = PageBeside(kernel, "late")
    page.say(type="view", view="v", message={"type": "ask", "id": "1", "about": "session"})
    assert page.hear(lambda data: "view" in data)["message"]["answer"]["mode"] == "off"
    page.say(type="nonsense")  # which the cell waits for
    assert kernel.collect(running).ok
    assert kernel.execute("print(list(line.clients))").stdout.strip() == "['late']"


def test_after_unloading_nobody_listens_there(kernel):  # noqa: F811
    page = PageBeside(kernel, "a")
    page.say(type="view", view="v", message={"type": "ask", "id": "1", "about": "session"})
    page.hear(lambda data: "view" in data)
    assert kernel.execute("%unload_ext tape_jupyter").ok
    left = kernel.execute(
        "import threading\nprint([k for k in get_ipython().kernel.control_handlers if 'comm_' in k])"
    )
    assert left.stdout.strip() == "['comm_info_request']"


class Heard:
    """A comm manager that keeps what it is given."""

    def __init__(self):
        self.given = queue.Queue()
        for kind in KINDS:
            setattr(
                self, kind, lambda _stream, _ident, message, kind=kind: self.take(kind, message)
            )

    def take(self, kind, message):
        self.given.put((kind, threading.current_thread().name))
        if message["content"].get("data") == "bad":
            raise ValueError(message)


def test_messages_come_in_their_order_on_a_thread_of_ours_and_a_bad_one_stops_nothing():
    heard, kernel = Heard(), SimpleNamespace(control_handlers={})
    line = listen_on_control(SimpleNamespace(kernel=kernel), heard, "ours")

    def say(kind, name, **content):
        return kernel.control_handlers[kind](None, None, {"content": {"comm_id": name, **content}})

    say("comm_open", "x", target_name="theirs")
    say("comm_msg", "x")
    say("comm_open", "a", target_name="ours", data="bad")
    say("comm_msg", "a")
    say("comm_close", "a")
    assert [heard.given.get(timeout=30) for _ in KINDS] == [(kind, "tape pages") for kind in
                                                            ("comm_open", "comm_msg", "comm_close")]  # fmt: skip
    line.close()
    assert kernel.control_handlers == {}


def test_a_widget_is_heard_there_too_once_it_is_taken():
    heard, kernel = Heard(), SimpleNamespace(control_handlers={})
    line = listen_on_control(SimpleNamespace(kernel=kernel), heard, "ours")
    said = {"content": {"comm_id": "widget"}}
    kernel.control_handlers["comm_msg"](None, None, said)
    line.adopt_comm("widget")
    kernel.control_handlers["comm_msg"](None, None, said)
    assert heard.given.get(timeout=30)[0] == "comm_msg" and heard.given.empty(), "once, not twice"
    line.close()


def test_who_took_such_messages_before_gets_those_of_others_and_has_all_again_after():
    theirs = []
    before = lambda *given: theirs.append(given[2]["content"]["comm_id"])  # noqa: E731
    kernel = SimpleNamespace(control_handlers={"comm_msg": before})
    line = Beside(kernel, Heard(), "ours")
    kernel.control_handlers["comm_msg"](None, None, {"content": {"comm_id": "x"}})
    assert theirs == ["x"]
    line.close()
    assert kernel.control_handlers == {"comm_msg": before}


def test_where_there_is_no_kernel_or_no_such_channel_nothing_listens():
    assert listen_on_control(SimpleNamespace(), Heard(), "ours") is None
    assert listen_on_control(SimpleNamespace(kernel=SimpleNamespace()), Heard(), "ours") is None
