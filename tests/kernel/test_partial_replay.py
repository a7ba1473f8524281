"""Partial replay in real kernels: r_8821 (the wrong customer's order), a mail that is never sent again, takes by magic."""

import hashlib
import re

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider
from tests.harness.tapes import ASK

LOAD = "%load_ext tape_jupyter"
ORDERS = """import tape_jupyter as tape
from tests.harness.tool_runs import Witness
ran, orders = Witness(), {("acme", "r_8821"): "3 lamps, paid", ("globex", "r_8821"): "9 desks, unpaid"}
@tape.tool
def lookup_order(order):
    ran.append(order)
    return next(told for (_, each), told in reversed(orders.items()) if each == order)"""
FIXED = """@tape.tool
def lookup_order(order, tenant="acme"):
    ran.append((order, tenant))
    return orders[tenant, order]"""
AGENT = """question = ask("where is order r_8821?")
found = lookup_order("r_8821")
print("found:", found)
print("said:", ask("tell the customer: " + found))"""
REPLAY = "%%tape replay"


@pytest.fixture
def provider():
    with Provider(vary=True) as provider:
        yield provider


@pytest.fixture
def kernel(tmp_path, provider):
    notebook(
        tmp_path / "orders.ipynb",
        LOAD,
        ASK.replace("URL", provider.url),
        ORDERS,
        "%%tape record\n" + AGENT,
        FIXED,
    )
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "orders.ipynb")}) as kernel:
        for setup in (LOAD, ASK.replace("URL", provider.url), ORDERS):
            assert kernel.execute(setup).ok
        yield kernel


@pytest.fixture
def base(tmp_path):
    return tmp_path / "orders.tapes" / "main.tape.yaml"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_r_8821_the_live_tool_proves_the_fix(kernel, provider, base):
    recorded = kernel.execute("%%tape record\n" + AGENT, "agent")
    assert recorded.ok and "found: 9 desks, unpaid" in recorded.stdout
    before = digest(base)

    assert kernel.execute("orders = dict(reversed(orders.items()))").ok, (
        "somebody touched the table meanwhile"
    )
    naive = kernel.execute(AGENT)
    assert "found: 3 lamps, paid" in naive.stdout, "asked again it looks fine"
    assert kernel.execute("ran.pop()").result == "'r_8821'"
    asked = len(provider.requests)

    (gaps,) = kernel.execute("%tape gaps").displays
    assert "%tape set user_id=..." in gaps and "%tape set tenant_id=..." in gaps

    frozen = kernel.execute("%%tape replay\n" + AGENT, "agent")
    assert frozen.stdout == recorded.stdout, "the wrong order again"
    assert kernel.execute("ran").result == "['r_8821']"

    assert kernel.execute(FIXED).ok
    missed = kernel.execute("%%tape replay\n" + AGENT, "agent")
    assert missed.ename == "UnmatchedCall"
    assert (
        "lookup_order" in missed.evalue
        and "tenant" in missed.evalue
        and "now:      'acme'" in missed.evalue
    )

    proven = kernel.execute("%%tape replay --live tool:lookup_order --take fix\n" + AGENT, "agent")
    assert "found: 3 lamps, paid" in proven.stdout, "the right one, from the tool as it is now"
    assert (
        proven.ename == "UnmatchedCall"
        and "3 lamps" in proven.evalue
        and len(provider.requests) == asked
    )

    whole = kernel.execute(
        "%%tape replay --live tool:lookup_order --live llm --take fix\n" + AGENT, "agent"
    )
    assert whole.ok and "found: 3 lamps, paid" in whole.stdout
    assert "take: fix" in whole.summary and "what ran live is in the take fix" in whole.summary
    assert re.search(r"● replayed  \d calls · \d went live · ", whole.summary)
    assert digest(base) == before, "the base was written"

    provider.stop()
    again = kernel.execute("%%tape replay --take fix\n" + AGENT, "agent")
    assert again.ok and again.stdout == whole.stdout and "take: fix" in again.summary
    assert "went live" not in again.summary
    assert digest(base) == before


@pytest.mark.slow
def test_a_regression_test_is_the_take_in_a_fresh_kernel(kernel, tmp_path, provider, base):
    kernel.execute("%%tape record\n" + AGENT, "agent")
    kernel.execute(FIXED)
    live = kernel.execute("%%tape replay --live tools --live llm --take fix\n" + AGENT, "agent")
    assert live.ok
    provider.stop()
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "orders.ipynb"), "TAPE_MODE": "replay", "TAPE_OPTIONS": "--take fix"}) as fresh:  # fmt: skip
        for setup in (LOAD, ASK.replace("URL", provider.url), ORDERS, FIXED):
            assert fresh.execute(setup).ok
        again = fresh.execute("%%tape record\n" + AGENT)
        assert again.ok and again.stdout == live.stdout and "take: fix" in again.summary
        assert fresh.execute("ran").result == "[]"


def test_a_mail_that_was_sent_once_is_never_sent_again_while_recording(kernel, provider, base):
    mail = "%%tape record{}\nask('shall we?')\nsend('ada')"
    assert kernel.execute(
        "@tape.tool\ndef send(to):\n    ran.append(to)\n    return {'sent': to}"
    ).ok
    assert kernel.execute(mail.format(""), "mail").ok
    frozen = kernel.execute(mail.format(" --freeze tool:send"), "mail")
    assert frozen.ok and frozen.result == "{'sent': 'ada'}"
    assert kernel.execute("ran").result == "['ada']"
    refused = kernel.execute(mail.format(" --freeze tool:send").replace("ada", "eve"), "mail")
    assert refused.ename == "UnmatchedCall" and "It did not run" in refused.evalue
    stubbed = kernel.execute(
        mail.format(" --stub 'tool:send={\"sent\": 0}'").replace("ada", "eve"), "mail"
    )
    assert stubbed.ok and stubbed.result == "{'sent': 0}"
    assert kernel.execute("ran").result == "['ada']"
    assert (
        kernel.execute("%%tape replay\nask('shall we?')\nsend('eve')", "mail").result
        == "{'sent': 0}"
    )


def test_takes_are_listed_compared_renamed_and_put_aside_by_magic(kernel, provider, base):
    kernel.execute("%%tape record\n" + AGENT, "agent")
    assert "has no takes" in kernel.execute("%tape takes").stdout
    live = kernel.execute("%%tape replay --live llm\n" + AGENT, "agent")
    assert "take: live" in live.summary
    listed = kernel.execute("%tape takes").stdout
    assert listed.split()[0] == "live" and "2 live" in listed and "take of: main" in listed
    told = kernel.execute("%tape diff main live").stdout
    assert told.startswith("--- main\n+++ main > live\nchanged: ") and "\n  +" in told
    assert "is called calm now" in kernel.execute("%tape takes rename live calm").stdout
    assert kernel.execute("%tape takes rename calm calm").ename == "TapeUsageError"
    assert "was moved to" in kernel.execute("%tape takes delete calm").stdout
    assert "has no takes" in kernel.execute("%tape takes").stdout
    assert len(list((base.parent / "takes" / "deleted").iterdir())) == 1
    assert kernel.execute("%tape takes explode").ename == "TapeUsageError"


def test_a_session_that_replays_with_one_boundary_live_writes_one_take(kernel, provider, base):
    kernel.execute("%%tape record\nask('one')", "a")
    kernel.execute("%%tape record\nask('two')", "b")
    kernel.execute("%tape replay --live llm")
    first, second = kernel.execute("ask('one')", "a"), kernel.execute("ask('two')", "b")
    kernel.execute("%tape off")
    assert "take: live ·" in first.summary and "take: live ·" in second.summary
    assert [path.name for path in (base.parent / "takes").iterdir()] == ["main.live.tape.yaml"]
    provider.stop()
    kernel.execute("%tape replay --take live")
    assert (kernel.execute("ask('one')", "a").result, kernel.execute("ask('two')", "b").result) == (first.result, second.result)  # fmt: skip


@pytest.mark.slow
def test_replay_wins_over_a_cells_own_live_word(kernel, tmp_path, provider):
    kernel.execute("%%tape record\nask('one')", "a")
    asked = len(provider.requests)
    with Kernel(
        tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "orders.ipynb"), "TAPE_MODE": "replay"}
    ) as fresh:
        for setup in (LOAD, ASK.replace("URL", provider.url)):
            assert fresh.execute(setup).ok
        assert fresh.execute("%%tape replay --live llm\nask('one')").ok
        assert fresh.execute("import tape_jupyter as tape\nwith tape.replaying('orders.tapes/main.tape.yaml', live='llm'):\n    ask('one')").ok  # fmt: skip
    assert len(provider.requests) == asked
