import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Desk, Look } from "./store.ts";
import { useSize } from "./hooks.ts";
import { Axis, Cuts, Now, zoomBy, Zooms } from "./waterfallBar.tsx";
import { type Drawn, Row, ROW } from "./row.tsx";
import { place, type Spans } from "./spans.ts";
import type { Timeline, Window } from "./timeline.ts";
import { plain } from "./keys.ts";

/** Rows drawn beyond the edges, so that a scroll does not show a gap. */
const SPARE = 4;

/** The tree of spans beside their waterfall: only the rows in sight are in the page, and the one that has the focus. */
export function Tree({ desk, look }: { desk: Desk; look: Look }) {
  const box = useRef<HTMLDivElement>(null);
  const { width, height } = useSize(box, { width: 800, height: 500 });
  // A scroll draws when another row comes to the top, not at each of its events.
  const [above, setAbove] = useState(0);
  const { spans, visible: rows, timeline } = desk;
  const at = Math.min(place(rows, Math.max(0, spans.row(look.active))), rows.length - 1);
  const active = rows[at] ?? -1;
  const focusNext = useRef(false);
  useStickToEnd(box, rows.length, look.running !== null);
  useLayoutEffect(() => {
    if (box.current && look.active !== null) inSight(box.current, at);
  }, [look.active, at]);
  useLayoutEffect(() => {
    if (!focusNext.current) return;
    focusNext.current = false;
    box.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  });

  const first = Math.min(above, Math.max(0, rows.length - 1));
  const from = Math.max(0, first - SPARE);
  const end = Math.min(rows.length, above + Math.ceil(height / ROW) + 1);
  const to = Math.min(rows.length, end + SPARE);
  const places = Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
  if (at >= 0 && at < from) places.unshift(at);
  if (at >= to) places.push(at);
  const slots = Math.ceil(height / ROW) + 2 * SPARE + 1;
  const shown = windowOf(look, timeline, spans, rows, first, end - 1);
  const drawn: Drawn = { spans, rows: look.rows, folded: look.folded, keep: desk.keep, active, open: look.open, stops: look.stops, timeline, shown };

  const go = (to: number): void => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (row === undefined) return;
    focusNext.current = true;
    const id = spans.id[row] ?? "";
    // With the detail open beside the tree, it follows the rows as one walks.
    desk.set(look.open !== null ? { active: id, open: id, editing: null } : { active: id });
  };
  const onKey = (event: KeyboardEvent): void => {
    const id = spans.id[active] ?? "";
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const branch = !spans.leaf(active);
    const shut = look.folded.has(id);
    const up = spans.parent(active);
    const moves: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + page),
      PageUp: () => go(at - page),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      Enter: () => desk.open(id),
      " ": () => desk.open(id),
      ArrowRight: () => (branch && shut ? desk.fold(id, false) : branch && go(at + 1)),
      ArrowLeft: () => (branch && !shut ? desk.fold(id, true) : up >= 0 && go(place(rows, up))),
      "+": () => zoomBy(desk, timeline, shown, 0.5),
      "-": () => zoomBy(desk, timeline, shown, 2),
      "0": () => desk.set({ zoom: "all" }),
    };
    const move = plain(event) ? moves[event.key] : undefined;
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    move();
  };
  const onClick = (event: MouseEvent): void => {
    const target = event.target as Element;
    const row = Number(target.closest<HTMLElement>("[data-row]")?.dataset.row ?? -1);
    const id = spans.id[row];
    if (id === undefined) return;
    focusNext.current = true;
    if (target.closest(".fold") && !spans.leaf(row)) {
      desk.fold(id, !look.folded.has(id));
      desk.set({ active: id });
    } else desk.open(id);
  };
  const onWheel = (event: WheelEvent): void => {
    const lane = (event.target as Element).closest(".lane")?.getBoundingClientRect();
    if (!lane || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    zoomBy(desk, timeline, shown, event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - lane.left) / lane.width);
  };

  const root = rows.length ? spans.root(rows[first] ?? 0) : -1;
  const stuck = root >= 0 && place(rows, root) < first ? root : -1;
  return <div class="tree">
    <div class="head">
      <span class="head-name">span</span><span class="tokens">tokens</span><span class="took">time</span>
      <div class="head-lane"><Axis desk={desk} timeline={timeline} shown={shown} width={width * 0.4} /><Zooms desk={desk} timeline={timeline} shown={shown} /></div>
    </div>
    <div class="scroll" ref={box} role="tree" aria-label={`Spans${desk.title ? ` of ${desk.title}` : ""}`} onKeyDown={onKey} onClick={onClick} onWheel={onWheel}
      onScroll={(event) => setAbove(Math.floor(event.currentTarget.scrollTop / ROW))}>
      {stuck >= 0 && <div class="stuck" role="none"><Row row={stuck} at={0} by={drawn} stuck /></div>}
      <div role="none" class="rows" style={`height:${rows.length * ROW}px`}>
        <Cuts timeline={timeline} shown={shown} />
        {look.stops.size > 0 && <Now timeline={timeline} shown={shown} spans={spans} stops={look.stops} />}
        {places.map((one) => {
          const row = rows[one] ?? 0;
          // Nodes are used again as one scrolls; the row with the focus keeps its own, so that a refresh leaves it there.
          return <Row key={one === at ? spans.id[row] : one % slots} row={row} at={one} by={drawn} />;
        })}
      </div>
    </div>
  </div>;
}

/** Bring a row into sight, with one row between it and the edge: a cell's heading may lie over the first one. */
function inSight(pane: HTMLElement, at: number): void {
  const y = at * ROW;
  if (y < pane.scrollTop + ROW) pane.scrollTop = y - ROW;
  else if (y + 2 * ROW > pane.scrollTop + pane.clientHeight) pane.scrollTop = y + 2 * ROW - pane.clientHeight;
}

/** While a cell records and the end is in sight, it stays in sight. */
function useStickToEnd(box: { readonly current: HTMLElement | null }, count: number, live: boolean): void {
  const before = useRef(0);
  useLayoutEffect(() => {
    const pane = box.current;
    if (pane && live && count > before.current && pane.scrollTop + pane.clientHeight > (before.current - 2) * ROW) pane.scrollTop = count * ROW;
    before.current = count;
  }, [box, count, live]);
}

function windowOf(look: Look, timeline: Timeline, spans: Spans, rows: Uint32Array, first: number, last: number): Window {
  const all = { from: 0, to: timeline.length };
  if (look.zoom === "all") return all;
  if (look.zoom !== "follow") return look.zoom;
  let [from, to] = [Infinity, -Infinity];
  for (let at = first; at <= last; at++) {
    const row = rows[at] ?? 0;
    if (!spans.leaf(row)) continue;
    from = Math.min(from, timeline.at(spans.start[row] ?? 0));
    to = Math.max(to, timeline.at(spans.until(row)));
  }
  return to > from ? { from, to } : all;
}
