import { Component } from "preact";
import { duration, short } from "./format.ts";
import { KINDS, MARKS } from "./protocol.ts";
import { ABOVE } from "./filter.ts";
import type { Spans } from "./spans.ts";
import type { Timeline, Window } from "./timeline.ts";

/** Height of a row in px, as in view.css. */
export const ROW = 24;
export const GLYPH: Record<string, string> = { overridden: "✎", error: "⚠", diverged: "≠", stale: "◷", running: "●", retried: "↻" };
/** Of marks that are not said by their own word. */
const SAYS: Record<string, string> = { overridden: "changed", stale: "stale reply" };
const WORD = { cell: "cell", span: "span", model: "model call", tool: "tool", retrieval: "retrieval", http: "request" } as const;

/** What all rows are drawn by. `rows` counts changes of the spans. */
export interface Drawn {
  spans: Spans;
  rows: number;
  folded: ReadonlySet<string>;
  keep: Uint8Array | null;
  active: number;
  open: string | null;
  stops: ReadonlySet<string>;
  timeline: Timeline;
  shown: Window;
}

interface RowProps {
  row: number;
  /** Its place in the list, from 0. */
  at: number;
  by: Drawn;
  /** A copy that stays at the top while its rows pass below; no part of the tree. */
  stuck?: boolean;
}

/**
 * One span. While one scrolls, every frame has some forty of them draw something anew, so its few nodes are made once
 * and written to: a frame leaves next to no garbage, and lays out nothing but the rows that came into sight.
 */
export class Row extends Component<RowProps> {
  #node: HTMLElement | null = null;

  /** Before any effect: one of them may look for the row that has the focus. */
  readonly #made = (node: HTMLElement | null): void => {
    this.#node = node;
    this.#write(this.props, null);
  };

  override shouldComponentUpdate(next: RowProps): boolean {
    this.#write(next, this.props);
    return false;
  }

  override render({ stuck }: RowProps) {
    return <div ref={this.#made} {...(stuck ? { "aria-hidden": true } : { role: "treeitem" })}>
      <span class="mark" role="img" /><span class="name"><span class="fold" aria-hidden="true" /><b /><i /></span>
      <span class="tokens" aria-hidden="true" /><span class="took" /><span class="lane"><s /></span>
    </div>;
  }

  #write({ row, at, by, stuck }: RowProps, was: RowProps | null): void {
    const node = this.#node;
    if (!node) return;
    if (at !== was?.at && !stuck) node.style.top = `${at * ROW}px`;
    const old = row === was?.row && by.rows === was.by.rows && by.spans === was.by.spans ? was.by : null;
    if (!old) said(node, by.spans, row);
    if (by.folded !== old?.folded || by.keep !== old.keep || by.active !== old.active || by.open !== old.open || by.stops !== old.stops) marked(node, row, by, stuck);
    if (by.timeline !== old?.timeline || by.shown.from !== old.shown.from || by.shown.to !== old.shown.to) bar(node.lastElementChild?.firstElementChild as HTMLElement, row, by);
  }
}

/** What the span is. */
function said(node: HTMLElement, spans: Spans, row: number): void {
  const [, name, tokens, took] = node.children;
  const [, title, note] = name?.children ?? [];
  const depth = spans.depth[row] ?? 0;
  node.dataset.row = String(row);
  node.setAttribute("aria-level", String(depth + 1));
  (name as HTMLElement).style.paddingLeft = `${Math.min(depth, 12) * 14}px`;
  write(title, spans.name[row] ?? "");
  write(note, spans.note[row] ?? "");
  write(tokens, short(spans.tokens[row] ?? NaN));
  write(took, duration(spans.seconds(row)));
}

/** How it stands: folded, open, changed, stopped at, ... */
function marked(node: HTMLElement, row: number, { spans, folded, keep, active, open, stops }: Drawn, stuck = false): void {
  const id = spans.id[row] ?? "";
  const kind = KINDS[spans.kind[row] ?? 0] ?? "span";
  const mark = MARKS[spans.mark[row] ?? 0] ?? "";
  const stop = stops.has(id);
  const fold = !spans.leaf(row) && !folded.has(id);
  const [sign, name] = node.children;
  node.className = ["row", kind, mark && `is-${mark}`, keep?.[row] === ABOVE && "dim-row", id === open && "is-open", stop && "is-stop"].filter(Boolean).join(" ");
  write(sign, stop ? "▶" : GLYPH[mark] ?? "");
  sign?.setAttribute("aria-label", WORD[kind] + (mark && `, ${SAYS[mark] ?? mark}`) + (stop ? ", stopped here" : ""));
  write(name?.children[0], spans.leaf(row) ? "" : fold ? "▾" : "▸");
  if (stuck) return;
  node.setAttribute("tabindex", row === active ? "0" : "-1");
  node.setAttribute("aria-selected", String(id === open));
  if (spans.leaf(row)) node.removeAttribute("aria-expanded");
  else node.setAttribute("aria-expanded", String(fold));
}

/**
 * From, to and until when it waited: a node as wide as the lane, whose two colours are the stops of a gradient, and of
 * which the rest is clipped away. As one scrolls every bar moves: it is painted anew, and nothing is laid out.
 */
function bar(node: HTMLElement, row: number, { spans, timeline, shown }: Drawn): void {
  const percent = (seconds: number): number => Math.min(Math.max((100 * (timeline.at(seconds) - shown.from)) / (shown.to - shown.from), -1), 101);
  const [from, to] = [percent(spans.start[row] ?? 0), percent(spans.until(row))];
  const first = spans.first[row] ?? NaN;
  node.style.cssText = to < 0 || from > 100 ? "display:none"
    : `clip-path:inset(0 min(${(100 - to).toFixed(2)}%,${(100 - from).toFixed(2)}% - 2px) 0 ${from.toFixed(2)}% round 2px)${Number.isNaN(first) ? "" : `;--wait:${percent(first).toFixed(2)}%`}`;
}

/** Recorded text is only ever text. A node that has said something keeps its text node. */
function write(node: Element | undefined, text: string): void {
  const held = node?.firstChild as Text | null | undefined;
  if (!held) node?.append(text);
  else if (held.data !== text) held.data = text;
}
