import socket

import pytest

from tape_jupyter.isolation import audit_events
from tape_jupyter.instrumentation.concurrency import processes


@pytest.mark.parametrize(
    ("words", "networked"),
    [
        (["curl", "-s", "x"], True),
        (["git", "commit", "-m", "x"], False),
        (["sh", "-c", "echo 'a; curl b'"], False),
        ([], True),
    ],
)
def test_a_child_may_reach_the_network_unless_it_is_known_not_to(words, networked):
    seen = audit_events.event_target("subprocess.Popen", (None, words, None, None))
    assert seen is not None and seen.networked is networked


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("subprocess.Popen", ("/usr/bin/curl", ["ls", "x"], None, None)),
        ("os.exec", (b"/usr/bin/curl", ["ls"], None)),
        ("os.spawn", (0, "curl", ["ls"], None)),
    ],
)
def test_a_command_line_is_judged_by_the_program_that_really_runs(event, args):
    assert audit_events.event_target(event, args).networked


def test_a_fork_and_a_new_interpreter_of_multiprocessing_are_seen():
    assert (
        audit_events.event_target("os.fork", ()).kind,
        audit_events.event_target("os.fork", ()).networked,
    ) == ("fork", False)
    seen = audit_events.event_target(audit_events.PROCESS, ("spawn", "SpawnProcess-1"))
    assert (seen.what, seen.networked) == ("multiprocessing (spawn) SpawnProcess-1", True)
    assert audit_events.PROCESS == processes.EVENT


def test_events_that_reach_nothing_have_no_target():
    with socket.socket(socket.AF_UNIX) as unix, socket.socket() as inet:
        assert audit_events.event_target("socket.connect", (unix, "/tmp/s")) is None
        assert audit_events.event_target("socket.connect", (inet, "nonsense")) is None
        assert audit_events.event_target("socket.sendmsg", (inet, None)) is None
    for host in (None, "", b"", "localhost", "127.0.0.1", "::1", "192.0.2.1", b"192.0.2.1"):
        assert audit_events.event_target("socket.getaddrinfo", (host, 80, 0, 0, 0)) is None
    assert audit_events.event_target("socket.gethostbyaddr", ("127.0.0.1",)) is None
    assert audit_events.event_target("open", ("x", "r", 0)) is None
    assert (
        audit_events.event_target("subprocess.Popen", ("uname", ["uname", "-p"], None, None))
        is None
    )


def test_a_connection_is_named_by_host_and_port():
    with socket.socket() as inet:
        seen = audit_events.event_target("socket.connect", (inet, ("192.0.2.1", 6379)))
    assert (seen.kind, seen.what, seen.networked) == ("connection", "192.0.2.1:6379", True)
    assert audit_events.event_target("socket.getaddrinfo", (b"db.example", 80)).what == "db.example"
    assert audit_events.event_target("socket.gethostbyaddr", ("192.0.2.1",)).what == "192.0.2.1"


def test_the_machines_own_name_backwards_is_what_the_standard_library_asks():
    assert audit_events.event_target("socket.gethostbyaddr", (socket.gethostname(),)).expected
    assert not audit_events.event_target("socket.getaddrinfo", ("db.example", 80)).expected


@pytest.mark.parametrize(
    ("event", "args", "command"),
    [
        ("subprocess.Popen", ("/bin/sh", ["/bin/sh", "-c", "ls | wc"], None, None), "ls | wc"),
        ("subprocess.Popen", (None, "ls", None, None), "ls"),
        ("subprocess.Popen", (None, [b"ls", "-l"], None, None), "ls -l"),
        ("os.system", (b"ls -l",), "ls -l"),
        ("os.posix_spawn", ("/bin/ls", ["ls", "-l"], {}), "ls -l"),
        ("os.exec", ("/bin/ls", ["ls"], None), "ls"),
        ("os.spawn", (0, "ls", ["ls", "x"], None), "ls x"),
        ("pty.spawn", (["bash"],), "bash"),
        ("subprocess.Popen", (None, ["x" * 500], None, None), "x" * 97 + "..."),
    ],
)
def test_a_child_process_is_named_by_its_command_line(event, args, command):
    assert audit_events.event_target(event, args).what == command


@pytest.mark.parametrize(
    ("address", "what"),
    [
        (
            "us-central1-aiplatform.googleapis.com:443",
            "us-central1-aiplatform.googleapis.com:443 through grpc",
        ),
        ("dns:///localhost:50051", "localhost:50051 through grpc"),
        ("dns://8.8.8.8/example.com:443", "example.com:443 through grpc"),
        ("ipv4:10.0.0.1:443", "10.0.0.1:443 through grpc"),
        ("[::1]:443", "::1:443 through grpc"),
        ("http://user@example.com:8080/a/b?c=d", "example.com:8080 through grpc"),
        ("example.com", "example.com through grpc"),
        ("host:port", "grpc://host:port through grpc"),
    ],
)
def test_a_client_whose_sockets_no_hook_sees_tells_where_it_goes(address, what):
    seen = audit_events.event_target(audit_events.CLIENT, ("grpc", address, "/a.B/C"))
    assert (seen.kind, seen.what, seen.telemetry) == ("connection", what, False)


def test_a_client_that_stays_on_the_machine_is_no_concern_and_a_collector_of_spans_is_telemetry():
    assert audit_events.event_target(audit_events.CLIENT, ("grpc", "unix:/run/x.sock", "")) is None
    method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    assert audit_events.event_target(
        audit_events.CLIENT, ("grpc", "localhost:4317", method)
    ).telemetry
