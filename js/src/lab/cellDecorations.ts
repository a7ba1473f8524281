/** A stepped cell in the notebook: which cell stands still, and at which line. */
import { EditorView, Decoration, type DecorationSet } from "@codemirror/view";
import { StateEffect, StateField } from "@codemirror/state";
import type { Cell } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";

import { findCell } from "./cells.ts";

const STOPPED = "tape-stopped";
const LINE = "tape-stopped-line";
const here = StateEffect.define<number>();
/** Lines are counted from 1; 0 takes the mark away. */
const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, { effects, state }) {
    for (const effect of effects) {
      if (effect.is(here)) marks = effect.value >= 1 && effect.value <= state.doc.lines ? Decoration.set(Decoration.line({ class: LINE }).range(state.doc.line(effect.value).from)) : Decoration.none;
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export interface Place { cell: string; line: number }

export class Marks {
  readonly #panel: NotebookPanel;
  #stopped: Cell | undefined;
  #lined: Cell | undefined;
  /** Grows with each call: cells are found in their own time, and only the last answer counts. */
  #turn = 0;

  constructor(panel: NotebookPanel) {
    this.#panel = panel;
  }

  /** Mark the cell that runs, and the line where it stands; without a cell take both marks away. */
  async show(cell: string, at: Place | null): Promise<void> {
    const turn = ++this.#turn;
    const found = async (name = "") => (name ? findCell(this.#panel, name) : undefined);
    const [stopped, lined] = await Promise.all([found(cell), found(at?.cell)]);
    if (turn !== this.#turn) return;
    if (this.#stopped !== stopped) this.#stopped?.node.classList.remove(STOPPED);
    stopped?.node.classList.add(STOPPED);
    if (this.#lined !== lined) line(this.#lined, 0);
    line(lined, at?.line ?? 0);
    this.#stopped = stopped;
    this.#lined = lined;
  }
}

function line(cell: Cell | undefined, number: number): void {
  const view = cell?.editor?.editor; // none while the cell is out of sight
  if (!(view instanceof EditorView)) return;
  if (!view.state.field(marked, false)) view.dispatch({ effects: StateEffect.appendConfig.of(marked) });
  view.dispatch({ effects: here.of(number) });
}
