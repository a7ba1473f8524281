"""A provider that another package adds by an entry point: the example of the documentation, as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "contributing" / "add-a-provider.md"
ASK = """
import json
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers import call_class, registry

request = Request("POST", "https://api.acme.example/v1/generate", (), b'{"engine": "a-1", "prompt": "Hi"}')
reply = Reply(200, (("content-type", "application/json"),), (b'{"read": 3, "written": 4, "why": "end"}',))
facts = registry.call_facts(request, reply)
print(json.dumps([facts.provider, facts.wire, facts.api, facts.model, facts.usage, facts.stop]))
stream = Reply(200, (("content-type", "text/event-stream"),), (b'data: {"read": 1}\\n\\n', b'data: {"why": "cut"}\\n\\n'))
print(registry.call_facts(request, stream).stop, registry.call_facts(request, stream).streamed)
print(call_class.class_of(request), call_class.class_of(Request("GET", "https://api.acme.example/", (), b"")))
other = Request("POST", "https://api.example.com/v1/generate", (), b"{}")
print(repr(registry.identify(other).wire))
"""


def added(tmp_path, code, entry):
    """Run ASK where a package with that module and that entry point is installed."""
    (tmp_path / "tape_acme.py").write_text(code)
    info = tmp_path / "tape_acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tape-acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tape_jupyter.providers]\nacme = {entry}\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True)


def test_the_example_of_the_documentation_is_a_provider(tmp_path):
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S)[1]
    done = added(tmp_path, code, "tape_acme:PROVIDER")
    assert done.stdout.splitlines() == [
        '["acme", "acme", "generate", "a-1", [3, 4, 0, 0], "end"]',
        "cut True",
        "model model",
        "''",
    ], done.stderr


def test_the_view_of_the_documentation_raises_at_nothing():
    known = {}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S)[1], known)
    view = known["PROVIDER"].view
    for junk in (None, 1, "x", [], {}, {"engine": 1, "read": "x", "written": [], "why": {}}):
        assert view.ask(junk).model == ""
        assert view.answer(junk).usage == (0, 0, 0, 0)
        assert isinstance(view.assemble([junk]), dict)


def test_an_entry_point_that_is_no_provider_is_named_and_harms_nothing(tmp_path):
    done = added(tmp_path, "PROVIDER = 3", "tape_acme:PROVIDER")
    assert "of tape_jupyter.providers gives 3, which is no Provider" in done.stderr
    assert done.returncode == 0 and done.stdout.startswith('["", "", "", ""'), done.stderr
