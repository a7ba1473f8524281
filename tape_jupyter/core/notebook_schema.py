"""Whether a notebook is one, by nbformat's schema of its version.

The schema is nbformat's own, read as a file: to import nbformat takes two seconds where
jsonschema's formats are installed (JupyterLab brings them), many times what a whole bundle takes to
check, or a run of a few replies to be explained.
"""

from __future__ import annotations

import copy
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
        complete_notebook(notebook)
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


def complete_notebook(notebook: dict[str, Any]) -> None:
    """Put in what other programs leave out and nbclient does without: a count, a list of outputs,
    the name of a stream. What is there is not touched.
    """
    if notebook.get("nbformat") != 4:
        return
    _fill(notebook, nbformat_minor=0)
    metadata = notebook.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    if isinstance(kernel, dict) and "name" in kernel:
        _fill(kernel, display_name=kernel["name"])
    for cell in _list_objects(notebook.get("cells")):
        if cell.get("cell_type") != "code":
            continue
        _fill(cell, execution_count=None, outputs=[])
        for output in _list_objects(cell["outputs"]):
            _fill(output, **_LEFT_OUT.get(str(output.get("output_type")), {}))


_LEFT_OUT: Mapping[str, Mapping[str, Any]] = {
    "stream": {"name": "stdout"},
    "display_data": {"metadata": {}},
    "execute_result": {"metadata": {}, "execution_count": None},
}
"""By the kind of an output: the keys that are left out, and what stands for them."""


def _fill(fields: dict[str, Any], **missing: Any) -> None:
    for name, value in missing.items():
        if name not in fields:  # not `setdefault`: a NotebookNode makes its own of what is set
            fields[name] = copy.copy(value)


def _list_objects(values: Any) -> list[dict[str, Any]]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


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
        complete_notebook(notebook)
        # A key that its version does not know hinders nobody: nbclient runs such a notebook.
        nbformat.validate(notebook, relax_add_props=True)
    return notebook
