"""Bundles that mean harm (HOSTILE 38-50): each is refused whole, and nothing of it is anywhere afterwards."""

import json
import os
import struct
import tempfile
import zlib

import pytest

from tape_jupyter.bundle.archive import containers, manifest
from tape_jupyter.bundle import opened
from tape_jupyter.bundle.verify import verify_bundle
from tape_jupyter.errors import BundleError
from tests.harness.bundles import CONTENT, Raw, by_hand, made, packed

MIB = 1024 * 1024
CASES = {}
"""What is wrong with it: its bytes (made when asked for), and what the error says."""


def case(name, said, make):
    assert name not in CASES
    CASES[name] = make, said


def with_entry(name, data=b"x", **told):
    """A good bundle with one file more, which is not in the manifest: names and frames are looked at before that."""
    return lambda: by_hand().add(name, data, **told).bytes()


def with_file(name):
    """The same, listed in the manifest as if it were well: what a maker who means harm would do."""

    def make():
        told = json.loads(made().to_bytes())
        told["files"] = sorted(
            [*told["files"], {**told["files"][0], "path": name}], key=lambda each: each["path"]
        )
        raw = Raw().add("manifest.json", canonical(told))
        for each in told["files"]:
            raw.add(each["path"], CONTENT.get(each["path"], CONTENT["README.md"]))
        return raw.bytes()

    return make


def canonical(told):
    text = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode("utf-8", "surrogatepass")


def saying(**said):
    """A good bundle whose manifest says something else."""
    return lambda: by_hand(said=canonical(json.loads(made().to_bytes()) | said)).bytes()


OUTSIDE = "is not a path inside the bundle"
for name in (
    "../evil", "session/../../evil", "/etc/cron.d/evil", "C:/evil", "C:evil", "..\\evil", "session\\..\\evil", "//server/share/evil",
    "\\\\server\\share", "./evil", "session//evil", "session/./evil", "..", "file:///etc/passwd",
):  # fmt: skip
    case(f"38 the name {name}", OUTSIDE, with_entry(name))
case("38 a name that leads out, in the manifest too", OUTSIDE, with_file("../evil"))
case("38 an absolute name, in the manifest too", OUTSIDE, with_file("/tmp/evil"))
case("38 no name", "is not a name", with_entry(""))
case("38 a name of 5,000 characters", "is not a name", with_entry("a" * 5_000))
case("38 a part of 300 characters", "too long", with_entry(f"session/{'a' * 300}"))
for what, mode in (
    ("symlink", 0o120777),
    ("device", 0o060644),
    ("terminal", 0o020644),
    ("pipe", 0o010644),
    ("socket", 0o140644),
):
    case(
        f"39 a {what}",
        "is not a plain file",
        with_entry("session/x", b"/etc/passwd", central={"external": mode << 16}),
    )
case(
    "39 a folder by its name", "is not a path inside|is not a plain file", with_entry("session/x/")
)
case(
    "39 a folder by its mode",
    "is not a plain file",
    with_entry("session/x", central={"external": 0o040755 << 16}),
)
case(
    "39 a folder by its DOS flag",
    "is not a plain file",
    with_entry("session/x", central={"external": 0x10}),
)
case(
    "39 a hard link (unix extra field)",
    "fields that a bundle's files do not have",
    with_entry("session/x", extra=struct.pack("<2H", 0x000D, 0)),
)
case("40 a name twice", "stands in it twice", with_entry("README.md"))
case("40 the manifest twice", "stands in it twice", with_entry("manifest.json", b"{}"))
case("40 a name that differs in case", "the same file", with_entry("readme.MD"))
case("40 a folder that differs in case", "the same file", with_entry("SESSION/churn.ipynb"))
case(
    "40 case in other alphabets",
    "the same file",
    lambda: by_hand().add("session/ΣΑΣ").add("session/σας").bytes(),
)
case("40 a name in decomposed form", "composed form", with_entry("session/data/e\u0301.csv"))
case(
    "40 a name that is a ligature of another",
    "the same file",
    lambda: by_hand().add("session/ﬁle").add("session/file").bytes(),
)
case(
    "40 a file that is a folder for another",
    "is a file, and a folder",
    with_entry("README.md/evil"),
)
for name in (
    "CON",
    "session/nul.txt",
    "session/COM1",
    "session/lpt¹.csv",
    "AUX .x/y",
    "session/conin$",
):
    case(f"41 the device {name}", "is a device", with_entry(name))
case("41 a trailing dot", "ends in a dot or a space", with_entry("session/x."))
case("41 a trailing space", "ends in a dot or a space", with_entry("session/x /y"))
for name in (
    "session/\u202egnp.py",
    "session/a\u2066b",
    "session/a\u200bb",
    "\ufeffREADME.md",
    "session/a\x00b",
    "session/a\nb",
    "session/\x1b[2Ja",
):
    case(f"41 the name {name!a}", "does not show", with_entry(name))
case(
    "41 a name that is not UTF-8",
    "is not text",
    with_entry(b"session/\xff\xfe", local={"flags": 0x800}, central={"flags": 0x800}),
)
case(
    "41 a name in another code page",
    "is not text",
    with_entry(b"session/\x81", local={"flags": 0}, central={"flags": 0}),
)
case("41 a git repository's hook", "git repository", with_entry("session/.git/hooks/post-checkout"))
case("42 a bomb of 1,000 to 1", "more than 100 times", with_entry("session/x", bytes(10 * MIB)))
case(
    "42 a manifest that is a bomb",
    "more than 100 times",
    lambda: Raw().add("manifest.json", b" " * 10 * MIB).bytes(),
)
case(
    "42 a manifest of 20 MiB",
    "too many",
    lambda: (
        Raw()
        .add(
            "manifest.json",
            b"{}",
            packed=bytes(MIB),
            local={"size": 20 * MIB},
            central={"size": 20 * MIB},
        )
        .bytes()
    ),
)
case("42 600 MiB together", "bytes, a bundle has at most 536,870,912", lambda: huge(2, 300 * MIB))
case(
    "42 one byte too many",
    "536,870,913 bytes",
    lambda: huge(1, 512 * MIB + 1 - len(made().to_bytes()) - made().size),
)
case("42 10,001 entries", "10,001 files", lambda: many(10_001 - len(CONTENT) - 1))
case("42 a count of 65,534", "65,534 files", lambda: by_hand().bytes(count=65_534))
case(
    "42 more than the directory says",
    "is larger than the directory says",
    lambda: lying(len(CONTENT["README.md"])),
)
case(
    "42 less than the directory says",
    "is damaged|is not packed as",
    lambda: lying(100 * len(CONTENT["README.md"]), 13),
)
case(
    "43 a file that is not in the manifest",
    "'session/more.py' is not in the manifest",
    with_entry("session/more.py"),
)
case(
    "43 a file that is missing",
    "'README.md' is missing",
    lambda: by_hand(skip=["README.md"]).bytes(),
)
case("43 no manifest", "has no manifest.json", lambda: Raw().add("README.md", b"x").bytes())
case("43 nothing at all", "has no manifest.json", lambda: Raw().bytes())
case(
    "43 a folder's manifest",
    "not in the manifest|has no manifest",
    lambda: Raw().add("MANIFEST.JSON", made().to_bytes()).bytes(),
)
case(
    "44 a changed file of the same size",
    "'README.md' is not what the manifest says",
    lambda: by_hand({**CONTENT, "README.md": b"how to REPLAY"}, made()).bytes(),
)
case(
    "44 a longer file",
    "'README.md' has 14 bytes, the manifest says 13",
    lambda: by_hand({**CONTENT, "README.md": b"how to replay!"}, made()).bytes(),
)
case(
    "45 a program before it",
    "is not where it says",
    lambda: by_hand().bytes(before=b"#!/bin/sh\nevil\n"),
)
case(
    "45 a program before it, offsets mended",
    "does not begin where",
    lambda: shifted(b"#!/bin/sh\nevil\n"),
)
case(
    "45 bytes behind it", "something stands behind its end", lambda: by_hand().bytes(after=b"evil")
)
case("45 a comment", "something stands behind its end", lambda: by_hand().bytes(comment=b"evil"))
case("45 a second zip behind it", "is not where it says", lambda: by_hand().bytes() + packed())
case(
    "45 a hidden file between files and directory",
    "between its files and its directory",
    lambda: by_hand().bytes(between=b"evil"),
)
case("46 cut off", "was cut off", lambda: packed()[:-30])
case("46 half of it", "was cut off", lambda: packed()[: len(packed()) // 2])
case("46 nothing in the file", "ends too early", lambda: b"")
case("46 no zip", "is not a zip", lambda: b"%PDF-1.7\n" * 100)
case(
    "46 encrypted",
    "is encrypted",
    with_entry("session/x", local={"flags": 1}, central={"flags": 1}),
)
case("46 encrypted directory", "is encrypted", with_entry("session/x", central={"flags": 0x2000}))
case(
    "46 a data descriptor",
    "fields that a bundle's files do not have",
    with_entry("session/x", local={"flags": 8}, central={"flags": 8}),
)
case("46 bzip2", "packed in a way", with_entry("session/x", method=12))
case("46 ZIP64 sizes", "ZIP64", with_entry("session/x", central={"size": 0xFFFFFFFF}))
case("46 ZIP64 by its end", "ZIP64", lambda: by_hand().bytes(count=0xFFFF))
case(
    "46 ZIP64 in an extra field",
    "fields that a bundle's files do not have",
    with_entry("session/x", extra=struct.pack("<2H2Q", 1, 16, 1, 1)),
)
case("46 two files over one another", "does not begin where", with_entry("session/x", at=0))
case("46 a file inside another", "does not begin where", with_entry("session/x", at=40))
case(
    "46 other name in the file's own header",
    "do not say the same",
    with_entry("session/x", local={"text": b"session/y"}),
)
case(
    "46 other size in the file's own header",
    "do not say the same",
    with_entry("session/x", local={"size": 7}),
)
case(
    "46 other checksum in the file's own header",
    "do not say the same",
    with_entry("session/x", local={"crc": 7}),
)
case(
    "46 encrypted in the file's own header only",
    "do not say the same",
    with_entry("session/x", local={"flags": 1}),
)
case("46 a wrong checksum", "checksum", with_crc := lambda: wrong_crc())
case("46 no deflate", "is damaged", lambda: bad_deflate())
case(
    "46 bytes behind the deflated ones",
    "not packed as the directory says",
    lambda: bad_deflate(trailing=True),
)
case(
    "46 stored with two sizes",
    "sizes",
    with_entry("session/x", b"xy", method=0, local={"size": 1}, central={"size": 1}),
)
case("46 a directory that is elsewhere", "is not where it says", lambda: by_hand().bytes(start=0))
case(
    "46 a directory that is too small",
    "is not where it says|ends too early",
    lambda: by_hand().bytes(size=10),
)
case(
    "46 a part of several",
    "a part of several",
    lambda: by_hand().bytes(end=struct.pack("<4s4H2LH", b"PK\x05\x06", 1, 0, 5, 5, 0, 0, 0)),
)
case(
    "46 a comment of a file",
    "fields that a bundle's files do not have",
    with_entry("session/x", comment=b"evil"),
)
case(
    "50 a manifest with hooks",
    "does not know: 'hooks'",
    saying(hooks={"open": "os.system('evil')"}),
)
case("50 a kit with a start-up", "does not know: 'startup'", saying(kit={"startup": "evil.py"}))
case(
    "50 a kernel with a command",
    "kernel has other keys",
    saying(kernel={"argv": ["sh", "-c", "evil"]}),
)
case("50 another format", "format is 2", saying(format=2))
case(
    "50 a manifest of 200,000 brackets",
    "not JSON",
    lambda: Raw().add("manifest.json", b"[" * 200_000, method=0).bytes(),
)
case(
    "53 a sitecustomize",
    "is run automatically just because it exists",
    with_file("session/sitecustomize.py"),
)
case("53 a .pth", "is run automatically just because it exists", with_file("session/evil.pth"))
case(
    "53 a conftest",
    "is run automatically just because it exists",
    with_file("session/sub/conftest.py"),
)


def huge(count, size):
    """Files that say how large they are, a hundredth of it packed."""
    raw = by_hand()
    for number in range(count):
        raw.add(
            f"session/{number}",
            packed=bytes(size // 100 + 1),
            local={"size": size},
            central={"size": size},
        )
    return raw.bytes()


def many(count):
    raw = by_hand()
    for number in range(count):
        raw.add(f"session/{number}")
    return raw.bytes()


def lying(size, real=MIB):
    """A README that unpacks to `real` bytes and says `size`; the manifest agrees."""
    told = json.loads(made().to_bytes())
    told["files"][0]["size"] = size
    raw, packer = (
        Raw().add("manifest.json", canonical(told)),
        zlib.compressobj(9, zlib.DEFLATED, -15),
    )
    raw.add(
        "README.md",
        packed=packer.compress(os.urandom(real)) + packer.flush(),
        local={"size": size},
        central={"size": size},
    )
    for path in sorted(CONTENT)[1:]:
        raw.add(path, CONTENT[path])
    return raw.bytes()


def shifted(before):
    """Something before the first file, and a directory that knows it."""
    raw = Raw()
    raw.body = before
    raw.add("manifest.json", made().to_bytes())
    for path in sorted(CONTENT):
        raw.add(path, CONTENT[path])
    return raw.bytes()


def with_readme(**told):
    raw = Raw().add("manifest.json", made().to_bytes())
    raw.add("README.md", CONTENT["README.md"], **told)
    for path in sorted(CONTENT)[1:]:
        raw.add(path, CONTENT[path])
    return raw.bytes()


def wrong_crc():
    return with_readme(local={"crc": 7}, central={"crc": 7})


def bad_deflate(trailing=False):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    good = packer.compress(CONTENT["README.md"]) + packer.flush()
    return with_readme(packed=good + b"evil" if trailing else b"\xff" * 20)


NO_BUNDLE = (
    "43 no manifest",
    "43 nothing",
    "43 a folder's",
    "45 a program before it",
    "46 no zip",
    "46 nothing in the file",
)
"""Those that do not even begin as one: there is nothing to verify (exit code 2, not 1)."""


def tree(folder):
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder where all that is written would be seen, temporary files too; `unpacked`: bytes that were ever unpacked."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.joinpath("here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_whole_and_writes_nothing(name, place, monkeypatch):
    make, said = CASES[name]
    bundle, unpacked = place / "evil.tape.zip", []
    monkeypatch.setattr(containers, "zlib", Counting(unpacked))
    bundle.write_bytes(make())
    before = tree(place)
    with pytest.raises(BundleError, match=said) as refused, opened(bundle) as it:
        it.extract(place / "out")
    assert str(refused.value).startswith(str(bundle)) and str(refused.value).isprintable()
    if not name.startswith(NO_BUNDLE):
        assert not verify_bundle(str(bundle)).good
    else:
        with pytest.raises(BundleError, match="it is not a bundle"):
            verify_bundle(str(bundle))
    assert tree(place) == before
    assert sum(unpacked) <= 2 * manifest.MOST_BYTES and max(unpacked, default=0) <= MIB


class Counting:
    """zlib, and how many bytes each piece had that it ever unpacked."""

    error, DEFLATED = zlib.error, zlib.DEFLATED
    crc32, compressobj = staticmethod(zlib.crc32), staticmethod(zlib.compressobj)

    def __init__(self, seen):
        self.seen = seen

    def decompressobj(self, bits):
        real, seen = zlib.decompressobj(bits), self.seen

        class Unpacker:
            eof = property(lambda _: real.eof)
            unused_data = property(lambda _: real.unused_data)
            unconsumed_tail = property(lambda _: real.unconsumed_tail)

            def decompress(self, data, most):
                made = real.decompress(data, most)
                seen.append(len(made))
                return made

        return Unpacker()


def test_there_are_sixty_and_each_is_another():
    assert (
        len(CASES) >= 60
        and len({make() for name, (make, _) in CASES.items() if not name.startswith("42")}) >= 60
    )


def test_what_differs_from_them_in_nothing_else_is_taken(place):
    good = place / "good.tape.zip"
    good.write_bytes(by_hand().bytes())
    with opened(good) as it:
        assert it.digest == made().digest
        it.extract(place / "out")
    assert (place / "out" / "session" / "data" / "orders.csv").read_bytes() == CONTENT[
        "session/data/orders.csv"
    ]


def test_a_zip_in_it_is_a_file_like_any_other(place):
    inner = {**CONTENT, "session/data/inner.zip": by_hand().add("../evil", b"x").bytes()}
    path = place / "outer.tape.zip"
    path.write_bytes(packed(inner))
    with opened(path) as it:
        it.extract(place / "out")
    assert (place / "out" / "session" / "data" / "inner.zip").read_bytes() == inner[
        "session/data/inner.zip"
    ]
    assert verify_bundle(path).good


@pytest.mark.parametrize("make", [
    lambda folder: (folder / "session" / "x").symlink_to("/etc/passwd"),
    lambda folder: (folder / "more").symlink_to("/etc"),
    lambda folder: os.mkfifo(folder / "session" / "x"),
    lambda folder: (folder / "session" / "more.py").write_text("evil"),
    lambda folder: (folder / "README.md").write_text("how to REPLAY"),
    lambda folder: (folder / "README.md").unlink(),
    lambda folder: (folder / "README.md").rename(folder / "readme.md"),
    lambda folder: (folder / "manifest.json").write_text("{}"),
])  # fmt: skip
def test_an_unpacked_bundle_is_held_to_the_same(place, make):
    source = place / "good.tape.zip"
    source.write_bytes(packed())
    with opened(source) as it:
        folder = it.extract(place / "unpacked")
    with opened(folder) as it:
        assert it.digest == made().digest
    make(folder)
    before = tree(place)
    with pytest.raises(BundleError), opened(folder) as it:
        it.extract(place / "out")
    assert tree(place) == before
