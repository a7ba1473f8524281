"""What all taps share: the slot, the patches of what is imported and of what is imported later, the undo."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Reply
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.core.context import SENDING
from tape_jupyter.instrumentation import import_hook, patching
from tape_jupyter.instrumentation.determinism import clock
from tape_jupyter.instrumentation.http import replayed_response, http11
from tests.harness.memory_tape import MemoryTape, taped


def in_new_process(program: str) -> str:
    """What a program prints that imports what it wants, when it wants."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_library_imported_later_is_tapped_as_it_arrives():
    assert (
        in_new_process("""
        from tape_jupyter import instrumentation as taps
        taps.patch_all()
        import sys
        assert not {"httpx", "httpx2", "urllib3", "aiohttp"} & set(sys.modules)
        import aiohttp, http.client, httpx, httpx2, requests, urllib3.connectionpool
        for owner, name in [
            (httpx.HTTPTransport, "handle_request"), (httpx.AsyncHTTPTransport, "handle_async_request"),
            (httpx2.HTTPTransport, "handle_request"), (httpx2.AsyncHTTPTransport, "handle_async_request"),
            (urllib3.connectionpool.HTTPConnectionPool, "_make_request"),
            (urllib3.connectionpool.HTTPSConnectionPool, "_prepare_proxy"),
            (aiohttp.BaseConnector, "connect"), (aiohttp.ClientRequest, "send"), (aiohttp.ClientResponse, "start"),
            (http.client.HTTPConnection, "_send_output"), (http.client.HTTPSConnection, "connect"),
        ]:
            ours, original = [vars(owner)[name]], vars(owner)[name].__tape_original__
            taps.unpatch_all()
            assert vars(owner)[name] is original, name
            taps.patch_all()
            assert vars(owner)[name] is not ours[0] and vars(owner)[name].__tape_original__ is original
        print("all")
    """)
        == "all"
    )


def test_copies_of_stand_ins_go_with_them():
    """What a module took while they stood, and what a program puts back that it had replaced."""
    assert (
        in_new_process("""
        import os, sys, time, types
        from unittest import mock
        from tape_jupyter import instrumentation as taps
        sleep, urandom = [time.sleep], [os.urandom]
        taps.patch_all()
        other = sys.modules["other"] = types.ModuleType("other")
        exec("from os import urandom; from time import sleep", vars(other))
        kept, patch = time.sleep, mock.patch("time.monotonic", lambda: 5.0)
        patch.start()
        taps.unpatch_all()
        assert other.sleep is sleep[0] is kept and other.urandom is urandom[0]
        patch.stop()  # a stand-in of ours stands there again, and passes through
        assert time.monotonic() != 5.0
        taps.patch_all()
        taps.unpatch_all()
        assert type(time.monotonic) is type(len)
        print("gone")
    """)
        == "gone"
    )


def test_a_tapped_module_keeps_the_loader_python_gave_it():
    assert (
        in_new_process("""
        from tape_jupyter import instrumentation as taps
        taps.patch_all()
        import importlib.resources, importlib.util
        assert importlib.util.find_spec("httpx").loader.get_source("httpx")
        import httpx
        assert type(httpx.__loader__).__name__ == type(httpx.__spec__.loader).__name__ == "SourceFileLoader"
        assert importlib.resources.files(httpx).joinpath("__init__.py").is_file()
        print("kept")
    """)
        == "kept"
    )


def test_httpx2_under_httpx_name_is_tapped_once():
    assert (
        in_new_process("""
        from tape_jupyter import instrumentation as taps
        taps.patch_all()
        import httpx2
        httpx2.alias_httpx()
        import httpx
        assert httpx is httpx2
        assert not hasattr(httpx.HTTPTransport.handle_request.__tape_original__, "__tape_original__")
        taps.unpatch_all()
        assert not hasattr(httpx.HTTPTransport.handle_request, "__tape_original__")
        print("once")
    """)
        == "once"
    )


def test_a_library_imported_anew_is_tapped_anew():
    assert (
        in_new_process("""
        import sys
        from tape_jupyter import instrumentation as taps
        taps.patch_all()
        import httpx
        first = httpx.HTTPTransport
        for name in [name for name in sys.modules if name.split(".")[0] == "httpx"]:
            del sys.modules[name]
        import httpx
        assert httpx.HTTPTransport is not first
        both = (first, httpx.HTTPTransport)
        assert all(hasattr(each.handle_request, "__tape_original__") for each in both)
        taps.unpatch_all()
        assert not any(hasattr(each.handle_request, "__tape_original__") for each in both)
        print("anew")
    """)
        == "anew"
    )


def test_a_version_of_a_library_that_is_not_known_is_left_to_the_guard_and_imports():
    assert (
        in_new_process("""
        import sys, types, warnings
        from tape_jupyter import instrumentation as taps
        strange = types.ModuleType("httpx")
        strange.__spec__ = types.SimpleNamespace()
        sys.modules["httpx"] = strange
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            taps.patch_all()
            taps.patch_all()
        assert [str(one.message).partition(":")[0] for one in told] == ["httpx is not taped"]
        taps.unpatch_all()
        print("left")
    """)
        == "left"
    )


def test_a_websockets_that_is_not_known_is_left_to_the_guard_and_what_needs_it_imports():
    assert (
        in_new_process("""
        import warnings
        import websockets.asyncio.client, websockets.sync.client
        from tape_jupyter import instrumentation as taps
        del websockets.sync.client.ClientConnection.__mro__[1].recv_streaming
        websockets.asyncio.client.connect.__init__ = lambda *_: 1 / 0
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            taps.patch_all()
            import google.genai.live
        names = sorted(str(one.message).partition(" is not taped: ")[0] for one in told if one.category is RuntimeWarning)
        assert names == ["websockets.asyncio.client", "websockets.sync.client"], names
        print("left")
    """)
        == "left"
    )


def test_after_an_interrupt_amid_the_patches_they_go_on_whole_and_off_whole(monkeypatch):
    instrumentation.unpatch_all()
    clean = (time.sleep, os.urandom, time.monotonic)
    with monkeypatch.context() as patched:
        patched.setattr(clock, "rebind", interrupted)
        with pytest.raises(KeyboardInterrupt):
            instrumentation.patch_all()
    instrumentation.patch_all()
    assert time.sleep is not clean[0] and os.urandom is not clean[1]
    instrumentation.unpatch_all()
    assert (time.sleep, os.urandom, time.monotonic) == clean


def interrupted(_namespaces):
    raise KeyboardInterrupt


OFTEN = """
import sys
import aiohttp, httpx, httpx2, urllib3, websockets
from tape_jupyter import instrumentation as taps
from tape_jupyter.instrumentation import import_hook as arrivals
hooks = list(sys.meta_path)
for _ in range(500):
    taps.patch_all()
    taps.patch_all()
    taps.unpatch_all()
taps.unpatch_all()
assert sys.meta_path == hooks and not arrivals._undo
"""


@pytest.mark.night
def test_patching_and_undoing_five_hundred_times_leaves_nothing():
    """In a process of its own: each time every imported module is looked at, and here all libraries are."""
    assert in_new_process(OFTEN) == ""


def test_somebody_elses_patch_over_ours_stays_when_ours_goes():
    class Owner:
        def work(self) -> str:
            return "real"

    undo = patching.swap(Owner, "work", lambda original: lambda self: f"ours {original(self)}")
    ours = Owner.work
    Owner.work = lambda self: f"theirs {ours(self)}"  # type: ignore[method-assign]
    undo()
    assert Owner().work() == "theirs ours real"


class _AsWrapt:
    """A wrapper of a method as wrapt makes it: asked for through its class it takes the object first, else it does not."""

    def __init__(self, method, asked=False):
        self.method, self.asked = method, asked

    def __get__(self, instance, owner=None):
        return _AsWrapt(self.method if instance is None else self.method.__get__(instance), True)

    def __call__(self, *args, **kwargs):
        instance, args = (args[0], args[1:]) if self.asked else (None, args)
        return "seen, " + self.method(instance, *args, **kwargs)


def test_under_a_stand_in_a_method_that_another_library_wrapped_is_called_as_python_calls_it():
    class Pool:
        def submit(self, item):
            return f"{item} of {self.name}"

    theirs = Pool.submit = _AsWrapt(Pool.submit)
    pool = Pool()
    pool.name = "p"
    undo = patching.swap(Pool, "submit", lambda original: lambda own, item: original(own, item))
    assert pool.submit("a") == "seen, a of p"
    undo()
    assert vars(Pool)["submit"] is theirs


def test_an_executor_that_opentelemetry_instruments_runs_what_it_is_given(monkeypatch):
    wrapt = pytest.importorskip("wrapt")
    monkeypatch.setattr(
        ThreadPoolExecutor, "submit", vars(ThreadPoolExecutor)["submit"]
    )  # put back as it was
    seen = []

    def instrumented(submit, pool, args, kwargs):
        seen.append(type(pool).__name__)
        return submit(*args, **kwargs)

    wrapt.wrap_function_wrapper(ThreadPoolExecutor, "submit", instrumented)
    with taped(MemoryTape()), ThreadPoolExecutor(1) as pool:
        assert pool.submit(str.upper, "a").result() == "A"
    assert seen == ["ThreadPoolExecutor"]


def test_the_slot_holds_one_tape():
    assert instrumentation.current() is None
    with taped(MemoryTape()) as tape:
        assert instrumentation.current() is tape
        other = MemoryTape()
        instrumentation.install(other)
        assert instrumentation.current() is other
    assert instrumentation.current() is None


def test_sending_is_marked_inside_only_and_what_is_raised_is_told():
    tape = MemoryTape()
    capture = tape.begin(wire_request())
    with pytest.raises(OSError), patching.sending(capture):
        assert SENDING.get()
        raise OSError("no")
    assert not SENDING.get() and tape.entries[0].error["class"] == "builtins:OSError"


def wire_request():
    from tape_jupyter.core.call import Request

    return Request("GET", "http://example.invalid/")


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1000])
def test_http_chunks_are_found_however_the_network_cuts_them(cut):
    chunks = [b"one", b"\r\n0\r\n\r\n", b"x" * 300]
    sent = (
        b"".join(b"%X;ext=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        + b"0\r\nTrailer: 1\r\n\r\n"
    )
    framing = http11.Chunked()
    found = [
        chunk for at in range(0, len(sent), cut) for chunk in framing.feed(sent[at : at + cut])
    ]
    assert found == chunks and framing.done and not framing.rest()


def test_an_unfinished_chunk_is_known_by_what_it_lacks():
    framing = http11.Chunked()
    assert not list(framing.feed(b"a\r\nfour"))
    assert (framing.missing(), framing.rest(), framing.done) == (6, b"four", False)


def test_bytes_that_are_not_chunks_stop_the_listening_and_nothing_else():
    framing = http11.Chunked()
    assert not list(framing.feed(b"<html>\r\n")) and framing.done


def test_the_end_of_a_recording_says_whose_end_it_is():
    assert "the program closed the stream" in str(
        replayed_response.past_the_end(Reply(200, end="closed"))
    )
    assert "an interrupt stopped the run" in str(
        replayed_response.past_the_end(Reply(200, end="cut short"))
    )


def test_an_error_that_cannot_be_raised_here_is_a_refusal():
    assert isinstance(replayed_response.thawed(freeze_error(OSError(5, "x"))), OSError)
    assert isinstance(
        replayed_response.thawed({"<type>": "exception", "class": "gone:Gone", "args": []}),
        UnmatchedCall,
    )
    assert isinstance(replayed_response.thawed(None), UnmatchedCall)
