"""What is drawn in a figure of matplotlib: looked at, since it cannot be written."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any


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
