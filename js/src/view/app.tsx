import { useRef } from "preact/hooks";
import { Bar, Chips } from "./toolbar.tsx";
import { useLook, type Desk, type Look } from "./store.ts";
import { useWork, WorkCards, type Work } from "./edit/index.ts";
import { Island } from "./lazyPanel.tsx";
import { Foot, Live } from "./statusBar.tsx";
import { useFocusKept, useSize } from "./hooks.ts";
import { focusRow, plain, typing } from "./keys.ts";
import { Failed, Nothing } from "./placeholders.tsx";
import { stepKey, stepSide, StepTop, useStepper, type Slot } from "./step/index.tsx";
import { Tree } from "./tree.tsx";

/** Below this width the detail slides over the list. */
const NARROW = 560;

export function App({ desk, work, slot }: { desk: Desk; work: Work; slot: Slot }) {
  const look = useLook(desk);
  const stepper = useStepper(slot);
  const { phase } = useWork(work);
  const root = useRef<HTMLElement>(null);
  const narrow = useSize(root, { width: 900, height: 500 }).width < NARROW;
  useFocusKept(root);
  const step = { desk, work, stepper, narrow };
  const side = phase !== "idle" ? <WorkCards work={work} able={desk.able} /> : stepSide(step, look) ?? (look.open !== null && <Island work={work} draw={(side, place) => side.drawDetail(place, { desk, work, narrow })} />);
  const rows = desk.visible.length > 0;
  const busy = look.error !== null && rows;
  return <section ref={root} class={`app${narrow ? " narrow" : ""}${side ? " sided" : ""}${stepper?.on ? " stepping" : ""}`} aria-label="Tape" {...(desk.door === "page" ? { role: "main" } : {})} onKeyDown={(event) => keys(event, desk, look, work, slot)}>
    <h1 class="tape-hidden">{desk.title ? `Tape of ${desk.title}` : "Tape"}</h1>
    <Bar desk={desk} look={look} work={work} slot={slot} narrow={narrow} />
    <Chips desk={desk} look={look} />
    <StepTop {...step} />
    {look.running && !stepper?.on && <Live key={look.running.cell} desk={desk} running={look.running} />}
    {busy && <Failed text={look.error ?? ""} again={() => void desk.start()} />}
    <div class="split">
      <div class="list" inert={narrow && Boolean(side)}>
        {rows ? <Tree desk={desk} look={look} /> : <Nothing desk={desk} look={look} />}
        <Foot desk={desk} look={look} />
      </div>
      {side && !narrow && <Island flat work={work} draw={(side, place) => side.drawDivider(place)} />}
      {side && <div class="side" tabIndex={-1}>{side}</div>}
    </div>
  </section>;
}

/** Letters that act on the open span, from anywhere but a field. */
function keys(event: KeyboardEvent, desk: Desk, look: Look, work: Work, slot: Slot): void {
  if (!plain(event) || typing(event) || event.defaultPrevented) return;
  const root = event.currentTarget as HTMLElement;
  const span = look.open ?? look.active;
  const acts: Record<string, (() => void) | false> = {
    "/": () => root.querySelector<HTMLElement>("[data-search]")?.focus(),
    e: span !== null && desk.able.override && (() => {
      desk.open(span);
      desk.set({ editing: "reply" });
    }),
    d: span !== null && (() => desk.open(span, "diff")),
    r: span !== null && desk.able.rerun && (() => void work.plan(look.session?.take ?? "", [span])),
    Escape: look.open !== null && (() => {
      desk.close();
      focusRow(root);
    }),
  };
  const act = stepKey(event.key, desk, slot) ?? acts[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}
