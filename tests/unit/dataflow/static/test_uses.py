"""How a statement uses its names."""

import ast

from tape_jupyter.dataflow.static.uses import attribute_chain, statement_uses


def of(source):
    return statement_uses(ast.parse(source).body[0])


def test_parts_are_told_where_nothing_else_is_done_with_the_name():
    assert of("print(memo['b'])").parts == (("memo", "memo['b']"),)
    assert of("print(memo['b'], memo)").parts == ()
    assert of("x = a.b['k'].c").parts == (("a", "a.b['k'].c"),)


def test_stores_below_a_name_are_touches_with_their_path():
    (touch,) = of("memo['a'] = 1").touches
    assert (touch.root, touch.how, touch.path) == ("memo", "item", "memo['a']")
    assert of("memo[k] = 1").touches[0].path == ""


def test_a_call_for_its_effect_is_told_from_one_whose_result_is_used():
    assert not of("log.add(x)").touches[0].kept
    assert of("y = log.add(x)").touches[0].kept


def test_asking_for_a_name_is_not_reading_all():
    assert of("print('flag' in globals())").exists == {"flag"}
    assert of("print('flag' in globals())").dynamic == set()
    assert of("globals()['made'] = 1").binds == {"made"}
    assert of("globals()[k] = 1").binds == {"*"}


def test_size_and_keys_are_parts_of_their_own():
    assert of("print(len(xs))").counted == (("xs", "xs.len()"),)


def test_a_key_that_is_not_written_there_is_no_part():
    assert attribute_chain(ast.parse("a[k]", mode="eval").body) is None
    assert attribute_chain(ast.parse("a[-1]", mode="eval").body)[1] == "a[-1]"


def test_exec_with_a_namespace_of_its_own():
    assert of("exec(src, ns)").spaced == {"exec"} and of("exec(src)").spaced == set()
