/**
 * A cell that is stepped, in a page that was opened while it runs: what it has shown comes from the kernel, and what it
 * shows from then on is heard on the kernel's own line, where it is said in the name of a message of another page.
 */
import type { Cell, CellOutput } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { IOPubMessage, Kernel } from "@jupyterlab/services";

import type { StepShown } from "../view/protocol.ts";
import { findCell } from "./cells.ts";
import { isRecord } from "./model.ts";
import type { Link } from "./kernelConnection.ts";

const SHOWN = new Set(["stream", "display_data", "execute_result", "error"]);
const GONE = /restarting|dead|terminating/;
/** By the message that asked for the cell, the way to hear it no more: the line may be lost and found again. */
const followed = new Map<string, () => void>();

/** Ask what the stepped cell has shown, and follow it from there. */
export function follow({ panel, kernel }: Link, ask: (hear: (message: Record<string, unknown>) => void) => void): void {
  // What comes after the answer is what it does not hold: it is heard from that moment on.
  ask(({ answer }) => { if (kernel && isRecord(answer)) void from(panel, kernel, answer as unknown as StepShown); });
}

async function from(panel: NotebookPanel, kernel: Kernel, shown: StepShown): Promise<void> {
  const early: IOPubMessage[] = [];
  let take = (message: IOPubMessage): void => void early.push(message);
  const hear = (_: unknown, message: IOPubMessage): void => {
    if (message.parent_header.msg_id === shown.asked) take(message);
  };
  const status = (_: unknown, now: string): void => {
    if (GONE.test(now)) leave();
  };
  const off = (): void => {
    kernel.iopubMessage.disconnect(hear);
    kernel.statusChanged.disconnect(status);
    followed.delete(shown.asked);
  };
  let leave = off;
  followed.get(shown.asked)?.();
  followed.set(shown.asked, off);
  kernel.iopubMessage.connect(hear);
  kernel.statusChanged.connect(status);
  await panel.context.ready;
  const cell = await findCell(panel, shown.cell);
  const own = cell && Followed.of(cell, shown);
  if (!own) { off(); return; }
  leave = () => {
    off();
    own.end();
  };
  take = (message) => {
    if (!own.hear(message)) leave();
  };
  early.forEach((message) => take(message));
}

/** One cell whose outputs are put in by us. */
class Followed {
  readonly #cell: Cell;
  readonly #shown: StepShown;
  readonly #outputs: NonNullable<Cell["model"]["outputs"]>;
  /** By the name of a display, where it stands: it may be shown anew. */
  readonly #named = new Map<string, Set<number>>();

  /** Nothing where the cell is no code, or where this page hears it anyway. */
  static of(cell: Cell, shown: StepShown): Followed | undefined {
    const { outputs } = cell.model;
    return shown.asked && outputs && !askedBy(cell) ? new Followed(cell, shown, outputs) : undefined;
  }

  private constructor(cell: Cell, shown: StepShown, outputs: NonNullable<Cell["model"]["outputs"]>) {
    this.#cell = cell;
    this.#shown = shown;
    this.#outputs = outputs;
    cell.model.executionCount = null;
    cell.model.executionState = "running";
    outputs.clear();
    for (const { display_id: name, ...output } of shown.outputs) this.#add(output, name);
  }

  /** Whether it is followed further. */
  hear({ header: { msg_type: kind }, content }: IOPubMessage): boolean {
    if (askedBy(this.#cell)) return false; // it was run again, from this page
    const { transient, ...rest } = content;
    const name = transient?.display_id;
    if (SHOWN.has(kind)) this.#add({ ...rest, output_type: kind }, name);
    else if (kind === "clear_output") this.#clear(rest.wait === true);
    else if (kind === "update_display_data") this.#update({ ...rest, output_type: "display_data" }, name);
    return !(kind === "status" && rest.execution_state === "idle");
  }

  end(): void {
    if (askedBy(this.#cell)) return;
    this.#cell.model.executionState = "idle";
    this.#cell.model.executionCount = this.#shown.count;
  }

  #add(output: CellOutput, name?: string): void {
    this.#outputs.add(output);
    if (name !== undefined) this.#named.set(name, (this.#named.get(name) ?? new Set()).add(this.#outputs.length - 1));
  }

  #clear(wait: boolean): void {
    this.#outputs.clear(wait);
    this.#named.clear();
  }

  #update(output: CellOutput, name = ""): void {
    for (const index of this.#named.get(name) ?? []) this.#outputs.set(index, output);
  }
}

/** Whether this page has asked for what the cell runs. */
function askedBy({ outputArea }: Cell): boolean {
  return outputArea?.future?.isDisposed === false;
}
