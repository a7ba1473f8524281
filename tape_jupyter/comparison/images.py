"""How two pictures differ: their sizes, the share of pixels, and a picture of the difference.
Without pillow only that their bytes do. Images are a stranger's: one too large to unpack is not.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What is compared pixel by pixel. An SVG is text."""
PIXELS = 40_000_000
"""Of a picture that is unpacked, at most."""


@dataclass(frozen=True)
class Images:
    """Two pictures that differ (one of them b"" where it is alone). Sizes are (width, height) in
    pixels, None where the bytes are no picture that can be read; `share` of the pixels differ (0 to
    1), None where that cannot be told; `marked` is a PNG: the expected one, faded, with what
    differs in red.
    """

    kind: str
    expected: bytes
    replayed: bytes
    size: tuple[int, int] | None = None
    new_size: tuple[int, int] | None = None
    share: float | None = None
    marked: bytes = b""
    why: str = ""

    def text(self) -> list[str]:
        """What a terminal shows."""
        lines = [
            f"{sign}{_summarize_image(size, data)}"
            for sign, size, data in (
                ("-", self.size, self.expected),
                ("+", self.new_size, self.replayed),
            )
            if data
        ]
        if self.share is not None:
            few = " (fewer than one in 10,000)" if 0 < self.share < 0.0001 else ""
            lines.append(f"@@ {self.share:.2%} of the pixels differ{few}")
        return [*lines, *([f"@@ {self.why}"] if self.why else [])]


def is_image(mime: str) -> bool:
    return mime in KINDS


def one_sided_images(kind: str, data: bytes, side: str) -> Images:
    """A picture that only one side has: "expected" or "replayed"."""
    with contextlib.suppress(Exception), _open_image(data) as image:
        return Images(kind, *_order_sides(side, data, b""), *_order_sides(side, image.size, None))  # type: ignore[arg-type]
    return Images(kind, *_order_sides(side, data, b""))  # type: ignore[arg-type]


def _order_sides(side: str, here: object, there: object) -> tuple[object, object]:
    return (here, there) if side == "expected" else (there, here)


def compare_images(kind: str, expected: bytes, replayed: bytes) -> Images:
    """Two pictures whose bytes differ."""
    try:
        with _open_image(expected) as one, _open_image(replayed) as other:
            if one.size != other.size:
                return Images(kind, expected, replayed, one.size, other.size)
            share, marked = _mark_differences(one, other)
            if share:
                why = ""
            else:
                why = "the pixels are the same; the files are written otherwise"
            return Images(kind, expected, replayed, one.size, other.size, share, marked, why)
    except ImportError:
        return Images(
            kind, expected, replayed, why="pip install pillow tells how many pixels differ"
        )
    except Exception as error:
        return Images(
            kind,
            expected,
            replayed,
            why=f"the pixels could not be compared: {type(error).__name__}",
        )


@contextlib.contextmanager
def _open_image(data: bytes) -> Iterator[Image]:
    """The first frame, with colours and transparency. Raises for what is no picture, or too large."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
            if image.width * image.height > PIXELS:
                raise ValueError("too large")
            yield image.convert("RGBA")


def _mark_differences(one: Image, other: Image) -> tuple[float, bytes]:
    """The share of pixels that differ, and the picture of them."""
    from PIL import Image, ImageChops

    channels = ImageChops.difference(one, other).split()
    most = channels[0]
    for channel in channels[1:]:
        most = ImageChops.lighter(most, channel)
    mask = most.point(lambda level: 255 if level else 0)
    total = max(1, one.width * one.height)
    share = (total - mask.histogram()[0]) / total
    white = Image.new("RGBA", one.size, "white")
    faded = Image.blend(white, Image.alpha_composite(white, one), 0.25)
    faded.paste((215, 0, 50, 255), mask=mask)
    out = io.BytesIO()
    faded.convert("RGB").save(out, "PNG")
    return share, out.getvalue()


def _summarize_image(size: tuple[int, int] | None, data: bytes) -> str:
    shape = f"{size[0]} x {size[1]} pixels, " if size else ""
    return f"{shape}{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}"
