"""The viewer in Chromium: open to first paint, scrolling, filtering, opening, at 10,000 and 100,000 spans; and what the
kernel does for a first page of rows, and `tape show --html` for the page that is measured.

The page is the one that people get: the same view as everywhere, without a notebook around it. `seconds` run from the
start of navigation to the first painted row, frames are those of `requestAnimationFrame` while the list is scrolled, beside
those of a list of plain text in the same window (`plain_p95`, `plain_worst`): where these are over the bar the machine is
busy, and nothing is said of scrolling and filtering. `main_thread_ms` is the processor time of the page's own thread until then, from a trace, and
`cpu_ms` that of Python: on a busy machine the truer numbers.
Needs playwright, a Chromium (`CHROMIUM=/path`, else the one on PATH) and the built bundles (`make ui`).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import long_run
from harness import report, say, workplace
from playwright.sync_api import Browser, Page, sync_playwright

STATIC = Path(__file__).resolve().parent.parent / "tape_jupyter" / "static"
ARGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
ROUNDS = 5
TRACED = 3
FRAMES_A_ROUND = 120
WORDS = ["o", "or", "order", "order 12", ""]
TRACE = [
    "toplevel",
    "blink.user_timing",
    "disabled-by-default-devtools.timeline",
    "devtools.timeline",
]

SEEN = """(() => {
  const list = () => document.getElementById("tape")?.shadowRoot;
  const until = (find) => new Promise((done) => {
    const wait = () => find() ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(wait);
    wait();
  });
  globalThis.painted = until(() => list()?.querySelector("[role=treeitem]")).then((at) => {
    performance.mark("painted");
    return at;
  });
  const whole = () => !list().querySelector(".sums").textContent.includes("spans…");
  globalThis.whole = painted.then(() => until(whole));
})()"""
FRAMES = """async ([step, count]) => {
  const list = document.getElementById("tape").shadowRoot.querySelector("[role=tree]");
  const frame = () => new Promise(requestAnimationFrame);
  list.scrollTop = 0;
  for (let warm = 0; warm < 10; warm++) await frame();
  const taken = [];
  let last = performance.now();
  for (let done = 0; done < count; done++) {
    list.scrollTop += step;
    await frame();
    const now = performance.now();
    taken.push(now - last);
    last = now;
  }
  return taken;
}"""
PLAIN = """() => {
  document.body.innerHTML = '<div id="plain" style="position:fixed;inset:0"></div>';
  const host = document.getElementById("plain"), list = document.createElement("div");
  host.id = "tape";
  list.setAttribute("role", "tree");
  list.style.cssText = "height:100%;overflow:auto;font:13px/24px sans-serif";
  list.append(...Array.from({ length: 10_000 }, (_, row) => {
    const line = document.createElement("div");
    line.textContent = `row ${row} of a list of text that nothing is done for`;
    return line;
  }));
  host.attachShadow({ mode: "open" }).append(list);
}"""
FILTER = """async (words) => {
  const box = document.getElementById("tape").shadowRoot.querySelector("input[type=search]");
  const taken = [];
  for (const word of words) {
    const start = performance.now();
    box.value = word;
    box.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    taken.push(performance.now() - start);
  }
  return taken;
}"""
OPENED = """async (places) => {
  const root = document.getElementById("tape").shadowRoot, list = root.querySelector("[role=tree]");
  const frame = () => new Promise(requestAnimationFrame);
  const taken = [];
  for (const place of places) {
    list.scrollTop = place * list.scrollHeight;
    for (let frames = 0; frames < 3; frames++) await frame();
    const rows = [...root.querySelectorAll("[role=treeitem].model")], row = rows[rows.length >> 1];
    const start = performance.now();
    row.click();
    const name = `Detail of ${row.querySelector("b").textContent}`;
    while (!(root.querySelector(".detail")?.ariaLabel === name && root.querySelector("[role=tabpanel]")?.textContent)) {
      if (performance.now() - start > 30_000) throw new Error(`${name} did not open`);
      await new Promise((done) => setTimeout(done));
    }
    taken.push(performance.now() - start);
  }
  return taken;
}"""


def main() -> int:
    if not (STATIC / "page.js").exists():
        say("no bundles: run `make ui` first")
        return 2
    chromium = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    with workplace() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        once = 0.0
        for count, open_bar in ((10_000, 0.4), (100_000, 1.0)):
            say(f"a cassette of {count:,} spans")
            cassette, out = folder / f"{count}.tape.yaml", folder / f"{count}.html"
            long_run.write(cassette, count)
            in_kernel(cassette, count)
            say(f"its page (about {count // 1000} seconds)")
            once = written(cassette, out, count, once)
            measure(browser, out.as_uri(), count, open_bar)
        browser.close()
    return 0


def in_kernel(cassette: Path, count: int) -> None:
    """What stands between a question and its answer: the cassette indexed, its tree grown, the first page read."""
    from tape_jupyter.cassette.cassette import Cassette
    from tape_jupyter.spans.rows import Spans

    taken: dict[str, list[float]] = {"index": [], "tree": [], "page": [], "sums": []}

    def lap(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        made = work()
        taken[name].append(1000 * (time.process_time() - start))
        return made

    for _ in range(ROUNDS):
        book = lap("index", lambda: Cassette.open(cassette, check="marks"))
        spans = Spans(book)
        lap("tree", spans.refresh)
        page = lap("page", lambda spans=spans: spans.page(0))
        lap("sums", spans.totals)
    least = {f"{name}_cpu_ms": round(min(times), 1) for name, times in taken.items()}
    report(
        f"viewer: first page of {count:,} spans, in the kernel",
        "sent in pages",
        len(page["id"]) < count,
        **least,
    )


def written(cassette: Path, out: Path, count: int, before: float) -> float:
    """`tape show --html`; gives its processor time a span, in ms, which `before` is of the shorter cassette."""
    command = [
        sys.executable,
        "-m",
        "tape_jupyter",
        "show",
        str(cassette),
        "--html",
        str(out),
        "--json",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    each = 1000 * (usage.ru_utime + usage.ru_stime) / count
    report(
        f"viewer: page of {count:,} spans written", "linear: at most 1.3x the time a span of 10,000",
        each <= 1.3 * before if before else None,
        cpu_ms_a_span=round(each, 2), mb=round(out.stat().st_size / 1e6, 1), peak_mb=round(usage.ru_maxrss / 1024),
    )  # fmt: skip
    return each


def measure(browser: Browser, address: str, count: int, open_bar: float) -> None:
    opened, whole, plain, slow, fast, filtered, details = [], [], [], [], [], [], []
    busy: dict[str, list[float]] = {"slow": [], "fast": [], "filter": []}
    for number in range(ROUNDS + 1):
        view = shown(browser, address)
        first, last = view.evaluate("() => painted"), view.evaluate("() => whole")
        work = at_work(view)
        if number:  # the first round warms the browser's caches
            opened.append(first / 1000)
            whole.append(last / 1000)
            before = work()
            slow += view.evaluate(FRAMES, [60, FRAMES_A_ROUND])
            middle = work()
            fast += view.evaluate(FRAMES, [2000, FRAMES_A_ROUND])
            after = work()
            filtered += view.evaluate(FILTER, WORDS)
            busy["slow"].append((middle - before) / FRAMES_A_ROUND)
            busy["fast"].append((after - middle) / FRAMES_A_ROUND)
            busy["filter"].append((work() - after) / len(WORDS))
            details += view.evaluate(OPENED, [0.1, 0.5, 0.9])
            view.evaluate(PLAIN)
            plain += view.evaluate(FRAMES, [2000, FRAMES_A_ROUND])
        view.close()
    own = {name: round(statistics.median(taken), 1) for name, taken in busy.items()}
    paint, all_there = statistics.median(opened), statistics.median(whole)
    report(
        f"viewer: first paint of {count:,} spans", f"<= {open_bar} s", paint <= open_bar,
        seconds=round(paint, 3), worst=round(max(opened), 3), all_rows=round(all_there, 3),
        main_thread_ms=traced(browser, address),
    )  # fmt: skip
    large = count > 10_000
    for how, taken, name in (("60 px a frame", slow, "slow"), ("2,000 px a frame", fast, "fast")):
        report(
            f"viewer: scrolling {count:,} spans, {how}", "frame p95 <= 25 ms, none over 50 ms",
            None if large or not smooth(plain) else smooth(taken),
            p50=round(statistics.median(taken), 1), p95=p95(taken), worst=round(max(taken), 1),
            plain_p95=p95(plain), plain_worst=round(max(plain), 1), main_thread_ms=own[name],
        )  # fmt: skip
    report(
        f"viewer: filter {count:,} spans", "<= 100 ms to the next frame",
        None if large or not smooth(plain) else max(filtered) <= 100,
        median_ms=round(statistics.median(filtered), 1), worst_ms=round(max(filtered), 1), main_thread_ms=own["filter"],
    )  # fmt: skip
    report(
        f"viewer: one span of {count:,} opened", "<= 200 ms", statistics.median(details) <= 200,
        median_ms=round(statistics.median(details), 1), worst_ms=round(max(details), 1),
    )  # fmt: skip


def p95(taken: list[float]) -> float:
    return round(statistics.quantiles(taken, n=20)[-1], 1)


def smooth(taken: list[float]) -> bool:
    """Whether frames that took so many ms keep to the bar."""
    return p95(taken) <= 25 and max(taken) <= 50


def shown(browser: Browser, address: str) -> Page:
    """The page, in a window of its own, on its way."""
    view = browser.new_page(viewport={"width": 1280, "height": 900})
    view.add_init_script(SEEN)
    view.goto(address, wait_until="commit")
    return view


def traced(browser: Browser, address: str) -> float | None:
    """Processor time of the page's main thread until its first rows are painted, ms; None where traces do not tell."""
    found = []
    for _ in range(TRACED):
        view = browser.new_page(viewport={"width": 1280, "height": 900})
        view.add_init_script(SEEN)
        browser.start_tracing(page=view, categories=TRACE)
        view.goto(address, wait_until="commit")
        view.evaluate("() => painted")
        events = json.loads(browser.stop_tracing())["traceEvents"]
        view.close()
        mark = next(event for event in events if event["name"] == "painted")
        place = mark["pid"], mark["tid"]
        tasks = [
            event
            for event in events
            if event["name"] == "RunTask" and (event["pid"], event["tid"]) == place
        ]
        found.append(
            sum(event.get("tdur", 0) for event in tasks if event["ts"] <= mark["ts"]) / 1000
        )
    return round(statistics.median(found), 1) or None


def at_work(view: Page) -> Callable[[], float]:
    """How many ms the page's main thread has been at work, asked again and again."""
    session = view.context.new_cdp_session(view)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def now() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(each["value"] for each in found if each["name"] == "TaskDuration")

    return now


if __name__ == "__main__":
    sys.exit(main())
