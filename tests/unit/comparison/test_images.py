"""How two pictures differ is said in pixels, and shown; a picture of a stranger's is never unpacked without bounds."""

import io
import struct
import sys
import zlib

import pytest
from PIL import Image

from tape_jupyter.comparison import images

PNG = "image/png"


def picture(color="navy", size=(40, 30), spot=0, kind="PNG", mode="RGB", **how):
    made = Image.new(mode, size, color)
    if spot:
        made.paste("white", (0, 0, spot, spot))
    out = io.BytesIO()
    made.save(out, kind, **how)
    return out.getvalue()


def test_the_share_of_pixels_is_told_and_they_are_marked_in_red():
    found = images.compare_images(PNG, picture(), picture(spot=6))
    assert found.share == 36 / 1200 and found.size == found.new_size == (40, 30)
    with Image.open(io.BytesIO(found.marked)) as marked:
        assert marked.size == (40, 30)
        assert marked.getpixel((5, 5)) == (215, 0, 50) != marked.getpixel((6, 6))
    assert found.text()[-1] == "@@ 3.00% of the pixels differ"


def test_one_pixel_of_very_many_is_not_said_to_be_none():
    before, after = picture(size=(200, 200)), picture(size=(200, 200), spot=1)
    assert (
        images.compare_images(PNG, before, after).text()[-1]
        == "@@ 0.00% of the pixels differ (fewer than one in 10,000)"
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_every_kind_that_a_notebook_shows_is_compared_by_its_pixels(kind):
    mime = f"image/{kind.lower()}"
    found = images.compare_images(mime, picture(kind=kind), picture("red", kind=kind))
    assert images.is_image(mime) and found.share == 1


def test_what_is_transparent_and_what_is_white_are_two_things():
    clear, white = (
        picture(color, mode="RGBA") for color in ((255, 255, 255, 0), (255, 255, 255, 255))
    )
    assert images.compare_images(PNG, clear, white).share == 1


def test_files_that_are_written_otherwise_and_look_alike_say_so():
    found = images.compare_images(PNG, picture(compress_level=0), picture(compress_level=9))
    assert (
        found.share == 0
        and found.text()[-1] == "@@ the pixels are the same; the files are written otherwise"
    )


def test_pictures_of_two_sizes_are_told_by_their_sizes():
    found = images.compare_images(PNG, picture(), picture(size=(41, 30)))
    assert found.share is None and not found.marked
    assert ["40 x 30" in found.text()[0], "41 x 30" in found.text()[1]] == [True, True]


@pytest.mark.parametrize(("side", "sign"), [("expected", "-"), ("replayed", "+")])
def test_a_picture_that_only_one_side_has_is_told_with_its_size(side, sign):
    (line,) = images.one_sided_images(PNG, picture(), side).text()
    assert line.startswith(f"{sign}40 x 30 pixels, ")
    (line,) = images.one_sided_images(PNG, b"no picture", side).text()
    assert line.startswith(f"{sign}10 bytes, sha256 ")


def bomb(width, height):
    """A PNG that says it is as large as that."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"\0")
    parts = b"".join(
        struct.pack(">I", len(p) - 4) + p + struct.pack(">I", zlib.crc32(p)) for p in (head, data)
    )
    return b"\x89PNG\r\n\x1a\n" + parts


@pytest.mark.parametrize(
    "junk", [b"", b"\x89PNG\r\n\x1a\n", b"<svg/>", bomb(8000, 8000), bomb(2**31 - 1, 2**31 - 1)]
)
def test_what_cannot_or_must_not_be_unpacked_is_said_to_differ_all_the_same(junk):
    for found in (
        images.compare_images(PNG, picture(), junk),
        images.compare_images(PNG, junk, picture()),
    ):
        assert found.share is None and found.why.startswith("the pixels could not be compared: ")


def test_a_kind_that_nobody_asked_for_is_not_read_under_another_name():
    assert images.compare_images(PNG, picture(), picture(kind="TIFF")).share is None
    assert not images.is_image("image/svg+xml") and not images.is_image("image/tiff")


def test_without_pillow_the_bytes_differ_and_a_person_reads_what_tells_more(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    told = images.compare_images(PNG, b"one", b"other").text()
    assert told[-1] == "@@ pip install pillow tells how many pixels differ" and len(told) == 3
    assert images.one_sided_images(PNG, b"one", "expected").size is None
