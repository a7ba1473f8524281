"""States of random generators, as plain structure, taken and put back. Draws nothing, imports no
library.

A state has a long part (`words`: the block of numbers that it works off, the same for hundreds of
draws, so that runs of one session can share it) and a short one (`at`: where in that block, and a
spare normal number). JAX has no such state: its keys are values of the program.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

BLOCK = 624
"""Words of 32 bits that a Mersenne Twister makes at a time."""

_WORDS = struct.Struct(f"<{BLOCK}I")
_TEXT, _BYTES = 20_000, 64 * 1024  # no generator's state is longer: a tape may come from anybody
_TORCH_SEED = (
    67280421310721  # what torch's generators have until they are seeded (c10/core/GeneratorImpl.h)
)

Raw = Any
"""A state as its library gives it: a tuple (random), a dict (numpy), bytes (torch). Quick to take
and to compare.
"""


@dataclass(frozen=True, slots=True)
class GeneratorState:
    """Where a generator stands, to be written on a tape."""

    encoded: str
    at: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator that stands somewhere: how to ask where, how to put it elsewhere, how to let it
    begin anew.

    `begin` takes 32 bytes of entropy; a library that always begins with the same seed does not look
    at them.
    """

    name: str
    get: Callable[[], Raw]
    set: Callable[[Raw], Any]
    begin: Callable[[bytes], Any] = bytes

    def restore_state(self, state: GeneratorState) -> None:
        """Let it stand there. Raises ValueError, TypeError or KeyError where this is no state of
        its kind.
        """
        self.set(_read_state(state, self.get()))


Random: type[random.Random] = type(random._inst)  # noqa: SLF001
"""Python's own, whatever a program has put in its place."""


def list_generators() -> list[Generator]:
    """The process's own generators: `random`, and those of numpy and torch where they are imported."""
    generators = [Generator("random", random.getstate, random.setstate, random.seed)]
    if (module := sys.modules.get("numpy.random")) is not None and hasattr(module, "set_state"):
        generators.append(_build_numpy_generator("numpy", module))
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "set_rng_state"):
        generators += _list_torch_generators(torch)
    return generators


def of_variables(namespace: Mapping[str, Any]) -> Iterator[Generator]:
    """Generators that variables of a notebook hold (`rng = numpy.random.default_rng()`), each once."""
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    kinds: list[tuple[Any, Callable[[str, Any], Generator]]] = [
        (Random, _build_python_generator),
        (getattr(numpy, "RandomState", ()), _build_numpy_generator),
        (
            getattr(numpy, "Generator", ()),
            lambda name, value: _build_bit_generator(name, value.bit_generator),
        ),
        (
            getattr(torch, "Generator", ()),
            lambda name, value: _build_torch_generator(name, value.get_state, value.set_state),
        ),
    ]
    seen: set[int] = set()
    for name, value in list(namespace.items()):
        builder = next((make for kind, make in kinds if isinstance(value, kind)), None)
        if (
            builder is not None
            and id(value) not in seen
            and not isinstance(value, random.SystemRandom)
        ):
            seen.add(id(value))
            yield builder(name, value)


def _build_python_generator(name: str, value: random.Random) -> Generator:
    return Generator(name, value.getstate, value.setstate, value.seed)


def _build_numpy_generator(name: str, legacy: Any) -> Generator:
    def seed_legacy(entropy: bytes) -> None:
        legacy.seed(
            [
                int.from_bytes(entropy[place : place + 4], "big")
                for place in range(0, len(entropy), 4)
            ]
        )

    return Generator(name, lambda: legacy.get_state(legacy=False), legacy.set_state, seed_legacy)


def _build_bit_generator(name: str, bits: Any) -> Generator:
    return Generator(name, lambda: bits.state, lambda state: setattr(bits, "state", state))


def _build_torch_generator(
    name: str, get: Callable[[], Any], set_state: Callable[[Any], Any]
) -> Generator:
    torch = sys.modules["torch"]
    return Generator(
        name,
        lambda: bytes(get().tolist()),
        lambda data: set_state(torch.tensor(list(data), dtype=torch.uint8)),
        lambda _: torch.manual_seed(_TORCH_SEED),
    )


def _list_torch_generators(torch: Any) -> list[Generator]:
    """That of the processor, and of each graphics card in use."""
    cuda = getattr(torch, "cuda", None)
    cards = range(cuda.device_count()) if cuda is not None and cuda.is_initialized() else ()
    return [
        _build_torch_generator("torch", torch.get_rng_state, torch.set_rng_state),
        *(_build_card_generator(cuda, number) for number in cards),
    ]


def _build_card_generator(cuda: Any, number: int) -> Generator:
    return _build_torch_generator(
        f"torch.cuda:{number}",
        lambda: cuda.get_rng_state(number),
        lambda state: cuda.set_rng_state(state, number),
    )


def are_same(one: Raw, other: Raw) -> bool:
    """Whether two raw states are one."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_same(one[key], other[key]) for key in one)
    if hasattr(one, "tobytes") and hasattr(other, "tobytes"):
        return bool(one.tobytes() == other.tobytes())
    return bool(one == other)


# ---- how far from one state to another


_FURTHEST = 16  # blocks: a generator that went on for longer, or was seeded, is told by its state


def words_between(before: Raw, after: Raw) -> int | None:
    """How many words of 32 bits were drawn from the one state to the other; None where that cannot
    be told.
    """
    try:
        (start, place, _), (end, goal, _) = mersenne(before), mersenne(after)
    except (ValueError, KeyError):
        return None
    scratch = Random()  # walks the same numbers again
    scratch.setstate((3, (*start, place), None))
    for block in range(_FURTHEST):
        if start == end and (block or goal >= place):
            return block * BLOCK + goal - place
        # on to the first word of the next block
        scratch.getrandbits(32 * (BLOCK + 1 - scratch.getstate()[1][-1]))
        start = list(scratch.getstate()[1][:-1])
    return None


def further(now: Raw, words: Any, gauss: float | None) -> Raw:
    """The state after that many more words. Raises ValueError for a number that `words_between`
    does not give.
    """
    if type(words) is not int or not 0 <= words <= _FURTHEST * BLOCK:
        raise ValueError(f"{words!r} is not a number of words")
    block, index, _ = mersenne(now)
    scratch = Random()
    scratch.setstate((3, (*block, index), None))
    if words:
        scratch.getrandbits(32 * words)
    block, index, _ = mersenne(scratch.getstate())
    return like_mersenne(now, tuple(block), index, gauss)


# ---- raw states as text, and back


def write_state(raw: Raw) -> GeneratorState:
    """A raw state as plain structure. Raises ValueError for one that cannot be written."""
    if isinstance(raw, bytes):
        return GeneratorState(_encode_base64(zlib.compress(raw)))
    if isinstance(raw, dict) and raw.get("bit_generator") != "MT19937":
        return GeneratorState(json.dumps(raw, default=lambda array: array.tolist()))
    words, index, _ = mersenne(raw)
    if index == BLOCK:  # all used up: the block that comes next is the one that later runs stand in
        words = _compute_next_block(words)
    return GeneratorState(_encode_base64(_WORDS.pack(*words)), place(raw))


def place(raw: Raw) -> dict[str, int | float]:
    """The short part of a state: `at`."""
    if isinstance(raw, bytes) or (isinstance(raw, dict) and raw.get("bit_generator") != "MT19937"):
        return {}
    _, index, gauss = mersenne(raw)
    return {"index": index % BLOCK, **({} if gauss is None else {"gauss": gauss})}


def _compute_next_block(words: list[int]) -> list[int]:
    scratch = Random()  # walks the same numbers
    scratch.setstate((3, (*words, BLOCK), None))
    scratch.getrandbits(1)
    return list(scratch.getstate()[1][:-1])


def mersenne(raw: Raw) -> tuple[list[int], int, float | None]:
    """The words, the place and the spare normal number of a Mersenne Twister. Raises ValueError for
    any other state.
    """
    if isinstance(raw, dict) and raw["bit_generator"] == "MT19937":
        inner = raw["state"]
        return (
            inner["key"].tolist(),
            int(inner["pos"]),
            float(raw["gauss"]) if raw.get("has_gauss") else None,
        )
    if not isinstance(raw, tuple) or raw[0] != 3:
        raise ValueError("this is not a state of a Mersenne Twister as Python writes it")
    return list(raw[1][:-1]), raw[1][-1], raw[2]


def _read_state(state: GeneratorState, now: Raw) -> Raw:
    """The raw state, of the same kind as the generator has now."""
    if len(state.encoded) > _TEXT:
        raise ValueError("longer than any generator's state")
    if isinstance(now, bytes):
        return zlib.decompressobj().decompress(_decode_base64(state.encoded), _BYTES)
    if isinstance(now, dict) and now["bit_generator"] != "MT19937":
        return _shape_like(now, json.loads(state.encoded))
    return like_mersenne(
        now, _unpack_words(state.encoded), state.at.get("index"), state.at.get("gauss")
    )


def like_mersenne(now: Raw, words: tuple[int, ...], index: Any, gauss: float | None) -> Raw:
    """The state of a Mersenne Twister in the form that this one's has. Raises ValueError where it
    is none.
    """
    if type(index) is not int or not 0 <= index <= BLOCK:
        raise ValueError(f"{index!r} is not a place in a block of {BLOCK} words")
    if not isinstance(now, dict):
        return 3, (*words, index), gauss
    if "has_gauss" in now:
        spare = {"has_gauss": int(gauss is not None), "gauss": gauss or 0.0}
    else:
        spare = {}
    return {**now, "state": {"key": _fill_array(now["state"]["key"], words), "pos": index}, **spare}


def _shape_like(now: Any, recorded: Any) -> Any:
    """What was told, with arrays where there are arrays now."""
    if isinstance(now, Mapping):
        return {key: _shape_like(value, recorded[key]) for key, value in now.items()}
    if isinstance(now, str) and recorded != now:
        raise ValueError(f"a state of {recorded!r} for a generator of {now}")
    return _fill_array(now, recorded) if isinstance(recorded, list) else recorded


def _fill_array(array: Any, numbers: Any) -> Any:
    filled = array.copy()
    filled[:] = numbers
    return filled


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _unpack_words(text: str) -> tuple[int, ...]:
    try:
        return _WORDS.unpack(_decode_base64(text))
    except struct.error as error:
        raise ValueError(str(error)) from error
