/**
 * Places for the cards, whose code is a bundle of its own: it is loaded when the first of them opens and draws into an
 * element that the view gives it.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLate } from "./edit/widgets.tsx";
import { useWork, type CardsModule, type CardsProps, type Work } from "./edit/store.ts";

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
