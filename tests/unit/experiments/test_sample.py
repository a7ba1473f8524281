"""`tape sample NB CALL -k N`: live answers at a recorded call, each continued from the tape; a limit is a limit."""

import json
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.resending.price import CostEstimate, estimate
from tape_jupyter.experiments.sampling.budget import Budget
from tape_jupyter.experiments.sampling.shares import shares, wilson
from tests.harness.notebook import clean_env, notebook
from tests.harness.provider import Scripted
from tests.harness.support import digest
from tests.harness.tapes import ASK, answered, asked

JSON = {"content-type": "application/json"}


def reply(text):
    body = {"type": "message", "model": "claude-sonnet-4-5-20250929", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {"input_tokens": 100, "output_tokens": 10}}  # fmt: skip
    return Scripted(200, JSON, [json.dumps(body).encode()])


@pytest.fixture
def path(tmp_path, provider, monkeypatch):
    """A notebook in which a mood decides what is asked next."""
    wanted = clean_env(tmp_path)
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    setup = "%load_ext tape_jupyter\nsetup = 'x'\n" + ASK.replace("URL", provider.url)
    path = notebook(
        tmp_path / "shop.ipynb", setup, '%%tape record\nmood = ask("The mood?").strip()\nmood',
        '%%tape record\nif mood == "odd": ask("What is odd?")\nassert mood != "bad"',
    )  # fmt: skip
    provider.script("/v1/messages", reply("good"))
    assert run("record", path).exit_code == 0
    provider.requests.clear()
    return path


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def call_of(path):
    return tape.open(path.with_suffix(".tapes") / "main.tape.yaml").calls[0].id


def sample(path, *words):
    done = run("sample", path, call_of(path), *words, "--json")
    assert isinstance(done.exception, SystemExit | None), done.exc_info
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.stdout)


def test_outcomes_have_shares_and_a_later_run_pays_only_for_what_is_missing(path, provider):
    before = {file: digest(file) for file in (path, path.with_suffix(".tapes") / "main.tape.yaml")}
    limited = Scripted(429, JSON, [b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'])  # fmt: skip
    provider.script("/v1/messages", reply("bad"), limited, reply("odd"))
    told = sample(path, "-k", "3", "--check", "mood", "--max-cost", "0.05", "--calls", "1")
    assert len(provider.requests) == 3 and told["paid"] == pytest.approx(
        2 * (100 * 3 + 10 * 15) / 1e6
    )
    assert "the answer is 429" in told["failed"][0]  # it is kept, and is no sample
    bad, odd = sorted(told["outcomes"], key=lambda each: each["outcome"])
    assert bad["outcome"] == "'bad'" and odd["outcome"] == "'odd'"  # whatever a later cell asks
    assert (bad["count"], bad["of"]) == (1, 2) and bad["low"] < 0.5 < bad["high"]
    assert {file: digest(file) for file in before} == before
    runs = sample(path, "-k", "2", "--check", "cell:3", "--max-calls", "0")["outcomes"]
    assert sorted(each["outcome"][:18] for each in runs) == ["fails", "unresolved: cell 3"]
    provider.script("/v1/messages", reply("good"))
    done = run("sample", path, call_of(path), "-k", "3", "--calls", "1")
    assert done.exit_code == 0 and len(provider.requests) == 4, done.output
    assert "2 answers were there already" in done.stdout and "paid now: $0.00045" in done.stdout
    assert (
        '33.3%    6.1% to  79.2%   "good"' in done.stdout
        and "cell 3: AssertionError" in done.stdout
    )
    assert {file: digest(file) for file in before} == before


@pytest.mark.night
def test_what_cannot_be_kept_within_a_limit_is_refused_before_anything_is_sent(path, provider):
    call = call_of(path)
    for words, told in (
        (["--set", "model=nobodys-model"], "--max-calls N"),
        (["--set", "model=nobodys-model", "--max-cost", "1"], "--max-calls N"),
        (
            ["--set", "model=nobodys-model", "--max-cost", "1", "--max-calls", "3"],
            "--max-calls alone can",
        ),
        (["--set", "max_tokens=null", "--max-cost", "1"], "--set max_tokens=N"),
        (["--max-cost", "0.0001"], "one call can cost"),
        (["--max-cost", "much"], "no amount of US dollars"),
        (["--check", "cell:9"], "code cells are 1 to 3"),
        (["--check", "mood ="], "not a Python expression"),
        (["--check", "1 == 1"], "reads nothing of the notebook"),
        (["--check", "mod"], "the check raised NameError"),
        (["--check", "len(setup)"], "call {call} has no say in it"),
        (["--check", "cell:1"], "call {call} has no say in it"),
    ):
        done = run("sample", path, call, *words)
        assert done.exit_code == 2 and told.format(call=call) in done.stderr, (words, done.output)
    assert "nothing was sent" in run("sample", path, call, "--dry-run").stdout
    assert run("sample", path, "00000000").exit_code == 2
    assert run("sample", path.with_suffix(".tapes"), call).exit_code == 2
    assert provider.requests == []


def test_a_limit_stops_before_the_call_that_could_go_over_it_and_another_request_has_other_takes(
    path, provider
):
    most = estimate(*_recorded(path)).most
    limit = 2 * most
    provider.script("/v1/messages", *map(reply, ["good"] * 9))
    words = ["--max-cost", str(limit), "--calls", "3", "--set", "temperature=0"]
    told = sample(path, "-k", "9", *words)
    assert told["paid"] <= limit and "--max-cost" in told["stopped"] and len(told["samples"]) < 9
    assert len(provider.requests) == len(told["samples"]) and provider.requests[0].json["temperature"] == 0  # fmt: skip
    done = run("sample", path, call_of(path), "-k", "1", "--max-calls", "0")
    assert done.exit_code == 1 and "--max-calls 0: no more calls" in done.stdout


def _recorded(path):
    entry = tape.open(path.with_suffix(".tapes") / "main.tape.yaml").calls[0]
    return entry.request(), entry.request(), entry.reply()


@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_runs_with_concurrent_calls_never_cost_more_than_the_limit(seed):
    draw = random.Random(seed)
    for _ in range(100):
        most = Decimal(draw.randint(1, 500)) / 10**4
        limit, calls = (
            most * draw.randint(1, 12) + Decimal(draw.randint(0, 99)) / 10**6,
            draw.randint(1, 30),
        )
        budget, paid, lock = Budget(limit, draw.choice([None, calls])), [], threading.Lock()
        costs = [draw.choice([most, most * draw.randint(0, 100) / 100, None]) for _ in range(calls)]

        def one(cost):
            if not budget.reserve(most):
                return
            with lock:
                paid.append(most if cost is None else cost)
            time.sleep(0)  # others go on
            budget.record_payment(most, cost)

        with ThreadPoolExecutor(draw.randint(2, 8)) as pool:
            list(pool.map(one, costs))
        assert sum(paid) <= limit and budget.spent + budget.unknown == sum(paid)
        assert len(paid) == calls or sum(paid) + most > limit


# R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics in Medicine 17 (1998), table I
@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)  # fmt: skip
def test_intervals_are_those_of_the_published_table(count, of, low, high):
    assert tuple(round(each, 4) for each in wilson(count, of)) == (low, high)
    flipped = wilson(of - count, of)
    assert (round(1 - flipped[1], 4), round(1 - flipped[0], 4)) == (low, high)


def test_shares_come_the_most_frequent_first():
    told = shares(["a", "b", "b"])
    assert [(each.outcome, each.count, each.of) for each in told] == [("b", 2, 3), ("a", 1, 3)]
    assert shares([]) == []
    with pytest.raises(ValueError, match="3 of 2"):
        wilson(3, 2)


def test_the_most_that_a_call_can_cost_counts_its_limit_and_what_another_model_may_count():
    request, recorded = asked("Who?"), answered("Bo")  # 1,000 tokens in, max_tokens 9
    told = estimate(request, request, recorded)
    assert told.expected == Decimal("0.0045") and told.most >= Decimal("0.003135")
    longer = estimate(request, asked("Who? " * 100), recorded)
    assert longer.most > told.most
    with pytest.raises(TapeUsageError, match="max-calls"):
        Budget(max_cost=Decimal(1)).require(CostEstimate("its price is not known"))
