"""`%%tape step` in real kernels, with the test as the page that answers."""

import hashlib
import os
import threading
import time

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.reader import Book
from tape_jupyter.spans.rows import Spans
from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider
from tests.harness.stepped import ASK, LOAD, THREADS, Refused, Stepper

THREE = 'a = ask("one")\nprint("a", a)\nb = ask("two " + a)\nprint("b", b)\nc = ask("three " + b)\nprint("c", c)'


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


@pytest.fixture
def kernel(tmp_path, provider):
    notebook(tmp_path / "nb.ipynb", LOAD)
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}) as kernel:
        assert kernel.execute(LOAD).ok
        assert kernel.execute(ASK.replace("URL", provider.url)).ok
        assert kernel.execute(f"%%tape record\n{THREE}").ok
        yield kernel


@pytest.fixture
def base(tmp_path):
    return tmp_path / "nb.tapes" / "main.tape.yaml"


def digest(base):
    return hashlib.sha256(base.read_bytes()).hexdigest()


@pytest.fixture
def page(kernel):
    page = Stepper(kernel)
    assert page.hello() is None
    return page


def titles(state):
    return [each["call"]["place"] for each in state["strands"]]


def test_a_cell_stops_before_each_call_and_goes_on(page, provider, base):
    was, asked = digest(base), len(provider.requests)
    page.run(f"%%tape step\n{THREE}")
    state = page.stop_at()
    call = state["strands"][0]["call"]
    assert (state["state"], state["mode"], call["place"], call["kind"], call["name"]) == (
        "stopped", "replay", ":1", "model", "claude-sonnet-4-5",
    )  # fmt: skip
    assert (
        '"one"' in call["request"]["text"]
        and call["would"] == "play"
        and "text" in call["reply"]["text"]
    )
    state = page.moved("over")
    assert titles(state) == [":2"] and [done["place"] for done in state["passed"]] == [":1"]
    assert not page.over
    page.do("continue")
    ran = page.end()
    assert ran.ok, ran.traceback
    assert page.states[-1]["state"] == "over"
    assert ran.stdout.count("\n") == 3 and digest(base) == was and len(provider.requests) == asked


def test_stop_ends_the_cell_and_the_variables_are_as_before(page, kernel, base):
    was = digest(base)
    assert kernel.execute("a = b = c = 0\nseen = []").ok
    page.run(f"%%tape step\nseen.append(1)\n{THREE}")
    page.stop_at()
    page.moved("over")
    page.do("stop")
    ran = page.end()
    assert ran.status == "error" and "as they were before the cell" in ran.evalue
    assert kernel.execute("print(a, b, c, seen)").stdout == "0 0 0 []\n"
    assert digest(base) == was


def test_back_runs_the_cell_again_to_the_call_before(page, kernel):
    assert kernel.execute("a = b = 0\nseen = []").ok
    page.run(f"%%tape step\nseen.append(1)\n{THREE}")
    page.stop_at()
    page.moved("over")
    state = page.moved("over")
    assert titles(state) == [":3"]
    state = page.moved("back")
    assert titles(state) == [":2"] and page.cleared == 1
    told = page.ask("step.variables", strand="", frame=1)
    assert {"name": "seen", "type": "list", "text": "[1]", "whole": True} in told["variables"]
    page.do("continue")
    ran = page.end()
    assert ran.ok and ran.stdout.count("\n") == 3
    assert kernel.execute("print(seen)").stdout == "[1]\n"


def takes(base):
    folder = base.parent / "takes"
    return sorted(path.name for path in folder.glob("*.yaml")) if folder.is_dir() else []


def test_an_edited_reply_is_served_and_is_in_a_take_that_replays(page, kernel, base):
    was = digest(base)
    page.run(f"%%tape step\n{THREE}")
    page.stop_at()
    state = page.moved("over")
    span = state["strands"][0]["call"]["span"]
    assert page.ask("edit", span=span)["form"] == "message"
    seen = state["revision"]
    state = page.moved(
        "edit",
        edit={"form": "fields", "fields": [{"path": "content[0].text", "value": "something else"}]},
        accept=True,
    )
    with pytest.raises(Refused, match="moved on"):
        page.do("over", revision=seen)
    assert state["take"] == "step" and state["edits"] == 1 and state["passed"][1]["edited"]
    assert state["strands"][0]["call"]["would"] == "refuse"  # the third asks something else now
    page.do("answer", text="by hand")
    ran = page.end()
    assert ran.ok and ran.stdout.splitlines()[1:] == ["b something else", "c by hand"]
    assert takes(base) == ["main.step.tape.yaml"] and digest(base) == was
    again = kernel.execute(f"%%tape replay --take step\n{THREE}")
    assert again.ok and again.stdout.splitlines()[1:] == ["b something else", "c by hand"]


@pytest.mark.slow
def test_a_call_that_was_edited_is_edited_again_after_going_back(page, kernel, base):
    page.run(f"%%tape step\n{THREE}")
    page.stop_at()
    page.moved("answer", text="first")
    page.moved("back")
    assert page.states[-1]["strands"][0]["call"]["edited"]
    page.moved("answer", text="second")
    state = page.states[-1]
    assert titles(state) == [":2"] and state["take"] == "step-2" and takes(base) == [
        "main.step-2.tape.yaml", "main.step.tape.yaml",
    ]  # fmt: skip
    page.do("stop")
    page.end()
    assert kernel.execute("%%tape replay --take step-2\nprint(ask('one'))").stdout == "second\n"
    assert kernel.execute("%%tape replay --take step\nprint(ask('one'))").stdout == "first\n"


@pytest.mark.slow
def test_step_plays_the_take_that_the_view_shows_and_says_which(page, kernel, base):
    by_hand = f"%tape override {tape.open(base).calls[0].id} --text {{}} --take {{}}"
    one = "print(ask('one'))"

    def stepped(said):
        page.ask("step.arm", cell="cell-1")
        page.run(one, "cell-1")
        plays = page.stop_at()["plays"]
        page.do("continue")
        ran = page.end()
        assert ran.ok and ran.stdout == f"{said}\n", ran.traceback
        assert ("take: " + plays in ran.summary) == bool(plays)
        return plays

    recorded = kernel.execute(f"%%tape replay\n{one}").stdout.strip()
    for text, take in (("calm", "calm"), ("angry", "angry")):
        assert kernel.execute(by_hand.format(text, take)).ok
    assert kernel.execute("%tape takes default calm").ok
    page.ask("open", take="angry")
    assert stepped("angry") == "angry"
    page.ask("open", take="")
    assert stepped(recorded) == ""
    page.ask("open", take="angry")
    assert page.ask("session")["take"] == "angry"
    page.ask("step.arm", cell="cell-1")
    page.run(one, "cell-1")
    page.stop_at()
    page.do("answer", text="furious")  # goes to a take of what is shown, which stays as it is
    assert page.end().stdout == "furious\n"
    assert kernel.execute(f"%%tape replay --take angry\n{one}").stdout == "angry\n"
    page.ask("step.arm", cell="cell-1")
    page.run(f"%%tape replay --take calm\n{one}", "cell-1")
    assert page.stop_at()["plays"] == "calm"  # by the cell's own line
    page.do("continue")
    assert page.end().stdout == "calm\n"


def test_a_fault_is_injected_and_one_call_goes_live(page, provider):
    page.run(
        "%%tape step\ntry:\n    ask('one')\nexcept Exception as error:\n    print(type(error).__name__)\nprint(ask('three ' ))"
    )
    page.stop_at()
    state = page.moved("fault", name="rate_limit", options={})
    assert state["strands"][0]["call"]["would"] == "refuse"
    asked = len(provider.requests)
    page.do("live")
    ran = page.end()
    assert ran.ok and ran.stdout.startswith("HTTPError\n") and len(provider.requests) == asked + 1


ASYNC = """import asyncio
async def both():
    return await asyncio.gather(aask("one"), aask("two"))
x = await both()
print(len(x))"""
AASK = """import httpx
async def aask(text):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}
    async with httpx.AsyncClient() as client:
        first = (await client.post("URL/v1/messages", json=body)).json()["content"][0]["text"]
        return first, (await client.post("URL/v1/messages", json={**body, "max_tokens": 51})).json()["content"][0]["text"]"""


@pytest.mark.slow
def test_tasks_wait_side_by_side_and_one_is_stepped_alone(page, kernel, provider):
    assert kernel.execute(AASK.replace("URL", provider.url)).ok
    assert kernel.execute(f"%%tape record\n{ASYNC}").ok
    page.run(f"%%tape step\n{ASYNC}")
    page.until(lambda: page.states and len(page.states[-1]["strands"]) == 2)
    first, second = titles(page.states[-1])
    page.moved("over", strand=first.partition(":")[0], calls=2)
    assert sorted(titles(page.states[-1])) == sorted([first[:-1] + "2", second])
    page.moved("back", strand=first.partition(":")[0], calls=2)
    assert sorted(titles(page.states[-1])) == sorted([first, second])
    frames = page.ask("step.frames", strand=first.partition(":")[0])
    assert frames[0]["function"] == "aask" and "client.post" in "\n".join(frames[0]["source"])
    page.do("continue")
    assert page.end().stdout == "2\n"


SHOWN_THREADS = f"{THREADS}\nprint(sorted(found))"


def test_threads_wait_side_by_side_also_while_the_cell_waits_for_them(page, kernel):
    assert kernel.execute(f"%%tape record\n{SHOWN_THREADS}").ok
    page.run(f"%%tape step\n{SHOWN_THREADS}")
    page.until(lambda: page.states and len(page.states[-1]["strands"]) == 2)
    places = titles(page.states[-1])
    names = [each["name"] for each in page.states[-1]["strands"]]
    assert all(name.startswith("thread ") for name in names)
    one, other = (place.partition(":")[0] for place in places)
    page.moved("over", strand=one, calls=2)
    assert sorted(titles(page.states[-1])) == sorted([f"{one}:2", f"{other}:1"])
    page.moved("over", strand=other, calls=2)
    page.moved("back", strand=one, calls=2)
    assert sorted(titles(page.states[-1])) == sorted([f"{one}:1", f"{other}:1"])
    page.do("continue")
    assert page.end().stdout == "['x', 'y']\n"


@pytest.mark.spread(3)
@pytest.mark.parametrize("source", [THREE, SHOWN_THREADS, ASYNC], ids=["plain", "threads", "async"])
def test_an_interrupt_while_it_stands_ends_the_cell_and_puts_everything_back(
    page, kernel, provider, source, base
):
    assert kernel.execute(AASK.replace("URL", provider.url)).ok
    assert kernel.execute(f"%%tape record\n{source}").ok
    assert kernel.execute("a = x = found = 'before'").ok
    was = digest(base)
    page.run(f"%%tape step\n{source}")
    page.stop_at()
    kernel.interrupt()
    ran = page.end()
    assert ran.status == "error"
    assert kernel.execute("print(a, x, found)").stdout == "before before before\n"
    assert page.states[-1]["state"] == "over" and digest(base) == was
    assert kernel.execute(f"%%tape replay\n{source}").ok


@pytest.mark.night
def test_an_interrupt_that_the_system_hands_to_another_thread_ends_the_cell_too(
    page, kernel, tmp_path
):
    os.mkfifo(tmp_path / "go")
    hears = "import signal, threading\ndef hears():\n    open('go').read()\n    signal.pthread_kill(threading.get_ident(), 2)"
    assert kernel.execute(f"{hears}\nthreading.Thread(target=hears, daemon=True).start()").ok
    page.run(f"%%tape step\n{THREE}")
    page.stop_at()
    (tmp_path / "go").write_text("now")
    assert page.end().status == "error"
    assert kernel.execute("print(6 * 7)").stdout == "42\n"


@pytest.mark.slow
def test_what_a_cell_has_shown_is_there_for_a_page_that_comes_late(page, kernel):
    page.run(f"%%tape step\n{THREE}", "cell-9")
    page.stop_at()
    page.moved("over")
    later = Stepper(kernel, "later")
    later.hello()
    shown = later.ask("step.outputs")
    assert (shown["cell"], shown["asked"]) == ("cell-9", page._asked)
    assert [
        (each["name"], each["text"][:5], each["text"].count("\n")) for each in shown["outputs"]
    ] == [("stdout", "a You", 1)]
    page.moved("back")
    assert later.ask("step.outputs")["outputs"] == []
    page.do("stop")
    page.end()
    with pytest.raises(Refused, match="no cell is being stepped"):
        later.ask("step.outputs")


def test_a_page_that_comes_back_has_the_stop(page, kernel):
    page.run(f"%%tape step\n{THREE}")
    page.stop_at()
    page.close()
    later = Stepper(kernel, "later")
    state = later.hello()
    assert titles(state) == [":1"] and state["state"] == "stopped"
    later._asked, later._done = page._asked, False
    later.do("continue")
    assert later.end().ok


def test_a_call_that_is_jumped_to_by_its_span_ahead_and_back(page, kernel):
    assert kernel.execute("del a, b").ok
    page.run(f"%%tape step\n{THREE}")
    state = page.stop_at()
    first = state["strands"][0]["call"]["span"]
    page.moved("over")
    third = page.moved("over")["strands"][0]["call"]["span"]
    assert titles(page.moved("to", span=first)) == [":1"]
    assert titles(page.moved("to", span=third)) == [":3"]
    changed = page.ask("step.compare", a=":1", b=":3")["variables"]
    assert {"a", "b"} <= {each["name"] for each in changed}
    page.do("stop")
    page.end()


def test_breakpoints(page):
    page.run("%%tape step --break nth=2 --break '\"three\" in text'\n" + THREE)
    assert titles(page.stop_at()) == [":2"]
    page.moved("continue")
    assert titles(page.states[-1]) == [":3"]
    page.do("continue")
    assert page.end().ok


@pytest.mark.slow
def test_a_recording_is_stepped_a_request_changed_and_one_refused(page, kernel, provider, base):
    asked = len(provider.requests)
    page.run('%%tape step --record\nprint(ask("new"))\nprint(ask("newer"))\nprint(ask("newest"))')
    state = page.stop_at()
    assert state["strands"][0]["call"]["would"] == "live" and len(provider.requests) == asked
    page.moved("over")
    assert len(provider.requests) == asked + 1
    page.moved("over")
    page.moved("back")  # what was recorded is played
    assert (
        titles(page.states[-1]) == [":2"]
        and page.states[-1]["strands"][0]["call"]["would"] == "play"
    )
    page.moved("over")
    assert len(provider.requests) == asked + 2
    page.do("refuse")
    ran = page.end()
    assert ran.ename == "BlockedConnection" and len(provider.requests) == asked + 2
    assert kernel.execute('%%tape replay\nprint(ask("new"))\nprint(ask("newer"))').ok


@pytest.mark.slow
def test_where_nobody_answers_the_cell_is_refused_in_one_line(kernel):
    ran = kernel.execute(f"%%tape step\n{THREE}")
    assert (
        ran.ename == "TapeUsageError"
        and "needs a viewer or an input prompt" in ran.evalue
        and "\n" not in ran.evalue
    )
    page = Stepper(kernel, answers=False)
    page.hello()
    ran = kernel.execute(f"%%tape step\n{THREE}")
    assert ran.ename == "TapeUsageError"


def test_without_a_page_it_asks_at_a_prompt(kernel):
    asked = kernel.send(f"%%tape step\n{THREE}", allow_stdin=True)
    assert kernel.answer("n") == ("step> ", False)
    kernel.answer("v")
    kernel.answer("b")
    kernel.answer("c")
    ran = kernel.collect(asked)
    assert ran.ok, ran.traceback
    first, again, second = ran.stdout.partition("tape step: the cell starts again")
    assert "stopped before call 2" in first and again and "stopped before call 1" in second


POST = """import httpx
def post(text):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}
    return httpx.post("URL/v1/messages", json=body).json()["content"][0]["text"]
def tool(city):
    return "sunny in " + city"""


def test_a_request_is_changed_before_money_is_spent_and_replays_as_the_program_asks(
    page, kernel, provider
):
    assert kernel.execute(POST.replace("URL", provider.url)).ok
    source = "print(post('a long question'))\nprint(tool('Rome'))"
    page.run(f"%%tape step two --record --tools tool\n{source}")
    call = page.stop_at()["strands"][0]["call"]
    assert "request" in call["can"] and call["reply"] is None
    page.do("request", text=call["request_edit"].replace("a long question", "short"))
    page.until(lambda: "short" in page.states[-1]["strands"][0]["call"]["request"]["text"])
    call = page.moved("over")["strands"][0]["call"]
    assert provider.requests[-1].json["messages"][0]["content"] == "short"
    assert (call["kind"], call["title"], call["would"]) == ("tool", 'tool(city="Rome")', "live")
    page.do("request", text='{"city": "Oslo"}')
    page.do("over")
    ran = page.end()
    assert ran.ok and "'short'" in ran.stdout and "sunny in Oslo" in ran.stdout
    again = kernel.execute(f"%%tape replay two --tools tool\n{source}")
    assert again.stdout == ran.stdout, again.traceback


@pytest.mark.night
def test_a_timeout_around_a_call_does_not_run_out_while_a_person_thinks(page, kernel, provider):
    assert kernel.execute(AASK.replace("URL", provider.url)).ok
    source = "import asyncio\nx = await asyncio.wait_for(aask('one'), 0.05)\nprint('in time')"
    assert kernel.execute(f"%%tape record\n{source.replace('0.05', '30')}").ok
    page.run(f"%%tape step\n{source}")
    strand = page.stop_at()["strands"][0]["strand"]
    for _ in range(20):
        page.ask("step.frames", strand=strand)
    page.do("continue")
    assert page.end().stdout == "in time\n"


@pytest.mark.night
def test_threads_that_are_sent_away_say_nothing(page, kernel):
    assert kernel.execute(f"%%tape record\n{SHOWN_THREADS}").ok
    page.run(f"%%tape step\n{SHOWN_THREADS}")
    page.until(lambda: page.states and len(page.states[-1]["strands"]) == 2)
    page.do("stop")
    ran = page.end()
    assert ran.status == "error" and "Exception in thread" not in ran.stream("stderr")


@pytest.mark.slow
def test_the_button_steps_a_cell_whatever_its_line_says(page, kernel):
    page.ask("step.arm", cell="c-1", breaks=["nth=2"], record=False, take="mine")
    assert kernel.execute("1 + 1", "c-0").ok
    page.run(f"%%tape replay\n{THREE}", "c-1")
    state = page.stop_at()
    assert (titles(state), state["cell"], state["breaks"]) == ([":2"], "c-1", ["nth=2"])
    page.moved("answer", text="other", accept=True)
    assert page.states[-1]["take"] == "mine"
    page.do("stop")
    page.end()
    assert kernel.execute(f"%%tape replay\n{THREE}", "c-1").ok


@pytest.mark.slow
def test_under_a_session_that_replays_the_cell_is_replayed_without_stopping(tmp_path, provider):
    notebook(tmp_path / "nb.ipynb", LOAD)
    where = {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}
    with Kernel(tmp_path, where) as kernel:
        for code in (LOAD, ASK.replace("URL", provider.url), f"%%tape record\n{THREE}"):
            assert kernel.execute(code).ok
    with Kernel(tmp_path, {**where, "TAPE_MODE": "replay"}) as kernel:
        for code in (LOAD, ASK.replace("URL", provider.url), f"%%tape step\n{THREE}"):
            ran = kernel.execute(code)
            assert ran.ok, ran.traceback
        assert "TAPE_MODE=replay wins" in ran.summary


RECORDED = (
    'a = ask("new")\nb = ask("newer " + a[:3])\nc = ask("newest " + b)\nprint(b, "|", c[:40])'
)


@pytest.mark.night
def test_an_answer_by_hand_while_recording_is_in_a_take_and_the_recording_holds_what_happened(
    page, kernel, provider, base
):
    asked = len(provider.requests)
    page.run(f"%%tape step --record\n{RECORDED}")
    page.stop_at()
    page.moved("over")
    assert {"answer", "fault"} <= set(page.states[-1]["strands"][0]["call"]["can"])
    page.moved("answer", text="by hand")
    page.do("over")
    ran = page.end()
    assert ran.ok, ran.traceback
    assert ran.stdout.startswith("by hand | ") and len(provider.requests) == asked + 2
    assert takes(base) == ["main.step.tape.yaml"] and "take step" in ran.summary
    assert '"by hand"' not in base.read_text() and "by hand" not in base.read_text()
    again = kernel.execute(f"%%tape replay --take step\n{RECORDED}")
    assert again.stdout == ran.stdout and len(provider.requests) == asked + 2, again.traceback
    missed = kernel.execute(f"%%tape replay\n{RECORDED}")
    assert missed.ename == "UnmatchedCall"  # the second call never went out


@pytest.mark.slow
def test_a_fault_while_recording_and_an_edit_of_what_was_just_recorded(
    page, kernel, provider, base
):
    source = 'try:\n    ask("new")\nexcept Exception as error:\n    print(type(error).__name__)\nd = ask("later")\nprint(d[:9])'
    page.run(f"%%tape step --record\n{source}")
    page.stop_at()
    asked = len(provider.requests)
    page.moved("fault", name="rate_limit", options={})
    page.do("over")
    ran = page.end()
    assert ran.ok and ran.stdout.startswith("HTTPError\n") and len(provider.requests) == asked + 1
    again = kernel.execute(f"%%tape replay --take step\n{source}")
    assert again.stdout == ran.stdout, again.traceback
    was = digest(base)
    page.states.clear()
    page.run(
        '%%tape step --record\nfirst = ask("once")\nsecond = ask("twice " + first[:4])\nprint(first, second[:6])'
    )
    page.stop_at()
    page.moved("over")
    page.moved("back")
    assert "edit" in page.states[-1]["strands"][0]["call"]["can"]
    page.moved("answer", text="edited")
    page.do("over")
    ran = page.end()
    assert ran.ok and ran.stdout.startswith("edited "), ran.traceback
    assert digest(base) != was and "edited" not in base.read_text().partition("once")[2]


SENDERS = """import aiohttp, gzip, json, requests, urllib.request
where = "URL/v1/messages"
def body(text):
    return {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}
def said(answer):
    return answer["content"][0]["text"]
def by_urllib(text):
    asked = urllib.request.Request(where, json.dumps(body(text)).encode(), {"Content-Type": "application/json"})
    return said(json.load(urllib.request.urlopen(asked)))
def by_requests(text):
    parts = iter([json.dumps(body(text)).encode()])  # no length: it would go out in parts
    return said(requests.post(where, data=parts, headers={"Content-Type": "application/json"}).json())
async def by_aiohttp(text):
    async with aiohttp.ClientSession() as session, session.post(where, json=body(text)) as answer:
        return said(await answer.json())
def counted(n):
    yield from range(n)
import functools
half = functools.partial(lambda city, unit: city + unit, unit="C")
def signed(text):
    key = {"Authorization": "AWS4-HMAC-SHA256 Credential=x"}
    return said(requests.post(where, json=body(text), headers=key).json())"""
SENT = """import tape_jupyter as tape
from tape_jupyter.cassette.reader import Book
from tape_jupyter.spans.rows import Spans
told = [by_urllib("a long one"), by_requests("a long two"), await by_aiohttp("a long three")]
told.append(list(tape.frozen(counted)(3)))
told.append(tape.frozen(half, name="half")("Rome"))
told.append(signed("signed"))
print(told)"""


@pytest.mark.night
def test_a_request_is_changed_whatever_library_sends_it_and_where_it_cannot_be_one_line_says_why(
    page, kernel, provider
):
    assert kernel.execute(SENDERS.replace("URL", provider.url)).ok
    page.run(f"%%tape step senders --record\n{SENT}")
    call = page.stop_at()["strands"][0]["call"]
    for number in ("one", "two", "three"):
        assert "request" in call["can"] and call["unchangeable"] == "", number
        page.do("request", text=call["request_edit"].replace("a long", "a short"))
        call = page.moved("over")["strands"][0]["call"]
        asked = provider.requests[-1]
        assert asked.json["messages"][0]["content"] == f"a short {number}"
        names = [name.lower() for name, _ in asked.headers.items()]
        assert names.count("content-length") == 1 and "transfer-encoding" not in names
    page.do("request", text='{"n": 2}')
    call = page.moved("over")["strands"][0]["call"]
    assert "request" not in call["can"] and "given beforehand" in call["unchangeable"]
    call = page.moved("over")["strands"][0]["call"]
    assert "request" not in call["can"] and "signed (AWS)" in call["unchangeable"]
    with pytest.raises(Refused, match="signed"):
        page.do("request", text="{}")
    page.do("over")
    ran = page.end()
    assert ran.ok, ran.traceback
    assert "[0, 1], 'RomeC'" in ran.stdout
    again = kernel.execute(f"%%tape replay senders\n{SENT}")
    assert again.stdout == ran.stdout, again.traceback


@pytest.mark.slow
def test_the_time_for_which_a_person_holds_a_cell_is_not_the_cells(page, kernel, base):
    """On the tape and in the list; held twice, by the clock of the one who holds it."""
    began = time.monotonic()
    page.run(f"%%tape step held --record\n{THREE}")
    held = 0.0
    for _ in range(2):
        page.stop_at()
        stopped = time.monotonic()
        read_for(1.0)
        held += time.monotonic() - stopped
        page.do("over")
    page.stop_at()
    page.do("continue")
    assert page.end().ok
    whole = time.monotonic() - began
    book = Book.open(base.with_name("held.tape.yaml"))
    (ended,) = book.ended.values()
    assert ended["held"] >= held and ended["seconds"] <= whole - held
    spans = Spans(book)
    spans.refresh()
    row = spans.row(spans.nodes[0])
    assert row.end - row.start <= whole - held
    assert spans.totals()["seconds"] <= whole - held


def read_for(seconds):
    """A person reads what is shown."""
    threading.Event().wait(seconds)
