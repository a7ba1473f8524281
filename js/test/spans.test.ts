import { expect, test } from "vitest";
import { ABOVE, EVERYTHING, facets, HIT, matches, sums } from "../src/view/filter.ts";
import { KINDS } from "../src/view/protocol.ts";
import { place, Spans } from "../src/view/spans.ts";
import { pageOf, STORY } from "./rows.ts";

function story(): Spans {
  const spans = new Spans();
  spans.append(pageOf(STORY));
  return spans;
}
const names = (spans: Spans, rows: Iterable<number>): string[] => [...rows].map((row) => spans.id[row] ?? "");

test("a row knows how many stand below it, page after page", () => {
  const spans = new Spans();
  spans.append(pageOf(STORY.slice(0, 4), { total: 7 }));
  expect(spans.complete).toBe(false);
  spans.append(pageOf(STORY.slice(4), { from: 4, total: 7 }));
  expect(spans.complete).toBe(true);
  expect([...spans.size.subarray(0, 7)]).toEqual([2, 1, 5, 1, 2, 1, 1]);
  expect(spans.parent(5)).toBe(4);
  expect(spans.root(5)).toBe(2);
  expect(spans.parent(0)).toBe(-1);
});

test("rows taken back leave the tree as it was before them", () => {
  const spans = story();
  spans.truncate(5);
  expect(spans.row("r3/c")).toBe(-1);
  expect([...spans.size.subarray(0, 5)]).toEqual([2, 1, 3, 1, 1]);
  spans.append(pageOf(STORY.slice(5), { from: 5, total: 7 }));
  expect([...spans.size.subarray(0, 7)]).toEqual([2, 1, 5, 1, 2, 1, 1]);
  expect(spans.row("r3/d")).toBe(6);
});

test("a folded row hides what is below it, and only that", () => {
  const spans = story();
  expect(names(spans, spans.visible(new Set(["r3/b"]), null))).toEqual(["r2", "r2/a", "r3", "r3/a", "r3/b", "r3/d"]);
  expect(names(spans, spans.visible(new Set(["r2", "r3"]), null))).toEqual(["r2", "r3"]);
});

test("100,000 rows in pages are as many rows, and stay a tree", () => {
  const spans = new Spans();
  for (let from = 0; from < 100_000; from += 5000) {
    const part = Array.from({ length: 5000 }, (_, at) => ({ id: `s${from + at}`, depth: (from + at) % 100 ? 1 : 0 }));
    spans.append(pageOf(part, { from, total: 100_000 }));
  }
  expect(spans.count).toBe(100_000);
  expect(spans.size[99_900]).toBe(100);
  expect(spans.row("s77777")).toBe(77_777);
});

test("a depth that no row stands above is drawn in", () => {
  const spans = new Spans();
  spans.append(pageOf([{ id: "a", depth: 3 }, { id: "b", depth: 9 }]));
  expect([...spans.depth.subarray(0, 2)]).toEqual([0, 1]);
});

test("search looks for every word, in what happened and in the model, and keeps what stands above a hit", () => {
  const spans = story();
  const keep = matches(spans, { ...EVERYTHING, words: "ORDERS.example get" });
  expect(names(spans, spans.visible(new Set(), keep))).toEqual(["r3", "r3/b", "r3/c"]);
  expect([keep?.[2], keep?.[4], keep?.[5]]).toEqual([ABOVE, ABOVE, HIT]);
});

test("kind, model, tool, errors and cell each narrow the rows", () => {
  const spans = story();
  const found = (change: object): string[] => names(spans, [...(matches(spans, { ...EVERYTHING, ...change }) ?? [])].flatMap((mark, row) => (mark === HIT ? [row] : [])));
  expect(found({ kinds: new Set([KINDS.indexOf("tool")]) })).toEqual(["r3/b"]);
  expect(found({ notes: new Set(["lookup_order"]) })).toEqual(["r3/b"]);
  expect(found({ cell: "c2" })).toEqual(["r2", "r2/a"]);
  expect(found({ errors: true })).toEqual([]);
  expect(found({ cell: "c3", words: "shipped" })).toEqual(["r3/d"]);
  expect(matches(spans, EVERYTHING)).toBeNull();
});

test("a new row is searched as the old ones are", () => {
  const spans = story();
  matches(spans, { ...EVERYTHING, words: "x" });
  spans.truncate(6);
  spans.append(pageOf([{ id: "new", depth: 1, name: "refund" }], { from: 6, total: 7 }));
  expect(matches(spans, { ...EVERYTHING, words: "refund" })?.[6]).toBe(HIT);
  expect(matches(spans, { ...EVERYTHING, words: "shipped" })?.[6]).toBe(0);
});

test("what can be filtered by is counted, models and tools by their names", () => {
  const { kinds, notes } = facets(story());
  expect(kinds.find(({ kind }) => kind === KINDS.indexOf("model"))?.count).toBe(3);
  expect(notes[0]).toMatchObject({ note: "claude-sonnet-5", count: 3 });
});

test("sums count calls, not cells, and what is not known as nothing", () => {
  expect(sums(story(), null)).toEqual({ spans: 7, calls: 5, tokens: 3486, cost: 0 });
});

test("a value's place among ascending rows", () => {
  const rows = Uint32Array.from([2, 4, 8]);
  expect([0, 4, 5, 9].map((value) => place(rows, value))).toEqual([0, 1, 2, 3]);
});
