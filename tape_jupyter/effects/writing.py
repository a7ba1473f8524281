"""Values written and read beside a program's own objects: one that is there already is told by its
path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.walker import (
    SAME,
    TYPE,
    At,
    CannotFreeze,
    Codec,
    Freezer,
    Thawer,
    need,
    place_text,
)

STANDING = "standing"
_LEAVES = frozenset({str, int, float, bool, type(None)})


class Writing(Freezer):
    """A walk that writes what stands in the program already as {"<type>": "standing", "at": path}."""

    def __init__(self, find_path: Callable[[Any], str | None]) -> None:
        super().__init__(registry.state_codec)
        self._unchanged = find_path
        self._itself: Any = None

    def attempt_contents(self, value: Any, at: At) -> tuple[bool, Any]:
        """`attempt` for an object that stands in the program, written as what it is now."""
        self._itself = value
        return self.attempt(value, at)

    def freeze(self, value: Any, at: At) -> Any:
        if type(value) not in _LEAVES and value is not self._itself:
            try:
                path = self._unchanged(value)
            except LookupError as why:
                raise CannotFreeze(at, value, str(why)) from None
            if path is not None:
                return {TYPE: STANDING, "at": path}
        return super().freeze(value, at)


class EffectReader(Thawer):
    """The other direction; `resolve` gives the object of a path."""

    def __init__(self, resolve: Callable[[str], Any]) -> None:
        codec = Codec(
            STANDING,
            lambda _value, _walk, _at: {},
            lambda s, _walk, at: resolve(need(s["at"], str, at)),
        )
        super().__init__(
            lambda name: codec if name == STANDING else registry.state_codec_named(name)
        )


class EffectWriter(Freezer):
    """A walk that writes a result whole, and notes in `same` which parts of it are objects that
    stand somewhere.
    """

    def __init__(self, place_of: Callable[[Any], str]) -> None:
        super().__init__(registry.state_codec)
        self._place_of = place_of
        self.same: dict[str, str] = {}

    def written(self, value: Any) -> Any:
        """The structure, as freezing.freeze gives it. Raises CannotFreeze."""
        return registry.freeze_checked(lambda: self.freeze(value, None), value)

    def freeze(self, value: Any, at: At) -> Any:
        structure = super().freeze(value, at)
        if type(structure) in (dict, list) and type(value) is not tuple:
            place = self._place_of(value)
            if place:
                self.same[place_text(at)] = place
        return structure


class PartRestorer(Thawer):
    """The other direction: a part that is still what was recorded is the program's own object
    again.
    """

    def __init__(self, same: Mapping[str, str], resolve: Callable[[str], Any]) -> None:
        super().__init__(registry.state_codec_named)
        self._same_as, self._unchanged = same, resolve

    def thaw(self, structure: Any, at: At) -> Any:
        place = None
        if self._same_as and type(structure) in (dict, list):
            place = self._same_as.get(place_text(at))
        if place is not None:
            live = self._unchanged(place)
            if live is not None and (
                _is_reference(structure) or _freeze_or_none(live) == structure
            ):
                return self.built(live, at)
        return super().thaw(structure, at)


def _is_reference(structure: Any) -> bool:
    return type(structure) is dict and SAME in structure


def _freeze_or_none(value: Any) -> Any:
    try:
        return Freezer(registry.state_codec).freeze(value, None)
    except CannotFreeze:
        return None
