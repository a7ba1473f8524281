"""Whether a replay leaves a notebook as its recording did: outputs, variables, files.

    python -m tests.effect_runs [NAME...]

Each notebook of tests/agent_notebooks.py is recorded in one folder, then replayed by a fresh kernel in another one, with
the cassette and nothing else, the provider gone. A line says: equal; said (it differs, and the cell names it); silent.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agent_notebooks import NOTEBOOKS, SET_UP
from tests.notebook import Kernel, notebook
from tests.provider import Provider

LOOK = Path(__file__).with_name("namespace_look.py")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}|ipykernel_\d+/\d+|[\d.]+it/s|/tmp/[^\s:'\"]*")


@dataclass
class Kept:
    """What a session left: the outputs of each cell, the variables after the last one, the files, what the tape said."""

    outputs: list[list[Any]]
    variables: dict[str, Any]
    files: dict[str, str]
    said: str


def session(folder: Path, name: str, mode: str, provider: Provider) -> Kept:
    define, program = NOTEBOOKS[name]
    cells = [SET_UP.replace("BASE", provider.url), define, f"%%tape {mode}\n{program}"]
    with Kernel(folder, {"TAPE_NOTEBOOK": str(notebook(folder / "nb.ipynb", "x"))}) as kernel:
        ran = [kernel.execute(cell) for cell in cells]
        look = kernel.execute(
            f"exec(open({str(LOOK)!r}).read(), (_ns := {{}}))\nprint(_ns['look'](globals()))", silent=False
        )
    wrong = [each.traceback for each in ran if not each.ok]
    assert not wrong, wrong
    outputs = [[_plain(output) for output in each.outputs if "tape" not in output.get("metadata", {})] for each in ran]
    return Kept(outputs, json.loads(look.stdout), _files(folder), ran[-1].summary)


def _plain(output: dict[str, Any]) -> Any:
    kept = {key: output[key] for key in ("text", "data", "ename", "evalue", "name") if key in output}
    return _without_addresses(kept)


def _without_addresses(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_addresses(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_addresses(each) for each in value]
    return _ADDRESS.sub("ADDRESS", value) if isinstance(value, str) else value


def _files(folder: Path) -> dict[str, str]:
    ours = (".tapes", ".home", "__pycache__", "nb.ipynb", ".ipynb_checkpoints")
    return {
        str(path.relative_to(folder)): _digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part in str(path) for part in ours)
    }


def _digest(path: Path) -> str:
    from tape_jupyter.notebook.tool_files import digest

    return digest(path.read_bytes())[:16]  # of a database its rows: its pages may lie in another order


def compare(name: str, provider: Provider) -> tuple[str, list[str]]:
    """equal, said or silent; and what differs."""
    with tempfile.TemporaryDirectory() as place:
        one, other = Path(place, "one"), Path(place, "other")
        one.mkdir(), other.mkdir()
        live = session(one, name, "record", provider)
        shutil.copytree(one / "nb.tapes", other / "nb.tapes")
        sent = len(provider.requests)
        again = session(other, name, "replay", provider)
        assert len(provider.requests) == sent
    found = [*differences(live.outputs, again.outputs, "output"), *differences(live.variables, again.variables, "")]
    found += differences(live.files, again.files, "file")
    said = "did not happen" in again.said or "Replay does not do this again" in live.said
    return ("equal" if not found else "said" if said else "silent"), found


def differences(one: Any, other: Any, at: str) -> list[str]:
    """Where two structures differ, by path."""
    if type(one) is not type(other):
        return [f"{at}: {one!r:.80} != {other!r:.80}"]
    if isinstance(one, dict):
        keys = dict.fromkeys([*one, *other])
        return [each for key in keys for each in differences(one.get(key), other.get(key), f"{at}[{key}]")]
    if isinstance(one, list) and len(one) == len(other):
        return [
            each for i, pair in enumerate(zip(one, other, strict=True)) for each in differences(*pair, f"{at}[{i}]")
        ]
    return [] if one == other else [f"{at}: {one!r:.200} != {other!r:.200}"]


def main(names: list[str]) -> int:
    silent = 0
    with Provider(vary=True) as provider:
        for name in names or NOTEBOOKS:
            try:
                verdict, found = compare(name, provider)
            except Exception as error:
                verdict, found = "broken", [f"{type(error).__name__}: {str(error)[-600:]}"]
            silent += verdict in ("silent", "broken")
            print(f"{verdict:7} {name}", *(f"\n          {each}" for each in found[:6]), flush=True)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
