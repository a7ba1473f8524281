"""The labextension in JupyterLab and in Notebook 7: spans in the sidebar and in outputs, modes, cells that run in place."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter import Notebook, write

MIME = "application/vnd.tape.spans+json"
ASK = """
def ask(text):
    with client.messages.stream(model="claude-sonnet-5", max_tokens=50, messages=[{"role": "user", "content": text}]) as s:
        return "".join(s.text_stream)
"""


@pytest.fixture
def opened(server, page, request):
    """Write a notebook with these cells, and open it."""

    def opened(*sources, name="churn", **options):
        folder = server.root / f"{request.node.name.split('[')[0]}-{server.app}"
        return Notebook(page, server, write(folder / f"{name}.ipynb", *sources)).open(**options)

    return opened


@pytest.fixture
def recorded(opened, provider):
    """A notebook whose cells 2 and 3 were recorded, a call each; cell 4 asked nothing."""

    def recorded(**options):
        client = f"import anthropic\nclient = anthropic.Anthropic(base_url={provider.url!r}, api_key='sk-test')"
        notebook = opened(
            f"%load_ext tape_jupyter\n{client}\n{ASK}",
            "%%tape record\nmood = ask('Classify: no access to my billing information')\nprint(mood)",
            "%%tape record\nanswer = ask('Answer somebody ' + mood)\nprint(answer)",
            "runs = globals().get('runs', 0) + 1\nprint('run', runs)",
            **options,
        )
        for number in (1, 2, 3, 4):
            notebook.run(number)
        return notebook

    return recorded


def rows(place):
    return place.locator(".row .name b")


def show_sidebar(notebook):
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('tape-jupyter:show')")
    sidebar = notebook.page.locator(".tape-sidebar")
    expect(sidebar).to_be_visible()
    return sidebar


def test_a_cell_is_recorded_shown_found_and_run_again_in_place(recorded):
    """One long story: opening a notebook takes longer than all of it."""
    notebook = recorded()
    page, sidebar = notebook.page, show_sidebar(notebook)

    # The sidebar shows the spans of the notebook; its kernel knows the notebook's path.
    expect(rows(sidebar)).to_have_count(4)
    assert (
        notebook.python("print(get_ipython().magics_manager.registry['TapeMagics'].cells.ladder.told)")
        .strip()
        .endswith("churn.ipynb")
    )
    expect(page.locator(".tape-status")).to_contain_text("2 calls")

    # A clicked span lights up its cell; a clicked cell filters its spans, a click beside the cells shows all again.
    rows(sidebar).nth(1).click()
    expect(notebook.cell(2)).to_have_class(re.compile("tape-lit"))
    page.keyboard.press("Escape")
    notebook.select(3)
    expect(rows(sidebar)).to_have_count(2)

    # The switch in the toolbar sets the session's mode, and the status bar says so.
    page.locator(".tape-mode select").select_option("replay")
    expect(page.locator(".tape-status")).to_contain_text("replay")
    assert "mode:         replay" in notebook.python("%tape status")
    page.locator(".tape-mode select").select_option("off")
    expect(page.locator(".tape-status")).to_contain_text("off")

    # The kernel has two cells run in the browser, one after the other; cell 3 stays as it is.
    before = notebook.text(3)
    notebook.python(
        "from tape_jupyter.notebook import lab\nfared = []\n"
        "def first(ran):\n    fared.append(ran)\n    lab.route().run('cell-9', fared.append)\n"
        "lab.route().run('cell-4', first)"
    )
    expect(notebook.output(4)).to_contain_text("run 2")
    assert (
        _until(notebook, "print([(ran.cell, ran.state) for ran in fared])", "cell-9")
        == "[('cell-4', 'ok'), ('cell-9', 'missing')]"
    )
    assert notebook.text(3) == before


def test_a_saved_notebook_opens_without_a_kernel_and_is_still_interactive(recorded, server):
    notebook = recorded()
    saved = notebook.save()
    kinds = [kind for cell in saved["cells"] for output in cell["outputs"] for kind in output.get("data", ())]
    assert kinds.count(MIME) == kinds.count("text/html") == kinds.count("text/plain") == 2
    saved["metadata"] = {"kernelspec": {"name": "gone", "display_name": "gone", "language": "gone"}}
    copy = notebook.path.with_name("copy.ipynb")  # of no trust: it was not saved by this server
    copy.write_text(json.dumps(saved))

    copied = Notebook(notebook.page, server, copy).open(kernel=False)
    copied.page.locator(".jp-Dialog .jp-mod-reject").click()  # "No Kernel"
    output = copied.cell(2).locator(".tape-output")
    expect(rows(output)).to_have_count(2)
    rows(output).nth(1).click()
    expect(output.get_by_text("Classify: no access to my billing information").first).to_be_visible()
    assert not copied.page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count()


def test_without_the_labextension_the_same_notebook_shows_its_html(recorded, server):
    notebook = recorded()
    notebook.save()
    notebook.page.goto("about:blank")
    with server.without_extension():
        notebook.open()
        assert not notebook.page.locator(".tape-output, .tape-mode").count()
        expect(notebook.cell(2).locator(".jp-RenderedHTMLCommon")).to_contain_text("recorded")


def test_keys_typed_in_the_viewer_change_no_cell(recorded):
    notebook = recorded()
    page, sidebar = notebook.page, show_sidebar(notebook)
    places = [sidebar, notebook.cell(2).locator(".tape-output")]
    for place in places:
        before = notebook.javascript("return panel.content.model.toJSON();")["cells"]
        search = place.locator("input[type=search]")
        for focus in (rows(place).nth(1), search):
            focus.click()
            for key in ("a", "b", "d", "d", "x", "ArrowDown", "ArrowUp", "Control+a", "Enter", "Escape"):
                page.keyboard.press(key)
        assert notebook.javascript("return panel.content.model.toJSON();")["cells"] == before
        assert (
            notebook.javascript("return panel.content.widgets.filter(cell => panel.content.isSelected(cell)).length;")
            <= 1
        )
        search.click()
        notebook.javascript("panel.context.model.dirty = true;")
        with page.expect_response(lambda answer: answer.request.method == "PUT" and "contents" in answer.url):
            page.keyboard.press("Control+s")


def _until(notebook, code, wanted):
    """Asks the kernel until `wanted` is in what it prints: the page runs cells in its own time."""
    for _ in range(100):
        said = notebook.python(code).strip()
        if wanted in said:
            return said
        notebook.page.wait_for_timeout(50)
    return said
