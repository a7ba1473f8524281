/** What is said of a stop, in one place: the bar, the pane and screen readers say the same. */
import type { StepCall, StepFrame, StepState, StepStrand } from "../protocol.ts";

const KIND = { cell: "cell", span: "span", model: "model call", tool: "tool call", retrieval: "retrieval", http: "request" } as const;

export function says(state: StepState, at: StepStrand | null): string {
  switch (state.state) {
    case "running": return "Running to the next stop";
    case "rewinding": return "Going back: the cell is run again up to there";
    case "over": return state.note || "The cell has ended.";
    case "stopped": return at ? `Stopped before call ${at.call.nth}` : "Stopped";
  }
}

export function kind(call: StepCall): string {
  return KIND[call.kind];
}

/** What becomes of it by itself. */
export function fate({ would, edited }: StepCall): string {
  if (would === "live") return "goes out when you step";
  if (would === "refuse") return "not on the tape: refused when you step";
  return edited ? "answered with your reply" : "answered from the tape";
}

export function place({ file, cell, function: name, line }: StepFrame): string {
  const where = cell ? file || "cell" : (file.split(/[\\/]/).pop() ?? file);
  return `${where}, line ${line}${name && name !== "<module>" ? ` in ${name}` : ""}`;
}
