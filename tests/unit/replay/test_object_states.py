"""The state of objects passed to tools is recorded as it always was: what was recorded before is found, and shown alike.

`object_states.json` holds the digest, the fields that are shown, and what counts by its type, of one object a kind.
A change that is meant, after which old recordings of calls with such objects match no more:

    python tests/unit/replay/test_object_states.py > tests/unit/replay/object_states.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

import pytest

from tape_jupyter.core.moved_folders import MovedFolders
from tape_jupyter.replay import object_state
from tape_jupyter.secrets.masked_values import MaskedValues
from tape_jupyter.secrets.registry import Secrets
from tests.harness.made_objects import KEY, OBJECTS

KEPT = Path(__file__).with_name("object_states.json")
FOLDERS = MovedFolders({"/elsewhere/now": "/made/folder"})


def told(make: Callable[[], Any]) -> list[Any]:
    secrets = Secrets()
    secrets.learn("OPENAI_API_KEY", KEY)
    masked = MaskedValues("tool f", secrets)
    state = object_state.state_by_value(make(), masked, "user", FOLDERS)
    fields = json.loads(json.dumps(state.fields, default=repr))
    less = {name: len(numbers) for name, numbers in state.less.items()}
    if len(less) > 9:
        less = dict([*less.items()][:3], and_more=len(less) - 3)
    return [state.digest, fields, less, masked.parts, sorted(masked.weak)]


@pytest.mark.parametrize("name", OBJECTS)
def test_an_objects_state_is_recorded_as_it_always_was(name):
    assert json.dumps(told(OBJECTS[name])) == json.dumps(json.loads(KEPT.read_text())[name])


def main() -> None:
    made = {name: told(make) for name, make in OBJECTS.items()}
    print("{", ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in made.items()), "}", sep="\n")  # fmt: skip


if __name__ == "__main__":
    main()
