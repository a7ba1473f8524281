"""Harness: samples of other systems' files, and a notebook run in a network namespace of its own, where only loopback is.

The samples lie in `shared/interop/samples`, in a folder above the project, or where TAPE_INTEROP_SAMPLES says.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat

from tape_jupyter.core.call import Reply
from tape_jupyter.providers import http
from tests.harness.notebook import ROOT, clean_env

_RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": "."}}).execute()
nbformat.write(notebook, sys.argv[2])
"""


def samples() -> Path | None:
    """The folder of samples; None where there is none."""
    named = os.environ.get("TAPE_INTEROP_SAMPLES")
    places = (
        [Path(named)]
        if named
        else [each / "shared" / "interop" / "samples" for each in ROOT.parents]
    )
    return next((each for each in places if each.is_dir()), None)


def namespaces() -> bool:
    """Whether this machine gives us a network of our own."""
    try:
        asked = ["unshare", "-rn", "ip", "link", "set", "lo", "up"]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def run_offline(notebook: Path) -> nbformat.NotebookNode:
    """The notebook as a fresh kernel leaves it that has no network but loopback."""
    done = notebook.with_name("done.ipynb")
    words = 'ip link set lo up && exec "$0" -c "$1" "$2" "$3"'
    subprocess.run(
        ["unshare", "-rn", "sh", "-c", words, sys.executable, _RUN, notebook.name, done.name], check=True, timeout=300,
        cwd=notebook.parent, env=clean_env(notebook.parent), capture_output=True,
    )  # fmt: skip
    return nbformat.read(done, 4)


def shown(notebook: nbformat.NotebookNode, stream: str = "stdout") -> str:
    """All that its cells printed."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    return "".join(
        out["text"] for out in outputs if out["output_type"] == "stream" and out["name"] == stream
    )


def errors(notebook: nbformat.NotebookNode) -> list[str]:
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    return [f"{out['ename']}: {out['evalue']}" for out in outputs if out["output_type"] == "error"]


def leaves(value) -> Counter:
    """The texts and numbers of a JSON value, each as often as it is there."""
    if isinstance(value, dict):
        return sum((leaves(each) for each in value.values()), Counter())
    if isinstance(value, list):
        return sum(map(leaves, value), Counter())
    return (
        Counter([value])
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        else Counter()
    )


def said(reply: Reply) -> list:
    """The JSON values of a recorded reply: one, or those of its events. Empty where it is no JSON."""
    events = http.events(reply.headers, http.decoded_body(reply.headers, reply.body) or b"", ())
    if events is not None:
        return [each for each in events if each is not None]
    told = http.loads(http.decoded_body(reply.headers, reply.body) or b"")
    return [] if told is None else [told]


def told_by_sdk(value, host: str):
    """What is left of a reply's JSON (or event) once the provider's SDK has read it; None for an event that it keeps.

    anthropic passes by `ping`; botocore has no place for the padding `p`, and of `chunk` our cells print the bytes;
    google-genai has none for `finishMessage` and a usage's `serviceTier`, and writes bytes in the other base64.
    """
    if isinstance(value, list):
        return [told_by_sdk(each, host) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "ping":
        return None
    if "bedrock" in host:
        opened = value.get("chunk")
        if isinstance(opened, dict) and isinstance(opened.get("bytes"), str):
            return json.loads(base64.b64decode(opened["bytes"]))
        value = {key: each for key, each in value.items() if key != "p"}
    if "googleapis" in host:
        value = {key: each for key, each in value.items() if key not in _NO_GENAI}
        if "thoughtSignature" in value:
            value["thoughtSignature"] = (
                value["thoughtSignature"].replace("+", "-").replace("/", "_")
            )
    return {key: told_by_sdk(each, host) for key, each in value.items()}


_NO_GENAI = ("finishMessage", "serviceTier")


def documents(text: str) -> list:
    """Every JSON value that stands in a text at the beginning of a line."""
    found, place, decoder = [], 0, json.JSONDecoder()
    while place < len(text):
        try:
            value, end = decoder.raw_decode(text, place)
            found.append(value)
        except ValueError:
            end = place
        line = text.find("\n", end)
        place = line + 1 if line >= 0 else len(text)
    return found


def printed(text: str) -> Counter:
    """The leaves of these values."""
    return sum(map(leaves, documents(text)), Counter())


def stands_in(part, whole) -> bool:
    """Whether a JSON value is there, at whatever depth, with each of its fields in its place (an SDK may add fields)."""
    inner = whole.values() if isinstance(whole, dict) else whole if isinstance(whole, list) else ()
    return _fits(part, whole) or any(stands_in(part, each) for each in inner)


def _fits(part, whole) -> bool:
    # boto3 leaves out what its models do not know, also `serverToolUsage: {}`
    if part in (None, {}, []):
        return True
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            _fits(each, whole.get(key)) for key, each in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(_fits, part, whole))
    return part == whole and isinstance(part, bool) == isinstance(whole, bool)
