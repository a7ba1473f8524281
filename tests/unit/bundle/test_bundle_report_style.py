"""The report of a replay can be read: on light and dark paper, without anything from elsewhere."""

import re
from pathlib import Path

import pytest

from tape_jupyter.bundle import report
from tape_jupyter.bundle.report import STYLE

THEMES = dict(zip(("light", "dark"), re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL), strict=True))


def colours(theme):
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]+);", THEMES[theme]))


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_nothing_comes_from_elsewhere():
    assert not re.search(r"@import|url\(|expression|</style|https?:|//", STYLE, re.IGNORECASE)


def test_dark_paper_has_a_colour_for_everything_that_light_paper_has():
    assert colours("light").keys() == colours("dark").keys()
    assert set(re.findall(r"var\(--([\w-]+)\)", STYLE)) <= colours("light").keys()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        ("ink", "paper"), ("ink", "pane"), ("soft", "paper"), ("soft", "pane"), ("good", "paper"),
        ("good", "good-pane"), ("bad", "paper"), ("bad", "pane"), ("bad", "bad-pane"), ("warn", "paper"),
        ("warn", "warn-pane"), ("gone-ink", "gone"), ("new-ink", "new"),
    ],
)  # fmt: skip
def test_text_stands_out_from_what_it_stands_on(theme, ink, ground):
    made = colours(theme)
    assert contrast(made[ink], made[ground]) >= 4.5, f"{theme}: {ink} on {ground}"


def test_every_class_that_is_styled_is_one_that_the_report_writes():
    source = Path(report.__file__).read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"\.([a-z][a-z-]+)(?=[ ,{:.])", STYLE))):
        told = name.replace("-", " ") if name == "not-run" else name
        assert re.search(rf"\b{told}\b", source), f".{name} styles nothing"


def test_no_long_word_pushes_the_page_wider_than_a_narrow_window():
    for what in ("h1", "dd", "pre", ".title"):
        assert any(
            "overflow-wrap: anywhere" in rule
            for rule in re.findall(rf"(?m){re.escape(what)} \{{[^}}]*\}}", STYLE)
        ), what
    assert re.search(r"\.wide \{ overflow-x: auto; \}", STYLE) and "max-width: 100%" in STYLE
