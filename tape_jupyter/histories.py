"""Store room: follows the references of request bodies to the bodies they name. Reads through what it is given.

References only go back in the file, so bodies are unfolded oldest first: no recursion, however long the chain, and a
body is let go once the last one that refers to it is whole.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from tape_jupyter import slices
from tape_jupyter.errors import CassetteError

Key = tuple[str, str]
"""Run id and call id."""

_KEPT = 128  # whole bodies: the next request of a conversation refers to one of the last


class Histories:
    """Unfolds bodies. `place(key)` is where a call's record begins (None: no such call), `folded(key)` its body."""

    def __init__(self, place: Callable[[Key], int | None], folded: Callable[[Key], Any]) -> None:
        self._place, self._folded = place, folded
        self._whole: OrderedDict[Key, Any] = OrderedDict()

    def clear(self) -> None:
        self._whole.clear()

    def body(self, key: Key, folded: Any) -> Any:
        """The body of a call with every reference replaced. Raises CassetteError naming both calls."""
        bodies, whole = self._needed(key, folded)
        uses = Counter(other for owner, body in bodies.items() for other in targets(owner, body))
        for owner in sorted(bodies, key=lambda k: self._place(k) or 0):
            body = slices.unfold(bodies[owner], lambda ref, owner=owner: whole[target(owner, ref)])  # type: ignore[misc]  # bound early on purpose
            for other in targets(owner, bodies[owner]):
                uses[other] -= 1
                if not uses[other]:
                    del whole[other]
            whole[owner] = self._keep(owner, body)
        return slices.bounded(whole[key]) if targets(key, folded) else folded

    def _needed(self, key: Key, folded: Any) -> tuple[dict[Key, Any], dict[Key, Any]]:
        """The folded bodies that must be unfolded for this one, and the whole ones that are at hand."""
        bodies, whole = {key: folded}, {}
        waiting = [key]
        while waiting:
            owner = waiting.pop()
            for other in targets(owner, bodies[owner]):
                require_earlier(owner, other, self._place)
                if other in self._whole:
                    whole[other] = self._whole[other]
                elif other not in bodies:
                    bodies[other] = self._folded(other)
                    waiting.append(other)
        return bodies, whole

    def _keep(self, key: Key, body: Any) -> Any:
        self._whole[key] = body
        while len(self._whole) > _KEPT:
            self._whole.popitem(last=False)
        return body


class Check:
    """Checks the references of a file's bodies in file order, by their lengths alone: in time linear in the file."""

    def __init__(self, place: Callable[[Key], int | None], below: Callable[[Key], slices.Shape] = lambda _: {}) -> None:
        """`below`: the shape of a body that stands before the records that are checked (in a take's base)."""
        self._place, self._below = place, below
        self._shapes: dict[Key, slices.Shape] = {}

    def body(self, key: Key, folded: Any) -> bool:
        """Whether the body refers to others. Raises CassetteError for a reference to what is not there."""
        refs = slices.references(folded)
        for ref in refs:
            other = target(key, ref)
            require_earlier(key, other, self._place)
            if other not in self._shapes:
                self._shapes[other] = self._below(other)
            slices.fits(ref, self._shapes[other])
        self._shapes[key] = slices.shape(folded)
        return bool(refs)


def target(owner: Key, ref: slices.Ref) -> Key:
    return ref.run or owner[0], ref.call


def targets(owner: Key, folded: Any) -> set[Key]:
    return {target(owner, ref) for ref in slices.references(folded)}


def require_earlier(owner: Key, other: Key, place: Callable[[Key], int | None]) -> None:
    there, here = place(other), place(owner)
    named = "/".join(other) if other[0] != owner[0] else other[1]
    if there is None:
        raise CassetteError(f"call {owner[1]} refers to call {named}, which is not in this cassette", line=2)
    if here is not None and there >= here:
        raise CassetteError(f"call {owner[1]} refers to call {named}, which does not come before it", line=2)
