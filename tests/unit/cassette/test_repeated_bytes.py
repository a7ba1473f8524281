"""A body that begins as an earlier one is digested and searched as one that nothing is known of."""

import hashlib
import random

import pytest

from tape_jupyter.cassette import repeated_bytes
from tape_jupyter.cassette.repeated_bytes import SeenBodies

WORD = b'"tool'
HEADS = (b"POST https://a.example/v1\n", b"POST https://b.example/v1\n")


def look(bodies: SeenBodies, data: bytes, head: bytes = HEADS[0]) -> tuple[bool, str]:
    body = bodies.compare(data)
    return body.marked, body.digest(head)


def expected(data: bytes, head: bytes = HEADS[0]) -> tuple[bool, str]:
    return WORD in data, hashlib.blake2b(head + data, digest_size=8).hexdigest()


def change(rng: random.Random, data: bytes) -> bytes:
    """What a program may send after `data`."""
    place = rng.randrange(len(data) + 1)
    new = rng.randbytes(rng.choice((0, 1, 5, 300, 3000)))
    return rng.choice(
        (
            data,
            data + new,
            data[:-2] + new + data[-2:],  # an item more
            data[:place],
            data[:place] + new,  # another tail
            data[:place] + new + data[place:],
            data[:place] + bytes(len(data) - place),
            data[:place] + WORD + data[place:],
            data.replace(WORD, b"-----"),
            new + data,
        )
    )


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_after_a_body_is_taken_as_it_is(seed):
    rng, bodies = random.Random(seed), SeenBodies(WORD)
    said = [rng.randbytes(rng.choice((0, 900, 1024, 1500, 20_000))) for _ in range(3)]
    for _ in range(60):
        which = rng.randrange(len(said))
        said[which] = change(rng, said[which])[:100_000]
        head = rng.choice(HEADS)
        assert look(bodies, said[which], head) == expected(said[which], head)


@pytest.mark.parametrize("cut", range(len(WORD) + 1))
def test_a_word_across_what_is_known_and_what_is_new_is_found(cut):
    bodies, start = SeenBodies(WORD), b"x" * 4000
    for tail in (b"", b"y" * 256, b"y" * 512):
        look(bodies, start + WORD[:cut] + tail)
        for data in (start + WORD + tail, start + WORD[:cut] + b"z" + WORD[cut:] + tail):
            assert look(bodies, data) == expected(data)


@pytest.mark.parametrize("seed", range(20))
def test_a_beginning_is_that_of_a_body_where_all_of_it_is(seed):
    rng, bodies = random.Random(seed), SeenBodies(WORD)
    said = rng.randbytes(20_000)
    for _ in range(40):
        before, said = said, change(rng, said)[:100_000]
        body = bodies.compare(said)
        for size in (0, 1, len(before) // 2, len(before) - 2, len(before)):
            beginning = memoryview(before)[: max(0, size)]
            assert body.starts_with(beginning) == said.startswith(bytes(beginning))
        body.digest(HEADS[0])


def test_the_digest_of_a_turn_costs_what_is_new_in_it(monkeypatch):
    digested = []

    class Counting:
        def __init__(self, digest):
            self.digest = digest

        def update(self, data):
            digested.append(len(data))
            self.digest.update(data)

        def copy(self):
            return Counting(self.digest.copy())

        def hexdigest(self):
            return self.digest.hexdigest()

    monkeypatch.setattr(
        repeated_bytes.hashlib, "blake2b", lambda *a, **k: Counting(hashlib.new("blake2b"))
    )
    bodies, items, tail = SeenBodies(WORD), b"[", b"]," + b"t" * 2000 + b"}"
    for _ in range(500):
        items += b"m" * 900
        digested.clear()
        look(bodies, items + tail)
    assert len(items) > 400_000
    assert sum(digested) < 4 * (900 + len(tail)) + 1024


def test_what_is_known_is_bounded():
    bodies = SeenBodies(WORD)
    for number in range(100):
        look(bodies, b"%d" % number * 2000)
        look(bodies, bytes(3 * 1024 * 1024))
        look(bodies, b"short")
    assert len(bodies._known) <= 8
    assert all(len(each.beginnings) < 32 for each in bodies._known)
