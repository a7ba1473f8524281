/** The line below a cell that is taped now: its calls so far, what it waits for, and for how long it has run. */
import type { Cell } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";

import { duration, many } from "../view/format.ts";
import type { Running } from "../view/protocol.ts";
import { findCell } from "./cells.ts";

/** ms for which a cell may run without a line: most are over by then. */
const SHORT = 400;
const TICK = 500;
const DOING: Partial<Record<string, string>> = { replay: "▶ replaying", live: "● running" };

export class LiveLine {
  readonly #panel: NotebookPanel;
  readonly #root = document.createElement("div");
  readonly #seen = document.createElement("span");
  /** What screen readers hear: each call, and not each second. */
  readonly #said = document.createElement("span");
  #running: Running | null = null;
  #stopped = false;
  /** When it began, on this page's clock. */
  #since = 0;
  #timer = 0;
  #cell: Promise<Cell | undefined> = Promise.resolve(undefined);

  constructor(panel: NotebookPanel) {
    this.#panel = panel;
    this.#root.className = "tape-live";
    this.#seen.ariaHidden = "true";
    this.#said.className = "tape-unseen";
    this.#said.role = "status";
    this.#root.append(this.#seen, this.#said);
    panel.disposed.connect(() => this.#end());
  }

  async show(running: Running | null, stopped: boolean): Promise<void> {
    const before = this.#running;
    this.#running = running;
    this.#stopped = stopped;
    if (!running) { this.#end(); return; }
    this.#since = performance.now() - running.seconds * 1000;
    if (before?.cell !== running.cell) this.#cell = findCell(this.#panel, running.cell);
    const cell = await this.#cell;
    if (this.#running !== running || !cell) return;
    this.#timer ||= window.setInterval(() => this.#draw(cell), TICK);
    this.#draw(cell);
  }

  #end(): void {
    window.clearInterval(this.#timer);
    this.#timer = 0;
    this.#root.remove();
  }

  #draw(cell: Cell): void {
    const running = this.#running;
    const ran = performance.now() - this.#since;
    if (!running || ran < SHORT) return;
    if (this.#root.parentNode !== cell.node) cell.node.append(this.#root);
    const { mode, calls, waits } = running;
    const facts = [DOING[mode] ?? "● recording", `${many(calls, "call")} so far`, this.#stopped ? "stopped: step on, or continue" : waits ? `waits for ${waits}` : ""].filter(Boolean).join(" · ");
    this.#seen.textContent = this.#stopped ? facts : `${facts} · ${duration(ran / 1000)}`;
    if (this.#said.textContent !== facts) this.#said.textContent = facts;
  }
}
