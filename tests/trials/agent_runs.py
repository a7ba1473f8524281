"""Agent notebooks whose tools do things, recorded and replayed: is everything as it was, or is it said what is not?

    python tests/trials/agent_runs.py [NAME...] [--jobs 2] [--json] [--floor] [--keep DIR]

Each notebook of tests/working_agents is recorded in a real kernel against a model on loopback, then replayed in a fresh
kernel, in a fresh copy of the folder that its author began with, without the model and without a key; and once more by
`tape replay NB`. After every cell the outputs, the variables (tests/harness/namespace_state.py) and the files of the folder are
compared. NAME is a notebook or a family (a module of tests/working_agents).

    equal     nothing differs
    said      something differs, and the replay or `tape gaps` names each thing that does
    failed    a cell of the replay raised what it did not raise in the recording, or `tape replay` did not end well
    silent    something differs, and not a word

--floor measures the notebooks instead: each runs twice without us, and is recorded. The three runs must be equal, or the
notebook says that it differs by itself (`varies`). Exit 0 when every notebook is equal or said (with --floor: sound).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

import nbformat

from tests.harness import namespace_state
from tests.working_agents import NOTEBOOKS, chosen
from tests.working_agents.written import TAPED, AgentNotebook
from tests.harness.notebook import Kernel, Ran, clean_env, is_summary, notebook, put
from tests.harness.scripted_model import ScriptedModel

CELL_SECONDS = 120
LOAD = "%load_ext tape_jupyter"
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-Zq7rTq1v9WcX2bLkH5nM8pRsD3fGjA6yEuQ4tVwBxC0iOzKlNmJhYgTr",
    "OPENAI_API_KEY": "sk-proj-Jw8hTq2x5NcR7vBmK4pLsD9fGzA3yEuQ6tVwXcH1iOnZjMrYgUbF0kSe",
    "GEMINI_API_KEY": "AIzaSyB7kQ2mX9vTzLw4RnJ8cPhD1fGsE5uYoKt",
}
_OWN = {".home", "__pycache__", ".ipynb_checkpoints", "nb.ipynb", "nb.tapes"}
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")
_KEY = re.compile(r"sk-ant-api03-\w+|sk-proj-\w+|AIza\w+")
_CELL_FILE = re.compile(r"\S*ipykernel_\d+/\d+\.py")


@dataclass
class CellState:
    """A cell, after it ran: what it showed, message by message, the session's variables, the folder's files."""

    source: str
    outputs: list[dict[str, Any]] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    error: str = ""
    summary: str = ""


@dataclass
class Difference:
    cell: int
    kind: str
    """output, variable, file, error, or headless: how `tape replay` ended"""
    name: str
    text: str
    names: frozenset[str] = frozenset()
    """Variables that hold the object which differs."""

    def __str__(self) -> str:
        return f"cell {self.cell}, {self.kind} {self.text}"


@dataclass
class Result:
    name: str
    verdict: str = "equal"
    differences: list[Difference] = field(default_factory=list)
    unsaid: list[Difference] = field(default_factory=list)
    said: str = ""
    headless: int | None = None
    headless_said: str = ""
    seconds: float = 0.0
    broken: str = ""
    """Why the notebook could not be measured."""

    @property
    def good(self) -> bool:
        return not self.broken and self.verdict in ("equal", "said", "sound")

    def line(self) -> str:
        first = self.broken or next((str(each) for each in [*self.unsaid, *self.differences]), "")
        return f"{self.name:34} {'broken' if self.broken else self.verdict:7} {self.headless!s:5} {len(self.differences):3}  {first[:150]}"

    def record(self) -> dict[str, Any]:
        told = {**vars(self), "good": self.good}
        return {
            **told,
            **{name: [str(each) for each in told[name]] for name in ("differences", "unsaid")},
        }


# ---------------------------------------------------------------- one run of a notebook


class _Kernel(Kernel):
    """A kernel of which every message of a cell is kept, in order: also updates of displays, and that they were cleared."""

    def _start(self) -> None:
        options = ["--HistoryManager.enabled=False", "--log-level=ERROR"]
        self._manager.start_kernel(cwd=str(self.cwd), env=self._env, extra_arguments=options)
        self._connect()

    def told(self, source: str) -> tuple[Ran, list[tuple[str, dict[str, Any]]]]:
        ran, messages, asked = Ran(), [], self.send(source)
        deadline = time.monotonic() + CELL_SECONDS
        while True:
            try:
                message = self._client.get_iopub_msg(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                ran.status, ran.ename, ran.evalue = (
                    "error",
                    "NoEnd",
                    f"the cell did not end in {CELL_SECONDS} s",
                )
                return ran, messages
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            messages.append((kind, content))
            put(ran, kind, dict(content))
        reply = self._reply(asked, deadline)["content"]
        ran.status, ran.count = reply["status"], reply.get("execution_count")
        ran.ename, ran.evalue = reply.get("ename", ""), reply.get("evalue", "")
        return ran, messages


def lay(written: AgentNotebook, folder: Path) -> Path:
    """The folder as the notebook's author begins with it."""
    folder.mkdir(parents=True)
    for name, text in written.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def run(written: AgentNotebook, folder: Path, mode: str, env: Mapping[str, str]) -> list[CellState]:
    """Run a notebook's cells in a fresh kernel: `record`, `replay`, or `untaped`."""
    cells = sources(written, mode)
    path = notebook(folder / "nb.ipynb", *cells)
    ran: list[tuple[Ran, Any]] = []
    states: list[CellState] = []
    own = {} if mode == "untaped" else {"TAPE_NOTEBOOK": str(path)}
    with tempfile.TemporaryDirectory() as aside, _Kernel(folder, {**env, **own}) as kernel:
        before = Path(aside) / "state.json"
        code = f"__import__('tests.harness.namespace_state', fromlist=['write']).write({str(before)!r}, get_ipython())"
        kernel.execute(code, silent=True, store_history=False, timeout=CELL_SECONDS)
        for source in cells:
            one, messages = kernel.told(source)
            ran.append((one, messages))
            if one.ename == "NoEnd":
                states.append(CellState(source, error=f"NoEnd: {one.evalue}"))
                break
            looked = kernel.execute(code, silent=True, store_history=False, timeout=CELL_SECONDS)
            assert looked.ok, looked.traceback or looked.evalue
            states.append(CellState(
                source, shown(messages, folder), _placed(json.loads(before.read_text(encoding="utf-8")), folder), files(folder),
                f"{one.ename}: {one.evalue}" if not one.ok else "", one.summary,
            ))  # fmt: skip
            if not one.ok and not written.raises:
                break
    if mode == "record":
        _save(path, ran)
    return states


def sources(written: AgentNotebook, mode: str) -> list[str]:
    first = "" if mode == "untaped" else LOAD
    line = "# untaped" if mode == "untaped" else f"%%tape {mode}"
    return [first, *(source.replace(TAPED, line, 1) for source in written.cells)]


def _save(path: Path, ran: Sequence[tuple[Ran, Sequence[tuple[str, dict[str, Any]]]]]) -> None:
    """The notebook file with its outputs, as a front end saves it: what was cleared is gone, what was updated is new."""
    nb = nbformat.read(path, as_version=4)
    displays: dict[str, list[Any]] = {}
    for cell, (one, messages) in zip(nb.cells, ran, strict=False):
        cell["execution_count"] = one.count
        page, clear = Ran(), False
        for kind, content in messages:
            if kind == "clear_output":
                clear = True
                if not content.get("wait"):
                    page.outputs, clear = [], False
                continue
            if kind == "update_display_data":
                for out in displays.get(content["transient"]["display_id"], ()):
                    out["data"] = content["data"]
                continue
            if clear and kind in ("stream", "display_data", "execute_result", "error"):
                page.outputs, clear = [], False
            put(page, kind, dict(content))
            if display := content.get("transient", {}).get("display_id"):
                displays.setdefault(display, []).append(page.outputs[-1])
        cell["outputs"] = page.outputs
        if any(out["output_type"] == "error" for out in page.outputs):
            cell["metadata"]["tags"] = [
                "raises-exception"
            ]  # as authors mark it, so that Run All goes on
    for cell in nb.cells:
        for number, out in enumerate(cell["outputs"]):
            kept = {name: value for name, value in out.items() if name != "transient"}
            if kept["output_type"] == "execute_result":
                kept["execution_count"] = cell["execution_count"]
            cell["outputs"][number] = nbformat.from_dict(kept)
    nbformat.write(nb, path)


def files(folder: Path) -> dict[str, str]:
    """Digests of what lies in a folder, by path; a folder is told as such. Of a database its tables and rows count: its
    pages and its counters of changes differ with who wrote them. A text may name the folder.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if _OWN & set(place.parts) or _is_log_of_a_database(path):
            continue
        if path.is_symlink():
            found[str(place)] = f"link to {os.readlink(path)}"
        elif path.is_dir():
            found[str(place)] = "folder"
        else:
            data = path.read_bytes().replace(os.fsencode(folder), b"<folder>")
            if data.startswith(b"SQLite format 3\0"):
                found[str(place)] = (
                    f"database {hashlib.sha256(_rows(path).encode()).hexdigest()[:12]}"
                )
                continue
            beginning = data[:60].decode("utf-8", "replace")
            found[str(place)] = (
                f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:12]} {beginning!r}"
            )
    return found


def _is_log_of_a_database(path: Path) -> bool:
    return path.name.endswith(("-wal", "-shm")) and path.with_name(path.name[:-4]).is_file()


def _rows(path: Path) -> str:
    with tempfile.TemporaryDirectory() as aside:  # looking at it may write beside it
        for each in path.parent.glob(f"{path.name}*"):
            shutil.copy(each, aside)
        with closing(sqlite3.connect(Path(aside) / path.name)) as database:
            return "\n".join(database.iterdump())


def shown(messages: Sequence[tuple[str, dict[str, Any]]], folder: Path) -> list[dict[str, Any]]:
    """What a cell showed, in order, without what is the tape's own or differs by itself."""
    told: list[dict[str, Any]] = []
    names: dict[str, int] = {}
    for kind, content in messages:
        if kind == "stream":
            texts = told[-1] if told and told[-1]["is"] == "text" else {"is": "text"}
            if texts not in told[-1:]:
                told.append(texts)
            texts[content["name"]] = texts.get(content["name"], "") + _plain(
                content["text"], folder
            )
        elif kind in ("display_data", "update_display_data", "execute_result"):
            if is_summary(content) or "tape" in content.get("metadata", {}):
                continue
            one = {
                "is": kind,
                **{mime: _plain(data, folder) for mime, data in content["data"].items()},
            }
            if display := content.get("transient", {}).get("display_id"):
                one["display"] = names.setdefault(display, len(names))
            told.append(one)
        elif kind == "clear_output":
            told.append({"is": "cleared", "wait": content.get("wait", False)})
        elif kind == "error":
            told.append(
                {"is": "error", "error": _plain(f"{content['ename']}: {content['evalue']}", folder)}
            )
    return told


def _plain(data: Any, folder: Path) -> str:
    text = data if isinstance(data, str) else json.dumps(data, sort_keys=True)
    if len(text) > 5000:
        return f"{len(text)} characters {hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return _CELL_FILE.sub("<cell>", _ADDRESS.sub("0x", _ANSI.sub("", text))).replace(
        str(folder), "<folder>"
    )


def _placed(state: Mapping[str, str], folder: Path) -> dict[str, str]:
    return {
        place.replace(str(folder), "<folder>"): _KEY.sub("<key>", words).replace(
            str(folder), "<folder>"
        )
        for place, words in state.items()
    }


# ---------------------------------------------------------------- two runs


def compared(before: Sequence[CellState], after: Sequence[CellState]) -> list[Difference]:
    """How a second run differs; what already differed after an earlier cell is not told again."""
    found: list[Difference] = []
    known: set[tuple[str, str]] = set()
    for number, (one, other) in enumerate(zip(before, after, strict=False)):
        here: list[Difference] = []
        if one.error != other.error:
            here.append(
                Difference(
                    number, "error", "", f"{one.error or 'none'} != {other.error or 'none'}"[:400]
                )
            )
        elif one.outputs != other.outputs:
            here.append(Difference(number, "output", "", _output(one.outputs, other.outputs)))
        for text in namespace_state.differences(one.variables, other.variables):
            names = namespace_state.names(text, one.variables) | namespace_state.names(
                text, other.variables
            )
            here.append(Difference(number, "variable", namespace_state.root(text), text, names))
        for name in sorted({*one.files, *other.files}):
            if one.files.get(name) != other.files.get(name):
                here.append(Difference(number, "file", name, f"{name}: {one.files.get(name, 'missing')} != {other.files.get(name, 'missing')}"))  # fmt: skip
        found += [each for each in here if (each.kind, each.text) not in known]
        known |= {(each.kind, each.text) for each in here}
    stopped = any(each.kind == "error" for each in found)  # which says why nothing ran behind it
    if len(before) != len(after) and not stopped:
        found.append(
            Difference(
                len(after), "error", "", f"{len(before)} cells ran != {len(after)} cells ran"
            )
        )
    return found


def _output(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> str:
    for mine, theirs in zip(
        [*one, *[None] * len(other)], [*other, *[None] * len(one)], strict=False
    ):
        if mine != theirs:
            return f"{_words(mine)} != {_words(theirs)}"
    return ""


def _words(output: Mapping[str, Any] | None) -> str:
    return "missing" if output is None else json.dumps({**output}, ensure_ascii=False)[:200]


_SAYS = re.compile(
    r"did not happen|does not do this again|is not taped and|recorded cell left|was not taped|were not taped|is not on the tape|not held|is not replayed|is not used \(|cannot be (kept|written|shown)"
)
"""What a line says that names a thing which a replay lacks."""
_UNTAPED = "is not taped and"
"""Of a cell that is no tape's: for what it reads itself no replay ends 1."""


def judged(result: Result, written: AgentNotebook) -> None:
    """The verdict on what differs: is each thing named where a person reads it?"""
    if not result.differences:
        return
    lines = [line for line in result.said.splitlines() if _SAYS.search(line)]
    words = set(re.findall(r"\w+", " ".join(lines))) - _OF_SENTENCES
    for each in result.differences:
        if not _named(each, lines, words, written, result.headless_said):
            result.unsaid.append(each)
        elif each.kind == "variable":
            words |= each.names  # what comes of it is of no other cause
    of_the_tape = [line for line in lines if _UNTAPED not in line]
    if result.headless == 0 and not result.unsaid and of_the_tape:
        result.unsaid.append(
            Difference(0, "headless", "", "`tape replay` ended 0 though not everything was held")
        )
    quiet = [each for each in result.unsaid if each.kind not in ("error", "headless")]
    result.verdict = "silent" if quiet else "failed" if result.unsaid else "said"


def _named(
    each: Difference,
    lines: Sequence[str],
    words: set[str],
    written: AgentNotebook,
    headless_said: str,
) -> bool:
    if each.kind == "file":
        return any(each.name in line or Path(each.name).name in line for line in lines)
    if each.kind == "headless":
        return _ends_for_what_is_said(headless_said)
    source = ["", *written.cells][each.cell]
    used = set(re.findall(r"[A-Za-z_]\w*", source)) - _IN_ANY_CELL
    if each.kind == "variable" and (each.names & words or TAPED in source):
        return bool(each.names & words)
    return bool(used & words)


_IN_ANY_CELL = {"print", "for", "in", "if", "client", "messages", "reply", "tool", "json"}
_OF_SENTENCES = set(
    "a an and as by code call called cannot changed data did does freeze function goes happen here if imported in is it its "
    "name no not object of on set that the there this tool values what when which with".split()
)


def _ends_for_what_is_said(headless: str) -> bool:
    """Whether `tape replay` tells of nothing but what did not happen again."""
    told = re.findall(r"^ {4}(.*)$", headless, re.MULTILINE)
    fails = re.search(r"^\[\d+/\d+\] (?:failed|missed|not run)", headless, re.MULTILINE)
    return bool(told) and not fails and all(map(_SAYS.search, told))


def measure(
    written: AgentNotebook, place: Path, *, floor: bool = False, headless: bool = True
) -> Result:
    """Record, replay and compare one notebook below the folder `place`; its own soundness with `floor`."""
    result, began = Result(written.name), time.monotonic()
    try:
        with ScriptedModel(written.script) as model:
            where = {
                "ANTHROPIC_BASE_URL": model.url, "OPENAI_BASE_URL": f"{model.url}/v1", "GOOGLE_GEMINI_BASE_URL": model.url,
                "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            }  # fmt: skip
            if floor:
                _floor(result, written, place, where)
                return result
            live = lay(written, place / "recorded")
            recorded = run(written, live, "record", {**where, **KEYS})
        _unbroken(recorded, written)
        _replayed(result, written, place, where, recorded)
        if headless:
            _headless(result, written, place, where)
        judged(result, written)
    except Exception as why:
        result.broken = f"{type(why).__name__}: {why}"[:500]
    finally:
        result.seconds = round(time.monotonic() - began, 1)
    return result


def _floor(result: Result, written: AgentNotebook, place: Path, where: Mapping[str, str]) -> None:
    env = {**where, **KEYS}
    once = run(written, lay(written, place / "once"), "untaped", env)
    _unbroken(once, written)
    twice = run(written, lay(written, place / "twice"), "untaped", env)
    result.verdict, result.differences = "sound", compared(once, twice)
    if not result.differences:
        recorded = run(written, lay(written, place / "recorded"), "record", env)
        result.differences = compared(once[1:], recorded[1:])
        if result.differences and not written.varies:
            result.verdict = "recording differs"
    elif not written.varies:
        result.verdict = "differs by itself"


def _replayed(
    result: Result,
    written: AgentNotebook,
    place: Path,
    where: Mapping[str, str],
    recorded: Sequence[CellState],
) -> None:
    """In a fresh kernel, without key and model; the folder as it was before the recording."""
    replay = lay(written, place / "replayed")
    shutil.copytree(place / "recorded" / "nb.tapes", replay / "nb.tapes")
    replayed = run(written, replay, "replay", where)
    result.differences = compared(recorded, replayed)
    result.said = "\n".join(
        [state.summary for state in replayed] + [state.error for state in replayed]
    )
    result.said += "\n" + gaps(place / "recorded")


def _headless(
    result: Result, written: AgentNotebook, place: Path, where: Mapping[str, str]
) -> None:
    """`tape replay NB`, of the notebook as it was saved. The person's folder stays as it was."""
    folder = lay(written, place / "headless")
    shutil.copytree(place / "recorded" / "nb.tapes", folder / "nb.tapes")
    shutil.copy(place / "recorded" / "nb.ipynb", folder / "nb.ipynb")
    before = files(folder)
    done = _tape(folder, where, "replay", "nb.ipynb")
    after = files(folder)
    result.headless, result.headless_said = (
        done.returncode,
        _ANSI.sub("", done.stdout + done.stderr)[-3000:],
    )
    result.said += "\n" + result.headless_said
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            words = f"{name}: `tape replay` changed it in the person's own folder"
            result.differences.append(Difference(0, "file", name, words))
    if done.returncode and not result.differences:
        result.differences.append(
            Difference(
                0,
                "headless",
                "",
                f"`tape replay` ended {done.returncode}: {result.headless_said[:300]}",
            )
        )


def _unbroken(states: Sequence[CellState], written: AgentNotebook) -> None:
    for number, state in enumerate(states):
        if state.error and not written.raises:
            text = json.dumps(state.outputs[-1:])[:300]
            raise AssertionError(
                f"cell {number} of the notebook raised by itself: {state.error} {text}"
            )


def gaps(folder: Path) -> str:
    done = _tape(folder, {}, "gaps", "nb.ipynb")
    return _ANSI.sub("", done.stdout + done.stderr)


def _tape(folder: Path, env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tape_jupyter", *words], cwd=folder, env={**clean_env(folder, env), "COLUMNS": "400"},
        capture_output=True, text=True, timeout=2 * CELL_SECONDS, check=False,
    )  # fmt: skip


# ---------------------------------------------------------------- the command


def results(
    names: Sequence[str], place: Path, *, jobs: int, floor: bool, headless: bool
) -> Iterator[Result]:
    with ThreadPoolExecutor(jobs) as pool:
        asked = [
            pool.submit(measure, each, place / each.name, floor=floor, headless=headless)
            for each in chosen(names)
        ]
        for one in asked:
            yield one.result()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "names",
        nargs="*",
        help=f"of {len(NOTEBOOKS)} notebooks, or of their families; all by default",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one JSON line a notebook")
    parser.add_argument(
        "--floor",
        action="store_true",
        help="measure the notebooks themselves: untaped runs and a recorded one must be equal",
    )
    parser.add_argument("--no-headless", action="store_true", help="without `tape replay NB`")
    parser.add_argument("--keep", type=Path, help="the folder that the runs stay in")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="agent-runs-") as scratch:
        place = asked.keep or Path(scratch)
        counts: dict[str, int] = {}
        good = True
        for one in results(
            asked.names, place, jobs=asked.jobs, floor=asked.floor, headless=not asked.no_headless
        ):
            verdict = "broken" if one.broken else one.verdict
            counts[verdict] = counts.get(verdict, 0) + 1
            good &= one.good
            print(json.dumps(one.record()) if asked.json else one.line(), flush=True)
    print(
        json.dumps(counts)
        if asked.json
        else ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
