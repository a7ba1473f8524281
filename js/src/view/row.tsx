import { Component } from "preact";
import { duration, short } from "./human.ts";
import { KINDS, MARKS } from "./protocol.ts";
import { ABOVE } from "./filter.ts";
import type { Spans } from "./spans.ts";
import type { Timeline, Window } from "./timeline.ts";

/** Height of a row in px, as in view.css. */
export const ROW = 24;
export const GLYPH = { "": "", overridden: "✎", error: "⚠", diverged: "≠", stale: "◷", running: "●" } as const;
const SAYS = { "": "", overridden: ", changed", error: ", error", diverged: ", diverged", stale: ", stale reply", running: ", running" } as const;
const WORD = { cell: "cell", span: "span", model: "model call", tool: "tool", retrieval: "retrieval", http: "request" } as const;

/** Everything that a row draws, as plain values: it draws anew only when one of them changes. */
export interface RowProps {
  row: number;
  top: number;
  name: string;
  note: string;
  depth: number;
  kind: (typeof KINDS)[number];
  mark: (typeof MARKS)[number];
  took: string;
  tokens: string;
  bar: string;
  fold: "" | "open" | "shut";
  dim: boolean;
  active: boolean;
  open: boolean;
  /** A stepped cell stands at it. */
  stop: boolean;
  /** A copy that stays at the top while its rows pass below; no part of the tree. */
  stuck?: boolean;
}

export function rowProps(spans: Spans, row: number, at: number, look: { folded: ReadonlySet<string>; keep: Uint8Array | null; timeline: Timeline; shown: Window; active: number; open: string | null; stops: ReadonlySet<string> }): RowProps {
  const id = spans.id[row] ?? "";
  const tokens = spans.tokens[row] ?? NaN;
  return {
    row,
    top: at * ROW,
    name: spans.name[row] ?? "",
    note: spans.note[row] ?? "",
    depth: spans.depth[row] ?? 0,
    kind: KINDS[spans.kind[row] ?? 0] ?? "span",
    mark: MARKS[spans.mark[row] ?? 0] ?? "",
    took: duration(spans.seconds(row)),
    tokens: short(tokens),
    bar: bar(spans, row, look.timeline, look.shown),
    fold: spans.leaf(row) ? "" : look.folded.has(id) ? "shut" : "open",
    dim: look.keep?.[row] === ABOVE,
    active: row === look.active,
    open: id === look.open,
    stop: look.stops.has(id),
  };
}

/** Place, width and the share spent waiting: one node, whose two colours are the stops of a gradient. */
function bar(spans: Spans, row: number, timeline: Timeline, shown: Window): string {
  const width = shown.to - shown.from;
  const [start, end] = [timeline.at(spans.start[row] ?? 0), timeline.at(spans.until(row))];
  if (end < shown.from || start > shown.to) return "";
  const percent = (moment: number): number => (100 * (moment - shown.from)) / width;
  const from = Math.max(percent(start), -1);
  const to = Math.min(percent(end), 101);
  const first = spans.first[row] ?? NaN;
  const wait = Number.isNaN(first) ? NaN : Math.min(Math.max(percent(timeline.at(first)), from), to);
  const share = Number.isNaN(wait) ? "" : `;--wait:${((100 * (wait - from)) / Math.max(to - from, 0.01)).toFixed(1)}%`;
  return `left:${from.toFixed(2)}%;width:${Math.max(to - from, 0).toFixed(2)}%${share}`;
}

export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    return (Object.keys(next) as (keyof RowProps)[]).some((key) => next[key] !== this.props[key]);
  }

  override render({ row, top, name, note, depth, kind, mark, took, tokens, bar, fold, dim, active, open, stop, stuck }: RowProps) {
    const look = ["row", kind, mark && `is-${mark}`, dim && "dim-row", open && "is-open", stop && "is-stop"].filter(Boolean).join(" ");
    const tree = stuck
      ? { "aria-hidden": true as const }
      : {
          role: "treeitem" as const,
          "aria-level": depth + 1,
          "aria-selected": open,
          tabIndex: active ? 0 : -1,
          ...(fold ? { "aria-expanded": fold === "open" } : {}),
        };
    return <div class={look} data-row={row} {...(stuck ? {} : { style: `top:${top}px` })} {...tree}>
      <span class="mark" role="img" aria-label={WORD[kind] + SAYS[mark] + (stop ? ", stopped here" : "")}>{stop ? "▶" : GLYPH[mark]}</span>
      <span class="name" style={`padding-left:${Math.min(depth, 12) * 14}px`}>
        <span class="fold" aria-hidden="true">{fold === "open" ? "▾" : fold === "shut" ? "▸" : ""}</span><b>{name}</b>{note && <i>{note}</i>}
      </span>
      <span class="tokens" aria-hidden="true">{tokens}</span>
      <span class="took">{took}</span>
      <span class="lane">{bar && <s style={bar} />}</span>
    </div>;
  }
}
