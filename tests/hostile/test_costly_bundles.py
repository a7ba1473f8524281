"""Bundles whose data is well-formed and costs its reader dearly, or is of other types than it should be: one clear line.

Each is looked at by the real command in a process that may take 20 seconds of processor time and 300 MB: the smallest of
these took a minute and 6 GB before anybody counted.
"""

import hashlib
import json
import random
import re
import subprocess
import sys

import pytest

from tape_jupyter.cassette.external_texts import MARK
from tests.bundles import CELL, CONTENT, by_hand, made, recording
from tests.hostile.test_hostile_bundles import canonical

MEGABYTES, SECONDS = 300, 20
TAPE = (sys.executable, "-m", "tape_jupyter")
LOCK = b'lock-version = "1.0"\nrequires-python = "==3.11.*"\ncreated-by = "x"\n'
RANDOM = random.Random(7)
WORDS = [bytes(RANDOM.choices(b"abcdefghijklmnopqrstuvwxyz", k=2)) for _ in range(40_000)]


LAUNCH = """
import json, resource, subprocess, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
done = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([done.returncode, most, done.stdout.decode("utf-8", "replace")]))
"""
"""Starts the command from a small process: what a large one forks counts as large as itself."""


def look(folder, data, *words):
    """What `tape` says of a bundle of these bytes: exit code, text."""
    place = folder / "evil.tape.zip"
    place.write_bytes(data)
    line = [sys.executable, "-c", LAUNCH, str(SECONDS), *TAPE, *(words or ("verify",)), str(place)]
    code, most, text = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    assert most / (1 << 10 if sys.platform == "linux" else 1 << 20) < MEGABYTES, text
    assert "Traceback" not in text and code in (0, 1, 2), text
    return code, text


def with_lock(text):
    return by_hand({**CONTENT, "environment/pylock.toml": LOCK + text}).bytes()


def with_kit(**kit):
    told = json.loads(made().to_bytes())
    return by_hand(said=canonical({**told, "kit": {**told["kit"], **kit}})).bytes()


def with_notebook(**fields):
    told = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **fields}
    return by_hand({**CONTENT, "session/churn.ipynb": json.dumps(told).encode()}).bytes()


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


LOCKS = {
    "a key of 40,000 parts": b".".join(WORDS) + b" = 1\n",
    "a table of 40,000 parts": b"[" + b".".join(WORDS) + b"]\n",
    "a quoted key of 40,000 parts": b" . ".join(b'"%s"' % word for word in WORDS) + b" = 1\n",
    "such a key in braces": b"x = {" + b".".join(WORDS) + b" = 1}\n",
    "many keys of 300 parts": b"".join(
        b".".join(WORDS[at * 300 :][:300]) + b" = 1\n" for at in range(130)
    )
    * 20,
    "200,000 packages": b"".join(
        b"[[packages]]\nname='a%d'\nversion='1'\n" % at for at in range(200_000)
    ),
    "lists in one another": b"x = " + b"[" * 2_000 + b"]" * 2_000 + b"\n",
    "a number of 5,000 digits": b"x = " + b"9" * 5_000 + b"\n",
    "a date that is none": b"x = 9999-99-99\n",
}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_that_takes_long_to_read_is_refused(tmp_path, name):
    code, said = look(tmp_path, with_lock(LOCKS[name]))
    assert code == 1 and "environment/pylock.toml" in said


KITS = {
    "unseen, nested": {"unseen": nested(900)},
    "packages that are a number": {"distributions": 7},
    "packages that are nested": {"distributions": nested(300)},
    "packages that are an object": {"distributions": {"a": [1]}},
    "a Python that is a list": {"python": [1, 2]},
    "models that are a number": {"models": 5},
    "a repository that is a list": {"git": [[]]},
    "a pace that is an object": {"pace": {"a": 1}},
    "a number of 4,200 digits": {"git": {"commit": int("9" * 4_200)}},
    "half of a number": {"git": {"commit": 1.5}},
}


@pytest.mark.spread(5)
@pytest.mark.parametrize("name", KITS)
@pytest.mark.parametrize(
    "words", [("verify",), ("replay", "--yes", "--here"), ("open", "--json")], ids=lambda it: it[0]
)
def test_a_manifest_of_other_types_is_refused(tmp_path, name, words):
    code, said = look(tmp_path, with_kit(**KITS[name]), *words)
    assert code == (1 if words[0] == "verify" else 2) and "the manifest cannot be used" in said


@pytest.mark.parametrize("words", [("verify",), ("open", "--json")], ids=lambda it: it[0])
def test_a_call_whose_usage_is_a_number_of_5000_digits_is_shown_or_refused(tmp_path, words):
    session = recording(tmp_path / "work")
    (cassette,) = [each for each in session if each.endswith(".tape.yaml")]
    text = session[cassette].decode()
    other = re.sub(r"(\n    input: )\d+", rf"\g<1>{'9' * 5_000}", text)
    assert other != text
    look(tmp_path, by_hand({**session, cassette: other.encode()}).bytes(), *words)


NOTEBOOKS = {
    "of another century": {"nbformat": 10**300},
    "of a future format": {"nbformat": 5},
    "of a format that is text": {"nbformat": "4"},
    "of a format below none": {"nbformat": -4, "nbformat_minor": -5},
    "of format 3 in format 4's clothes": {"nbformat": 3},
    "with metadata nested": {"metadata": {"x": nested(800)}},
    "with cells that are a number": {"cells": 7},
    "with a kernel that is a number": {"metadata": {"kernelspec": 7}},
}


@pytest.mark.spread(4)
@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize(
    "words", [("verify",), ("replay", "--yes", "--here")], ids=lambda it: it[0]
)
def test_a_notebook_that_is_none_is_refused_before_anything_runs(tmp_path, name, words):
    code, said = look(tmp_path, with_notebook(**NOTEBOOKS[name]), *words)
    assert code == (1 if words[0] == "verify" else 2)
    assert "is not a notebook that can be read" in said or "its notebook cannot be read" in said


@pytest.fixture(scope="module")
def long_text():
    """A text of 10 MB that deflate makes little of, and its name."""
    data = bytes(RANDOM.choices(b"abcdefghijklmnop \n0123456789", k=10_000_000))
    return data, hashlib.sha256(data).hexdigest()


@pytest.mark.spread(2)
@pytest.mark.parametrize("words", [("verify",), ("open", "--json")], ids=lambda it: it[0])
@pytest.mark.parametrize(("calls", "times"), [(1, 60), (1_000, 1)])
def test_a_long_text_that_stands_many_times_is_not_put_together_so_often(
    tmp_path, long_text, words, calls, times
):
    """In one call, and in a thousand of them: 12 MB would become 10 GB."""
    data, name = long_text
    session = recording(tmp_path / "work")
    (cassette,) = [each for each in session if each.endswith(".tape.yaml")]
    text = session[cassette].decode()
    head, _, rest = text.partition("---\ncall: ")
    call, _, others = rest.partition("---\ncall: ")
    block = "      - type: text\n        text: negative\n"
    call = call.replace(
        block, f'      - type: text\n        text:\n          "{MARK}": {name}\n' * times
    )
    first = call.partition("\n")[0]
    many = "".join(
        "---\ncall: "
        + call.replace(first, f"{first}-{at}" if at > 1 else first, 1).replace(
            "at:", f"x: {salt()}\nat:", 1
        )
        for at in range(1, calls + 1)
    )
    session[cassette] = (head + many + "---\nend:" + others.partition("---\nend:")[2]).encode()
    session[f"{cassette.rpartition('/')[0]}/assets/{name}"] = data
    code, said = look(tmp_path, by_hand(session).bytes(), *words)
    assert code == 0 or (times > 1 and "stands so often in this record" in said)


def salt():
    return '"' + bytes(RANDOM.choices(b"abcdefghijklmnop", k=200)).decode() + '"'


@pytest.mark.spread(4)
@pytest.mark.parametrize(
    "module", ["re", "enum", "pathlib", "fnmatch", "asyncio", "json", "portalocker", "ipykernel"]
)
def test_a_file_with_the_name_of_a_module_does_not_run_before_the_first_cell(tmp_path, module):
    ran = tmp_path / "ran"
    evil = f"open({str(ran)!r}, 'w').write('ran')\nraise SystemExit(1)\n".encode()
    notebook = json.dumps(
        {"cells": [{**CELL, "source": "1"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    ).encode()
    content = {**CONTENT, "session/churn.ipynb": notebook, f"session/{module}.py": evil}
    code, said = look(tmp_path, by_hand(content).bytes(), "replay", "--yes", "--here")
    assert code in (0, 1) and "[1/1]" in said
    assert not ran.exists()
