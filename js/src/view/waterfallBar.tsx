import { useRef, useState } from "preact/hooks";
import type { Desk } from "./store.ts";
import { duration } from "./format.ts";
import type { Spans } from "./spans.ts";
import { zoomed, type Timeline, type Window } from "./timeline.ts";

interface Drag { from: number; to: number }

/** The axis above the bars: round moments, cuts, and a stretch to drag out for a closer look. */
export function Axis({ desk, timeline, shown, width }: { desk: Desk; timeline: Timeline; shown: Window; width: number }) {
  const node = useRef<HTMLDivElement>(null);
  const [drag, set] = useState<Drag | null>(null);
  const share = (event: PointerEvent): number => {
    const box = node.current?.getBoundingClientRect();
    return box ? Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) : 0;
  };
  const end = (): void => {
    if (drag && Math.abs(drag.to - drag.from) > 0.015) {
      const moment = (at: number): number => shown.from + at * (shown.to - shown.from);
      desk.set({ zoom: { from: moment(Math.min(drag.from, drag.to)), to: moment(Math.max(drag.from, drag.to)) } });
    }
    set(null);
  };
  return <div class="axis" ref={node} title="Drag to zoom in; double-click for all"
    onPointerDown={(event) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      set({ from: share(event), to: share(event) });
    }}
    onPointerMove={(event) => drag && set({ ...drag, to: share(event) })}
    onPointerUp={end} onPointerCancel={() => set(null)} onDblClick={() => desk.set({ zoom: "all" })}>
    {timeline.ticks(shown, Math.max(2, Math.floor(width / 60))).filter(({ at }) => shown.to - at > ((shown.to - shown.from) * 44) / width).map(({ at, text }) => <small key={text} style={left(at, shown)}>{text}</small>)}
    {drag && <span class="drag" style={`left:${100 * Math.min(drag.from, drag.to)}%;width:${100 * Math.abs(drag.to - drag.from)}%`} />}
  </div>;
}

function within(at: number, { from, to }: Window): boolean {
  return at >= from && at <= to;
}

function left(at: number, { from, to }: Window): string {
  return `left:${((100 * (at - from)) / (to - from)).toFixed(2)}%`;
}

/** Where time was cut out, through all rows. */
export function Cuts({ timeline, shown }: { timeline: Timeline; shown: Window }) {
  const seen = timeline.pauses.filter(({ at }) => within(at, shown)).slice(0, 60);
  return <div class="cuts" aria-hidden="true">
    {seen.map(({ at, seconds }) => <span key={at} style={left(at, shown)} title={`${duration(seconds)} without activity, cut out`} />)}
  </div>;
}

/** Where a stepped cell stands, through all rows. */
export function Now({ timeline, shown, spans, stops }: { timeline: Timeline; shown: Window; spans: Spans; stops: ReadonlySet<string> }) {
  const moments = [...stops].map((id) => spans.row(id)).filter((row) => row >= 0).map((row) => timeline.at(spans.start[row] ?? 0)).filter((at) => within(at, shown));
  return <div class="cuts now" aria-hidden="true">{moments.map((at) => <b key={at} style={left(at, shown)} />)}</div>;
}

/** Closer, farther, all: for hands on a keyboard, and for those who do not drag. */
export function Zooms({ desk, timeline, shown }: { desk: Desk; timeline: Timeline; shown: Window }) {
  const by = (factor: number): void => zoomBy(desk, timeline, shown, factor);
  const { zoom } = desk.look;
  return <span class="zooms" role="group" aria-label="Timeline">
    <button aria-label="Zoom in" title="Zoom in  +" onClick={() => by(0.5)}>+</button>
    <button aria-label="Zoom out" title="Zoom out  −" onClick={() => by(2)}>−</button>
    <button aria-pressed={zoom === "follow"} title="The time of the visible rows" onClick={() => desk.set({ zoom: zoom === "follow" ? "all" : "follow" })}>follow</button>
  </span>;
}

export function zoomBy(desk: Desk, timeline: Timeline, shown: Window, factor: number, about?: number): void {
  const next = zoomed(shown, timeline.length, factor, about);
  desk.set({ zoom: next.to - next.from >= timeline.length * 0.999 ? "all" : next });
}
