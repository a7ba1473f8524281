/**
 * The place of the stepper in a view: its code comes with the cards, when a cell is first stepped. Until then this hears
 * for it. A probe is answered at once: the kernel waits for it before the cell begins.
 */
import { Told, useTold } from "../hooks.ts";
import type { Desk } from "../store.ts";
import type { Work } from "../edit/index.ts";
import type { StepState } from "../protocol.ts";
import type { StepHow, Stepper } from "./stepper.ts";

export class Slot extends Told {
  stepper: Stepper | null = null;
  readonly #desk: Desk;
  readonly #work: Work;
  #made: Promise<Stepper> | null = null;

  constructor(desk: Desk, work: Work) {
    super();
    this.#desk = desk;
    this.#work = work;
    const { client } = desk;
    client.on<{ id: string }>("step.probe", ({ id }) => void client.ask("step.here", { knock: id }).catch(() => undefined));
    client.on<StepState>("step", (state) => this.#with((stepper) => stepper.hear(state)));
  }

  /** What there is, for a view that was just opened: a stop outlives the page that showed it. From now on it is told. */
  async hello(): Promise<void> {
    if (!this.#desk.able.step) return;
    const state = await this.#desk.client.ask<StepState | null>("step").catch(() => null); // a kernel of another version
    if (state) this.#with((stepper) => stepper.state ?? stepper.hear(state)); // what was told meanwhile is newer
  }

  begin(how?: StepHow): void {
    this.#with((stepper) => void stepper.begin(how));
  }

  #with(then: (stepper: Stepper) => unknown): void {
    this.#ready().then(then, (error: unknown) => this.#desk.set({ error: `The stepped cell cannot be shown: ${(error as Error).message}` }));
  }

  #ready(): Promise<Stepper> {
    this.#made ??= this.#work.cards().then(({ newStepper }) => {
      this.stepper = newStepper(this.#desk);
      this.stepper.listen(() => this.tell());
      return this.stepper;
    });
    this.#made.catch(() => (this.#made = null)); // tried again
    return this.#made;
  }
}

/** The stepper, once there is one; draws anew when it changes. */
export function useStepper(slot: Slot): Stepper | null {
  return useTold(slot, () => slot.stepper);
}
