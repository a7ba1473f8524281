import { KINDS } from "./protocol.ts";
import { CELL, ERROR, MODEL, SUPERSEDED, type Spans } from "./spans.ts";

/** What the person looks for; an empty one lets all through. */
export interface Filter {
  words: string;
  kinds: ReadonlySet<number>;
  /** Notes of rows: a model's, a tool's or a host's name. */
  notes: ReadonlySet<string>;
  errors: boolean;
  /** A cell's id, or "". */
  cell: string;
}

export const EVERYTHING: Filter = { words: "", kinds: new Set(), notes: new Set(), errors: false, cell: "" };

export const HIT = 1;
/** Kept because something below it is a hit. */
export const ABOVE = 2;

export function asks(filter: Filter): boolean {
  return Boolean(filter.words.trim() || filter.kinds.size || filter.notes.size || filter.errors || filter.cell);
}

/**
 * One mark a row: HIT, ABOVE or 0; null when nothing is asked. One pass, from the last row up. `found` are calls that
 * have the words in their bodies.
 */
export function matches(spans: Spans, filter: Filter, found?: ReadonlySet<string>): Uint8Array | null {
  if (!asks(filter)) return null;
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
  const keep = new Uint8Array(spans.count);
  const below: boolean[] = [];
  for (let row = spans.count - 1; row >= 0; row--) {
    const depth = spans.depth[row] ?? 0;
    const hit = matchesRow(spans, row, filter) && (words.every((word) => spans.lower(row).includes(word)) || found?.has(spans.id[row] ?? ""));
    keep[row] = hit ? HIT : below[depth + 1] ? ABOVE : 0;
    below[depth + 1] = false;
    if (keep[row]) below[depth] = true;
  }
  return keep;
}

function matchesRow(spans: Spans, row: number, filter: Filter): boolean {
  if (filter.cell && spans.cell[row] !== filter.cell) return false;
  if (filter.errors && spans.mark[row] !== ERROR) return false;
  if (filter.kinds.size && !filter.kinds.has(spans.kind[row] ?? 0)) return false;
  return !filter.notes.size || filter.notes.has(spans.note[row] ?? "");
}

/** What one may filter by, with how many rows each has. */
export interface Facets {
  kinds: { kind: number; count: number }[];
  /** Models, tools and hosts, most frequent first. */
  notes: { kind: number; note: string; count: number }[];
  errors: number;
}

const FACETS_SHOWN = 40;

export function facets(spans: Spans): Facets {
  const kinds = new Array<number>(KINDS.length).fill(0);
  const notes = new Map<string, { kind: number; note: string; count: number }>();
  let errors = 0;
  for (let row = 0; row < spans.count; row++) {
    const kind = spans.kind[row] ?? 0;
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    if (spans.mark[row] === ERROR) errors++;
    const note = spans.note[row] ?? "";
    if (kind === CELL || !note) continue;
    const known = notes.get(note);
    if (known) known.count++;
    else notes.set(note, { kind, note, count: 1 });
  }
  return {
    kinds: kinds.map((count, kind) => ({ kind, count })).filter(({ count }) => count > 0),
    notes: [...notes.values()].sort((a, b) => b.count - a.count).slice(0, FACETS_SHOWN),
    errors,
  };
}

/** Sums over the rows that `keep` calls hits, or over all; what a re-run did not ask again is in none. */
export interface Sums { spans: number; calls: number; tokens: number; cost: number }

export function sums(spans: Spans, keep: Uint8Array | null): Sums {
  const out = { spans: 0, calls: 0, tokens: 0, cost: 0 };
  for (let row = 0; row < spans.count; row++) {
    if (keep && keep[row] !== HIT) continue;
    out.spans++;
    if ((spans.kind[row] ?? 0) < MODEL || spans.mark[row] === SUPERSEDED) continue;
    out.calls++;
    const [tokens = 0, cost = 0] = [spans.tokens[row], spans.cost[row]];
    if (tokens > 0) out.tokens += tokens; // NaN, where it is not known, is not
    if (cost > 0) out.cost += cost;
  }
  return out;
}

/** The set with a value in it, or without it where it was. */
export function turned<T>(set: ReadonlySet<T>, value: T): ReadonlySet<T> {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}
