"""What is drawn in a figure of matplotlib: looked at, since it cannot be written."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Container, Iterator
from typing import Any

Looks = dict[int, tuple[Any, Any]]
"""Of figures by their number: the figure, and what is drawn in it."""


def look_at_open() -> Looks:
    """The figures that pyplot keeps: what draws names none of them, and IPython shows them at the end
    of a cell.
    """
    module = sys.modules.get("matplotlib._pylab_helpers")
    managers = () if module is None else list(module.Gcf.figs.items())
    figures = [(number, manager.canvas.figure) for number, manager in managers]
    return {number: (figure, drawn(figure)) for number, figure in figures}


def describe_changes(before: Looks, known: Container[int]) -> Iterator[str]:
    """In words, what became of the figures that pyplot keeps; of those in `known`, by id, others tell."""
    now = look_at_open()
    for number in sorted({*before, *now}):
        (one, drawn_then), (other, drawn_now) = (
            looks.get(number, (None, None)) for looks in (before, now)
        )
        if one is not other:
            done = "left open" if one is None else "closed" if other is None else "replaced"
            yield f"it {done} the figure {number} of pyplot, and a figure is not recorded"
        elif drawn_then != drawn_now and id(one) not in known:
            yield f"it drew in the figure {number} of pyplot, and that is not recorded"


def drawn(figure: Any) -> list[Any]:
    """Equal for one figure before and after, where nothing was drawn into it or changed."""
    return [
        (type(artist).__name__, artist.get_visible(), artist.get_alpha(), *_describe_artist(artist))
        for artist in figure.findobj()
    ]


def _describe_artist(artist: Any) -> tuple[Any, ...]:
    names = {base.__name__ for base in type(artist).__mro__}
    kind = next((each for each in _LOOKS if each in names), None)
    return _LOOKS[kind](artist) if kind else ()


def _compute_checksum(values: Any) -> Any:
    if values is None:
        return None
    data = getattr(values, "filled", lambda: values)()
    return getattr(data, "shape", None), zlib.crc32(data.tobytes())


_LOOKS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "Line2D": lambda line: (
        _compute_checksum(line.get_xydata()),
        str(line.get_color()),
        line.get_linewidth(),
        line.get_linestyle(),
        str(line.get_marker()),
    ),
    "Text": lambda text: (text.get_text(), text.get_position(), str(text.get_color())),
    "Patch": lambda patch: (
        _compute_checksum(patch.get_path().vertices),
        str(patch.get_facecolor()),
        str(patch.get_patch_transform()),
    ),
    "Collection": lambda each: (_compute_checksum(each.get_offsets()), _compute_checksum(each.get_facecolor())),
    "_ImageBase": lambda image: (_compute_checksum(image.get_array()), image.get_clim()),
    "Axes": lambda axes: (
        axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), axes.get_xlim(), axes.get_ylim(), axes.get_xscale(),
    ),
}  # fmt: skip
