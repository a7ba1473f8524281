"""Text that would run, were it ever markup, in every door of a notebook: sidebar, widget, saved outputs with and without
a kernel, static summaries, frames. One notebook and one cassette hold all payloads; forged messages come over its line.

Each payload is a row of its own; dense calls hold many at once, in every field, and are opened at every tab.
"""

import json

import pytest
from playwright.sync_api import expect

from tape_jupyter.core.call import Reply, Request
from tests.browser.conftest import fresh_page
from tests.browser.jupyter import PANEL, Notebook, write
from tests.browser.payloads import HOSTILE, VISIT, Watch
from tests.browser.viewing import output_of, sidebar_of
from tests.harness.provider import Provider, Scripted
from tests.harness.spanned import Recording, fetched, tool

PARTS = 3
SIZE = len(HOSTILE) // PARTS
TAPED = range(2, 2 + PARTS)
VIEW, FRAME, TEXTS = 2 + PARTS, 3 + PARTS, 4 + PARTS

SETUP = """%load_ext tape_jupyter
import json, urllib3, pandas, tape_jupyter
HOSTILE, pool = json.load(open("payloads.json")), urllib3.PoolManager()
def line(text):
    return "".join(each for each in text if " " <= each <= "~")
def fail(given):
    raise ValueError(given)
def play(part, texts):
    body = {{"model": texts[0], "max_tokens": 9, "system": "\\n".join(texts), "messages": [{{"role": "user", "content": text}} for text in texts]}}
    headers = {{"content-type": "application/json", **{{f"x-{{number}}": line(text) for number, text in enumerate(texts)}}}}
    url = f"{url}/{{part}}/v1/messages?" + "&".join(map(line, texts))
    pool.request("POST", url, body=json.dumps(body), headers=headers, retries=False)
    try:
        tape_jupyter.tool(name=texts[0])(fail)("\\n".join(texts))
    except ValueError:
        pass
    for text in texts:
        with tape_jupyter.span(text):
            tape_jupyter.tool(name=text)(lambda given: given)(text)
"""
TEXTS_OF = """frame = tape_jupyter.open("hostile.tapes/main.tape.yaml").frame()
pandas.options.display.max_rows = pandas.options.display.max_colwidth = None
frame[frame["kind"].isin(["model", "http"]) | frame["error"].notna()][["name", "cell", "error", "url"]]"""


DONE = f"([path, count]) => {PANEL}.content.model.cells.get(count - 1).executionCount !== null"


class Evil(Provider):
    """A provider whose every word is a payload."""

    def answer(self, seen):
        texts = part_of(int(seen.path.split("/")[1]))
        headers = [
            ("content-type", "application/json"),
            *((f"x-{at}", line(text)) for at, text in enumerate(texts)),
        ]
        return Scripted(200, headers, [message(*texts)])


def part_of(number):
    return HOSTILE[number * SIZE : (number + 1) * SIZE]


def line(text):
    """As a header or a line of source can hold it."""
    return "".join(each for each in text if " " <= each <= "~")


def message(*texts):
    blocks = [
        block
        for text in texts
        for block in (
            {"type": "thinking", "thinking": text, "signature": text}, {"type": "text", "text": text},
            {"type": "tool_use", "id": text, "name": text, "input": {text: text}},
            {"type": "image", "source": {"type": "base64", "media_type": text, "data": text}}, {"type": text, text: text},
        )
    ]  # fmt: skip
    told = {
        "id": texts[0],
        "type": "message",
        "role": "assistant",
        "model": texts[0],
        "stop_reason": texts[0],
    }
    return json.dumps(
        {**told, "content": blocks, "usage": {"input_tokens": 3, "output_tokens": 2}}
    ).encode()


def question(*texts):
    said = [{"role": "user", "content": text} for text in texts]
    given = [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": text, "content": text} for text in texts
            ],
        }
    ]
    body = {
        "model": texts[0],
        "system": texts[0],
        "messages": said + given,
        "tools": [{"name": text} for text in texts],
    }
    address = f"https://api.anthropic.com/v1/messages?{'&'.join(texts)}"
    return Request("POST", address, headers_of(texts), json.dumps(body).encode())


def headers_of(texts):
    return (
        ("content-type", "application/json"),
        *((text if text.isascii() else "x", text) for text in texts),
    )


def record(path):
    """A cassette: dense runs first, then a run a payload: a reply, and a page that was fetched."""
    tape = Recording(path)
    for at in range(PARTS):
        texts = part_of(at)
        tape.run(
            source=f"d{at:03}",
            title=texts[0],
            cell=texts[0],
            **{f"n{number}": text for number, text in enumerate(texts)},
        )
        tape.add(
            question(*texts),
            Reply(200, headers_of(texts), (message(*texts),), (0.1,)),
            span=(texts[0],),
        )
        tape.add(*tool(texts[0], texts, **dict.fromkeys(texts, texts[0])))
        tape.add(*tool(f"{texts[0]}!", error=ValueError("\n".join(texts))))
        tape.add(
            *fetched(
                "https://h.test/",
                "\n".join(texts).encode(),
                headers=(("content-type", "text/html"),),
            )
        )
        tape.end()
    for number, text in enumerate(HOSTILE):
        tape.run(source=f"{number:04}", title=text, cell=text)
        tape.add(
            question(text), Reply(200, headers_of([text]), (message(text),), (0.1,)), span=(text,)
        )
        tape.add(*tool(text, text, **{"a": text}))
        tape.add(
            *fetched(
                f"https://h.test/{text}",
                text.encode(),
                headers=(("content-type", "text/html"), ("x", text)),
            )
        )
        tape.end()


@pytest.fixture(scope="module")
def hostile(lab, chromium):
    """The notebook, run: its cells asked for every payload, and its cassette held every payload before."""
    folder = lab.root / "hostile"
    record(folder / "hostile.tapes" / "main.tape.yaml")
    (folder / "payloads.json").write_text(json.dumps(HOSTILE))
    with Evil() as provider, fresh_page(chromium) as page:
        watch = Watch(page, lab.url)
        cells = [SETUP.format(url=provider.url)]
        for part in range(PARTS):
            quoted = "\n".join(f"# {line(text)}" for text in part_of(part))
            cells.append(
                f"%%tape record\n{quoted}\nplay({part}, HOSTILE[{part * SIZE}:{(part + 1) * SIZE}])"
            )
        cells += ["%tape view", "%tape frame", TEXTS_OF]
        notebook = Notebook(page, lab, write(folder / "hostile.ipynb", *cells)).open()
        notebook.watch = watch
        page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        page.wait_for_function(DONE, arg=[notebook.name, TEXTS])
        notebook.idle()
        yield notebook


def visit(view, opened):
    """Every row of a view is drawn, and its first `opened` ones are opened at every tab; what was seen."""
    tree = view.get_by_role("tree")
    expect(tree.get_by_role("treeitem").first).to_be_visible()
    seen = tree.evaluate(VISIT, opened)
    assert seen["rows"] == seen["total"] and len(seen["spans"]) == opened, seen
    told = "\n".join(seen["told"])
    return seen, sum(text in told or line(text) in told for text in HOSTILE)


DENSE = 4
"""Rows of a dense run: its cell, a span, and the calls."""


def test_there_are_enough_payloads():
    assert len(set(HOSTILE)) >= 200 and len(HOSTILE) % PARTS == 0


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sidebar", "widget"])
def test_nothing_runs_in(hostile, place):
    view = sidebar_of(hostile) if place == "sidebar" else hostile.cell(VIEW).locator(".tape-view")
    view.scroll_into_view_if_needed()
    seen, shown = visit(view, (DENSE + 2) * PARTS)
    assert seen["rows"] > 5 * len(HOSTILE) and shown == len(HOSTILE)
    assert {"Conversation", "Request", "Reply", "Raw", "Headers", "Timing", "Kit", "Diff"} <= set(
        seen["tabs"]
    )
    hostile.watch.nothing_ran()


def outputs_show(notebook):
    """All rows of each saved output, and its dense calls in full; how many payloads were seen, and the tabs."""
    found, tabs = 0, set()
    for number in TAPED:
        seen, shown = visit(output_of(notebook, number), DENSE)
        assert seen["rows"] > 2 * SIZE
        found += shown
        tabs |= set(seen["tabs"])
    return found, tabs


@pytest.mark.slow
def test_nothing_runs_in_saved_outputs_beside_their_kernel(hostile):
    shown, tabs = outputs_show(hostile)
    assert shown >= len(HOSTILE) and {"Source", "Conversation"} <= tabs
    hostile.watch.nothing_ran()


def texts_of(place):
    """Payloads that stand there as text."""
    told = place.evaluate("node => node.textContent")
    return sum(line(text) in told or text in told for text in HOSTILE)


def test_nothing_runs_in_a_frame(hostile):
    for number, shown in ((FRAME, 2), (TEXTS, 200)):
        table = hostile.cell(number).locator("table").first
        table.scroll_into_view_if_needed()
        assert texts_of(table) >= shown
    hostile.watch.nothing_ran()


@pytest.mark.slow
def test_nothing_runs_in_saved_outputs_without_a_kernel(hostile, page, lab):
    saved = hostile.save()
    saved["metadata"] = {"kernelspec": {"name": "gone", "display_name": "gone", "language": "gone"}}
    copy = hostile.path.with_name("copy.ipynb")  # of no trust: it was not saved by this server
    copy.write_text(json.dumps(saved))
    watch = Watch(page, lab.url)
    copied = Notebook(page, lab, copy).open(kernel=False)
    page.locator(".jp-Dialog .jp-mod-reject").click()  # "No Kernel"
    assert outputs_show(copied)[0] >= len(HOSTILE)
    watch.nothing_ran()


@pytest.mark.slow
def test_nothing_runs_in_the_static_summaries_of_a_trusted_notebook(hostile, page, lab):
    hostile.save()
    with lab.without_extension():
        watch = Watch(page, lab.url)
        plain = Notebook(page, lab, hostile.path).open(kernel=False)
        assert not page.locator(".tape-output").count()
        shown = 0
        for number in (*TAPED, FRAME, TEXTS):
            output = plain.cell(number).locator(".jp-RenderedHTMLCommon").first
            output.scroll_into_view_if_needed()
            expect(output).to_be_visible()
            output.evaluate(
                "node => node.querySelectorAll('details').forEach(each => each.open = true)"
            )
            shown += texts_of(output)
        assert shown >= 200  # the table of texts: a summary is one line, without its calls
        watch.nothing_ran()


def test_nothing_runs_in_an_exported_page(hostile, page, tmp_path):
    from nbconvert import HTMLExporter

    hostile.save()
    addresses = dict.fromkeys(
        ("mathjax_url", "require_js_url", "jquery_url", "mermaid_js_url"), "data:text/javascript,"
    )
    made, _ = HTMLExporter(**addresses).from_filename(str(hostile.path))
    exported = tmp_path / "hostile.html"
    exported.write_text(made)
    watch = Watch(page, exported.as_uri())
    page.goto(exported.as_uri())
    expect(page.locator(".tape-summary")).to_have_count(PARTS)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert texts_of(page.locator("body")) >= 200
    watch.nothing_ran()


def test_what_does_run_is_noticed(hostile):
    """The marks that all of these look for, set on purpose: in the page, and within a view."""
    places = [hostile.page.locator("body"), hostile.cell(VIEW).locator(".tape-view").first]
    for place in places:
        place.evaluate(
            "(node, html) => { const made = document.createElement('p'); node.append(made); made.innerHTML = html; }",
            HOSTILE[1],
        )
        hostile.page.wait_for_function("globalThis.pwned === 1")
        with pytest.raises(AssertionError, match="onerror"):
            hostile.watch.nothing_ran()
        hostile.watch.forget()
    hostile.watch.nothing_ran()


# ---------------------------------------------------------------- messages that no view of ours sends (HOSTILE.md 76)


COMM = """const kernel = panel.sessionContext.session.kernel;
const comm = id ? kernel._comms.get(id) : kernel.createComm(target);
if (!id) comm.open(data);
for (const message of messages) comm.send(message);"""
LAB = "from tape_jupyter.jupyter import labextension as lab, widget\nline, = lab._labs\nview = widget._open[-1]\n"


def forged(span):
    """Asks with spans that there are not, fields of wrong types, and of nothing that is answered."""
    edit = {"form": "message", "message": "{}"}
    return [
        {"about": "eval", "code": "globals()['pwned'] = 1"}, {"about": "__class__"}, {"about": ["detail"]}, {"about": None},
        {"about": "detail", "span": 7}, {"about": "detail", "span": {"__proto__": 1}}, {"about": "raw", "span": span, "side": "both"},
        {"about": "spans", "from": "0", "limit": -1}, {"about": "find", "words": ["x"], "from": 0}, {"about": "mode", "mode": "live; rm -rf"},
        {"about": "edit", "span": "r-none/00000000"}, {"about": "check", "span": span, "edit": {"form": "eval"}},
        {"about": "override", "span": "../../etc/passwd", "edit": edit, "take": "t", "accept": True},
        {"about": "override", "span": span, "edit": [edit], "take": "t", "accept": True},
        {"about": "override", "span": span, "edit": edit, "take": {"$": 1}, "accept": True},
        {"about": "undo", "take": 3}, {"about": "plan", "take": 3}, {"about": "rerun", "take": "t", "entries": "all"},
        {"about": "resolve", "divergence": 1, "choice": "exec"},
    ]  # fmt: skip


def test_forged_messages_are_dropped_and_counted_and_the_kernel_goes_on(hostile):
    before = sorted(hostile.path.parent.rglob("*.yaml"))
    span = hostile.python(
        "book = tape_jupyter.open('hostile.tapes/main.tape.yaml')\nprint(book.calls[0].run + '/' + book.calls[0].id)"
    ).strip()
    asks = [{"type": "ask", "id": str(number), **each} for number, each in enumerate(forged(span))]
    odd = [{"type": "exec"}, {"type": ["view"]}, {"type": "view", "view": 1, "message": {}}, {"type": "view", "view": "v", "message": "x"}, {"type": "ran", "id": "none", "state": "ok", "text": ""}, {"type": "ran", "id": "none", "state": "eval"}, {"type": "path", "path": 1}]  # fmt: skip
    hostile.python(f"{LAB}was = line.dropped")
    viewed = [{"type": "view", "view": "v", "message": each} for each in asks]
    hostile.javascript(
        COMM, target="tape-jupyter", id=None, data={"client": "forger"}, messages=[*odd, *viewed]
    )
    told = (
        f"{LAB}view_ = line.clients['forger'].views['v']\nprint(line.dropped - was, view_.dropped)"
    )
    hostile.until(told, rf"^{len(odd)} {len(asks)}$")

    hostile.python(f"{LAB}seen = view.viewer.dropped")
    name = hostile.python(f"{LAB}print(view.comm.comm_id)").strip()
    sent = [{"method": "custom", "content": each} for each in asks]
    hostile.javascript(COMM, target="jupyter.widget", id=name, data=None, messages=sent)
    hostile.until(f"{LAB}print(view.viewer.dropped - seen)", rf"^{len(asks)}$")

    hostile.javascript(COMM, target="tape-jupyter", id=None, data={"client": 7}, messages=[])
    hostile.until(f"{LAB}print(line.dropped - was)", rf"^{len(odd) + 1}$")
    assert hostile.python("print('pwned' in globals(), 1 + 1)").strip() == "False 2"
    assert sorted(hostile.path.parent.rglob("*.yaml")) == before
    expect(sidebar_of(hostile).get_by_role("treeitem").first).to_be_visible()
