import { moment } from "./format.ts";
import type { Spans } from "./spans.ts";

/** A stretch in which nothing happened, cut out: `at` is where the cut stands, in seconds of shown time. */
export interface Pause { at: number; from: number; seconds: number }

/** Part of the timeline on show, in seconds of shown time. */
export interface Window { from: number; to: number }

/**
 * Time as it is drawn. A person reads between two cells, fetches a coffee, goes home: stretches with no span that are
 * long beside what did happen are cut out, each leaving a short mark. `at` maps recorded seconds to shown seconds.
 */
export class Timeline {
  readonly pauses: Pause[] = [];
  readonly length: number;
  readonly #begin: number;
  /** Shown width of a cut, in seconds. */
  readonly #mark: number;

  constructor(spans: Spans) {
    this.#begin = spans.begin;
    const gaps = gapsOf(spans);
    const busy = spans.finish - spans.begin - gaps.reduce((sum, gap) => sum + gap.seconds, 0);
    const long = Math.max(1, busy * 0.15);
    this.#mark = Math.max(0.02, busy * 0.012);
    let cut = 0;
    for (const gap of gaps.filter(({ seconds }) => seconds > long)) {
      this.pauses.push({ ...gap, at: gap.from - spans.begin - cut });
      cut += gap.seconds - this.#mark;
    }
    this.length = Math.max(spans.finish - spans.begin - cut, 0.001);
  }

  /** Recorded seconds to shown seconds. */
  at(seconds: number): number {
    let [low, high] = [0, this.pauses.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.pauses[middle]?.from ?? 0) <= seconds) low = middle + 1;
      else high = middle;
    }
    const last = this.pauses[low - 1];
    if (!last) return seconds - this.#begin;
    const since = seconds - last.from;
    return last.at + (since < last.seconds ? (since / last.seconds) * this.#mark : since - last.seconds + this.#mark);
  }

  /** Round moments to write on the axis, and what follows a cut: shown seconds, recorded ones since the first span, and these as text. */
  ticks(shown: Window, most: number): { at: number; seconds: number; text: string }[] {
    const step = stepFor((shown.to - shown.from) / most);
    const out: { at: number; seconds: number; text: string }[] = [];
    const put = (at: number, seconds: number): void => {
      if (at - (out.at(-1)?.at ?? -Infinity) > step * 0.8) out.push({ at, seconds, text: moment(seconds, step) });
    };
    for (const piece of this.#pieces()) {
      if (piece.at > 0 && piece.at >= shown.from && piece.at <= shown.to) put(piece.at, piece.from);
      const from = piece.from + Math.max(0, shown.from - piece.at);
      const room = piece.at + piece.length < this.length ? step * 0.8 : 0; // the moment after a cut is written there
      const to = piece.from + Math.min(piece.length - room, shown.to - piece.at);
      for (let count = Math.max(0, Math.ceil(from / step - 1e-9)); count * step <= to + 1e-9; count++) put(piece.at + count * step - piece.from, count * step);
    }
    return out;
  }

  /** Stretches between cuts: where one begins on show, its first recorded second (since the first span), its length. */
  #pieces(): { at: number; from: number; length: number }[] {
    const pieces = [];
    let [at, from] = [0, 0];
    for (const pause of this.pauses) {
      pieces.push({ at, from, length: pause.at - at });
      at = pause.at + this.#mark;
      from = pause.from + pause.seconds - this.#begin;
    }
    return [...pieces, { at, from, length: this.length - at }];
  }
}

/** Stretches between spans without children in which none of them ran, in order. */
function gapsOf(spans: Spans): { from: number; seconds: number }[] {
  const leaves = new Uint32Array(spans.count);
  let count = 0;
  let sorted = true;
  for (let row = 0; row < spans.count; row++) {
    if (!spans.leaf(row)) continue;
    sorted &&= count === 0 || (spans.start[leaves[count - 1] ?? 0] ?? 0) <= (spans.start[row] ?? 0);
    leaves[count++] = row;
  }
  const order = leaves.subarray(0, count);
  if (!sorted) order.sort((a, b) => (spans.start[a] ?? 0) - (spans.start[b] ?? 0));
  const gaps = [];
  let end = spans.begin;
  for (const row of order) {
    const start = spans.start[row] ?? 0;
    if (start > end) gaps.push({ from: end, seconds: start - end });
    end = Math.max(end, spans.until(row));
  }
  if (spans.finish > end) gaps.push({ from: end, seconds: spans.finish - end });
  return gaps;
}

const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600];

function stepFor(least: number): number {
  return STEPS.find((step) => step >= least) ?? Math.ceil(least / 3600) * 3600;
}

/** Zoom about a point (0 to 1 of the window) by a factor; never beyond the whole. */
export function zoomed(shown: Window, length: number, factor: number, about = 0.5): Window {
  const width = Math.min(Math.max((shown.to - shown.from) * factor, Math.min(length, 0.002)), length);
  const middle = shown.from + (shown.to - shown.from) * about;
  const from = Math.min(Math.max(middle - width * about, 0), length - width);
  return { from, to: from + width };
}
