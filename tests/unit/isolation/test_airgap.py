"""The guard is judged from outside: a child process tries to get out, a server in this process counts who arrived."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

from tape_jupyter.isolation import audit_events
from tape_jupyter.isolation.network_guard import Guard, Policy, Sighting
from tape_jupyter.errors import BlockedConnection
from tape_jupyter.core.context import ORIGIN, SENDING, Origin
from tests.harness.timing import ratio

PRELUDE = """
import asyncio, contextvars, json, os, socket, subprocess, sys, threading, time
from tape_jupyter.isolation.network_guard import Guard, Policy, unwatched
from tape_jupyter.errors import BlockedConnection
from tape_jupyter.core.context import ORIGIN, SENDING, Origin
PORT = {port}
URL = f"http://127.0.0.1:{{PORT}}/"
guard, events = Guard(), []
def arm(mode="replay", **more):
    guard.arm(Policy(mode, on_event=events.append, **more))
def connects():
    "Whether a plain socket gets out."
    try:
        socket.create_connection(("127.0.0.1", PORT)).close()
    except BlockedConnection:
        return False
    return True
def told(value):
    print(json.dumps(value))
"""


class Door:
    """A server on loopback that counts who comes in and answers everything alike."""

    def __init__(self):
        self.arrived = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:
                return
            self.arrived += 1
            threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller):
        with caller:
            caller.settimeout(5)
            try:
                if caller.recv(4096):
                    caller.sendall(
                        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
                    )
            except OSError:
                pass

    def close(self):
        self._server.close()


@pytest.fixture
def door():
    opened = Door()
    yield opened
    opened.close()


def run(door, body):
    """Run `body` in a child process (names of PRELUDE at hand); what it `told`."""
    script = PRELUDE.format(port=door.port) + textwrap.dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


PROBES = {
    "urllib": "import urllib.request; urllib.request.urlopen(URL).read()",
    "http.client": "import http.client; c = http.client.HTTPConnection('127.0.0.1', PORT); c.request('GET', '/')",
    "a raw socket": "s = socket.socket(); s.connect(('127.0.0.1', PORT))",
    "connect_ex": "s = socket.socket(); s.connect_ex(('127.0.0.1', PORT))",
    "IPv6": "s = socket.socket(socket.AF_INET6); s.connect(('::1', PORT))",
    "fast open": "s = socket.socket(); s.sendto(b'x', 0x20000000, ('127.0.0.1', PORT))",
    "UDP": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', PORT))",
    "UDP with sendmsg": "s = socket.socket(type=socket.SOCK_DGRAM); s.sendmsg([b'x'], [], 0, ('127.0.0.1', PORT))",
    "asyncio": "asyncio.run(asyncio.open_connection('127.0.0.1', PORT))",
    "asyncio by name": "asyncio.run(asyncio.open_connection('db.invalid', PORT))",
    "asyncio UDP": """
async def go():
    await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=('127.0.0.1', PORT))
asyncio.run(go())""",
    "a name": "socket.getaddrinfo('db.invalid', 80)",
    "gethostbyname": "socket.gethostbyname('db.invalid')",
    "gethostbyname_ex": "socket.gethostbyname_ex('db.invalid')",
    "a name backwards": "socket.gethostbyaddr('192.0.2.7')",
    "getnameinfo": "socket.getnameinfo(('192.0.2.7', 80), 0)",
    "smtplib": "import smtplib; smtplib.SMTP('127.0.0.1', PORT)",
    "ftplib": "import ftplib; ftplib.FTP().connect('127.0.0.1', PORT)",
    "curl": "subprocess.run(['curl', '-s', URL])",
    "curl in a shell": "os.system(f'cd / && FOO=1 curl -s {URL}')",
    "curl in a substitution": "subprocess.run(f'echo \"$(curl -s {URL})\"', shell=True)",
    "pip": "subprocess.run([sys.executable, '-m', 'pip', 'download', 'x'])",
    "git fetch": "subprocess.run(['git', '-C', '/', 'fetch'])",
    "a pool's thread": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor() as pool:
    pool.submit(socket.create_connection, ('127.0.0.1', PORT)).result()""",
    "a name in a thread": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor() as pool:
    pool.submit(socket.getaddrinfo, 'db.invalid', 80).result()""",
}


def test_in_replay_nothing_gets_out_whatever_opens_it(door):
    body = f"""
    for name, code in {PROBES!r}.items():
        arm()
        try:
            exec(compile(code, "<string>", "exec"), globals())
            outcome = "got out"
        except BlockedConnection:
            outcome = "refused"
        except BaseException as error:
            outcome = repr(error)
        guard.disarm()
        told([name, outcome, len(guard.take_refusals())])
    """
    results = run(door, body)
    assert {name: outcome for name, outcome, _ in results} == dict.fromkeys(PROBES, "refused")
    assert all(count >= 1 for _, _, count in results)
    assert door.arrived == 0


def test_a_forked_child_is_guarded_like_its_parent(door):
    body = """
    arm()
    pid = os.fork()
    if not pid:
        os._exit(7 if not connects() else 0)
    told(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    assert run(door, body) == [7]
    assert door.arrived == 0


def test_what_stays_on_the_machine_is_left_alone(door):
    body = """
    import tempfile
    arm()
    left, right = socket.socketpair()
    left.sendall(b"x"); told(right.recv(1).decode())
    path = os.path.join(tempfile.mkdtemp(), "s")
    server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
    client = socket.socket(socket.AF_UNIX); client.connect(path)
    asyncio.run(asyncio.sleep(0))
    socket.getaddrinfo("localhost", 80); socket.getaddrinfo("127.0.0.1", 80); socket.getaddrinfo(None, 80)
    listening = socket.create_server(("127.0.0.1", 0))
    socket.getfqdn()
    subprocess.run(["uname"], stdout=subprocess.DEVNULL)
    told([str(event) for event in events])
    """
    assert run(door, body) == ["x", []]


def test_a_thread_started_before_the_replay_is_refused_too(door):
    body = """
    go, results = threading.Event(), []
    thread = threading.Thread(target=lambda: (go.wait(), results.append(connects())))
    thread.start()
    arm(); go.set(); thread.join()
    told(results)
    """
    assert run(door, body) == [[False]]
    assert door.arrived == 0


def test_a_refusal_that_user_code_swallowed_is_remembered_with_its_line(door):
    body = """
    arm()
    try:
        import urllib.request
        urllib.request.urlopen(URL)
    except BaseException:
        pass
    seen, = guard.take_refusals()
    told([seen.kind, seen.what == f"127.0.0.1:{PORT}", seen.where, str(seen.refusal)])
    told([len(events), len(guard.take_refusals())])
    """
    (kind, same, where, text), counts = run(door, body)
    assert (kind, same, counts) == ("connection", True, [1, 0])
    assert where.startswith("<string>:")
    assert "it is not from a recorded library" in text and "@tape.tool" in text


def test_every_refusal_is_told_of_the_same_line_too_and_memory_stays_bounded(door):
    body = """
    arm()
    for _ in range(500):
        connects()
    arm(); connects()
    told([len(events), len(guard.take_refusals())])
    """
    assert run(door, body) == [[501, 100]]


def test_after_disarming_all_is_live_again(door):
    assert run(door, "arm(); a = connects(); guard.disarm(); told([a, connects()])") == [
        [False, True]
    ]
    assert door.arrived == 1


def test_code_of_a_replay_cell_stays_refused_after_the_cell_ended(door):
    body = """
    class Cell: replay = True
    cell = Cell()
    arm("off", replays=lambda c: c.replay)
    context = contextvars.copy_context()
    context.run(ORIGIN.set, Origin(cell))
    refused = context.run(connects)
    live = connects()
    cell.replay = False
    told([refused, live, context.run(connects)])
    """
    assert run(door, body) == [[False, True, True]]


def test_a_taps_own_sending_and_our_own_work_pass(door):
    body = """
    arm()
    token = SENDING.set(True); a = connects(); SENDING.reset(token)
    with unwatched():
        b = connects(); subprocess.run(["git", "ls-remote", "/nowhere"], capture_output=True)
    told([a, b, connects(), len(events)])
    """
    assert run(door, body) == [[True, True, False, 1]]


def test_an_allowed_host_is_let_through_by_name_address_and_port(door):
    body = """
    for allow in ("host:127.0.0.1", "localhost", f"127.0.0.1:{PORT}", "host:localhost", "127.0.0.1:1", "db.invalid"):
        arm(allow=frozenset({allow}))
        told([allow, connects()])
    arm(allow=frozenset({"db.invalid"}))
    try:
        socket.getaddrinfo("db.invalid", 80)
    except OSError as error:
        told("asked")
    """
    results = run(door, body)
    assert [let for _, let in results[:-1]] == [True, True, True, True, False, False]
    assert results[-1] == "asked"


def test_while_recording_what_no_tap_saw_is_named_once_and_goes_on(door):
    body = """
    arm("record")
    for _ in range(3):
        connects()
    subprocess.run([sys.executable, "-c", "pass"])
    subprocess.run("echo hello && true", shell=True, stdout=subprocess.DEVNULL)
    told([[e.kind, e.what, e.refusal] for e in events])
    told([str(e) for e in events])
    """
    events, texts = run(door, body)
    assert [kind for kind, _, _ in events] == ["connection", "child", "child"]
    assert events[0][1] == f"127.0.0.1:{door.port}"
    assert events[2][1] == "echo hello && true"
    assert all(refusal is None for _, _, refusal in events)
    assert "not from a recorded" in texts[0] and "not on the tape" in texts[1]
    assert door.arrived == 3


def test_in_replay_an_ordinary_child_process_runs_and_is_named(door):
    body = """
    arm()
    told(subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout)
    told([[e.kind, e.what] for e in events])
    """
    assert run(door, body) == ["hi\n", [["child", "echo hi"]]]


def test_telemetry_is_refused_in_silence_and_never_reported(door):
    body = """
    arm()
    try:
        socket.getaddrinfo("api.smith.langchain.com", 443)
    except OSError as error:
        told(type(error).__name__)
    told([len(events), len(guard.take_refusals())])
    """
    assert run(door, body) == ["ConnectionRefusedError", [0, 0]]


def test_an_odd_address_raises_what_python_raises(door):
    body = """
    arm()
    for address in ("nonsense", None, (), ("a",)):
        try:
            socket.socket().connect(address)
        except (TypeError, OSError, BlockedConnection) as error:
            told(type(error).__name__)
    """
    assert run(door, body) == ["TypeError"] * 4


def test_a_guard_that_cannot_judge_refuses_in_replay(monkeypatch):
    guard = Guard()
    monkeypatch.setattr(audit_events, "event_target", lambda *_: 1 / 0)
    guard.arm(Policy("replay"))
    try:
        with pytest.raises(BlockedConnection, match="checking it failed"):
            socket.getaddrinfo("db.invalid", 80)
        guard.arm(Policy("record"))
        socket.getaddrinfo("localhost", 80)
    finally:
        guard.disarm()


def test_an_armed_guard_costs_other_events_next_to_nothing():
    from tape_jupyter.isolation.network_guard import _handle_audit_event

    def often(hook):
        return lambda: [hook("open", ("x", "r", 0)) for _ in range(10_000)]

    guard = Guard()
    guard.arm(Policy("replay"))
    try:
        assert ratio(often(_handle_audit_event), often(lambda event, args: None)) < 8  # measured: 2
    finally:
        guard.disarm()


def test_a_sighting_reads_as_a_sentence():
    assert str(
        Sighting("connection", "10.0.0.1:6379 (redis.example)", "cell line 3: r.get(1)")
    ) == (
        "connection to 10.0.0.1:6379 (redis.example) (cell line 3: r.get(1)) is not from a recorded library: it is not on the tape"
    )


@pytest.mark.slow
def test_a_real_kernel_keeps_working_while_armed(door, tmp_path):
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(
        kernel_name="python3", cwd=str(tmp_path), env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    outputs = []

    def cell(source):
        outputs.clear()
        reply = client.execute_interactive(source, timeout=30, output_hook=outputs.append)
        text = "".join(m["content"].get("text", "") for m in outputs if m["msg_type"] == "stream")
        return reply["content"]["status"], text

    try:
        status, _ = cell(PRELUDE.format(port=door.port) + "arm()")
        assert status == "ok"
        assert cell("print(connects())") == ("ok", "False\n")
        assert cell("await asyncio.sleep(0.01); print(len(events))") == ("ok", "1\n")
        status, _ = cell("import urllib.request\nurllib.request.urlopen(URL)")
        assert status == "error"
        assert cell("print(events[-1].where)") == (
            "ok",
            "cell line 2: urllib.request.urlopen(URL)\n",
        )
        assert cell("!echo from a child") == ("ok", "from a child\r\n")  # a pseudo-terminal
        assert client.is_complete and client.complete("connec")
        client.get_shell_msg(timeout=60)
        status, text = cell(
            "from IPython.display import display; display({'text/plain': 'x'}, raw=True); print('y')"
        )
        assert (status, text) == ("ok", "y\n")
        assert cell("guard.disarm(); print(connects())") == ("ok", "True\n")
        assert manager.is_alive()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def test_a_terminal_that_runs_a_refused_program_ends_and_its_parent_is_told(door):
    body = """
    import errno, pty
    class Cell: pass
    cell, other = Cell(), Cell()
    ORIGIN.set(Origin(cell))
    def in_terminal(*words):
        pid, master = pty.fork()
        if not pid:
            try:
                os.closerange(3, 256)  # as pexpect does
                os.execvp(words[0], words)
            finally:
                os._exit(3)  # the copy of the program ran on
        seen = b""
        while True:
            try:
                data = os.read(master, 4096)
            except OSError:
                data = b""
            if not data:
                break
            seen += data
        os.close(master)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode()
    arm()
    code, text = in_terminal("curl", "-s", URL)
    told([code, "the child process `curl" in text, len(guard.take_children(other))])
    told([[str(seen), seen.refusal is not None, seen.cell is cell] for seen in guard.take_children(cell)])
    told(in_terminal("echo", "hi"))
    arm("record")
    guard.take_children(cell)
    in_terminal(sys.executable, "-c", "pass")
    told([[str(seen), seen.refusal is not None] for seen in guard.take_children(cell)])
    """
    ended, refused, ran, named = run(door, body)
    assert ended == [126, True, 0]
    ((text, is_refusal, same),) = refused
    assert "curl" in text and is_refusal and same
    assert ran == [0, "hi\r\n"]
    ((text, is_refusal),) = named
    assert "runs live: what it does is not on the tape" in text and not is_refusal
    assert door.arrived == 0


def test_a_fork_is_named_once_while_recording_and_left_alone_in_replay(door):
    body = """
    def fork():
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    arm("record")
    for _ in range(3): fork()
    told([str(event) for event in events])
    arm(); fork()
    told(len(events))
    """
    (text,), count = run(door, body)
    assert text.startswith("a forked process (<string>:") and text.endswith(
        "calls that it makes are not on the tape"
    )
    assert count == 1


def test_in_replay_unknown_programs_and_interpreters_are_refused(door):
    body = """
    arm()
    for words in ([sys.executable, "-c", "pass"], ["sh", "x.sh"], ["./ls"], ["bash", "-c", "eval ls"]):
        try:
            subprocess.run(words)
        except BlockedConnection as error:
            told("@tape.tool" in str(error) and "%tape off" in str(error))
    """
    assert run(door, body) == [True] * 4
