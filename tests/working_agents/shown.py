"""Tools that show something: text, warnings, log records, displays and their updates, figures, progress bars."""

from __future__ import annotations

from collections.abc import Iterator

from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    OPENAI,
    OPENAI_LOOP,
    RESPONSES_LOOP,
    AgentNotebook,
    cells,
    schemas,
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "prints_and_stderr",
        cells(
            ANTHROPIC,
            f"""
import sys
QUESTION = "Back up the photos and the mail."
{schemas(backup="what")}
lines = []

def say(*words):
    lines.append(words)
    print(*words, sep=" | ")

def backup(what):
    say("backing up", what)
    print("  slow disk", file=sys.stderr)
    sys.stdout.write("  ...")
    print(end=" done\\n", flush=True)
    return "backed up"

def run_tool(name, arguments):
    print(f"> {{name}}({{arguments}})")
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "lines",
        ),
        [[call("backup", what="photos")], [call("backup", what="mail")], "Both are safe."],
    )
    yield AgentNotebook(
        "displays_of_markdown_and_html",
        cells(
            OPENAI,
            f"""
from IPython.display import HTML, JSON, Latex, Markdown, display
QUESTION = "Show the report and the table."
{schemas("openai", show_report="title", show_table="rows:integer")}
history = []

class Card:
    def __init__(self, title):
        self.title = title
    def _repr_html_(self):
        return f"<h3>{{self.title}}</h3>"
    def __repr__(self):
        return f"Card({{self.title}})"

def show_report(title):
    display(Markdown(f"# {{title}}\\nAll *well*."), Card(title))
    display({{"title": title}})
    history.append(Card(title))
    return "shown"

def show_table(rows):
    body = "".join(f"<tr><td>{{n}}</td></tr>" for n in range(rows))
    display(HTML(f"<table>{{body}}</table>"), metadata={{"isolated": True}})
    display({{"text/plain": "raw", "application/json": {{"rows": rows}}}}, raw=True)
    return rows

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            OPENAI_LOOP,
            "history[-1]",
        ),
        [[call("show_report", title="March")], [call("show_table", rows=2)], "That is all."],
    )
    yield AgentNotebook(
        "display_updated_and_cleared",
        cells(
            ANTHROPIC,
            f"""
from IPython.display import Markdown, clear_output, display, update_display
QUESTION = "Download a.bin and b.bin."
{schemas(download="file")}
status = {{}}

def download(file):
    handle = display(Markdown(f"{{file}}: 0 %"), display_id=True)
    for percent in (50, 100):
        handle.update(Markdown(f"{{file}}: {{percent}} %"))
        status[file] = percent
    return "ok"

display(Markdown("nothing yet"), display_id="board")

def run_tool(name, arguments):
    clear_output(wait=True)
    result = download(**arguments)
    update_display(Markdown(f"{{len(status)}} files"), display_id="board")
    return result
""",
            ANTHROPIC_LOOP,
            "status",
        ),
        [[call("download", file="a.bin")], [call("download", file="b.bin")], "Both are here."],
    )
    yield AgentNotebook(
        "figure_inside_a_tool",
        cells(
            OPENAI,
            f"""
import matplotlib.pyplot as plt
QUESTION = "Plot the sales of the last four weeks."
{schemas("openai", plot="title kind")}
sales = [3, 5, 4, 8]
plotted = []

def plot(title, kind):
    fig, ax = plt.subplots(figsize=(3, 2))
    (ax.bar if kind == "bar" else ax.plot)(range(4), sales)
    ax.set_title(title)
    plt.show()
    plotted.append(title)
    return "plotted"

def run_tool(name, arguments):
    return plot(**arguments)
""",
            OPENAI_LOOP,
            "print(plotted, plt.get_fignums())",
        ),
        [
            [call("plot", title="Sales", kind="bar")],
            [call("plot", title="Sales again", kind="line")],
            "Week four was best.",
        ],
    )
    yield AgentNotebook(
        "figure_of_the_notebook",
        cells(
            ANTHROPIC,
            f"""
import matplotlib.pyplot as plt
QUESTION = "Add the lines of Ada and Bob."
{schemas(add_line="name slope:number")}
fig, ax = plt.subplots(figsize=(3, 2))
plt.close(fig)
lines = {{}}

def add_line(name, slope):
    lines[name], = ax.plot([0, 1], [0, slope], label=name)
    ax.set_title(f"{{len(ax.lines)}} lines")
    ax.legend()
    return len(ax.lines)

def run_tool(name, arguments):
    return add_line(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(len(ax.lines), ax.get_title(), sorted(lines))",
            "fig",
        ),
        [
            [call("add_line", name="Ada", slope=2)],
            [call("add_line", name="Bob", slope=0.5)],
            "Two lines.",
        ],
    )
    yield AgentNotebook(
        "progress_bar",
        cells(
            OPENAI,
            f"""
import sys
from tqdm import tqdm
QUESTION = "Index both folders."
{schemas("responses", index="folder files:integer")}
indexed = {{}}
BAR = "{{desc}} {{n_fmt}}/{{total_fmt}}"

def index(folder, files):
    for number in tqdm(range(files), desc=folder, bar_format=BAR, mininterval=0, file=sys.stdout):
        indexed.setdefault(folder, []).append(f"file{{number}}")
    return len(indexed[folder])

def run_tool(name, arguments):
    return index(**arguments)
""",
            RESPONSES_LOOP,
            "indexed",
        ),
        [
            [call("index", folder="docs", files=3)],
            [call("index", folder="pics", files=2)],
            "Five files.",
        ],
    )
    yield AgentNotebook(
        "progress_bar_with_rates",
        cells(
            ANTHROPIC,
            f"""
from tqdm.auto import tqdm
QUESTION = "Clean the five files."
{schemas(clean="files:integer")}
cleaned = []

def clean(files):
    with tqdm(total=files, mininterval=0) as bar:
        for number in range(files):
            cleaned.append(number)
            bar.update()
    return len(cleaned)

def run_tool(name, arguments):
    return clean(**arguments)
""",
            ANTHROPIC_LOOP,
            "cleaned",
        ),
        [[call("clean", files=5)], "Clean."],
        varies=True,
    )
    yield AgentNotebook(
        "log_records_kept",
        cells(
            OPENAI,
            f"""
import io
import logging
QUESTION = "Restart the web server; the mail server is down."
{schemas("openai", restart="server")}
log = logging.getLogger("ops")
log.setLevel(logging.DEBUG)
log.propagate = False
stream = io.StringIO()
to_stream = logging.StreamHandler(stream)
to_stream.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
log.addHandler(to_stream)

class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []
    def emit(self, record):
        self.records.append((record.levelname, record.getMessage()))

keep = Keep()
log.addHandler(keep)
restarted = 0

def restart(server):
    global restarted
    log.info("restarting %s", server)
    if server == "mail":
        log.error("%s does not answer", server)
        return "down"
    restarted += 1
    log.debug("up after %d tries", restarted)
    return "up"

def run_tool(name, arguments):
    return restart(**arguments)
""",
            OPENAI_LOOP,
            "print(stream.getvalue())\nprint(keep.records, restarted)",
        ),
        [[call("restart", server="web"), call("restart", server="mail")], "Mail is still down."],
    )
    yield AgentNotebook(
        "log_to_stderr",
        cells(
            ANTHROPIC,
            f"""
import logging
logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s", force=True)
logging.getLogger("httpx").setLevel(logging.WARNING)
logging.getLogger("httpx2").setLevel(logging.WARNING)
log = logging.getLogger(__name__)
QUESTION = "Sync both."
{schemas(sync="what")}
synced = []

def sync(what):
    log.info("syncing %s", what)
    synced.append(what)
    if len(synced) > 1:
        log.warning("%d synced already", len(synced))
    try:
        1 / (len(synced) - 2)
    except ZeroDivisionError as error:
        log.error("bad count: %s", error)
    return "synced"

def run_tool(name, arguments):
    return sync(**arguments)
""",
            ANTHROPIC_LOOP,
            "synced",
        ),
        [[call("sync", what="mail")], [call("sync", what="files")], "Synced."],
    )
    yield AgentNotebook(
        "warnings_warned",
        cells(
            OPENAI,
            f"""
import warnings
QUESTION = "Convert 3 miles and -1 mile."
{schemas("openai", convert="miles:number")}
converted = []

class Suspicious(UserWarning):
    pass

def convert(miles):
    if miles < 0:
        warnings.warn(f"{{miles}} miles?", Suspicious, stacklevel=2)
    else:
        warnings.warn("convert is old", DeprecationWarning)
    converted.append(miles * 1.609)
    return converted[-1]

caught = []

def run_tool(name, arguments):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = convert(**arguments)
    caught.extend((each.category.__name__, str(each.message)) for each in seen)
    warnings.warn(f"{{len(seen)}} warnings so far")
    return result
""",
            OPENAI_LOOP,
            "print(converted, caught)",
        ),
        [[call("convert", miles=3)], [call("convert", miles=-1)], "About 4.8 kilometres."],
    )
    yield AgentNotebook(
        "rich_console",
        cells(
            ANTHROPIC,
            f"""
import io
from rich.console import Console
from rich.table import Table
QUESTION = "Show who is in."
{schemas(check_in="who")}
page = io.StringIO()
console = Console(file=page, width=40, color_system=None)
present = {{}}

def check_in(who):
    present[who] = len(present) + 1
    table = Table(title="Present")
    table.add_column("who")
    table.add_column("number")
    for name, number in present.items():
        table.add_row(name, str(number))
    console.print(table)
    print(f"{{who}} is in")
    return present

def run_tool(name, arguments):
    return check_in(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(page.getvalue())",
            "present",
        ),
        [[call("check_in", who="Ada")], [call("check_in", who="Bob")], "Ada and Bob."],
    )
