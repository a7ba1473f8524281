"""A picture is the same when it shows the same, however it is packed."""

import base64
import struct
import zlib

import pytest

from tape_jupyter.comparison.outputs import described


def chunk(name, content):
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def png(rows=b"\0\xff\0\0\0\0\xff\0", *, level=6, text=b"", size=(2, 1), cut=None):
    head = struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)
    packed = zlib.compress(rows, level)
    parts = [
        chunk(b"IHDR", head),
        chunk(b"tEXt", b"Software\0" + text),
        chunk(b"IDAT", packed[:5]),
        chunk(b"IDAT", packed[5:]),
    ]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")
    return base64.b64encode(data[:cut]).decode()


def test_how_it_is_packed_and_what_is_written_beside_it_do_not_count():
    assert described("image/png", png()) == described(
        "image/png", png(level=0, text=b"other") + "\n"
    )
    assert described("image/png", png()).startswith("2 x 1 pixels, ")


@pytest.mark.parametrize("other", [png(b"\0\xff\0\1\0\0\xff\0"), png(size=(1, 2)), png(cut=-20)])
def test_a_pixel_the_size_or_a_missing_end_count(other):
    assert described("image/png", png()) != described("image/png", other)


def test_what_is_no_png_counts_by_its_bytes():
    assert described("image/jpeg", base64.b64encode(b"abc").decode()).startswith(
        "3 bytes, ba7816bf"
    )
    assert described("image/png", "not base64!").startswith("image/png, not base64")


def test_a_picture_that_unpacks_without_end_counts_by_its_bytes(monkeypatch):
    monkeypatch.setattr("tape_jupyter.comparison.outputs.MOST", 1 << 20)
    assert "bytes" in described("image/png", png(bytes(3 << 20)))
