"""In a copy of a folder the program asks by the recorded paths, and the folder itself cannot be changed."""

from pathlib import Path

from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.core.copied_folder import CopiedFolder, copied_folder

HERE = CopiedFolder("/tmp/tape-x/work", "/home/ada/work")


def test_what_is_asked_names_the_folder_of_the_recording():
    asked = HERE.as_recorded(
        Request("POST", "http://h/?at=/tmp/tape-x/work", (), b'{"in": "/tmp/tape-x/work/a.csv"}')
    )
    assert (asked.url, asked.body) == (
        "http://h/?at=/home/ada/work",
        b'{"in": "/home/ada/work/a.csv"}',
    )
    given = {"path": Path("/tmp/tape-x/work/a"), "more": [{"at": "/tmp/tape-x/work"}], "n": 1}
    called = HERE.as_recorded(FunctionCall("read", given))
    assert called.arguments == {
        "path": Path("/home/ada/work/a"),
        "more": [{"at": "/home/ada/work"}],
        "n": 1,
    }


def test_what_does_not_name_it_is_the_same_object():
    request, call = (
        Request("GET", "http://h/", (), b""),
        FunctionCall("read", {"rows": [1, {"a": "b"}]}),
    )
    assert HERE.as_recorded(request) is request and HERE.as_recorded(call) is call


def test_the_environment_tells_it():
    assert copied_folder(HERE.variable()) == HERE and copied_folder({}) is None
