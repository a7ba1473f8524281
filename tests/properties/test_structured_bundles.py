"""A bundle one of whose values is of another type, size or depth is shown, verified and laid out, or refused in a line.

What is changed is the structure: a value of the manifest, the notebook, the lock, a cassette or a take is exchanged for
an odd one, left out, or doubled; digests are made right again, so that every reader behind them is reached.
TAPE_PROPERTY_COUNT says how many mutants there are (64; `make test-long` asks for many more).
"""

import copy
import json
import os
import random
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import tomli_w

from tape_jupyter.bundle import open as bundle_open
from tape_jupyter.bundle import opened, replay, verify
from tape_jupyter.bundle.archive import manifest
from tape_jupyter.bundle.environment import lock
from tape_jupyter.bundle.replay import ReplayRequest
from tape_jupyter.errors import TapeError
from tests.harness.bundles import by_hand, cells_of, role_of

COUNT = min(int(os.environ.get("TAPE_PROPERTY_COUNT", "64")), 20_000)
EXAMPLES = Path(__file__).parents[2] / "example_notebooks"
DEEP = json.loads("[" * 60 + "]" * 60)
ODD = [
    None, True, False, 0, -1, 7, 1 << 31, 1 << 63, 10**30, 1.5, -0.0, 1e308, "", "x", "\0", "\ud800", "é" * 300,
    "../../etc/passwd", "/etc/passwd", "\x1b]0;x\x07", "<script>alert(1)</script>", "2026-13-45T99:99:99Z", "9" * 5000,
    "a" * 200_000, [], {}, [[]], [None], {"": None}, {"a": {"b": DEEP}}, DEEP, ["x"] * 5000,
]  # fmt: skip
SCALARS = [
    "null", "true", "-1", "1e999", "9" * 400, "''", '"\\ud800"', '"\\0"', "[]", "{}", "[[[[]]]]", "{a: {b: {c: []}}}",
    "|", "> x", "&a b", "*a", "!!python/object:os.system x", "<from>", "../../etc/passwd", "2026-99-99T00:00:00Z",
    "-0.0", "0x10", "x" * 100_000, "[" * 70 + "]" * 70,
]  # fmt: skip


def session(number):
    """A recorded example with its takes, as a bundle has it."""
    (notebook,) = EXAMPLES.glob(f"{number}_*.ipynb")
    tapes = notebook.with_suffix(".tapes")
    files = [notebook, *(each for each in tapes.rglob("*") if each.is_file())]
    found = {
        f"session/{each.relative_to(EXAMPLES).as_posix()}".replace(
            notebook.stem, "churn"
        ): each.read_bytes()
        for each in files
    }
    pylock = {
        "lock-version": "1.0",
        "requires-python": "==3.11.*",
        "created-by": "x",
        "packages": [
            {"name": "amber", "version": "1.0", "wheels": [{"name": "amber-1.0-py3-none-any.whl",
             "url": "https://index.invalid/a.whl", "size": 7, "hashes": {"sha256": "0" * 64}}]},
            {"name": "birch", "version": "2.0", "sdist": {"url": "https://x.test/b.tar.gz", "hashes": {"sha256": "1" * 64}}},
            {"name": "wren", "version": "1.0", "directory": {"path": "sources/wren"}},
        ],
        "tool": {"tape-jupyter": {"index": "public", "unhashed": ["oak==1.0"]}},
    }  # fmt: skip
    return {"README.md": b"x", "environment/pylock.toml": tomli_w.dumps(pylock).encode(), **found}


SESSIONS = {number: session(number) for number in ("01", "02", "03")}
KIT = {
    "python": "3.11.2", "distributions": ["anthropic==2.12.0"], "unhashed": ["x"], "timezone": "UTC", "unseen": "files",
    "models": [{"name": "gpt2", "where": "tiktoken"}], "variables": ["HOME"], "git": {"commit": "abc", "dirty": False},
    "pace": "order", "platform": "linux", "implementation": "CPython",
}  # fmt: skip


def said_of(content, notebook):
    """The manifest's JSON, with something in each of its fields."""
    made = manifest.Manifest(
        made_by="tape-jupyter 0.1.0", notebook="session/churn.ipynb", kernel={"name": "python3", "language": "python"},
        files=tuple(manifest.describe_file(each, content[each], role_of(each)) for each in sorted(content)),
        kit=KIT, cells=cells_of(notebook), lock=manifest.LockState(hashed=False, index="private", why="w"),
        differences=(manifest.ProofDifference(1, "why"),), guards=("g",), left_out=(manifest.LeftOut("x", 7, "0" * 64, "w"),),
        redactions=(manifest.Redaction("w", "k", 1),),
    )  # fmt: skip
    return json.loads(made.to_bytes())


def places(tree, path=()):
    """Every place in a tree of lists and tables."""
    yield path
    if isinstance(tree, dict | list) and len(path) < 12:
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(value, (*path, key))


def with_change(tree, draw):
    whole = copy.deepcopy(tree)
    path = draw.choice([each for each in places(whole) if each])
    inside = whole
    for key in path[:-1]:
        inside = inside[key]
    last = path[-1]
    match draw.randrange(5):
        case 0:
            del inside[last]
        case 1 if isinstance(inside, list):
            inside.insert(draw.randrange(len(inside) + 1), copy.deepcopy(inside[last]))
        case 1:
            inside[f"{last}x"] = inside.pop(last)
        case _:
            inside[last] = draw.choice(ODD)
    return whole, path


def text_changed(text, draw):
    """A cassette's text with one line exchanged, left out, doubled, moved or indented otherwise."""
    lines = text.decode().split("\n")
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    found = re.match(r"(\s*(?:- )?)([\w<>-]+): ?(.*)", lines[at])
    match draw.randrange(8):
        case 0:
            del lines[at : at + draw.choice([1, 1, 2, 30])]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = draw.choice([" ", "  ", "\t", "    "]) + lines[at]
        case _ if found:
            value = draw.choice(SCALARS)
            lines[at] = f"{found[1]}{found[2]}: {value}"
        case _:
            lines[at] = draw.choice(SCALARS)
    return "\n".join(lines).encode("utf-8", "surrogatepass"), (at, lines[at : at + 1])


def mutant(seed):
    draw = random.Random(f"structured {seed}")
    content = dict(SESSIONS[draw.choice(sorted(SESSIONS))])
    kind = draw.choice(["manifest", "notebook", "lock", "tape", "tape", "tape"])
    what, notebook = (), content["session/churn.ipynb"]
    try:
        if kind == "notebook":
            tree, what = with_change(json.loads(content["session/churn.ipynb"]), draw)
            content["session/churn.ipynb"] = json.dumps(tree).encode()
        elif kind == "lock":
            tree, what = with_change(
                tomllib.loads(content["environment/pylock.toml"].decode()), draw
            )
            content["environment/pylock.toml"] = tomli_w.dumps(tree).encode()
        elif kind == "tape":
            name = draw.choice(sorted(each for each in content if each.endswith(".tape.yaml")))
            content[name], what = text_changed(content[name], draw)
        said = said_of(content, notebook)
        if kind == "manifest":
            said, what = with_change(said, draw)
        data = json.dumps(said, sort_keys=True, ensure_ascii=False, separators=(",", ":")) + "\n"
        return by_hand(content, data.encode()).bytes(), (seed, kind, what)
    except (ValueError, TypeError, TapeError):  # what cannot be written down at all
        return None, ()


@pytest.mark.spread(2)
@pytest.mark.parametrize("part", range(4))
def test_every_reader_takes_it_or_refuses_it_in_a_line(part, tmp_path):
    path = tmp_path / "mutant.tape.zip"
    for seed in range(part, COUNT, 4):
        data, what = mutant(seed)
        if data is None:
            continue
        path.write_bytes(data)
        try:
            look(path, tmp_path)
        except TapeError as error:
            assert len(str(error)) < 3000, what
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}") from error


def look(path, folder):
    verdict = verify.verify_bundle(path)
    for _, line in verdict.lines():
        assert "\n" not in line
    json.dumps(verdict.record())
    if verdict.good or verdict.digest:
        shown = bundle_open.write_page_file(path)
        shutil.rmtree(Path(shown.page).parent)
    with opened(path) as bundle:
        replay.runnable(bundle, ReplayRequest())
        replay.replay_facts(bundle.manifest, ReplayRequest())
        list(replay.drifted(bundle.manifest))
        lock.locked_packages(bundle.read("environment/pylock.toml"))
        notebook, _ = replay.laid_out(bundle, folder / "laid")
        try:
            replay._Judge(bundle, notebook, folder / "home", lambda _: None)
        finally:
            shutil.rmtree(folder / "laid")
