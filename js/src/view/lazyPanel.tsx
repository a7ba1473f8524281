/**
 * Places for the cards, whose code is a bundle of its own: it is loaded when the first of them opens and draws into an
 * element that the view gives it.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Desk } from "./store.ts";
import type { DetailProps } from "./detail.tsx";
import type { Filter } from "./filter.ts";
import type { Able, Edit, Session } from "./protocol.ts";
import type { StepProps } from "./step/bar.tsx";
import type { StopProps } from "./step/pane.tsx";
import type { StartProps } from "./step/start.tsx";
import type { Stepper } from "./step/stepper.ts";
import { useLate } from "./edit/widgets.tsx";
import { useWork, type Work } from "./edit/store.ts";

/** Change one reply: stands in place of the detail's panel. */
export interface PaneProps {
  work: Work;
  span: string;
  /** Open at its faults. */
  start?: "fault" | undefined;
  /** A cell stands at this call: the edit is its answer, and is saved where the step's edits go. */
  serve?: ((edit: Edit, accept: boolean) => Promise<void>) | undefined;
  onClose: () => void;
}
export interface CardsProps { work: Work; able: Able }
export interface TakesProps extends CardsProps { session: Session; onClose: () => void }

export interface ChoicesProps { desk: Desk; filter: Filter }

/** What the bundle of the cards exports. Drawing again into the same place updates it. */
export interface CardsModule {
  drawCards: (place: HTMLElement, props: CardsProps) => void;
  /** All about one span. */
  drawDetail: (place: HTMLElement, props: DetailProps) => void;
  /** Between the list and what stands beside it. */
  drawDivider: (place: HTMLElement) => void;
  /** What the button of the takes opens. */
  drawTakes: (place: HTMLElement, props: TakesProps) => void;
  /** What the button of the filters opens. */
  drawChoices: (place: HTMLElement, props: ChoicesProps) => void;
  drawStepBar: (place: HTMLElement, props: StepProps) => void;
  drawStop: (place: HTMLElement, props: StopProps) => void;
  /** What the button beside Step opens. */
  drawStepStart: (place: HTMLElement, props: StartProps) => void;
  newStepper: (desk: Desk) => Stepper;
  /** Look for the words of the filter in bodies, too. */
  find: (desk: Desk) => Promise<void>;
  clear: (place: HTMLElement) => void;
}

/** The card in front: plan, progress, divergence or comparison; nothing while there is no work. */
export function WorkCards(props: CardsProps) {
  return useWork(props.work).phase === "idle" ? null : <Island work={props.work} draw={(cards, place) => cards.drawCards(place, props)} />;
}

/** `flat` is as high as what is drawn; else it fills its place. */
export function Island({ work, draw, flat }: { work: Work; draw: (cards: CardsModule, place: HTMLElement) => void; flat?: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const [cards, set] = useState<CardsModule | null>(null);
  const [wrong, fail] = useState("");
  const late = useLate(!cards && !wrong);
  const load = () => {
    fail("");
    work.cards().then(set, (error: unknown) => fail((error as Error).message));
  };
  useEffect(load, [work]);
  useLayoutEffect(() => {
    if (cards && place.current) draw(cards, place.current);
  });
  useLayoutEffect(() => {
    const node = place.current;
    return () => {
      if (cards && node) cards.clear(node);
    };
  }, [cards]);
  return <div class={flat ? "" : "tape-island"}>
    <div ref={place} />
    {late && <p class="tape-dim" role="status">Loading…</p>}
    {wrong && <p class="tape-wrong" role="alert">{wrong} <button onClick={load}>Try again</button></p>}
  </div>;
}
