"""Values, assets and encodings that somebody planted: cases 77 to 79."""

import gzip
import hashlib
import sys
import zlib

import brotli
import httpx
import pytest
import zstandard

import tape_jupyter as tape
from tape_jupyter.encoding.http import body
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError
from tests.harness.provider import Provider, Scripted

CALL = """---
tape: 1
...
---
run: r-1
mode: record
source: x
...
---
call: "{id}"
run: r-1
match: "{match}"
kind: tool
request:
  tool: look_up
  arguments: {{}}
response:
{response}...
"""


def write(path, response, call=None):
    from tape_jupyter.core.call import FunctionCall
    from tape_jupyter.cassette.match_key import match_key
    from tape_jupyter.secrets.registry import Secrets

    match = match_key(FunctionCall("look_up", {}), Secrets())
    path.write_text(CALL.format(id=match[:8], match=match, response=response))


RAN = []


class Trap:
    """Would run on construction, on a copy, on anything."""

    def __init__(self, *args):
        RAN.append(args)

    def __reduce__(self):
        RAN.append("reduce")
        return (Trap, ())

    def __setstate__(self, state):
        RAN.append(state)


PLANTED = {
    "subprocess.Popen": '  value:\n    "<type>": dataclass\n    class: "subprocess:Popen"\n    fields:\n      args: [1]\n',
    "builtins.eval": '  error:\n    "<type>": exception\n    class: "builtins:eval"\n    args:\n      - "RAN.append(1)"\n',
    "a function": '  error:\n    "<type>": exception\n    class: "os:system"\n    args:\n      - "touch /tmp/planted"\n',
    "a class of ours that runs": '  value:\n    "<type>": dataclass\n    class: "{here}:Trap"\n    fields: {{}}\n',
    "a module not imported": '  error:\n    "<type>": exception\n    class: "antigravity:Error"\n    args: []\n',
    "an attribute of an attribute": '  error:\n    "<type>": exception\n    class: "os:path.os.error.__class__"\n    args: []\n',
    "a type nobody knows": '  value:\n    "<type>": pickle\n    data: gASVAAAA\n',
}


@pytest.mark.parametrize("what", PLANTED)
def test_77_a_recorded_value_naming_a_class_that_runs_something(tmp_path, what):
    path, before = tmp_path / "main.tape.yaml", set(sys.modules)
    write(path, PLANTED[what].format(here=__name__) if "{here}" in PLANTED[what] else PLANTED[what])

    @tape.tool
    def look_up():
        RAN.append("the tool itself")

    with pytest.raises(BaseException) as caught, tape.replaying(path):
        look_up()
    assert isinstance(caught.value, (CassetteError, tape.TapeRefusal)), repr(caught.value)
    assert RAN == [] and "antigravity" not in set(sys.modules) - before


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "a" * 63, "..", ""])
def test_78_an_asset_outside_its_folder(tmp_path, name):
    path = tmp_path / "main.tape.yaml"
    (tmp_path.parent / "x").write_text("secret")
    write(path, f'  value:\n    "<asset>": "{name}"\n')
    with pytest.raises(CassetteError, match="asset") as caught:
        Cassette.open(path)
    assert f"{path}:10:" in str(caught.value)


@pytest.mark.parametrize("how", ["link", "missing", "other bytes", "folder", "fifo"])
def test_78_an_asset_that_is_not_what_its_name_says(tmp_path, how):
    import os

    text = "long " * 20_000
    name = hashlib.sha256(text.encode()).hexdigest()
    path, asset = tmp_path / "main.tape.yaml", tmp_path / "assets" / name
    asset.parent.mkdir()
    write(path, f'  value:\n    "<asset>": "{name}"\n')
    if how == "link":
        (tmp_path / "outside").write_text(text)
        asset.symlink_to(tmp_path / "outside")
    elif how == "other bytes":
        asset.write_text("Long" + text[4:])
    elif how == "folder":
        asset.mkdir()
    elif how == "fifo":
        os.mkfifo(asset)
    with pytest.raises(CassetteError, match=name):
        Cassette.open(path)
    with pytest.raises(CassetteError, match=name), tape.replaying(path):
        pass


BOMB = bytes(body.CAP + 2**20)
PACKED = {
    "gzip": lambda data: gzip.compress(data, 6),
    "deflate": lambda data: zlib.compress(data, 6),
    "br": lambda data: brotli.compress(data, quality=1),
    "zstd": lambda data: zstandard.compress(data),
}


@pytest.mark.spread(4)
@pytest.mark.parametrize("coding", PACKED)
def test_79_a_body_that_expands_past_the_cap(tmp_path, coding):
    wire = PACKED[coding](BOMB)
    assert len(wire) < 2**20
    section = body.fold_body(wire, "application/json", coding)
    assert section["too large to open"] is True and body.restore(section) == (wire, False)
    path = tmp_path / "main.tape.yaml"
    with Provider() as provider:
        provider.script("/bomb", Scripted(200, {"content-encoding": coding}, [wire]))
        with tape.recording(path) as block, httpx.stream("GET", f"{provider.url}/bomb") as answer:
            assert b"".join(answer.iter_raw()) == wire
        assert not block.report.warnings
    with tape.replaying(path), httpx.stream("GET", f"{provider.url}/bomb") as answer:
        assert b"".join(answer.iter_raw()) == wire
