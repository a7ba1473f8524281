"""Whether a notebook is one: whether nbclient can run it.

nbformat's schema asks for more (what a cell's id is written with, that no tag stands twice), and
real notebooks break it; who runs one does not notice. Nor is nbformat imported for it: that takes two
seconds where jsonschema's formats are installed (JupyterLab brings them), many times what a whole
bundle takes to check, or a run of a few replies to be explained.
"""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Mapping, Sequence
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
        if notebook.get("nbformat") == 4:
            require_runnable(notebook)
        else:
            by_nbformat(data.decode("utf-8"))
        require_whole_characters(notebook.get("cells", ()))
    except (
        Exception
    ) as error:  # the validators have each their own; ValueError and RecursionError are JSON's
        return (str(error) or type(error).__name__).splitlines()[0][:200]
    return ""


def complete_notebook(notebook: dict[str, Any]) -> None:
    """Put in what other programs leave out and nbclient does without: a count, a list of outputs,
    the name of a stream, the text of a cell that is not run. What is there is not touched.
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
            _fill(cell, source="")
            continue
        _fill(cell, execution_count=None, outputs=[])
        for output in _list_objects(cell["outputs"]):
            _fill(output, **_LEFT_OUT.get(str(output.get("output_type")), {}))


_LEFT_OUT: Mapping[str, Mapping[str, Any]] = {
    "stream": {"name": "stdout", "text": ""},
    "display_data": {"data": {}, "metadata": {}},
    "execute_result": {"data": {}, "metadata": {}, "execution_count": None},
    "error": {"ename": "", "evalue": "", "traceback": []},
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


def require_runnable(notebook: Mapping[str, Any]) -> None:
    """Raises ValueError, which names the cell, where a notebook of version 4 (complete_notebook) lacks
    something that nbclient or we read, or has another kind of it. Everything else in it may be as
    it likes.
    """
    metadata = _require_object(notebook.get("metadata"), "its metadata")
    if "kernelspec" in metadata:
        kernel = _require_object(metadata["kernelspec"], "its kernelspec")
        _require(isinstance(kernel.get("name") or "", str), "the name of its kernel is no text")
    cells = notebook.get("cells")
    _require(isinstance(cells, list), "its cells are no list")
    for number, cell in enumerate(cells or (), 1):
        _require_cell(_require_object(cell, f"cell {number}"), f"cell {number}")


def _require_cell(cell: Mapping[str, Any], place: str) -> None:
    _require(isinstance(cell.get("cell_type"), str), f"{place} has no cell_type")
    _require(not isinstance(cell.get("id"), dict | list), f"the id of {place} is no text")
    metadata = _require_object(cell.get("metadata"), f"the metadata of {place}")
    _require(_is_list_of_texts(metadata.get("tags", [])), f"the tags of {place} are no texts")
    attached = _require_object(cell.get("attachments", {}), f"the attachments of {place}")
    for name, forms in attached.items():
        _require_object(forms, f"the attachment {name} of {place}")
    _require(_is_text(cell.get("source")), f"the source of {place} is no text")
    if cell["cell_type"] != "code":
        return
    outputs = cell.get("outputs")
    _require(isinstance(outputs, list), f"the outputs of {place} are no list")
    for number, output in enumerate(outputs or (), 1):
        where = f"output {number} of {place}"
        _require_output(_require_object(output, where), where)


def _require_output(output: Mapping[str, Any], place: str) -> None:
    kind = output.get("output_type")
    _require(isinstance(kind, str), f"{place} has no output_type")
    if kind == "stream":
        _require(isinstance(output["name"], str), f"the name of {place} is no text")
        _require(_is_text(output["text"]), f"the text of {place} is no text")
    elif kind == "error":
        named = isinstance(output["ename"], str) and isinstance(output["evalue"], str)
        _require(named, f"the error's name or message in {place} is no text")
        _require(_is_list_of_texts(output["traceback"]), f"the traceback of {place} are no texts")
    elif kind in _LEFT_OUT:
        _require_object(output["metadata"], f"the metadata of {place}")
        for form, content in _require_object(output["data"], f"the data of {place}").items():
            fits = _is_text(content) or _JSON_FORM.fullmatch(form)
            _require(fits, f"{form} of {place} is no text")


_JSON_FORM = re.compile(r"application/(.*\+)?json")


def _require(fits: object, flaw: str) -> None:
    if not fits:
        raise ValueError(flaw)


def _require_object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no object")  # noqa: TRY004 - of the file, as the others
    return value


def _is_text(value: Any) -> bool:
    """Of one piece, or of lines."""
    return isinstance(value, str) or _is_list_of_texts(value)


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def by_nbformat(text: str, version: int | None = None) -> Any:
    """The notebook, read by nbformat itself: any version. `version` is that which it is made; None:
    it stays what it is.

    What nbformat mends (cells without an id, two cells with one id) is mended without its warnings.
    Raises what nbformat raises, which has a dozen errors.
    """
    import nbformat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notebook = nbformat.reads(text, as_version=version or nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
        complete_notebook(notebook)
        if notebook.get("nbformat") == 4:
            require_runnable(notebook)
        else:  # a key that its version does not know hinders nobody
            nbformat.validate(notebook, relax_add_props=True)
    return notebook
