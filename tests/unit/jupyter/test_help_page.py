"""`%tape help` is a page that a person reads."""

from tape_jupyter.jupyter import help_page, magics
from tape_jupyter.session.options import LINE_MODES, LINE_OPTIONS, SESSION_MODES


def test_it_has_a_line_for_every_word_and_option_and_fits_the_width():
    page = help_page.help_text()
    words = [*(f"%%tape {mode} " for mode in LINE_MODES), *(f"%tape {ask}" for ask in magics.ASKS)]
    assert [word for word in words if f"  {word}" not in page] == []
    assert [mode for mode in SESSION_MODES if mode not in page] == []
    assert [option.flag for option in LINE_OPTIONS if f"  {option.flag}" not in page] == []
    assert max(map(len, page.splitlines())) <= 100
