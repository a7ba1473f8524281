"""A request that repeats history refers to it, and unfolds to exactly what was asked."""

import json
import random
import sys

import pytest

from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.request_refs import (
    MARK,
    REMEMBERED,
    RequestFolder,
    check_body_size,
    check_reference,
    parse_ref,
    references,
    shape,
    unfold_references,
)
from tests.harness.timing import ratio

TALK = [
    {"role": "user", "content": f"a question of some length, number {n}, with its words"}
    for n in range(40)
]
SYSTEM = "You are a careful analyst. " * 20


class Tape:
    """Bodies folded one after the other, and what they unfold to."""

    def __init__(self):
        self.folder, self.bodies, self.count = RequestFolder(), {}, 0

    def add(self, body, run="r1"):
        self.count += 1
        call = f"{self.count:08x}"
        folded, remember = self.folder.fold(run, body)
        remember(call)
        stored = json.loads(json.dumps(folded))
        self.bodies[run, call] = unfold_references(
            stored, lambda ref: self.bodies[ref.run or run, ref.call]
        )
        assert self.bodies[run, call] == body
        assert all(
            check_reference(ref, shape(self.bodies[ref.run or run, ref.call])) is None
            for ref in references(stored)
        )
        return folded


def test_a_conversation_is_stored_once():
    tape = Tape()
    for turn in range(1, len(TALK) + 1):
        folded = tape.add({"model": "m", "system": SYSTEM, "messages": TALK[:turn]})
        if turn > 1:
            assert folded["system"] == {MARK: "00000001 system"}
            assert folded["messages"] == [
                {MARK: f"{turn - 1:08x} messages[0:{turn - 1}]"},
                TALK[turn - 1],
            ]


def test_another_run_is_named():
    tape = Tape()
    tape.add({"messages": TALK[:3]})
    assert tape.add({"messages": TALK[:4]}, run="r2")["messages"][0] == {
        MARK: "r1/00000001 messages[0:3]"
    }


def test_tools_and_parts_further_down_are_found():
    tape = Tape()
    body = {"toolConfig": {"tools": TALK[:5]}, "systemInstruction": {"parts": [{"text": SYSTEM}]}}
    tape.add(body)
    folded = tape.add({**body, "contents": TALK})
    assert folded["toolConfig"]["tools"] == [{MARK: "00000001 toolConfig.tools[0:5]"}]
    assert folded["systemInstruction"]["parts"] == [{MARK: "00000001 systemInstruction.parts[0:1]"}]


def test_short_lists_and_numbers_read_better_as_they_are():
    tape = Tape()
    body = {
        "stop": ["\n", "END"],
        "suppress": list(range(300)),
        "flags": [True, None],
        "modalities": ["text"],
    }
    for _ in range(3):
        assert tape.add(dict(body)) == body


def test_a_message_put_in_the_middle_leaves_two_references():
    tape = Tape()
    tape.add({"messages": TALK[:9]})
    new = {"role": "user", "content": "wait, before that"}
    folded = tape.add({"messages": [*TALK[:4], new, *TALK[4:9]]})["messages"]
    assert folded == [{MARK: "00000001 messages[0:4]"}, new, {MARK: "00000001 messages[4:9]"}]


def test_the_same_message_again_and_again_stays_linear():
    tape, sizes = Tape(), []
    history = []
    for turn in range(40):
        history += [
            {"role": "user", "content": "go on, please, and tell me what you find there " * 2},
            TALK[turn],
        ]
        sizes.append(len(json.dumps(tape.add({"messages": list(history)}))))
    assert max(sizes[2:]) < 600


def test_what_looks_alike_and_is_not_the_same_is_stored_anew():
    tape = Tape()
    value = {"pad": "x" * 200, "n": 1, "b": 2}
    tape.add({"messages": [value]})
    for other in (
        {**value, "n": 1.0},
        {**value, "n": True},
        {"n": 1, "b": 2, "pad": "x" * 200},
        {**value, "n": "1"},
    ):
        folded = tape.add({"messages": [other]})
        assert folded["messages"] == [other] and json.dumps(folded["messages"][0]) == json.dumps(
            other
        )


def test_what_is_the_same_is_found_whatever_objects_it_is_made_of():
    message = {
        "role": "user",
        "content": "ä question " * 20,
        "parts": [1, 2.5, None, True, "user", "user"],
    }
    tape = Tape()
    tape.add({"messages": [message, "user"]})
    for _ in range(2):
        again = json.loads(json.dumps(message))
        again["parts"][4] = sys.intern("".join(["us", "er"]))
        assert MARK in tape.add({"messages": [again, "u" + "ser"]})["messages"][0]


@pytest.mark.parametrize(
    "body", [[], ["a"], "text", None, 5, {}, {"messages": []}, {"messages": {"a": 1}}]
)
def test_bodies_of_any_shape_pass(body):
    tape = Tape()
    tape.add(body)
    assert tape.add(body) == body


def test_random_conversations_come_back_exactly():
    for seed in range(30):
        r, tape = random.Random(seed), Tape()
        pool = [{"content": "word " * r.randrange(1, 30), "n": n, "parts": [n]} for n in range(12)]
        body = {}
        for _ in range(30):
            body = {
                **body,
                r.choice(["messages", "input", "tools"]): r.choices(pool, k=r.randrange(8)),
            }
            body[r.choice(["system", "instructions"])] = "text " * r.randrange(80)
            tape.add(dict(body), run=r.choice(["r1", "r2"]))


@pytest.mark.parametrize("seed", range(20))
def test_what_was_folded_just_before_changes_nothing(seed):
    """A list that begins like the last one is not looked at anew: it must be folded as if it were, lookalikes too."""
    rng = random.Random(seed)
    pool = [
        {"n": n, "text": "long enough to be worth a reference, " * 3}
        for n in (1, 1.0, True, "1", None, -0.0, 0)
    ]
    pool += [
        1,
        1.0,
        True,
        [1, [2.0]],
        [1, [2]],
        "a text of an item " * 5,
        "\ud800" * 60,
        {"b": 1, "a": 2},
        {"a": 2, "b": 1},
    ]
    tape, plain, talk = Tape(), Tape(), []
    for _ in range(60):
        talk = talk[
            : rng.choice([len(talk), len(talk), rng.randrange(len(talk) + 1)])
        ] + rng.choices(pool, k=2)
        tape.folder.fold(
            "r1", {"messages": talk[:-1] + rng.choices(pool, k=1)}
        )  # sent, and never committed
        plain.folder._lists.clear()
        folded = tape.add({"messages": talk})
        assert json.dumps(folded) == json.dumps(plain.add({"messages": talk}))
        held = tape.bodies["r1", f"{tape.count:08x}"]
        assert json.dumps(held, sort_keys=True) == json.dumps({"messages": talk}, sort_keys=True)


def test_a_number_after_a_long_text_is_its_own():
    """Numbers, true and null in a list were taken for those of the request before."""
    tape = Tape()
    for number in (1, 2, 1.0, True, None):
        tape.add({"input": ["a long text " * 20, number]})
        held = tape.bodies["r1", f"{tape.count:08x}"]["input"][1]
        assert (type(held), held) == (type(number), number)


def test_memory_does_not_grow_with_the_number_of_calls():
    folder = RequestFolder()
    for n in range(20 * REMEMBERED):
        body = {"system": f"{n} " * 200, "messages": [{"content": f"{n} " * 50}]}
        folder.fold("r1", body)[1](f"{n:08x}")
    assert len(folder._sequences["messages"]) == REMEMBERED and len(folder._items) == REMEMBERED
    assert len(folder._texts) <= 4096


def test_a_body_that_is_too_old_to_be_remembered_is_stored_anew():
    tape = Tape()
    tape.add({"messages": TALK[:3]})
    for n in range(REMEMBERED):
        tape.add({"messages": [{"content": f"{n} " * 50}]})
    assert tape.add({"messages": TALK[:3]})["messages"] == TALK[:3]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "78a670b1",
        "78a670b1 ",
        "78a670b1 messages[0:",
        "78a670b1 messages[-1:2]",
        "78a670b1 messages[0:2] x",
        "x y",
    ]
    + [
        "78a670b1 messages[a:b]",
        "78A670B1 messages[0:1]",
        " 78a670b1 m[0:1]",
        "a b/78a670b1 m[0:1]",
        5,
        None,
        ["x"],
    ]
    + [
        "78a670b1 messages[0:" + "9" * 5000 + "]",
        "78a670b1-x messages[0:1]",
        "78a670b1 messages[0:1]\n",
    ],
)
def test_what_is_no_reference_is_refused(text):
    with pytest.raises(CassetteError, match="not a reference"):
        parse_ref(text)


def test_references_say_what_they_name():
    assert parse_ref("78a670b1 messages[0:17]") == ("", "78a670b1", "messages", 0, 17)
    assert parse_ref("r-5f2c/78a670b1-12 toolConfig.tools[3:4]") == (
        "r-5f2c",
        "78a670b1-12",
        "toolConfig.tools",
        3,
        4,
    )
    assert parse_ref("78a670b1 system") == ("", "78a670b1", "system", None, None)


HELD = {"messages": ["a", "b"], "system": "text", "deep": {"list": [1]}}


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("messages[0:3]", "outside"),
        ("messages[2:3]", "outside"),
        ("messages[1:1]", "outside"),
        ("messages[2:1]", "outside"),
        ("system[0:1]", "no list"),
        ("nothing[0:1]", "no list"),
        ("deep.nothing[0:1]", "no list"),
        ("messages.0[0:1]", "no list"),
        ("messages", "no text"),
        ("nothing", "no text"),
        ("deep", "no text"),
    ],
)
def test_a_reference_to_what_is_not_there_is_refused(ref, says):
    as_list = [{MARK: f"78a670b1 {ref}"}]
    body = as_list if "[" in ref else as_list[0]
    with pytest.raises(CassetteError, match=says):
        unfold_references({"here": body}, lambda _: HELD)
    with pytest.raises(CassetteError, match=says):
        check_reference(parse_ref(f"78a670b1 {ref}"), shape(HELD))


def test_a_text_reference_among_items_and_a_slice_elsewhere_are_refused():
    with pytest.raises(CassetteError):
        unfold_references({"messages": [{MARK: "78a670b1 system"}]}, lambda _: HELD)
    with pytest.raises(CassetteError):
        unfold_references({"system": {MARK: "78a670b1 messages[0:1]"}}, lambda _: HELD)


def test_keys_beside_a_reference_are_refused_and_not_lost():
    for body in (
        {MARK: "78a670b1 system", "x": 1},
        {"messages": [{MARK: "78a670b1 messages[0:1]", "x": 1}]},
    ):
        with pytest.raises(CassetteError, match="other keys"):
            unfold_references(body, lambda _: HELD)
        with pytest.raises(CassetteError, match="other keys"):
            references(body)


def test_lengths_are_known_without_unfolding():
    folded = {
        "messages": [{MARK: "78a670b1 messages[0:7]"}, "x", {"a": 1}],
        "system": {MARK: "78a670b1 system"},
    }
    assert shape({**folded, "deep": {"list": []}, "n": 1}) == {
        "messages": 9,
        "system": None,
        "deep.list": 0,
    }


def test_references_that_double_each_time_are_stopped_soon():
    bodies = {"00000000": {"messages": ["x" * 100] * 4, "tree": [1, 2]}}

    def doubled():
        for n in range(1, 60):
            before = f"{n - 1:08x}"
            again = {MARK: f"{before} messages[0:{4 * 2 ** (n - 1)}]"}
            tree = [{"t": [{MARK: f"{before} tree[0:2]"}]}, {"t": [{MARK: f"{before} tree[0:2]"}]}]
            folded = {"messages": [again, again]} if n < 12 else {"tree": tree}
            folded = folded if n != 11 else {**folded, "tree": [1, 2]}
            bodies[f"{n:08x}"] = check_body_size(
                unfold_references(folded, lambda ref: bodies[ref.call])
            )

    def stopped():
        with pytest.raises(CassetteError, match="more than any request"):
            doubled()

    stopped()
    largest = bodies[max(bodies)]
    assert ratio(stopped, lambda: check_body_size(largest), rounds=1) < 30
    many = [{MARK: "00000001 m[0:1000000]"}] * 1000
    with pytest.raises(CassetteError, match="more than any request"):
        unfold_references(many, lambda _: {"m": [0] * 1_000_000})


def test_a_long_text_named_many_times_is_stopped():
    body, held = [{"t": {MARK: "00000001 s"}}] * 100_000, {"s": "x" * 60_000}
    with pytest.raises(CassetteError, match="more than any request"):
        check_body_size(unfold_references(body, lambda _: held))
