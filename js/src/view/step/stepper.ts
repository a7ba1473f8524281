/** A cell that stops before its calls, as one view sees it: where it stands, and what the person has it do. Plain data. */
import { Told, useTold } from "../hooks.ts";
import type { Desk } from "../store.ts";
import type { StepDo, StepState, StepStrand, StepWord } from "../protocol.ts";
import { COMMANDS, run } from "./keys.ts";

/** A place where the cell stood, for comparing its variables then with those of now. */
export interface Stood { place: string; nth: number; title: string }
/** How a cell is stepped. */
export interface StepHow { breaks: string[]; record: boolean }
/** What of the stopped call is being written: its reply as in the viewer, one by hand, a fault, the request. */
export type Writing = "reply" | "hand" | "fault" | "request" | null;

const PLACES_KEPT = 100;

export class Stepper extends Told {
  state: StepState | null = null;
  /** What could not be done, as the kernel says it. */
  wrong = "";
  /** What a person should know who has asked to step. */
  told = "";
  /** Whether the stop stands in front of the list where there is room for one of them only, and of another span's detail. */
  front = true;
  writing: Writing = null;
  stood: readonly Stood[] = [];
  /** The stop to draw: the one in front, and while the cell runs to its next stop the last one. */
  shown: StepStrand | null = null;
  readonly #desk: Desk;
  #chosen = "";
  /** The revision at which the last command was given: until the next one nothing else is asked for. */
  #asked = -1;

  constructor(desk: Desk) {
    super();
    this.#desk = desk;
  }

  /** Whether a cell is being stepped. */
  get on(): boolean {
    return this.state !== null && this.state.state !== "over";
  }

  /** Who stands in front: the strand that was chosen, else the first one. */
  get at(): StepStrand | null {
    const strands = this.state?.state === "stopped" ? this.state.strands : [];
    return strands.find(({ strand }) => strand === this.#chosen) ?? strands[0] ?? null;
  }

  /** A command was given, and nothing has come of it yet. */
  get busy(): boolean {
    return this.#asked === this.state?.revision;
  }

  /** Whether there is something to say above the list. */
  get speaks(): boolean {
    return this.state !== null || this.wrong !== "" || this.told !== "";
  }

  /** Whether the stop stands beside the list, where `open` is the span that is open there. */
  inFront(open: string | null): boolean {
    return this.on && this.shown !== null && (open === null ? this.front : open === this.shown.call.span);
  }

  /** What a key does; undefined where it does nothing. */
  key(key: string): (() => void) | undefined {
    const { open, active } = this.#desk.look;
    if (key === "e" && this.can("edit") && this.inFront(open)) return () => this.open("reply");
    const command = COMMANDS.find((each) => each.key === key);
    return command && (() => run(command, this, active));
  }

  can(word: StepWord): boolean {
    if (word === "stop") return this.on;
    return !this.busy && (this.at?.call.can.includes(word) ?? false);
  }

  async do(word: StepWord, more: Omit<StepDo, "do" | "strand" | "revision"> = {}): Promise<void> {
    const { state, at } = this;
    if (!state || !this.can(word)) return;
    this.#asked = state.revision;
    this.#set({ wrong: "" });
    try {
      await this.#desk.client.ask("step.do", { ...more, do: word, revision: state.revision, ...(at ? { strand: at.strand } : {}) });
      if (this.writing) this.#set({ writing: null });
    } catch (error) {
      this.#asked = -1;
      this.#set({ wrong: (error as Error).message });
      if (word === "edit" || word === "request" || word === "answer") throw error; // said where it was written, too
    }
  }

  /** Step a cell: the one that is selected in the notebook, or (where no cell can be run from here) the next that runs. */
  async begin(how: StepHow = { breaks: [], record: false }): Promise<void> {
    this.#set({ wrong: "", told: "" });
    const { client, able: { cells } } = this.#desk;
    try {
      await client.ask(cells ? "step.cell" : "step.arm", { cell: "", take: "", ...how });
      if (!cells) this.#set({ told: "The next cell that you run stops at each call." });
    } catch (error) {
      this.#set({ wrong: (error as Error).message });
    }
  }

  choose(strand: string): void {
    this.#chosen = strand;
    this.#set({ writing: null, wrong: "" });
    this.#show();
  }

  show(front: boolean): void {
    this.#set({ front });
  }

  open(writing: Writing): void {
    this.#set({ writing, front: true });
  }

  /** What ended is not looked at any more. */
  dismiss(): void {
    if (!this.on) this.#set({ state: null, wrong: "", told: "" });
  }

  /** Take a state as the kernel told it. */
  hear(state: StepState): void {
    const before = this.state;
    if (!before && state.state === "over") return; // it was put away, or never seen
    if (before && before.state !== "over" && state.revision <= before.revision) return;
    const stood = this.at;
    if (!before || before.state === "over") {
      this.stood = [];
      this.shown = null;
    }
    this.#asked = -1;
    this.#set({ state, wrong: "", told: "" });
    this.#desk.set({ stops: new Set(this.on ? state.strands.map(({ call }) => call.span) : []) });
    if (!this.on && this.#desk.look.open === this.shown?.call.span) this.#desk.close();
    if (state.take && state.take !== (before?.take ?? "")) void this.#desk.change("session", {}); // there is a take now, which the view follows
    const { at } = this;
    if (!at) return;
    this.#remember(state.strands);
    if (stood?.strand === at.strand && stood.call.place === at.call.place) this.#set({ shown: at });
    else this.#show();
  }

  #show(): void {
    const { at } = this;
    this.#set({ front: true, writing: null, shown: at });
    if (at) this.#desk.stand(at.call.span);
  }

  #remember(strands: readonly StepStrand[]): void {
    const now = strands.map(({ call: { place, nth, title } }) => ({ place, nth, title }));
    const earlier = this.stood.filter(({ place }) => now.every((one) => one.place !== place));
    this.stood = [...earlier, ...now].slice(-PLACES_KEPT);
  }

  #set(change: Partial<Pick<Stepper, "state" | "wrong" | "told" | "front" | "writing" | "shown">>): void {
    Object.assign(this, change);
    this.tell();
  }
}

/** Draws anew when the stepper changes. */
export function useStepper(stepper: Stepper): Stepper {
  return useTold(stepper, () => stepper);
}
