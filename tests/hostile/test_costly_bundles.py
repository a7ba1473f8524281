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
import zlib

import pytest

from tape_jupyter.cassette.external_texts import MARK
from tests.harness.bundles import CELL, CONTENT, Raw, by_hand, made, recording
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
    "with half of a character": {"cells": [{**CELL, "source": "'\ud800'"}]},
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


def squeezed(data):
    """Deflated to a hundredth, which is the most that a bundle may be."""
    packer, step = zlib.compressobj(9, zlib.DEFLATED, -15), 1000
    parts = [
        packer.compress(data[at : at + step]) + packer.flush(zlib.Z_FULL_FLUSH)
        for at in range(0, len(data), step)
    ]
    return b"".join([*parts, packer.flush()])


def bundle_of(content, manifest=None):
    raw = Raw()
    for path, data in {"manifest.json": manifest or made(content).to_bytes(), **content}.items():
        raw.add(path, data, packed=squeezed(data) if len(data) > 50_000 else None)
    return raw.bytes()


def with_many(**fields):
    told = json.loads(made().to_bytes())
    kit = {**told["kit"], **fields.pop("kit", {})}
    return bundle_of(CONTENT, canonical({**told, "kit": kit, **fields}))


def with_many_in_notebook(**fields):
    told = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **fields}
    return bundle_of({**CONTENT, "session/churn.ipynb": json.dumps(told).encode()})


def printed(text):
    return {**CELL, "outputs": [{"output_type": "stream", "name": "stdout", "text": text}]}


MANY = {
    "guards": lambda: with_many(guards=[""] * 5_000_000),
    "a few more guards than may be": lambda: with_many(guards=["x"] * 20_001),
    "packages": lambda: with_many(kit={"distributions": ["a==1"] * 2_000_000}),
    "models": lambda: with_many(kit={"models": [{}] * 5_000_000}),
    "what is known of a repository": lambda: with_many(kit={"git": dict.fromkeys(map(str, range(900_000)), 1)}),
    "what was left out": lambda: with_many(
        left_out=[{"path": "a", "size": 1, "sha256": "", "why": ""}] * 300_000
    ),
    "cells": lambda: with_many(cells=json.loads(made().to_bytes())["cells"] * 60_000),
    "metadata": lambda: with_many_in_notebook(metadata={"x": [{}] * 7_000_000}),
    "lists in an output": lambda: with_many_in_notebook(
        cells=[
            {
                **CELL,
                "outputs": [
                    {
                        "output_type": "display_data",
                        "metadata": {},
                        "data": {"application/json": [[]] * 5_000_000},
                    }
                ],
            }
        ]
    ),
    "outputs": lambda: with_many_in_notebook(
        cells=[{**CELL, "outputs": printed("")["outputs"] * 400_000}]
    ),
    "lines of a source": lambda: with_many_in_notebook(
        cells=[{**CELL, "source": [""] * 4_000_000}]
    ),
    "numbers of a lock": lambda: bundle_of(
        {**CONTENT, "environment/pylock.toml": LOCK + b"x = [" + b"1," * 4_000_000 + b"]\n"}
    ),
    "lists of a lock": lambda: bundle_of(
        {**CONTENT, "environment/pylock.toml": LOCK + b"x = [" + b"[]," * 2_700_000 + b"]\n"}
    ),
}  # fmt: skip


@pytest.mark.spread(8)
@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize(
    "words", [("verify",), ("replay", "--yes", "--here")], ids=lambda it: it[0]
)
def test_a_list_without_end_is_refused_before_it_is_read(tmp_path, name, words):
    code, said = look(tmp_path, MANY[name](), *words)
    if words[0] == "replay" and "lock" in name:
        return  # this interpreter's packages: nobody reads the lock
    assert code == (1 if words[0] == "verify" else 2)
    assert re.search(r"(at most|has more than) [\d,]+ (are|is) read", said)
    assert re.search(r"manifest|notebook|environment/pylock\.toml", said)


@pytest.mark.slow
def test_outputs_of_20_mb_that_came_in_400_kb_are_not_compared_and_said(tmp_path):
    code, said = look(tmp_path, with_many_in_notebook(cells=[printed("a\n" * 10_000_000)]))
    assert code == 0 and "cells whose outputs were not compared" in said


def with_record(folder, text):
    """A bundle whose first call's reply has these lines before its own."""
    session = recording(folder)
    (cassette,) = [each for each in session if each.endswith(".tape.yaml")]
    block = "      - type: text\n        text: negative\n"
    assert block in session[cassette].decode()
    session[cassette] = session[cassette].decode().replace(block, text + block, 1).encode()
    return bundle_of(session)


RECORDS = {
    "numbers": "      - [" + "1, " * 8_000_000 + "1]\n",
    "items": "      - a\n" * 2_500_000,
    "keys": "      - a: 1\n" + "".join(f"        k{at}: 1\n" for at in range(1_300_000)),
    "escapes": '      - "' + "\\n" * 10_000_000 + '"\n',
}


@pytest.mark.spread(4)
@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("words", [("verify",), ("open", "--json")], ids=lambda it: it[0])
def test_a_record_that_holds_millions_of_values_is_not_parsed(tmp_path, name, words):
    code, said = look(tmp_path, with_record(tmp_path / "work", RECORDS[name]), *words)
    if words[0] == "verify" and name == "escapes":
        assert code == 1 and re.search(r"main\.tape\.yaml:\d+ cannot be read: a text in", said)
    else:
        assert code == 0
    if words[0] == "verify" and name != "escapes":
        assert "not checked in full, for they hold too much: 1 call" in said


def test_a_recording_of_any_number_of_records_is_refused(tmp_path):
    session = recording(tmp_path / "work")
    (cassette,) = [each for each in session if each.endswith(".tape.yaml")]
    run = b"---\nrun: r-1\nmode: record\nsource: x\n...\n"
    session[cassette] = b"---\ntape: 1\n...\n" + run * 400_000
    code, said = look(tmp_path, bundle_of(session))
    assert code == 1 and "it has 400,000 records, at most 200,000 are checked" in said


FLOODS = {
    "at once": "print('x' * 100_000_000)",
    "in pieces": "for _ in range(100): print('x' * 1_000_000, flush=True)",
    "as a display": "from IPython.display import HTML; HTML('x' * 100_000_000)",
}


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", FLOODS)
def test_a_cell_that_gives_output_without_end_stops_the_replay(tmp_path, name):
    notebook = json.dumps(
        {
            "cells": [{**CELL, "source": FLOODS[name]}],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ).encode()
    place = tmp_path / "evil.tape.zip"
    place.write_bytes(by_hand({**CONTENT, "session/churn.ipynb": notebook}).bytes())
    line = [*TAPE, "replay", "--yes", "--here", str(place)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        "cell 1 gave more than 64 MiB of output" in done.stderr and "Traceback" not in done.stderr
    )
