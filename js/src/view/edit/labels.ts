/** Differences of two texts, by lines and by words. A text that differs too much to say how is shown whole. */
import { diffArrays } from "diff";

export interface Run { text: string; mark: "same" | "gone" | "new" }
/** Lines that stand side by side: the same on both sides, or a change. */
export interface Hunk { same: boolean; before: Run[]; after: Run[] }

const EFFORT = { maxEditLength: 1500 };
// An ideograph is a word of its own; so is every sign.
// Two letters of one word, or the halves of one sign.
const INSIDE = /[\p{L}\p{N}\p{M}_]{2}|^[^\0-\uffff]$/u;
const WORD = /\p{Ideographic}|[\p{L}\p{N}\p{M}_]+|\s+|./gsu;

/** One line of runs: what is gone and what is new, in reading order. */
export function words(before: string, after: string): Run[] {
  const [head, tail] = ends(before, after);
  const old = before.slice(head, before.length - tail);
  const now = after.slice(head, after.length - tail);
  const parts = old && now ? diffArrays(old.match(WORD) ?? [], now.match(WORD) ?? [], EFFORT) : undefined;
  const middle: Run[] = parts
    ? parts.map((part) => ({ text: part.value.join(""), mark: part.removed ? "gone" : part.added ? "new" : "same" }))
    : [{ text: old, mark: "gone" }, { text: now, mark: "new" }];
  return joined([{ text: before.slice(0, head), mark: "same" }, ...middle, { text: tail ? before.slice(-tail) : "", mark: "same" }]);
}

/** Lengths of what both begin and end with, at the bounds of words: a text of megabytes with one changed word is quick. */
function ends(before: string, after: string): [number, number] {
  const most = Math.min(before.length, after.length);
  const inWord = (text: string, at: number) => INSIDE.test(text.slice(Math.max(0, at - 1), at + 1));
  let head = 0;
  while (head < most && before[head] === after[head]) head++;
  while (head > 0 && (inWord(before, head) || inWord(after, head))) head--;
  let tail = 0;
  while (tail < most - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  while (tail > 0 && (inWord(before, before.length - tail) || inWord(after, after.length - tail))) tail--;
  return [head, tail];
}

export function joined(runs: readonly Run[]): Run[] {
  const out: Run[] = [];
  for (const run of runs) {
    const last = out.at(-1);
    if (!run.text) continue;
    if (last?.mark === run.mark) last.text += run.text;
    else out.push({ ...run });
  }
  return out;
}

/** Two texts line by line, changed lines word by word. */
export function lines(before: string, after: string): Hunk[] {
  return pairs(before.split("\n"), after.split("\n")).map(({ same, before: old, after: now }) => {
    const runs = same ? [] : words(old.join("\n"), now.join("\n"));
    const whole = (text: string[]): Run[] => (text.length ? [{ text: text.join("\n"), mark: "same" }] : []);
    return same
      ? { same, before: whole(old), after: whole(now) }
      : { same, before: joined(runs.filter((run) => run.mark !== "new")), after: joined(runs.filter((run) => run.mark !== "gone")) };
  });
}

export interface Pair<T> { same: boolean; before: T[]; after: T[] }

/** Runs of equal items, and between them what stood there before and stands there now. Each side keeps its own items. */
export function pairs<T>(before: T[], after: T[], equal?: (a: T, b: T) => boolean): Pair<T>[] {
  const parts = diffArrays(before, after, { ...EFFORT, ...(equal ? { comparator: equal } : {}) });
  if (!parts) return [{ same: false, before, after }];
  const out: Pair<T>[] = [];
  let [from, to] = [0, 0];
  for (const { added, removed, value: { length } } of parts) {
    const same = !added && !removed;
    const last = out.at(-1);
    const pair = last && !last.same && !same ? last : { same, before: [], after: [] };
    if (pair !== last) out.push(pair);
    if (!added) pair.before.push(...before.slice(from, (from += length)));
    if (!removed) pair.after.push(...after.slice(to, (to += length)));
  }
  return out;
}
