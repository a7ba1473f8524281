import { KINDS, MARKS, type Detail, type Page, type Session } from "../src/view/protocol.ts";

export interface Made { id: string; depth?: number; kind?: (typeof KINDS)[number]; mark?: (typeof MARKS)[number]; start?: number; first?: number; end?: number; name?: string; note?: string; tokens?: number; cell?: string }

/** A page of rows as a door answers it. */
export function pageOf(rows: readonly Made[], over: Partial<Page> = {}): Page {
  return {
    revision: 1,
    from: 0,
    total: rows.length,
    id: rows.map(({ id }) => id),
    depth: rows.map(({ depth = 0 }) => depth),
    kind: rows.map(({ kind = "model" }) => KINDS.indexOf(kind)),
    mark: rows.map(({ mark = "" }) => MARKS.indexOf(mark)),
    start: rows.map(({ start = 0 }) => start),
    first: rows.map(({ first = null }: { first?: number | null }) => first),
    end: rows.map(({ end = 1 }) => end),
    name: rows.map(({ name, id }) => name ?? id),
    note: rows.map(({ note = "" }) => note),
    tokens: rows.map(({ tokens = null }: { tokens?: number | null }) => tokens),
    cost: rows.map(() => null),
    cell: rows.map(({ cell = "" }) => cell),
    ...over,
  };
}

/** The support pipeline: classify, then answer, with a tool and a refused call. */
export const STORY: readonly Made[] = [
  { id: "r2", kind: "cell", name: "[2] classify", end: 0.62, cell: "c2" },
  { id: "r2/a", depth: 1, name: '"negative"', note: "claude-sonnet-5", start: 0.02, first: 0.42, end: 0.62, mark: "overridden", tokens: 826, cell: "c2" },
  { id: "r3", kind: "cell", name: "[3] answer", start: 0.7, end: 3.2, cell: "c3" },
  { id: "r3/a", depth: 1, name: "→ lookup_order", note: "claude-sonnet-5", start: 0.72, first: 1.1, end: 1.7, tokens: 1204, cell: "c3" },
  { id: "r3/b", depth: 1, kind: "tool", name: 'lookup_order(query="my order")', note: "lookup_order", start: 1.7, end: 2.05, cell: "c3" },
  { id: "r3/c", depth: 2, kind: "http", name: "GET orders/search", note: "orders.example", start: 1.72, first: 1.9, end: 2, cell: "c3" },
  { id: "r3/d", depth: 1, name: '"Order #4421 is shipped."', note: "claude-sonnet-5", start: 2.05, first: 2.4, end: 3.1, tokens: 1456, cell: "c3" },
];

export function sessionOf(over: Partial<Session> = {}): Session {
  return {
    mode: "replay", cassettes: ["main"], cassette: "main", take: "", takes: [], default_take: "", running: null, notes: [],
    totals: { spans: 7, calls: 5, errors: 0, seconds: 3.2, tokens_in: 3000, tokens_out: 486, cost: 0.012, partial: false },
    ...over,
  };
}

export function detailOf(id: string, over: Partial<Detail> = {}): Detail {
  return {
    id, kind: "model", title: id, cell: "c3", path: "churn.tapes/main.tape.yaml", line: 12,
    turns: [{ role: "user", parts: [{ type: "text", text: "where is my order?" }] }, { role: "assistant", parts: [{ type: "text", text: `reply of ${id}` }] }],
    request: { text: '{"model":"claude-sonnet-5"}', json: true, whole: true },
    reply: { text: '{"stop_reason":"end_turn"}', json: true, whole: true },
    headers: { request: [["content-type", "application/json"]], reply: [] },
    status: 200, ending: "complete", error: null,
    timing: { at: "2026-11-22T05:00:00Z", seconds: 1.1, first: 0.4, chunks: 12, rate: 40 },
    usage: { tokens_in: 812, tokens_out: 14, cost: 0.003, model: "claude-sonnet-5" },
    kit: [["python", "3.11"]], tags: [], raw: { request: 27, reply: 26 }, overridden: null, editable: "message", source: null,
    ...over,
  };
}
