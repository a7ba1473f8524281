/** Runs cells of a notebook in place, one at a time, as the kernel asks. Works while another tab is in front. */
import type { Cell } from "@jupyterlab/cells";
import { NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";

export type State = "ok" | "error" | "missing" | "canceled";
type Tell = (message: { type: "running"; id: string } | { type: "ran"; id: string; state: State; text: string }) => void;

export class Runner {
  readonly #panel: NotebookPanel;
  readonly #tell: Tell;
  /** Asks in the order they came; the first is the one that runs. */
  #queue: { id: string; cell: string }[] = [];
  #running = "";

  constructor(panel: NotebookPanel, tell: Tell) {
    this.#panel = panel;
    this.#tell = tell;
  }

  run(id: string, cell: string): void {
    this.#tell({ type: "running", id });
    this.#queue.push({ id, cell });
    if (!this.#running) void this.#next();
  }

  /** Withdraw a cell that waits; interrupt the kernel where it runs. */
  cancel(id: string): void {
    if (this.#running === id) {
      void this.#panel.sessionContext.session?.kernel?.interrupt();
      return;
    }
    const waiting = this.#queue.length;
    this.#queue = this.#queue.filter((each) => each.id !== id);
    if (this.#queue.length < waiting) this.#tell({ type: "ran", id, state: "canceled", text: "" });
  }

  /** The kernel has gone: nobody waits for what was asked. */
  drop(): void {
    this.#queue = [];
  }

  async #next(): Promise<void> {
    for (let ask = this.#queue.shift(); ask; ask = this.#queue.shift()) {
      this.#running = ask.id;
      const { state, text } = await this.#ran(ask.cell).catch((error: unknown) => ({ state: "error" as const, text: String(error) }));
      this.#running = "";
      this.#tell({ type: "ran", id: ask.id, state, text });
    }
  }

  async #ran(id: string): Promise<{ state: State; text: string }> {
    const { content, context, sessionContext } = this.#panel;
    await context.ready;
    const cell = content.widgets.find(({ model }) => model.id === id);
    if (cell?.model.type !== "code") return { state: "missing", text: "" };
    const focused = innermost();
    const number = cell.model.executionCount ?? null;
    const ok = await NotebookActions.runCells(content, [cell], sessionContext);
    if (number !== null) cell.model.executionCount = number; // its result is Out[that] in the kernel
    if (focused?.isConnected && innermost() !== focused) focused.focus({ preventScroll: true });
    return ok ? { state: "ok", text: "" } : { state: "error", text: failure(cell) };
  }
}

/** Run a cell as its Run button does; the focus stays where it is. */
export async function runCell({ content, sessionContext }: NotebookPanel, cell: Cell): Promise<boolean> {
  const focused = innermost();
  const ran = NotebookActions.runCells(content, [cell], sessionContext);
  if (focused?.isConnected && innermost() !== focused) focused.focus({ preventScroll: true });
  return ran;
}

/** The focused element, in whatever shadow root: NotebookActions may move the focus to the notebook. */
function innermost(): HTMLElement | null {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active instanceof HTMLElement ? active : null;
}

function failure(cell: Cell): string {
  const error = cell.model.outputs?.toJSON().findLast(({ output_type }) => output_type === "error");
  return error ? `${error.ename ?? ""}: ${error.evalue ?? ""}` : "the cell did not run";
}
