/** Where a stepped cell shows in the view. The drawing is in the cards' bundle; a page that runs nothing has none of it. */
import type { Desk, Look } from "../store.ts";
import { Island } from "../lazyPanel.tsx";
import type { Work } from "../edit/index.ts";
import { Menu } from "../menu.tsx";
import { Slot, useStepper } from "./lazyStepper.ts";
import type { Stepper } from "./stepper.ts";

export { Slot, useStepper };

interface Place { desk: Desk; work: Work; stepper: Stepper | null; narrow: boolean }

/** Its bar, above list and detail. */
export function StepTop({ desk, work, stepper, narrow }: Place) {
  return stepper?.speaks ? <Island flat work={work} draw={(cards, place) => cards.drawStepBar(place, { desk, stepper, narrow })} /> : null;
}

/** The stop, where the person looks at it; null where another span is open, or the list is wanted. */
export function stepSide({ desk, work, stepper, narrow }: Place, { open }: Look) {
  return stepper?.inFront(open) ? <Island work={work} draw={(cards, place) => cards.drawStop(place, { desk, work, stepper, narrow })} /> : null;
}

/** What a key does; undefined where it does nothing. */
export function stepKey(key: string, desk: Desk, slot: Slot): (() => void) | undefined {
  return slot.stepper?.on ? slot.stepper.key(key) : key === "." && desk.able.step ? () => slot.begin() : undefined;
}

/** Begins to step; beside it, how. */
export function StepButton({ desk, work, slot }: { desk: Desk; work: Work; slot: Slot }) {
  const on = useStepper(slot)?.on ?? false;
  const [label, says] = desk.able.cells ? ["Step the selected cell", "Run it, and stop before each call  ."] : ["Step the next cell", "The next cell that runs stops before each call  ."];
  return <span class="modes">
    <button class="mode-step" aria-label={label} aria-pressed={on} title={says} onClick={() => { if (!on) slot.begin(); }}>Step</button>
    <Menu label="How to step" word="" off={on}>{(close) =>
      <Island work={work} draw={(cards, place) => cards.drawStepStart(place, { cells: desk.able.cells, onBegin: (how) => slot.begin(how), onClose: close })} />}</Menu>
  </span>;
}
