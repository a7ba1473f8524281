/** What a cell that runs shows in the notebook: where it stands still, and the line below it while it is taped. */
import type { NotebookPanel } from "@jupyterlab/notebook";

import type { Session, StepFrame, StepState } from "../view/protocol.ts";
import { Marks } from "./cellDecorations.ts";
import { LiveLine } from "./liveLine.ts";

/** What the bars know. */
interface Known {
  readonly session: Session | null;
  readonly step: StepState | null;
  asked(about: string, body: object): Promise<unknown>;
}

export class CellSigns {
  readonly #known: Known;
  readonly #marks: Marks;
  readonly #line: LiveLine;
  #marked: StepState | null = null;

  constructor(panel: NotebookPanel, known: Known) {
    this.#known = known;
    this.#marks = new Marks(panel);
    this.#line = new LiveLine(panel);
  }

  draw(): void {
    const { session, step } = this.#known;
    void this.#line.show(session?.running ?? null, step?.state === "stopped");
    if (step !== this.#marked) void this.#mark((this.#marked = step));
  }

  /** The cell that is stepped, and the line where the user's code stands. */
  async #mark(step: StepState | null): Promise<void> {
    const [first] = step?.state === "stopped" ? step.strands : [];
    const frames = first ? ((await this.#known.asked("step.frames", { strand: first.strand }).catch(() => [])) as StepFrame[]) : [];
    if (this.#marked === step) await this.#marks.show(step?.cell ?? "", frames.find(({ cell }) => cell !== "") ?? null);
  }
}
