"""Codec of PIL images: mode, size, exact pixels, palette. Imported only for a value of PIL's.

A PNG where that gives the same image again, else the raw pixels. What is not pixels (format, EXIF)
is not kept.
"""

from __future__ import annotations

import base64
import io
import warnings
from typing import Any

from PIL import Image

from tape_jupyter.encoding.values.walker import (
    At,
    CannotFreeze,
    Codec,
    Freezer,
    Thawer,
    need,
    place_text,
)
from tape_jupyter.errors import CassetteError

_MOST_PIXELS = 64 * 1024 * 1024
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")


def _freeze_image(image: Any, _walk: Freezer, at: At) -> dict[str, Any]:
    if image.width * image.height > _MOST_PIXELS:
        raise CannotFreeze(at, image, f"more than {_MOST_PIXELS} pixels")
    fields = {"mode": image.mode, "size": list(image.size)}
    png = _encode_png(image)
    return {**fields, **({"png": _encode_base64(png)} if png is not None else _freeze_raw(image))}


def _encode_png(image: Any) -> bytes | None:
    """The image as PNG, if that reads back as the same image."""
    if image.mode not in _PNG_MODES or not image.width * image.height:
        return None
    plain = image.copy()
    plain.info = {k: v for k, v in image.info.items() if k == "transparency"}
    buffer = io.BytesIO()
    try:
        plain.save(buffer, "PNG")
        again = _open_png(buffer.getvalue(), image.size)
    except (OSError, ValueError, CassetteError):
        return None
    if _collect_identity(again) == _collect_identity(image):
        return buffer.getvalue()
    return None


def _collect_identity(image: Any) -> tuple[Any, ...]:
    palette = image.getpalette(None) if image.mode in {"P", "PA"} else None
    return (image.mode, image.size, image.tobytes(), palette, image.info.get("transparency"))


def _freeze_raw(image: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"raw": _encode_base64(image.tobytes())}
    if image.mode in {"P", "PA"}:
        fields["palette"] = [image.palette.mode, _encode_base64(image.palette.tobytes())]
    return fields


def _thaw_image(s: dict[str, Any], _walk: Thawer, at: At) -> Any:
    width, height = (need(n, int, (at, "size")) for n in s["size"])
    if width < 0 or height < 0 or width * height > _MOST_PIXELS:
        raise CassetteError(
            f"{place_text(at)}: {width} x {height} pixels are not an image that was recorded"
        )
    if "png" in s:
        image = _open_png(_decode_base64(s["png"], at), (width, height))
    else:
        image = Image.frombytes(
            need(s["mode"], str, at), (width, height), _decode_base64(s["raw"], at)
        )
    if "palette" in s:
        image.putpalette(_decode_base64(s["palette"][1], at), s["palette"][0])
    if image.mode != s["mode"]:
        raise CassetteError(f"{place_text(at)}: the PNG holds {image.mode} pixels, not {s['mode']}")
    return image


def _open_png(png: bytes, size: tuple[int, int]) -> Any:
    """A PNG as a plain image. Its size is looked at before a pixel is unpacked."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
            if image.size != size:
                raise CassetteError(f"the PNG is {image.size} large, not {size}")
            plain = image.copy()
    plain.info = {k: v for k, v in plain.info.items() if k == "transparency"}
    return plain


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode_base64(text: Any, at: At) -> bytes:
    return base64.b64decode(need(text, str, at), validate=True)


_IMAGE = Codec("Image", _freeze_image, _thaw_image, shared=True)
BY_NAME = {_IMAGE.name: _IMAGE}


def codec_for(kind: type) -> Codec | None:
    """An image read from a file is of a class of its format; it comes back as a plain one."""
    return _IMAGE if issubclass(kind, Image.Image) else None
