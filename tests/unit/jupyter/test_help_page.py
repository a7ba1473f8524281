"""`%tape help` is a page that a person reads."""

import pytest

from tape_jupyter.cli import tape
from tape_jupyter.jupyter import help_page, line_commands
from tape_jupyter.session.options import LINE_MODES, LINE_OPTIONS, SESSION_MODES


def test_it_has_a_line_for_every_word_and_option_and_fits_the_width():
    page = help_page.help_text()
    words = [
        *(f"%%tape {mode} " for mode in LINE_MODES),
        *(f"%tape {ask}" for ask in line_commands.ASKS),
    ]
    assert [word for word in words if f"  {word}" not in page] == []
    assert [mode for mode in SESSION_MODES if mode not in page] == []
    assert [option.flag for option in LINE_OPTIONS if f"  {option.flag}" not in page] == []
    assert max(map(len, page.splitlines())) <= 100


@pytest.mark.parametrize("word", [*SESSION_MODES, *line_commands.ASKS])
def test_each_word_has_a_page_that_says_how_it_is_typed(word):
    page = help_page.word_help(word)
    assert f"%tape {word}" in page and page.endswith("All of it: %tape help")
    assert max(map(len, page.splitlines())) <= 120


def test_each_command_of_a_terminal_is_a_word_of_tape_or_named_as_a_terminals():
    in_cells = {*SESSION_MODES, *line_commands.ASKS}
    assert sorted({*tape.commands} - in_cells) == sorted(help_page.TERMINAL)
