"""Whether a notebook is one, by nbformat's schema of its version.

The schema is nbformat's own, read as a file: to import nbformat takes two seconds where
jsonschema's formats are installed (JupyterLab brings them), many times what a whole bundle takes to
check, or a run of a few replies to be explained.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tape_jupyter.core.parse_limits import require_few_values

DEEPEST = 100
"""Objects and lists in one another that are read: what works on a notebook makes several calls a
level.
"""

_NEWEST = 999
"""The highest number that a version of notebooks may ever have."""
_HALF = re.compile("[\ud800-\udfff]")


def wrong(data: bytes) -> str:
    """What is wrong with a notebook in these bytes; "" nothing."""
    try:
        require_few_values(data)
        notebook = json.loads(data.decode("utf-8"))
        if not isinstance(notebook, dict):
            return "it is not a JSON object"
        if not _is_flat_enough(notebook):
            return f"it is nested deeper than {DEEPEST}"
        for name in ("nbformat", "nbformat_minor"):
            if name in notebook and not _may_be_version(notebook[name]):
                return f"its {name} is no version: a number from 0 to {_NEWEST}"
        validate = _build_validator(notebook.get("nbformat"), notebook.get("nbformat_minor"))
        validate(notebook) if validate else by_nbformat(data.decode("utf-8"))
        require_whole_characters(notebook.get("cells", ()))
    except (
        Exception
    ) as error:  # the validators have each their own; ValueError and RecursionError are JSON's
        return (str(error) or type(error).__name__).splitlines()[0][:200]
    return ""


def _may_be_version(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _NEWEST


def require_whole_characters(cells: Sequence[Mapping[str, Any]]) -> None:
    """Raises ValueError for a cell that no kernel can be sent."""
    for number, cell in enumerate(cells, 1):
        if found := _HALF.search("".join(cell.get("source", ""))):
            raise ValueError(
                f"cell {number} holds half of a character (\\u{ord(found[0]):x}), which no kernel can be sent"
            )


def _is_flat_enough(notebook: Any) -> bool:
    level = [notebook]
    for _ in range(DEEPEST):
        inside = (
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        )
        level = [each for values in inside for each in values]
    return not level


@functools.cache
def _build_validator(major: Any, minor: Any) -> Callable[[Any], Any] | None:
    """The check of a version whose schema is there; None for another."""
    spec = importlib.util.find_spec("nbformat")
    if spec is None or spec.origin is None or type(major) is not int or type(minor) is not int:
        return None
    path = Path(spec.origin).with_name(f"v{major}") / f"nbformat.v{major}.{minor}.schema.json"
    if not path.is_file():
        return None
    schema = _allow_further_keys(json.loads(path.read_text(encoding="utf-8")))
    check: Callable[[Any], Any] = importlib.import_module("fastjsonschema").compile(schema)
    return check


def _allow_further_keys(schema: Any) -> Any:
    """The schema without its bans of further keys: nbclient runs a notebook that has some (cell ids
    in version 4.0), so it is recorded and exported as well.
    """
    if isinstance(schema, list):
        return [_allow_further_keys(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _allow_further_keys(each)
        for key, each in schema.items()
        if (key, each) != ("additionalProperties", False)
    }


def by_nbformat(text: str, version: int | None = None) -> Any:
    """The notebook, read and checked by nbformat itself: any version, older or newer than the
    schemas here. `version` is that which it is made; None: it stays what it is.

    What nbformat mends (cells without an id, two cells with one id) is mended without its warnings.
    Raises what nbformat raises, which has a dozen errors.
    """
    import nbformat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notebook = nbformat.reads(text, as_version=version or nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
        # A key that its version does not know hinders nobody: nbclient runs such a notebook.
        nbformat.validate(notebook, relax_add_props=True)
    return notebook
