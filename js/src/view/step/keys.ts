/** The keys of a stopped cell, and what each does: one list for the handler, the buttons' hints and screen readers. */
import type { StepWord } from "../protocol.ts";

/** What a command needs of the stepper. */
interface Steppable {
  at: { call: { span: string } } | null;
  can: (word: StepWord) => boolean;
  do: (word: StepWord, how?: { span?: string }) => Promise<unknown>;
}

export interface Command { word: StepWord; key: string; name: string; says: string; sign: string }

export const COMMANDS: readonly Command[] = [
  { word: "back", key: ",", name: "Back", says: "Back to the call before this one: the cell is run again up to there, from the tape", sign: "◂" },
  { word: "over", key: ".", name: "Step", says: "Give the call this reply, and stop at the next call", sign: "▸" },
  { word: "model", key: "m", name: "Model", says: "Run to the next model call", sign: "" },
  { word: "tool", key: "t", name: "Tool", says: "Run to the next tool call", sign: "" },
  { word: "continue", key: "c", name: "Continue", says: "Run on, to the next breakpoint or to the end", sign: "▸▸" },
  { word: "to", key: "g", name: "To here", says: "Run to the call that is selected in the list, or back to it", sign: "" },
  { word: "stop", key: "q", name: "Stop", says: "End the cell here; variables are as they were before it", sign: "■" },
];

/** Whether the command can be given now. */
export function able({ word }: Command, stepper: Steppable, selected: string | null): boolean {
  return stepper.can(word) && (word !== "to" || (selected?.includes("/") === true && selected !== stepper.at?.call.span));
}

export function run(command: Command, stepper: Steppable, selected: string | null): void {
  if (able(command, stepper, selected)) void stepper.do(command.word, command.word === "to" && selected !== null ? { span: selected } : {});
}
