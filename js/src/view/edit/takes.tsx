/** The button of the takes; what it opens is a card. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Able, Session } from "../protocol.ts";
import { Island } from "./island.tsx";
import { escape } from "./small.tsx";
import type { Work } from "./work.ts";

export function TakeMenu({ work, session, able }: { work: Work; session: Session; able: Able }) {
  const [open, set] = useState(false);
  const menu = useRef<HTMLDivElement>(null);
  const close = () => {
    set(false);
    menu.current?.querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => menu.current && !event.composedPath().includes(menu.current) && set(false);
    window.addEventListener("pointerdown", outside, true);
    return () => window.removeEventListener("pointerdown", outside, true);
  }, [open]);
  return <div ref={menu} class="tape-takes" onKeyDown={(event) => escape(event, open ? close : undefined)}>
    <button class={session.take ? "tape-taken" : ""} aria-expanded={open} title="The recording and its takes" onClick={() => set(!open)}>
      {session.take ? `take: ${session.take}` : "the recording"} ▾</button>
    {open && <div class="tape-popup"><Island work={work} draw={(cards, place) => cards.drawTakes(place, { work, session, able, onClose: close })} /></div>}
  </div>;
}
