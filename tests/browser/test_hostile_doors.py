"""Text that would run, were it ever markup, in every door of a notebook: sidebar, widget, saved outputs with and without
a kernel, static summaries, frames. One notebook and one cassette hold all payloads; forged messages come over its line.

Open: the sidebar and the saved outputs without a kernel did not get as far as their last look on a loaded machine.
"""

import json
import os
import re

import pytest
from playwright.sync_api import expect

from tape_jupyter.calls import Reply, Request
from tests.browser.conftest import fresh_page
from tests.browser.jupyter import Notebook, write
from tests.browser.payloads import HOSTILE, TAGS
from tests.notebook import ROOT
from tests.provider import Provider, Scripted
from tests.spanned import Recording, fetched, tool
from tests.tapes import ASK

pytestmark = pytest.mark.skipif(not os.environ.get("TAPE_NIGHTLY"), reason="takes minutes: make test-long")
AXE = ROOT / "js" / "node_modules" / "axe-core" / "axe.min.js"
PARTS = 6
SIZE = len(HOSTILE) // PARTS
TAPED = range(2, 2 + PARTS)
VIEW, FRAME, TEXTS = 2 + PARTS, 3 + PARTS, 4 + PARTS

SETUP = """%load_ext tape_jupyter
import json, urllib3, pandas, tape_jupyter
HOSTILE, pool = json.load(open("payloads.json")), urllib3.PoolManager()
def ask(text, number):
    body = {{"model": text, "system": text, "max_tokens": 9, "messages": [{{"role": "user", "content": text}}]}}
    headers = {{"content-type": "application/json", "x-hostile": line(text)}}
    pool.request("POST", f"{url}/{{number}}/v1/messages?{{line(text)}}", body=json.dumps(body), headers=headers, retries=False)
def line(text):
    return "".join(each for each in text if " " <= each <= "~")
def play(numbers):
    for number in numbers:
        text = HOSTILE[number]
        with tape_jupyter.span(text):
            ask(text, number)
            tape_jupyter.tool(name=text)(lambda given: given)(text)
"""
TEXTS_OF = """frame = tape_jupyter.open("hostile.tapes/main.tape.yaml").frame()
pandas.options.display.max_rows = pandas.options.display.max_colwidth = None
frame[["name", "cell", "error", "url"]].drop_duplicates()"""


class Evil(Provider):
    """A provider whose every word is a payload."""

    def answer(self, seen):
        text = HOSTILE[int(seen.path.split("/")[1])]
        return Scripted(200, [("content-type", "application/json"), ("x-hostile", line(text))], [message(text)])


def line(text):
    """As a header or a line of source can hold it."""
    return "".join(each for each in text if " " <= each <= "~")


def message(text):
    return json.dumps({
        "id": text, "type": "message", "role": "assistant", "model": text, "stop_reason": text, "stop_sequence": text,
        "content": [
            {"type": "thinking", "thinking": text, "signature": text}, {"type": "text", "text": text},
            {"type": "tool_use", "id": text, "name": text, "input": {text: text}},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }).encode()  # fmt: skip


def record(path):
    """A cassette of a run a payload: a reply, a tool that gives and one that raises, a page that was fetched."""
    tape = Recording(path)
    for number, text in enumerate(HOSTILE):
        tape.run(source=f"{number:04}", title=text, cell=text)
        body = {"model": text, "system": text, "messages": [{"role": "user", "content": text}]}
        headers = (("content-type", "application/json"), ("x-hostile", text))
        asked = Request("POST", f"https://api.anthropic.com/v1/messages?{text}", headers, json.dumps(body).encode())
        tape.add(asked, Reply(200, headers, (message(text),), (0.1,)), span=(text,))
        tape.add(*tool(text, text, **{"a": text}))
        tape.add(*tool(f"{text}!", error=ValueError(text)))
        tape.add(
            *fetched(f"https://h.test/{text}", text.encode(), headers=(("content-type", "text/html"), ("x", text)))
        )
        tape.end()


class Watch:
    """What a page does that no recorded text may have it do."""

    def __init__(self, page, home):
        self.page, self.home = page, home
        self.asked, self.boxes, self.said = [], [], []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda line: self.said.append(line) if line.type == "error" else None)
        page.on("dialog", lambda dialog: (self.boxes.append(dialog.message), dialog.dismiss()))

    def nothing_ran(self):
        assert [frame.evaluate("globalThis.pwned") for frame in self.page.frames] == [None] * len(self.page.frames)
        assert self.boxes == []
        assert [url for url in self.asked if not url.startswith((self.home, "data:", "blob:", "about:"))] == []
        assert [f"{each.text} {each.location}" for each in self.said if "tape" in f"{each.text} {each.location}"] == []


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
            texts = HOSTILE[part * SIZE : (part + 1) * SIZE]
            quoted = "\n".join(f"# {line(text)}" for text in texts)
            cells.append(f"%%tape record\n{quoted}\nplay(range({part * SIZE}, {(part + 1) * SIZE}))")
        cells += ["%tape view", "%tape frame", TEXTS_OF]
        notebook = Notebook(page, lab, write(folder / "hostile.ipynb", *cells)).open()
        notebook.watch = watch
        for number in range(1, TEXTS + 1):
            notebook.run(number)
        yield notebook


def scroll(view):
    """Draw every row of a list that is longer than its place; how many there are."""
    tree = view.get_by_role("tree")
    expect(tree.get_by_role("treeitem").first).to_be_visible()
    return tree.evaluate(
        """async (tree) => {
          let place = tree;
          while (place && place.scrollHeight <= place.clientHeight) place = place.parentElement;
          const seen = new Set(), look = () => tree.querySelectorAll('[role=treeitem]').forEach(row => seen.add(Number(row.dataset.row)));
          const painted = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
          look();
          for (let top = 0; place && top < place.scrollHeight; top += place.clientHeight) {
            place.scrollTop = top;
            for (let frames = 0; frames < 300 && Math.max(...seen) < Math.floor(top / 24); frames++) { await painted(); look(); }
            await painted();
            look();
          }
          if (place) place.scrollTop = 0;
          await painted();
          return seen.size;
        }"""
    )


def walk(view, count, *, opened=False):
    """Open span after span, a tab each in turn. `opened`: an error among them has opened by itself."""
    keys, panel = view.page.keyboard, view.get_by_role("tabpanel")
    if opened:
        panel.press("Escape")
    view.get_by_role("treeitem").first.click()
    for number in range(count):
        expect(panel).not_to_be_empty()
        tabs, more = view.get_by_role("tab"), view.get_by_label("More about it")
        tabs.nth(number % tabs.count()).click()
        if more.count():  # where the pane is too narrow for all tabs
            options = more.evaluate("select => [...select.options].map(each => each.value).filter(Boolean)")
            more.select_option(options[number % len(options)])
        expect(panel).not_to_be_empty()
        panel.press("Escape")
        expect(panel).to_have_count(0)
        keys.press("ArrowDown")
        keys.press("Enter")


def sidebar_of(notebook):
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('tape-jupyter:show')")
    sidebar = notebook.page.locator(".tape-sidebar")
    expect(sidebar).to_be_visible()
    return sidebar


def test_there_are_enough_payloads():
    assert len(set(HOSTILE)) >= 200 and len(HOSTILE) % PARTS == 0


def test_nothing_runs_in_the_sidebar(hostile):
    sidebar = sidebar_of(hostile)
    assert scroll(sidebar) > 5 * len(HOSTILE)
    walk(sidebar, 5 * len(TAGS), opened=True)
    hostile.watch.nothing_ran()


def test_nothing_runs_in_the_widget(hostile):
    view = hostile.cell(VIEW).locator(".tape-view")
    view.scroll_into_view_if_needed()
    assert scroll(view) > 5 * len(HOSTILE)
    walk(view, len(TAGS), opened=True)
    hostile.watch.nothing_ran()


def outputs_show(notebook, walked):
    """All rows of each saved output, and some spans in full."""
    for number in TAPED:
        output = notebook.cell(number).locator(".tape-output")
        output.scroll_into_view_if_needed()
        assert scroll(output) > 2 * SIZE
    walk(output, walked)


def test_nothing_runs_in_saved_outputs_beside_their_kernel(hostile):
    outputs_show(hostile, 24)
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


def test_nothing_runs_in_saved_outputs_without_a_kernel(hostile, page, lab):
    saved = hostile.save()
    saved["metadata"] = {"kernelspec": {"name": "gone", "display_name": "gone", "language": "gone"}}
    copy = hostile.path.with_name("copy.ipynb")  # of no trust: it was not saved by this server
    copy.write_text(json.dumps(saved))
    watch = Watch(page, lab.url)
    copied = Notebook(page, lab, copy).open(kernel=False)
    page.locator(".jp-Dialog .jp-mod-reject").click()  # "No Kernel"
    outputs_show(copied, 24)
    watch.nothing_ran()


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
            output.evaluate("node => node.querySelectorAll('details').forEach(each => each.open = true)")
            shown += texts_of(output)
        assert shown >= 3 * 200
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


# ---------------------------------------------------------------- what axe-core says of the view in its places


STORY = (
    "%load_ext tape_jupyter\n" + ASK.replace("URL", "{url}"),
    "%%tape record\nmood = ask('Classify: no access to my billing information')\nprint('mood:', mood)",
    "print('TONE', mood.upper())",
    "%tape view",
)


@pytest.fixture(scope="module")
def story(lab, chromium):
    """A notebook of one recorded reply, a cell that hangs on it, and a widget."""
    with Provider() as provider, fresh_page(chromium) as page:
        cells = [each.replace("{url}", provider.url) for each in STORY]
        notebook = Notebook(page, lab, write(lab.root / "axe" / "churn.ipynb", *cells)).open()
        page.add_script_tag(path=AXE)
        for number in range(1, len(STORY) + 1):
            notebook.run(number)
        yield notebook


SERIOUS = """async () => {
  const place = document.querySelector('[data-axe]');
  const { violations } = await axe.run(place);
  return violations.filter(each => ['serious', 'critical'].includes(each.impact)).map(each => [each.id, each.nodes[0].html, each.nodes[0].failureSummary]);
}"""
THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"


def nothing_serious(view, what):
    """In the light theme and in the dark one."""
    page = view.page
    view.evaluate(
        "node => { document.querySelector('[data-axe]')?.removeAttribute('data-axe'); node.dataset.axe = ''; }"
    )
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(THEME, theme)
        page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        assert page.evaluate(SERIOUS) == [], (what, theme)


@pytest.mark.parametrize("place", ["sidebar", "widget"])
def test_axe_finds_nothing_serious_from_the_list_to_the_comparison(story, place):
    view = sidebar_of(story) if place == "sidebar" else story.cell(len(STORY)).locator(".jp-OutputArea-output").first
    view.scroll_into_view_if_needed()
    call = view.get_by_role("treeitem").nth(1)
    expect(call).to_be_visible()
    nothing_serious(view, "the list")
    call.click()
    expect(view.get_by_role("tabpanel")).not_to_be_empty()
    nothing_serious(view, "a call")
    view.get_by_role("button", name="Edit reply").click()
    view.get_by_label("text", exact=True).fill(f"furious in the {place}")
    expect(view.locator("ins").first).to_be_visible()
    nothing_serious(view, "the edit pane")
    view.get_by_label("as take").fill(f"angry-{place}")
    view.get_by_role("button", name="Save").click()
    expect(view.get_by_role("heading", name=re.compile(r"Re-run 2 of \d cells"))).to_be_visible()
    nothing_serious(view, "the plan")
    view.get_by_role("button", name="Re-run").click()
    expect(view.get_by_role("heading", name=re.compile("2 cells ran"))).to_be_visible()
    nothing_serious(view, "the comparison")


# ---------------------------------------------------------------- messages that no view of ours sends (HOSTILE.md 76)


COMM = """const kernel = panel.sessionContext.session.kernel;
const comm = id ? kernel._comms.get(id) : kernel.createComm(target);
if (!id) comm.open(data);
for (const message of messages) comm.send(message);"""
LAB = "from tape_jupyter.notebook import lab, widget\nline, = lab._labs\nview = widget._open[-1]\n"


def forged(span):
    """Asks with spans that there are not, fields of wrong types, and of nothing that is answered."""
    edit = {"form": "message", "message": "{}"}
    return [
        {"about": "eval", "code": "globals()['pwned'] = 1"}, {"about": "__class__"}, {"about": ["detail"]}, {"about": None},
        {"about": "detail", "span": 7}, {"about": "detail", "span": {"__proto__": 1}}, {"about": "raw", "span": span, "side": "both"},
        {"about": "spans", "from": "0", "limit": -1}, {"about": "mode", "mode": "live; rm -rf"},
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
    hostile.javascript(COMM, target="tape-jupyter", id=None, data={"client": "forger"}, messages=[*odd, *viewed])
    told = f"{LAB}view_ = line.clients['forger'].views['v']\nprint(line.dropped - was, view_.dropped)"
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
