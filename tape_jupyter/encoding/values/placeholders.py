"""What stands for a value that is not on the tape: one of the arguments, a secret, or a handle that
refuses.

    {"<type>": "argument", "name": "state"}      the function gave back what it was given (`self`: its own object)
    {"<type>": "secret", "name": "API_KEY"}      what was typed at a prompt, never written
    {"<type>": "not kept", "class": "sqlite3:Connection", "why": "..."}

A stand-in of the last sort goes by the class's name, so that a taped function that is called with
it is found on the tape; whatever else is done with it is refused. The class itself is never looked
up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from tape_jupyter.encoding.values.walker import TYPE, At, Codec, Thawer, need, place_text
from tape_jupyter.errors import CassetteError, UnmatchedCall


@dataclass(frozen=True, slots=True)
class Argument:
    """The argument of this name, itself."""

    name: str


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that is not on the tape; `name` is that of its marker."""

    name: str


class StandIn:
    """In replay, in the place of an object that could not be recorded."""

    __slots__ = ("__weakref__",)
    _tape_why = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # asked by whoever looks at objects: displays, copy, inspect
            raise AttributeError(name)
        self._refuse_use(f".{name}")

    def _refuse_use(self, *used: Any) -> NoReturn:
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        use = used[0] if used and isinstance(used[0], str) else ""
        raise UnmatchedCall(
            f"a {kind} stands here that is not on the tape ({self._tape_why}), and now the program uses it{use}. "
            "Put @tape.tool on the function that uses it, so that its result is on the tape."
        )

    def __bool__(self) -> bool:
        return True  # as handles are: programs ask whether they have one

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__}, not on the tape>"

    __call__ = __iter__ = __next__ = __len__ = __getitem__ = __contains__ = __enter__ = (
        __aenter__
    ) = __aiter__ = _refuse_use
    __exit__ = __aexit__ = __anext__ = __await__ = __setitem__ = __delitem__ = __add__ = __or__ = (
        __matmul__
    ) = _refuse_use


def not_kept(value: Any, why: str) -> dict[str, str]:
    """The structure that stands for a value which cannot be frozen."""
    kind = type(value)
    return {TYPE: "not kept", "class": f"{kind.__module__}:{kind.__qualname__}", "why": why}


def _thaw_stand_in(s: dict[str, Any], _walk: Thawer, at: At) -> StandIn:
    module, _, name = need(s["class"], str, (at, "class")).partition(":")
    if not all(part.isidentifier() or part == "<locals>" for part in f"{module}.{name}".split(".")):
        raise CassetteError(
            f"{place_text((at, 'class'))}: {s['class']!r} is not the name of a class"
        )
    namespace = {
        "__module__": module,
        "__qualname__": name,
        "__slots__": (),
        "_tape_why": need(s["why"], str, (at, "why")),
    }
    stand_in: StandIn = type(name.rpartition(".")[2], (StandIn,), namespace)()
    return stand_in


_ARGUMENT = Codec(
    "argument",
    lambda value, _walk, _at: {"name": value.name},
    lambda s, _walk, at: Argument(need(s["name"], str, at)),
)
_SECRET = Codec(
    "secret",
    lambda value, _walk, _at: {"name": value.name},
    lambda s, _walk, at: Secret(need(s["name"], str, at)),
)
_NOT_KEPT = Codec("not kept", lambda _value, _walk, _at: {}, _thaw_stand_in)

BY_TYPE: dict[type, Codec] = {Argument: _ARGUMENT, Secret: _SECRET}
BY_NAME = {codec.name: codec for codec in (_ARGUMENT, _SECRET, _NOT_KEPT)}
