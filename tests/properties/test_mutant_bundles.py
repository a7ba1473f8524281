"""A bundle with bytes of it changed, cut, doubled or moved is itself or refused, and writes nothing where it is refused.

TAPE_PROPERTY_COUNT says how many mutants there are (600; `make test-long` asks for many more), each from a seed of its
own. Those of the frame go everywhere; those of the manifest are put into a sound frame, so that they are read at all.
"""

import io
import os
import random

import pytest

from tape_jupyter.bundle.archive import manifest
from tape_jupyter.bundle import opened
from tape_jupyter.bundle.archive.containers import Packer
from tape_jupyter.errors import BundleError
from tests.harness.bundles import CONTENT, made, packed

COUNT = min(int(os.environ.get("TAPE_PROPERTY_COUNT", "600")), 100_000)
GOOD = packed()
SAID = made().to_bytes()
WORDS = [
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"null",
    b"-1",
    b"1e999",
    b"\\u0000",
    b"\\ud800",
    b"../",
    b"0" * 64,
    b"notebook",
    b"\xff",
]


def mutated(data, draw):
    """One to four changes, of the kinds that a disk, a line and a person make."""
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at, other = draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)
        match draw.randrange(7):
            case 0:
                data[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del data[at : at + draw.choice([1, 2, 30, 1000])]
            case 2:
                data[at:at] = draw.randbytes(draw.choice([1, 4, 46]))
            case 3:
                data[at:at] = data[other : other + draw.choice([1, 30, 200])]
            case 4:
                data[at : at + 4] = draw.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x80\0\0\0"])
            case 5:
                data = data[:at] or bytearray(b"P")
            case 6:
                data[at:at] = draw.choice(WORDS)
    return bytes(data)


def in_a_sound_frame(said):
    out = io.BytesIO()
    packer = Packer(out)
    for name, data in {
        "manifest.json": said,
        **{name: CONTENT[name] for name in sorted(CONTENT)},
    }.items():
        packer.add(name, lambda data=data: iter([data]), len(data))
    packer.close()
    return out.getvalue()


@pytest.mark.parametrize("kind", ["frame", "manifest"])
def test_a_mutant_is_the_bundle_or_refused_whole(kind, tmp_path):
    path, out, refused = tmp_path / "mutant.tape.zip", tmp_path / "out", 0
    for seed in range(COUNT // 2):
        draw = random.Random(f"{kind} {seed}")
        data = mutated(GOOD, draw) if kind == "frame" else in_a_sound_frame(mutated(SAID, draw))
        path.write_bytes(data)
        try:
            with opened(path) as it:
                files = {name: it.read(name) for name in it.names()}
                changed = it.manifest
        except BundleError as error:
            assert str(error).isprintable(), f"{kind} {seed}: {error!r}"
            refused += 1
        else:  # what no digest covers: DOS times, the maker's words in a manifest that is canonical again
            assert {each.path: each for each in changed.files} == {
                each.path: each for each in made().files
            }, f"{kind} {seed}"
            assert files == CONTENT and manifest.parse_manifest(changed.to_bytes()) == changed, (
                f"{kind} {seed}"
            )
        assert os.listdir(tmp_path) == ["mutant.tape.zip"], f"{kind} {seed}"
    assert refused > 0.8 * (COUNT // 2) and not out.exists()
