"""The waterfall below a taped cell: plain characters, a bar a call."""

from tape_jupyter.reports.waterfall import MOST, WIDTH, Bar, waterfall_lines


def test_calls_lie_where_they_lay_in_time():
    assert waterfall_lines(
        [Bar("classify", 0, 4), Bar("lookup_order", 4, 6), Bar("answer", 6, 8)]
    ) == ["▕████░░░░▏classify  ▕░░░░██░░▏lookup_order  ▕░░░░░░██▏answer"]


def test_calls_at_once_lie_one_beside_the_other():
    assert waterfall_lines([Bar("a", 0, 8), Bar("b", 0, 8)]) == ["▕████████▏a  ▕████████▏b"]


def test_one_call_needs_no_drawing_and_none_neither():
    assert waterfall_lines([]) == [] and waterfall_lines([Bar("a", 0, 1)]) == []


def test_of_many_calls_the_longest_are_drawn_and_the_rest_counted():
    told = waterfall_lines([Bar(f"call {n}", n, n + 1 + n / 100) for n in range(1000)])
    assert told[-1].endswith("and 992 more") and "".join(told).count("▕") == MOST
    assert all(len(line) <= 110 for line in told)


def test_a_call_of_no_time_is_seen_and_long_names_are_cut():
    (line,) = waterfall_lines([Bar("x" * 100, 5, 5), Bar("y", 5, 5)])
    assert line.count("█") == 2 and "…▏" not in line and "x" * 30 not in line
    assert line.startswith("▕" + "█" + "░" * (WIDTH - 1) + "▏")
