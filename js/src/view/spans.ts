import { KINDS, MARKS, type Page } from "./protocol.ts";

export const CELL = KINDS.indexOf("cell");
export const MODEL = KINDS.indexOf("model");
export const ERROR = MARKS.indexOf("error");
export const SUPERSEDED = MARKS.indexOf("superseded");
export const RETRIED = MARKS.indexOf("retried");
export const RUNNING = MARKS.indexOf("running");

const SMALL = ["depth", "kind", "mark"] as const;
const NUMBERS = ["start", "first", "end", "tokens", "cost"] as const;
const TEXTS = ["id", "name", "note", "cell"] as const;

/**
 * The spans that have come so far, as columns in tree order. A run of 100,000 spans is a handful of typed arrays: a
 * page is appended in place, and `size` (a row and all below it) is kept as rows come, so that folding is a jump.
 */
export class Spans {
  count = 0;
  /** How many rows there are in the cassette; they come page after page. */
  total = 0;
  revision = -1;
  begin = 0;
  finish = 0;
  depth = new Uint16Array();
  kind = new Uint8Array();
  mark = new Uint8Array();
  size = new Uint32Array();
  start = new Float64Array();
  /** NaN where there is none, as in `tokens` and `cost`. */
  first = new Float64Array();
  end = new Float64Array();
  tokens = new Float64Array();
  cost = new Float64Array();
  readonly id: string[] = [];
  readonly name: string[] = [];
  readonly note: string[] = [];
  readonly cell: string[] = [];
  readonly #rows = new Map<string, number>();
  readonly #lower: string[] = [];
  /** The last row and those above it. */
  #open: number[] = [];

  get complete(): boolean {
    return this.count >= this.total;
  }

  /** Append a page; it begins where the rows end. */
  append(page: Page): void {
    const [from, length] = [this.count, page.id.length];
    this.#reserve(from + length);
    for (const name of SMALL) fill(this[name], page[name], from, length, 0);
    for (const name of NUMBERS) fill(this[name], page[name], from, length, NaN);
    for (const name of TEXTS) for (let at = 0; at < length; at++) this[name].push(page[name][at] ?? "");
    this.count += length;
    for (let row = from; row < this.count; row++) this.#hang(row);
    this.revision = page.revision;
    this.total = page.total;
    this.#measure();
  }

  /** Forget row `from` and all after it. */
  truncate(from: number): void {
    if (from >= this.count) return;
    for (let row = from; row < this.count; row++) this.#rows.delete(this.id[row] ?? "");
    for (const name of TEXTS) this[name].length = from;
    this.#lower.length = Math.min(this.#lower.length, from);
    this.count = from;
    this.#open = [];
    for (let row = from - 1; row >= 0; row = this.parent(row)) {
      this.size[row] = from - row;
      this.#open.unshift(row);
    }
    this.#measure();
  }

  /** The row of an id, or -1. */
  row(id: string | null): number {
    return id === null ? -1 : (this.#rows.get(id) ?? -1);
  }

  /** The row above in the tree, or -1. */
  parent(row: number): number {
    const depth = this.depth[row] ?? 0;
    if (depth === 0) return -1;
    let up = row - 1;
    while (up >= 0 && (this.depth[up] ?? 0) >= depth) up--;
    return up;
  }

  /** The topmost row above this one (itself, where it has none above it): its cell's run. */
  root(row: number): number {
    let up = row;
    while (up > 0 && (this.depth[up] ?? 0) > 0) up--;
    return up;
  }

  leaf(row: number): boolean {
    return this.size[row] === 1;
  }

  /** How long; NaN for a moment that is not known. A running row lasts until the newest end. */
  seconds(row: number): number {
    return this.until(row) - (this.start[row] ?? 0);
  }

  until(row: number): number {
    return this.mark[row] === RUNNING ? this.finish : (this.end[row] ?? 0);
  }

  /** What a row says, in small letters: what a search looks at. */
  lower(row: number): string {
    for (let at = this.#lower.length; at <= row; at++) this.#lower.push(`${this.name[at] ?? ""} ${this.note[at] ?? ""}`.toLowerCase());
    return this.#lower[row] ?? "";
  }

  /**
   * The rows on show, in order. `keep` (of `matches`) names those that a filter leaves; `folded` holds ids.
   */
  visible(folded: ReadonlySet<string>, keep: Uint8Array | null): Uint32Array {
    const out = new Uint32Array(this.count);
    let length = 0;
    for (let row = 0; row < this.count; ) {
      const size = this.size[row] ?? 1;
      if (keep && !keep[row]) {
        row += size;
        continue;
      }
      out[length++] = row;
      row += size > 1 && folded.has(this.id[row] ?? "") ? size : 1;
    }
    return out.subarray(0, length);
  }

  /** Put a row into the tree: below the last row that is less deep. */
  #hang(row: number): void {
    const depth = Math.min(this.depth[row] ?? 0, this.#open.length);
    this.depth[row] = depth;
    this.size[row] = 1;
    this.#rows.set(this.id[row] ?? "", row);
    this.#open.length = depth;
    for (const above of this.#open) this.size[above] = (this.size[above] ?? 0) + 1;
    this.#open.push(row);
  }

  #reserve(count: number): void {
    if (count <= this.depth.length) return;
    const length = Math.max(count, 2 * this.depth.length);
    this.depth = grown(this.depth, new Uint16Array(length));
    this.kind = grown(this.kind, new Uint8Array(length));
    this.mark = grown(this.mark, new Uint8Array(length));
    this.size = grown(this.size, new Uint32Array(length));
    for (const name of NUMBERS) this[name] = grown(this[name], new Float64Array(length));
  }

  #measure(): void {
    this.begin = this.count ? Infinity : 0;
    this.finish = this.count ? -Infinity : 0;
    for (let row = 0; row < this.count; row++) {
      this.begin = Math.min(this.begin, this.start[row] ?? 0);
      this.finish = Math.max(this.finish, this.end[row] ?? 0);
    }
  }
}

/** Where `value` stands in ascending `rows`, or would stand. */
export function place(rows: Uint32Array, value: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function fill(column: Uint8Array | Uint16Array | Float64Array, values: readonly (number | null)[], from: number, length: number, none: number): void {
  for (let at = 0; at < length; at++) column[from + at] = values[at] ?? none;
}

function grown<T extends { set(from: T): void }>(old: T, made: T): T {
  made.set(old);
  return made;
}
