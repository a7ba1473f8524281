"""The viewer in Chromium: open to first paint, scrolling, filtering, at 10,000 and 100,000 spans.

The standalone page is measured: the same view as everywhere, without a notebook around it. Seconds run from the start
of navigation to the first painted row; frames are those of `requestAnimationFrame` while the list is scrolled.
`main_thread_ms` is what the page's own thread was at work for, on a busy machine the truer number.
Needs playwright, a Chromium (`CHROMIUM=/path`, else the one on PATH) and the built bundles (`npm run build` in js/).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import report, say, workplace
from playwright.sync_api import Browser, Page, sync_playwright

STATIC = Path(__file__).resolve().parent.parent / "tape_jupyter" / "static"
ARGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
ROWS_A_BLOCK = 5000
ROUNDS = 5
FRAMES_A_ROUND = 120
WORDS = ["o", "or", "order", "order 42", ""]
CELL, MODEL, TOOL = 0, 2, 3
ERROR = 2
COLUMNS = ("id", "depth", "kind", "mark", "start", "first", "end", "name", "note", "tokens", "cost", "cell")

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
PAINTED = """new Promise((done) => {
  const seen = () => document.getElementById("tape")?.shadowRoot?.querySelector("[role=treeitem]");
  const look = () => seen() ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(look);
  look();
})"""


def main() -> int:
    if not (STATIC / "page.js").exists():
        say("no bundles: run `npm ci && npm run build` in js/ first")
        return 2
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with workplace() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        for count, open_bar in ((10_000, 0.4), (100_000, 1.0)):
            path = folder / f"{count}.html"
            path.write_text(page(rows(count)), encoding="utf-8")
            measure(browser, path.as_uri(), count, open_bar)
        browser.close()
    return 0


def measure(browser: Browser, address: str, count: int, open_bar: float) -> None:
    opened, slow, fast, filtered = [], [], [], []
    busy: dict[str, list[float]] = {"open": [], "slow": [], "fast": [], "filter": []}
    for number in range(ROUNDS + 1):
        view = browser.new_page(viewport={"width": 1280, "height": 900})
        work = at_work(view)
        view.goto(address, wait_until="commit")
        first = view.evaluate(PAINTED) / 1000
        painted = work()
        settle(view, count)
        if number:  # the first round warms the browser's caches
            opened.append(first)
            busy["open"].append(painted)
            before = work()
            slow += view.evaluate(FRAMES, [60, FRAMES_A_ROUND])
            middle = work()
            fast += view.evaluate(FRAMES, [2000, FRAMES_A_ROUND])
            after = work()
            filtered += view.evaluate(FILTER, WORDS)
            busy["slow"].append((middle - before) / FRAMES_A_ROUND)
            busy["fast"].append((after - middle) / FRAMES_A_ROUND)
            busy["filter"].append((work() - after) / len(WORDS))
        view.close()
    own = {name: round(statistics.median(taken), 1) for name, taken in busy.items()}
    paint = statistics.median(opened)
    report(
        f"viewer: first paint of {count:,} spans", f"<= {open_bar} s", paint <= open_bar,
        seconds=round(paint, 3), worst=round(max(opened), 3), main_thread_ms=own["open"],
    )  # fmt: skip
    large = count > 10_000
    for how, taken, name in (("60 px a frame", slow, "slow"), ("2,000 px a frame", fast, "fast")):
        late = statistics.quantiles(taken, n=20)[-1]
        report(
            f"viewer: scrolling {count:,} spans, {how}", "frame p95 <= 25 ms, none over 50 ms",
            None if large else late <= 25 and max(taken) <= 50,
            p50=round(statistics.median(taken), 1), p95=round(late, 1), worst=round(max(taken), 1), main_thread_ms=own[name],
        )  # fmt: skip
    report(
        f"viewer: filter {count:,} spans", "<= 100 ms to the next frame", None if large else max(filtered) <= 100,
        median_ms=round(statistics.median(filtered), 1), worst_ms=round(max(filtered), 1), main_thread_ms=own["filter"],
    )  # fmt: skip


def at_work(view: Page) -> Callable[[], float]:
    """How many ms the page's main thread has been at work, asked again and again."""
    session = view.context.new_cdp_session(view)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def now() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(each["value"] for each in found if each["name"] == "TaskDuration")

    return now


def settle(view: Page, count: int) -> None:
    """Wait until all pages of rows are there."""
    view.wait_for_function(
        "count => !document.getElementById('tape').shadowRoot.querySelector('.sums').textContent.includes('spans…')",
        arg=count,
    )
    view.wait_for_timeout(300)


def rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Cells of agents' loops: model calls, each with the tools it asked for."""
    chance = random.Random(seed)
    out: list[dict[str, Any]] = []
    clock = 0.0
    while len(out) < count:
        clock += 0.2 if chance.random() < 0.97 else chance.random() * 900
        number = len(out)
        cell = f"c{number}"
        head = row(0, CELL, f"[{number}] agent", "", clock, None, clock, cell)
        out.append({**head, "id": f"r{number}"})
        for _ in range(chance.randint(2, 60)):
            clock = turn(out, chance, clock, number, cell)
        out[number]["end"] = clock
    return out[:count]


def turn(out: list[dict[str, Any]], chance: random.Random, clock: float, number: int, cell: str) -> float:
    wait = chance.random()
    model = chance.choice(["claude-sonnet-5", "gpt-6", "gemini-3"])
    said = f'"reply number {len(out)} about order {chance.randint(1000, 9999)}"'
    asked = row(1, MODEL, said, model, clock, clock + wait * 0.6, clock + wait, cell)
    mark = ERROR if chance.random() < 0.01 else 0
    out.append({**asked, "id": f"r{number}/{len(out)}", "mark": mark, "tokens": chance.randint(200, 9000)})
    clock += wait
    for _ in range(chance.randint(0, 3)):
        took = chance.random() * 0.4
        name = f'lookup_order(query="{chance.randint(0, 99_999)}")'
        out.append(
            {**row(2, TOOL, name, "lookup_order", clock, None, clock + took, cell), "id": f"r{number}/{len(out)}"}
        )
        clock += took
    return clock


def row(
    depth: int, kind: int, name: str, note: str, start: float, first: float | None, end: float, cell: str
) -> dict[str, Any]:
    return {
        "id": "", "depth": depth, "kind": kind, "mark": 0, "start": round(start, 4), "end": round(end, 4),
        "first": None if first is None else round(first, 4), "name": name, "note": note, "tokens": None, "cost": None,
        "cell": cell,
    }  # fmt: skip


def page(spans: list[dict[str, Any]]) -> str:
    """A page as `tape show --html` writes it, without details."""
    able = dict.fromkeys(("modes", "override", "rerun", "step", "cells"), False)
    totals = {
        "spans": len(spans), "calls": len(spans), "errors": 0, "seconds": 1.0, "tokens_in": None, "tokens_out": None,
        "cost": None, "partial": False,
    }  # fmt: skip
    session = {
        "mode": "replay", "cassettes": ["main"], "cassette": "main", "take": "", "takes": [], "default_take": "",
        "totals": totals, "running": None, "notes": [],
    }  # fmt: skip
    blocks = [block("tape-state", {"state": {"able": able, "title": "long.ipynb"}, "session": session})]
    for number, begin in enumerate(range(0, len(spans), ROWS_A_BLOCK)):
        part = spans[begin : begin + ROWS_A_BLOCK]
        columns = {name: [span[name] for span in part] for name in COLUMNS}
        name = f"tape-rows-{number}" if number else "tape-rows"
        blocks.append(block(name, {"revision": 1, "from": begin, "total": len(spans), **columns}))
    side, script = ((STATIC / name).read_text(encoding="utf-8") for name in ("page-side.js", "page.js"))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>long</title>'
        "<style>html,body{margin:0;height:100%}#tape{height:100%}</style>"
        f'<div id="tape"></div>{"".join(blocks)}<script type="text/plain" id="tape-side">{side}</script>'
        f"<script>{script}</script></html>"
    )


def block(name: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


if __name__ == "__main__":
    sys.exit(main())
