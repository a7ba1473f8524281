"""The labextension in JupyterLab and in Notebook 7: spans in the sidebar and in outputs, modes, cells that run in place."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fresh_page
from tests.browser.jupyter import Notebook, write
from tests.browser.viewing import CUT, edit, output_of, record, shown, sidebar_of
from tests.harness.provider import Provider, Scripted

pytestmark = pytest.mark.spread(2)  # by day in one front end
TOLD = "told = get_ipython().magics_manager.registry['TapeMagics'].cells.ladder.hint"
MIME = "application/vnd.tape.spans+json"
SETUP = """import plain_claude
client = plain_claude.Claude(base_url={url!r}, api_key='sk-test')
def ask(text):
    with client.messages.stream(model="claude-sonnet-5", max_tokens=50, messages=[{{"role": "user", "content": text}}]) as s:
        return "".join(s.text_stream)
"""


# The command that saves is over when its checkpoint is made; until then it does nothing when it is given again.
WHEN_SAVED = """() => {
  const {commands} = window.jupyterapp, over = (_, {id, result}) => {
    if (id === 'docmanager:save') { commands.commandExecuted.disconnect(over); result.then(() => { window.saved = true; }); }
  };
  window.saved = false;
  commands.commandExecuted.connect(over);
}"""


@pytest.fixture(scope="module", params=["lab", "notebook7"])
def server(request):
    return request.getfixturevalue(request.param)


def write_churn(server, folder, provider, *cells):
    """A notebook whose first cell loads the tape and makes `ask`, and then has these."""
    first = f"%load_ext tape_jupyter\n{SETUP.format(url=provider.url)}"
    return write(server.root / folder / "churn.ipynb", first, *cells)


@pytest.fixture(scope="module")
def recorded(server, chromium):
    """An open notebook whose cells 2 and 3 were recorded, a call each; cell 4 asked nothing.

    One for all tests of an application, because opening a notebook takes longer than any of them.
    """
    with Provider(vary=True) as provider, fresh_page(chromium) as page:
        path = write_churn(
            server,
            "extension",
            provider,
            "%%tape record\nmood = ask('Classify: no access to my billing information')\nprint(mood)",
            "%%tape record\nanswer = ask('Answer somebody ' + mood)\nprint(answer)",
            "runs = globals().get('runs', 0) + 1\nprint('run', runs)",
        )
        notebook = Notebook(page, server, path).open()
        for number in (1, 2, 3, 4):
            notebook.run(number)
        yield notebook


@pytest.fixture
def sidebar(recorded):
    recorded.page.evaluate("() => window.jupyterapp.commands.execute('tape-jupyter:show')")
    sidebar = recorded.page.locator(".tape-sidebar")
    expect(sidebar).to_be_visible()
    return sidebar


def rows(place):
    return place.locator(".row .name b")


def test_the_sidebar_shows_the_spans_and_the_kernel_knows_its_notebook(recorded, sidebar):
    expect(rows(sidebar)).to_have_count(4)
    assert recorded.python(f"{TOLD}\nprint(told)").strip() == str(recorded.path)


def test_a_renamed_notebook_is_told_to_the_kernel(recorded):
    for name in ("leavers.ipynb", "churn.ipynb"):
        recorded.rename(name)
        assert recorded.until(f"{TOLD}\nprint(told and told.name)", name)


def test_a_clicked_span_lights_up_its_cell_and_a_clicked_cell_filters_its_spans(recorded, sidebar):
    rows(sidebar).nth(1).click()
    expect(recorded.cell(2)).to_have_class(re.compile("tape-lit"))
    recorded.page.keyboard.press("Escape")
    recorded.select(3)
    expect(rows(sidebar)).to_have_count(2)
    expect(rows(sidebar).first).to_contain_text("[3]")
    sidebar.get_by_role("button", name="No longer only").click()
    expect(rows(sidebar)).to_have_count(4)


# Of the popup that is open: whether it lies within the sidebar, and is in front at its corners.
IN_FRONT = """sidebar => {
  const root = [...sidebar.querySelectorAll('*')].map(each => each.shadowRoot).find(each => each?.querySelector('.tape-popup'));
  const popup = root.querySelector('.tape-popup'), box = popup.getBoundingClientRect(), around = sidebar.getBoundingClientRect();
  const at = (x, y) => popup.contains(root.elementFromPoint(x, y));
  const corners = [box.left + 4, box.right - 4].flatMap(x => [box.top + 4, box.bottom - 4].map(y => at(x, y)));
  return [box.left >= around.left, box.right <= around.right, box.bottom <= around.bottom, ...corners].every(Boolean);
}"""
# How much there is to see of the notes beside what happened, of those that are in sight.
NOTES = """sidebar => [...sidebar.querySelectorAll('*')].flatMap(each => [...each.shadowRoot?.querySelectorAll('.row .name i') ?? []])
  .filter(each => each.textContent && each.offsetTop - each.parentNode.offsetTop < 20).map(each => each.getBoundingClientRect().width)"""


def test_in_a_narrow_sidebar_what_opens_is_whole_and_in_front_and_no_word_is_a_letter(
    recorded, sidebar
):
    assert sidebar.bounding_box()["width"] <= 320
    expect(rows(sidebar)).to_have_count(4)
    assert all(width > 40 for width in sidebar.evaluate(NOTES))
    rows(sidebar).nth(1).click()
    more = sidebar.locator(".tabs select")
    expect(more).to_be_visible()
    for name in more.locator("option").all_inner_texts()[1:]:
        more.select_option(label=name)
        assert more.evaluate(CUT) <= 1, name
    opens = sidebar.locator(".bar button[aria-expanded]")
    assert opens.count() >= 2
    for number in range(opens.count()):
        opens.nth(number).click()
        expect(sidebar.locator(".tape-popup")).not_to_be_empty()
        assert sidebar.evaluate(IN_FRONT), opens.nth(number).inner_text()
        recorded.page.keyboard.press("Escape")
        expect(sidebar.locator(".tape-popup")).to_have_count(0)
    sidebar.get_by_role("button", name="Back to the list").click()


def test_a_message_of_jupyter_stands_beside_the_sidebar_not_over_its_buttons(recorded, sidebar):
    page = recorded.page
    said = {"message": "Tape: said", "type": "info", "options": {"autoClose": 15_000}}
    page.evaluate("said => window.jupyterapp.commands.execute('apputils:notify', said)", said)
    toast = page.locator(".Toastify__toast", has_text="Tape: said")
    expect(toast).to_be_visible()
    page.wait_for_function(
        "() => document.getAnimations().every(it => it.playState !== 'running' || it.effect.target?.className.includes('progress'))"
    )
    box, around = toast.bounding_box(), sidebar.bounding_box()
    assert 0 <= box["x"] and box["x"] + box["width"] <= around["x"]
    toast.get_by_role("button").first.click()


@pytest.mark.slow
def test_a_long_name_of_a_take_leaves_the_search_its_width(lab, page, provider):
    notebook = record(lab, page, provider.url, "long take")
    view = sidebar_of(notebook)
    edit(view).fill("negative")
    view.get_by_label("as take").fill("what-if-the-customer-is-angry")
    view.get_by_role("button", name="Save").click()
    shown(view.get_by_role("heading", name=re.compile("^Re-run ")))
    search = view.get_by_role("searchbox")
    search.fill("Classify the sentim")
    assert search.evaluate("it => it.scrollWidth <= it.clientWidth")
    bar = view.locator(".bar")
    assert bar.bounding_box()["height"] < 4 * search.bounding_box()["height"], "three lines"
    inside = "it => it.scrollWidth <= it.clientWidth"
    assert bar.evaluate(inside) and view.locator(".bar > .menu").last.evaluate(inside)


def test_at_any_width_the_search_has_room_for_a_name_and_errors_stands_beside_it(recorded, sidebar):
    search, errors = sidebar.get_by_role("searchbox"), sidebar.get_by_role("button", name="errors")
    for width in range(250, 560, 10):
        sidebar.locator(".tape-door").evaluate("(it, to) => { it.style.width = `${to}px`; }", width)
        sidebar.locator(".app.narrow").wait_for()
        box, beside = search.bounding_box(), errors.bounding_box()
        assert box["width"] > 100 and beside["y"] == box["y"], width
        assert beside["x"] + beside["width"] <= sidebar.bounding_box()["x"] + width, width


def test_the_switch_in_the_toolbar_sets_the_mode(recorded, server):
    switch, status = (
        recorded.page.locator(".tape-mode select"),
        recorded.page.locator(".tape-status"),
    )
    for mode in ("replay", "record", "off"):
        switch.select_option(mode)
        assert recorded.until("%tape status", re.compile(rf"mode: +{mode}"))
        expect(switch).to_have_value(mode)
        if server.app == "lab":  # Notebook 7 has no status bar
            expect(status).to_contain_text(f"{mode} · main · 2 calls")


def test_the_switch_in_the_toolbar_has_three_modes_and_the_others_one_group_deeper(recorded):
    switch = recorded.page.locator(".tape-mode select")
    first = switch.locator("> option").evaluate_all("them => them.map(each => each.value)")
    more = switch.locator("optgroup > option").evaluate_all("them => them.map(each => each.value)")
    assert first == ["off", "record", "replay", "step"]
    assert more == ["live", "once", "new_episodes"]


def test_the_bars_say_what_a_running_cell_is_taped_as_before_its_first_call(server, page):
    """Its own line tapes it, and it works for a while before it asks anybody."""
    path = write(
        server.root / "waits" / "waits.ipynb",
        "%load_ext tape_jupyter",
        "%%tape record\nimport os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.05)",
    )
    notebook = Notebook(page, server, path).open()
    switch = page.locator(".tape-mode select")
    notebook.run(1)
    menu = sidebar_of(notebook).get_by_role("combobox", name="Mode")
    expect(switch).to_have_value("off")
    expect(menu).to_have_value("off")
    notebook.run(2, wait=False)
    for shown_as, said in (("record", "● record · main · 0 calls so far"), ("off", "off · main")):
        expect(switch).to_have_value(shown_as)
        expect(menu).to_have_value(shown_as)
        expect(switch).to_have_attribute("title", re.compile(said))
        if server.app == "lab":  # Notebook 7 has no status bar
            expect(page.locator(".tape-status")).to_contain_text(said)
        path.with_name("go").touch()


def test_cells_run_in_place_one_by_one_while_another_tab_is_in_front(recorded, server):
    if server.app == "lab":
        recorded.page.evaluate("() => window.jupyterapp.commands.execute('launcher:create')")
        expect(recorded.page.locator(".jp-Launcher")).to_be_visible()
    recorded.python(
        "from tape_jupyter.jupyter import labextension as lab\nfared = []\n"
        "def then(cell):\n    return lambda ran: (fared.append((ran.cell, ran.state)), cell and lab.browser_route().run(cell, then('')))\n"
        "lab.browser_route().run('cell-4', then('cell-9'))"
    )
    assert (
        recorded.until("print(fared)", "cell-9").strip()
        == "[('cell-4', 'ok'), ('cell-9', 'missing')]"
    )
    outputs = recorded.javascript(
        "return panel.content.model.toJSON().cells.map(cell => JSON.stringify(cell.outputs));"
    )
    assert "run 2" in outputs[3]
    recorded.page.evaluate(
        "() => [...window.jupyterapp.shell.widgets('main')].filter(w => !w.sessionContext).forEach(w => w.close())"
    )


def test_keys_typed_in_the_viewer_change_no_cell(recorded, sidebar):
    page = recorded.page
    for place in (sidebar, output_of(recorded, 2)):
        before = recorded.javascript("return panel.content.model.toJSON();")["cells"]
        search = place.get_by_role("searchbox")
        for focus in (place.get_by_role("treeitem").first.focus, search.focus):
            focus()
            for key in (
                "a",
                "b",
                "d",
                "d",
                "x",
                "ArrowDown",
                "ArrowUp",
                "Control+a",
                "Enter",
                "Escape",
                "Escape",
            ):
                page.keyboard.press(key)
        assert recorded.javascript("return panel.content.model.toJSON();")["cells"] == before
        assert (
            recorded.javascript(
                "return panel.content.widgets.filter(c => panel.content.isSelected(c)).length;"
            )
            <= 1
        )
        search.fill("")
        expect(search).to_be_focused()
        recorded.javascript("panel.context.model.dirty = true;")
        page.evaluate(WHEN_SAVED)
        page.keyboard.press("Control+s")
        page.wait_for_function("() => window.saved")
        assert not recorded.javascript("return panel.context.model.dirty;")


@pytest.mark.slow
def test_saved_it_opens_without_a_kernel_and_is_still_interactive(recorded, page, server):
    saved = recorded.save()
    kinds = [
        kind
        for cell in saved["cells"]
        for output in cell["outputs"]
        for kind in output.get("data", ())
    ]
    assert kinds.count(MIME) == kinds.count("text/html") == kinds.count("text/plain") == 2
    saved["metadata"] = {"kernelspec": {"name": "gone", "display_name": "gone", "language": "gone"}}
    copy = recorded.path.with_name("copy.ipynb")  # of no trust: it was not saved by this server
    copy.write_text(json.dumps(saved))

    copied = Notebook(page, server, copy).open(kernel=False)
    page.locator(".jp-Dialog .jp-mod-reject").click()  # "No Kernel"
    line = copied.cell(2).locator(".tape-line")
    expect(line).to_contain_text("recorded  1 call · claude-sonnet-5")
    assert line.bounding_box()["height"] <= 24 and not page.locator(".tape-output .row").count()
    output = output_of(copied, 2)
    expect(rows(output)).to_have_count(2)
    rows(output).nth(1).click()
    expect(
        output.get_by_text("Classify: no access to my billing information").first
    ).to_be_visible()
    expect(output.locator(".notes")).to_have_count(0)
    assert not page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count()

    cassette = recorded.path.with_name("churn.tapes") / "main.tape.yaml"
    was = cassette.read_bytes()
    cassette.write_bytes(was.replace(b"Answer somebody", b"Answer a person"))
    output = output_of(copied, 3)
    rows(output).nth(1).click()
    expect(output.get_by_text("Answer a person").first).to_be_visible()
    expect(output.locator(".notes")).to_contain_text(
        "the cassette changed after this output was saved"
    )
    cassette.write_bytes(was)


@pytest.mark.slow
def test_from_a_kernel_without_tape_to_a_plan_by_the_mouse_alone(lab, page, provider):
    path = write(
        lab.root / "mouse" / "churn.ipynb",
        SETUP.format(url=provider.url),
        "mood = ask('Classify: no access to my billing information')",
        "tone = mood.upper()",
        "print(1)",
        "print(tone)",
    )
    notebook = Notebook(page, lab, path).open()
    assert "UsageError" in notebook.python("%tape status")
    page.locator(".tape-mode select").select_option("record")
    assert notebook.until("%tape status", re.compile("mode: +record"))
    for number in range(1, 6):
        notebook.run(number)
    assert not page.locator(
        ".tape-sidebar .tape-view"
    ).count()  # its code comes with the first look at the sidebar
    notebook.select(2)
    notebook.cell(2).locator(
        ".jp-cell-toolbar [data-command='tape-jupyter:rerun-downstream']"
    ).click()
    sidebar = page.locator(".tape-sidebar")
    expect(sidebar.get_by_role("heading", name="Re-run 3 of 5 cells")).to_be_visible()
    expect(sidebar.locator(".tape-plan li")).to_have_count(3)


@pytest.mark.slow
def test_a_cell_of_many_calls_is_one_line_and_all_of_them_a_click_away(lab, page):
    many = "%%tape record\nimport tape_jupyter as tape\n@tape.tool\ndef count(n):\n    return n\nsum(map(count, range(250)))"
    notebook = Notebook(
        page, lab, write(lab.root / "many.ipynb", "%load_ext tape_jupyter", many)
    ).open()
    notebook.run(1)
    notebook.run(2)
    expect(notebook.cell(2).locator(".tape-line")).to_contain_text("250 calls")
    assert notebook.cell(2).locator(".tape-output").bounding_box()["height"] < 60
    output = output_of(notebook, 2)
    expect(output.locator(".sums")).to_contain_text("250 calls")
    assert "saved here" not in output.locator(".sums").inner_text()
    assert notebook.python("print('alive')").strip() == "alive"


@pytest.mark.slow
def test_attempts_that_failed_stand_below_the_reply_and_none_opens_by_itself(lab, page):
    """The sidebar looks on while an SDK gets a 429, a 500, and then its reply; a click elsewhere shows all again."""
    wrong = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
    head = {"content-type": "application/json", "retry-after-ms": "900"}
    reply = b'{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"negative"}],"usage":{"input_tokens":5,"output_tokens":2}}'
    ask = "print(client.messages.create(model='claude-sonnet-5', max_tokens=9, messages=[{'role': 'user', 'content': 'mood?'}]).content[0].text)"
    with Provider() as provider:
        told = [(429, wrong), (500, wrong), (200, reply)]
        provider.script("/v1/messages", *(Scripted(code, head, [body]) for code, body in told))
        make = f"import anthropic\nclient = anthropic.Anthropic(base_url={provider.url!r}, api_key='sk')"
        path = write(
            lab.root / "retried" / "churn.ipynb",
            f"%load_ext tape_jupyter\n{make}",
            f"%%tape record\n{ask}",
            "print(1)",
        )
        notebook = Notebook(page, lab, path).open()
        notebook.run(1)
        view = sidebar_of(notebook)
        notebook.run(2)
    found = view.get_by_role("treeitem")
    expect(found).to_have_count(2)  # what was sent again is folded below what ended it
    expect(found.nth(1)).to_have_attribute("aria-expanded", "false")
    found.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(found).to_have_count(4)
    for row, level in enumerate(("1", "2", "3", "3")):
        expect(found.nth(row)).to_have_attribute("aria-level", level)
    for row, says in ((1, "model call"), (2, "model call, retried"), (3, "model call, retried")):
        expect(found.nth(row).get_by_role("img")).to_have_accessible_name(says)
    expect(view.locator(".detail")).to_have_count(0)
    expect(view.locator(".sums")).to_contain_text("3\u00a0calls")
    expect(notebook.cell(2).locator(".tape-line")).to_contain_text("3 calls")
    expect(notebook.cell(2).locator(".tape-line")).to_contain_text("2 retried")
    notebook.select(2)
    expect(view.locator(".sums")).to_contain_text("4\u00a0of\u00a04\u00a0spans")
    chip = view.get_by_role("button", name="No longer only")
    assert chip.evaluate("it => it.scrollWidth <= it.clientWidth"), "its ✕ is in view"
    notebook.select(3)  # it has no calls
    expect(view.get_by_role("button", name="No longer only")).to_have_count(0)


def restarted_and_run(notebook):
    """Restart the kernel and run all cells, as the menu does; what stands below the last taped cell."""
    page = notebook.page
    # what ran before must not pass for what runs now
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    page.evaluate("() => void window.jupyterapp.commands.execute('notebook:restart-run-all')")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    notebook.javascript(
        "await new Promise(done => { const look = () => panel.content.widgets.at(-1).model.executionCount === 3"
        " && panel.sessionContext.session.kernel.status === 'idle' ? done() : setTimeout(look, 50); look(); });"
    )
    return notebook.text(3)


@pytest.mark.night
def test_the_chosen_mode_is_set_again_before_the_first_cell_of_a_new_kernel(lab, page, provider):
    path = write(
        lab.root / "restart" / "churn.ipynb",
        SETUP.format(url=provider.url),
        "mood = ask('Classify: no access')",
        "%%tape record\nprint(ask('Answer somebody ' + mood))",
    )
    notebook = Notebook(page, lab, path).open()
    switch = page.locator(".tape-mode select")
    switch.select_option("record")
    notebook.until("%tape status", re.compile("mode: +record"))
    notebook.run(1, 2, 3)
    switch.select_option("replay")
    notebook.until("%tape status", re.compile("mode: +replay"))
    asked = len(provider.requests)
    for _ in range(2):
        said = restarted_and_run(notebook)
        assert "● replayed" in notebook.text(2) and "● replayed" in said
        assert "%tape off, then this cell again" in said
        expect(switch).to_have_value("replay")
    assert len(provider.requests) == asked
    page.evaluate("() => void window.jupyterapp.commands.execute('apputils:display-notifications')")
    expect(page.get_by_text("the new kernel is set to replay").first).to_be_visible()


@pytest.mark.slow
def test_a_mode_that_is_chosen_just_before_a_restart_is_set_in_the_new_kernel(lab, page, provider):
    path = write(
        lab.root / "at once" / "churn.ipynb",
        SETUP.format(url=provider.url),
        "print(ask('Classify'))",
    )
    notebook = Notebook(page, lab, path).open()
    switch = page.locator(".tape-mode select")
    switch.select_option("record")
    notebook.until("%tape status", re.compile("mode: +record"))
    notebook.run(1, 2)
    asked = len(provider.requests)
    switch.select_option("replay")
    notebook.javascript("await panel.sessionContext.session.kernel.restart();")
    notebook.run(1, 2)
    expect(switch).to_have_value("replay")
    assert "● replayed" in notebook.text(2) and len(provider.requests) == asked
    expect(page.get_by_text("the kernel is gone")).to_have_count(0)


@pytest.mark.slow
def test_a_mode_that_a_cell_set_is_said_to_be_off_until_that_cell_runs_again(lab, page, provider):
    path = write_churn(
        lab,
        "typed",
        provider,
        "%tape replay",
    )
    notebook = Notebook(page, lab, path).open()
    notebook.run(1, 2)
    switch = page.locator(".tape-mode select")
    expect(switch).to_have_value("replay")
    notebook.javascript("await panel.sessionContext.session.kernel.restart();")
    toast = page.locator(".Toastify__toast", has_text="not in replay mode until the cell")
    expect(toast).to_be_visible()
    toast.get_by_role("button", name="Set it to replay").click()
    notebook.until("%tape status", re.compile("mode: +replay"))


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["Dark", "Light"])
def test_a_views_scroll_bars_are_of_the_theme(recorded, sidebar, theme):
    page = recorded.page
    page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
        f"JupyterLab {theme}",
    )
    expect(sidebar.locator(".tape-door").first).to_have_css("color-scheme", theme.lower())


@pytest.mark.slow
def test_the_address_of_a_refused_call_is_whole_in_a_narrow_window(lab, page, provider):
    path = write_churn(
        lab,
        "narrow",
        provider,
        "%%tape record\nask('asked')",
        "%%tape replay\nask('never asked')",
    )
    page.set_viewport_size({"width": 760, "height": 900})
    notebook = Notebook(page, lab, path).open()
    sidebar_of(notebook)
    notebook.run(1, 2, 3)
    said = notebook.cell(3).locator(".tape-summary")
    expect(said).to_contain_text("/v1/messages")
    assert said.evaluate("it => it.scrollWidth <= it.clientWidth")


@pytest.mark.slow
def test_without_the_labextension_it_shows_its_html(recorded, page, server):
    recorded.save()
    with server.without_extension():
        plain = Notebook(page, server, recorded.path).open()
        assert not page.locator(".tape-output, .tape-mode").count()
        expect(plain.cell(2).locator(".jp-RenderedHTMLCommon")).to_contain_text("recorded")


@pytest.mark.slow
def test_a_cell_has_the_number_beside_it_wherever_it_is_named(lab, page, provider):
    """After a missed call and a re-run, the notebook, the list, the plan and the comparison say the same."""
    path = write_churn(
        lab,
        "numbers",
        provider,
        "%%tape record\n# Classify\nmood = ask('Classify: no access')\nmood",
        "print(mood.upper())",
    )
    notebook = Notebook(page, lab, path).open()
    page.locator(".tape-mode select").select_option("record")
    notebook.until("%tape status", re.compile("mode: +record"))
    notebook.run(1, 2, 3)
    assert "already loaded" not in notebook.text(1)
    page.locator(".tape-mode select").select_option("replay")
    notebook.until("%tape status", re.compile("mode: +replay"))
    view = sidebar_of(notebook)
    notebook.run(2, 3)
    expect(notebook.cell(2).locator(".jp-InputPrompt")).to_have_text("[4]:")
    expect(rows(view).filter(has_text="Classify")).to_have_text(re.compile(r"\[4\] Classify"))
    notebook.select(2)
    edit(view).fill("furious")
    view.get_by_role("button", name="Save").click()
    expect(view.get_by_role("heading", name="Re-run 2 of 5 runs")).to_be_visible()
    expect(view.locator(".tape-plan li")).to_have_text(
        [re.compile(r"\[4\]"), re.compile(r"\[5\].*reads mood, set by \[4\]")]
    )
    view.get_by_role("button", name="Re-run", exact=True).click()
    expect(view.get_by_role("heading", name="2 cells ran, 2 changed")).to_be_visible()
    expect(view.locator(".tape-change", has_text="[4] Classify").first).to_be_visible()
    expect(notebook.cell(2).locator(".jp-InputPrompt")).to_have_text("[4]:")
    expect(notebook.cell(2).locator(".jp-OutputPrompt").first).to_have_text("[4]:")
    expect(notebook.cell(3).locator(".jp-InputPrompt")).to_have_text("[5]:")
    assert notebook.python("print(Out[4])").strip() == "furious"
    expect(view.locator(".tape-proof")).to_contain_text("proved in a fresh kernel", timeout=60_000)


def test_every_command_stands_in_the_palette_with_its_key_and_in_the_run_menu(recorded, server):
    page = recorded.page
    recorded.select(2)
    page.evaluate("() => window.jupyterapp.commands.execute('apputils:activate-command-palette')")
    page.locator(".lm-CommandPalette-input:visible").fill("tape")
    found = page.locator(".lm-CommandPalette-item:visible")
    step = found.filter(has_text="Tape: Step Through This Cell")
    expect(step.locator(".lm-CommandPalette-itemShortcut")).to_have_text(".")
    for label in ("Tape: Re-run What Depends on This Cell", "Show the Tape", "Tape Mode: replay"):
        expect(found.filter(has_text=label)).to_have_count(1)
    page.keyboard.press("Escape")
    page.get_by_role("menuitem", name="View", exact=True).click()
    menu = page.locator(".lm-Menu-item:visible")
    expect(menu.filter(has_text="Show the Tape")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.get_by_role("menuitem", name="Run", exact=True).click()
    for label in ("Step Through This Cell", "Re-run What Depends on This Cell", "Tape Mode"):
        expect(menu.filter(has_text=label)).to_have_count(1)
    page.keyboard.press("Escape")


def test_show_the_tape_brings_the_keys_to_its_list(recorded):
    recorded.select(2)
    sidebar = sidebar_of(recorded)
    expect(sidebar.locator('[role="tree"] [tabindex="0"]')).to_be_focused()
    recorded.page.keyboard.press("ArrowDown")
    expect(sidebar.locator('[role="tree"] [tabindex="0"]')).to_be_focused()
