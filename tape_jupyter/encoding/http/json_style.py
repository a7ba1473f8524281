r"""Text room: how JSON is spelled on the wire. Pure: no I/O, no clock; text <-> plain structure.

A *dialect* is a spelling that a provider's encoder uses throughout: separators, indentation, which
characters are escaped, how floats are printed. Its name is a few words, the same in a cassette and
here:

    compact | spaced | colon | indent N | indent tab    {"a":1,"b":2} | {"a": 1, "b": 2} | {"a": 1,"b": 2} | lines
    ascii                                               every character above U+007E as \uXXXX
    html                                                < > & as \u003c \u003e \u0026 (Google, Go)
    c-floats | js-floats | rust-floats                  0.026397113800048829 | 0.00005, 1e-7 | 5e-5

`ascii` alone is `compact ascii` and `plain` is `spaced ascii`, what `json.dumps` does by itself.
Whether a text is in a dialect is never guessed: whoever asks encodes the value again and compares.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterator
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final

from tape_jupyter.errors import CassetteError

MAX_DEPTH: Final = 48
_MAX_DIGITS: Final = (
    400  # longer numbers are hostile, not data; they stay text, and the cassette refuses them
)
_MAX_INT: Final = 10**_MAX_DIGITS
_LONGEST_KEY: Final = (
    160  # characters: the cassette's keys end at 1,000, written with up to six for one
)
_ALIASES: Final = {"ascii": "compact ascii", "plain": "spaced ascii"}
_LAYOUTS: Final = {"compact": (",", ":"), "spaced": (", ", ": "), "colon": (",", ": ")}
_NAME: Final = re.compile(
    r"(?P<layout>compact|spaced|colon|indent (?P<unit>[1-9]|tab))"
    r"(?P<ascii> ascii)?(?P<html> html)?(?: (?P<floats>(?:c|js|rust)-floats))?\Z"
)
_HTML: Final = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))
_HTML_ESCAPE: Final = re.compile(r"\\u00(?:3c|3e|26)")


def _format_c_float(x: float) -> str:
    """As protobuf prints a double: 15 digits if they suffice, else 17."""
    short = f"{x:.15g}"
    return short if float(short) == x else f"{x:.17g}"


def _format_js_float(x: float) -> str:
    """As JavaScript and Go print a double: no exponent between 1e-6 and 1e21, no padded exponents."""
    mantissa, e, exponent = repr(x).partition("e")
    if not e:
        return mantissa
    from decimal import Decimal

    if -7 < int(exponent) < 21:
        return f"{Decimal(repr(x)):f}"
    return f"{mantissa}e{int(exponent):+d}"


def _format_rust_float(x: float) -> str:
    """As Rust's ryu prints a double: Python's form with a bare exponent."""
    mantissa, e, exponent = repr(x).partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


_FLOATS: Final[dict[str, Callable[[float], str]]] = {
    "c-floats": _format_c_float,
    "js-floats": _format_js_float,
    "rust-floats": _format_rust_float,
}


def encoder(
    quote: Callable[[str], str],
    item: str,
    colon: str,
    *,
    sort_keys: bool = False,
    allow_nan: bool = False,
) -> Callable[[Any], str]:
    """`JSONEncoder.encode`, without circles, of these spellings; it makes its encoder in C once,
    not for each value.
    """
    plain = json.JSONEncoder(
        ensure_ascii=quote is encode_basestring_ascii,
        check_circular=False,
        allow_nan=allow_nan,
        sort_keys=sort_keys,
        separators=(item, colon),
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    write = make(None, plain.default, quote, None, colon, item, sort_keys, False, allow_nan)
    return lambda value: "".join(write(value, 0))


def _build_indent(unit: str | None) -> str:
    if unit is None:
        return ""
    return "\t" if unit == "tab" else " " * int(unit)


class Dialect:
    """One spelling of JSON. `encode` gives a value's text; `string` and `number` that of one leaf."""

    __slots__ = (
        "_colon",
        "_encode",
        "_float",
        "_html",
        "_indent",
        "_item",
        "_pretty",
        "_quote",
        "escapes",
        "name",
    )

    def __init__(self, name: str, layout: re.Match[str]) -> None:
        self.name, self._html = name, layout["html"] is not None
        self.escapes = self._html or layout["ascii"] is not None
        self._item, self._colon = _LAYOUTS.get(layout["layout"], (",", ": "))
        self._float = _FLOATS.get(layout["floats"] or "", float.__repr__)
        self._quote = encode_basestring_ascii if layout["ascii"] else encode_basestring
        unit = layout["unit"]
        self._pretty = unit is not None
        self._indent = _build_indent(unit)
        self._encode: Callable[[Any], str] = self._write_value
        if not self._pretty and layout["floats"] is None:
            # The C encoder is 3 to 5 times faster than ours, but knows neither lines nor other
            # floats.
            self._encode = encoder(self._quote, self._item, self._colon)

    @property
    def separator(self) -> str:
        """What stands between two items; "" where that hangs on how deep they lie."""
        return "" if self._pretty else self._item

    def encode(self, value: Any) -> str:
        """The text of a plain structure. Raises TypeError or ValueError for what is not JSON."""
        return self._escape_html(self._encode(value))

    def string(self, value: str) -> str:
        return self._escape_html(self._quote(value))

    def number(self, value: float) -> str:
        if type(value) is int:
            return int.__repr__(value)
        if type(value) is not float or not math.isfinite(value):
            raise ValueError(f"{value!r} is not a JSON number")
        return self._float(value)

    def _escape_html(self, text: str) -> str:
        # Outside of strings JSON has none of these characters, so replacing them in the whole text
        # is exact.
        if self._html:
            for plain, escaped in _HTML:
                text = text.replace(plain, escaped)
        return text

    def _write_value(self, value: Any, margin: str = "\n") -> str:
        kind = type(value)
        if kind is str:
            return self._quote(value)
        if kind is dict or kind is list:
            return self._write_container(value, margin)
        if value is None:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        return self.number(value)

    def _write_container(self, value: dict[str, Any] | list[Any], margin: str) -> str:
        if type(value) is dict:
            opening, closing = "{", "}"
        else:
            opening, closing = "[", "]"
        if not value:
            return opening + closing
        inner = margin + self._indent if self._pretty else ""
        write, quote, colon = self._write_value, self._quote, self._colon
        if type(value) is dict:
            items = [
                f"{quote(key)}{colon}{quote(x) if type(x) is str else write(x, inner)}"
                for key, x in value.items()
            ]
        else:
            items = [write(x, inner) for x in value]
        return (
            opening
            + inner
            + (self._item + inner).join(items)
            + (margin if self._pretty else "")
            + closing
        )


@functools.lru_cache(maxsize=64)
def dialect(name: str) -> Dialect:
    """The dialect of that name. Raises CassetteError for an unknown name."""
    match = _NAME.match(_ALIASES.get(name, name)) if isinstance(name, str) else None
    if match is None:
        raise CassetteError(
            f"json: {name!r} is not a known dialect; known are compact, ascii, spaced, plain, colon, indent 2"
        )
    return Dialect(name, match)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


def load_json(text: str) -> Any:
    """Plain structure of a JSON text without white space around it. ValueError for what is not held
    as structure:

    a key that begins with "<" (our own marks do), nesting deeper than MAX_DEPTH, absurd integers,
    NaN.
    """
    try:
        value, end = _decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if end != len(text):
        raise ValueError("more follows the JSON")
    return check_value(text, value)


def check_value(text: str, value: Any) -> Any:
    """The value of a JSON text that `load_json` may hold. Raises ValueError as it does, except for NaN."""
    if not _is_harmless(text):
        require_structure([value], 0)
    return value


def _is_harmless(text: str) -> bool:
    """Whether a text is too short and plain to hold anything that `require_structure` looks for: most events
    of a stream are.
    """
    if len(text) > _MAX_DIGITS or '"<' in text or '"\\u003' in text:
        return False
    return text.count("{") + text.count("[") <= MAX_DEPTH


def require_structure(value: dict[str, Any] | list[Any], depth: int) -> None:
    """Raises ValueError where a value at this depth of a JSON text is none that `load_json` may hold."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if type(value) is dict:
        for key in value:
            if key[:1] == "<" or len(key) > _LONGEST_KEY:
                raise ValueError(
                    f"the key {key[:80]!r} looks like a mark of the cassette, or is not a name"
                )
        items: Any = value.values()
    else:
        items = value
    for item in items:
        kind = type(item)
        if kind is dict or kind is list:
            require_structure(item, depth + 1)
        elif kind is int and (item >= _MAX_INT or item <= -_MAX_INT):
            raise ValueError("a number too long to be one")


def candidate_dialects(text: str) -> Iterator[Dialect]:
    """Dialects that a JSON text (without white space around it) may be in, likeliest first; few.

    Most texts are in the first: what it takes a search through the text to know is asked after
    that.
    """
    layouts = _guess_layouts(text)
    for layout in layouts:
        yield dialect(_shorten_name(layout))
        for spelling in _guess_spellings(text):
            if spelling:
                yield dialect(_shorten_name(layout + spelling))
    if flavour := _find_float_flavour(text):
        spellings = _guess_spellings(text)
        for layout in layouts:
            for spelling in spellings:
                yield dialect(f"{layout}{spelling} {flavour}")


def find_dialect(text: str, value: Any) -> Dialect | None:
    """The dialect in which `value` is spelled exactly as `text`."""
    for each in candidate_dialects(text):
        try:
            if each.encode(value) == text:
                return each
        except (TypeError, ValueError, RecursionError):
            return None
    return None


def _shorten_name(name: str) -> str:
    for short, long in _ALIASES.items():
        if name == long:
            return short
    return name


def _guess_layouts(text: str) -> tuple[str, ...]:
    if text[1:2] == "\n" and text[2:3] == "\t":
        return ("indent tab",)
    if text[1:2] == "\n":
        line = text[2:12]
        unit = len(line) - len(line.lstrip(" "))
        return (f"indent {unit}",) if 1 <= unit <= 9 else ()
    first = text.find('":')
    if first < 0:
        return ("compact", "spaced")
    if text[first + 2 : first + 3] == " ":
        return "spaced", "colon", "compact"
    return ("compact",)


def _guess_spellings(text: str) -> tuple[str, ...]:
    if "\\u" not in text:
        return ("",)
    # A Latin text with one escaped control character is in both; the name without `ascii` is the
    # wider one.
    escapes = ("", " ascii") if text.isascii() else ("",)
    if _HTML_ESCAPE.search(text):
        return tuple(f"{e} html" for e in escapes)
    return escapes


def _find_float_flavour(text: str) -> str | None:
    """The float form that gives every float of the text as it stands; None if Python's does, or
    none does.
    """
    floats: list[str] = []
    try:
        json.loads(text, parse_float=floats.append)
    except (ValueError, RecursionError):
        return None
    odd = [x for x in floats if repr(float(x)) != x]
    fitting = (name for name, form in _FLOATS.items() if all(form(float(x)) == x for x in floats))
    return next(fitting, None) if odd else None
