import { expect, test } from "vitest";

import { Cassette } from "../../src/lab/cassette.ts";
import { bounds, countOf } from "../../src/lab/saved.ts";
import { idsAt, pageOf } from "../../src/lab/savedRows.ts";
import { asSaved } from "../../src/lab/savedSpans.ts";
import { KINDS, MARKS } from "../../src/view/protocol.ts";

const record = (...lines: string[]) => ["---", ...lines, "...", ""].join("\n");
const tool = (id: string, second: number, ...more: string[]) =>
  record(`call: "${id}"`, "run: r-1", "match: x", ...more, `at: "2026-11-25T10:00:0${second}.000Z"`, "seconds: 0.5", "request:", "  tool: look", "  arguments:", "    n: 7", "response:", "  value: 3");
const model = record(
  'call: "0000000a"', "run: r-1", "match: x", "kind: model", 'at: "2026-11-25T10:00:03.000Z"', "seconds: 1", "kit:", "  model: claude", "  usage:", "    input: 3", "    output: 4",
  "request:", '  post: "https://h"', "  body:", "    model: claude", "response:", "  status: 200", "  body:", "    content:", "      - type: text", "        text: negative",
);
const TEXT = tool("00000001", 2) + tool("00000002", 1, 'parent: "00000001"') + model;
const CELL = { title: "[2] classify", cell: "c", mode: "replay" };

test("rows come from the records: in order of time, below what made them, with what happened first", () => {
  const page = pageOf(new Cassette(TEXT), [["r-1", "0-2"]], CELL);
  expect(page.name).toEqual(["[2] classify", "look(n=7)", "look(n=7)", '"negative"']);
  expect(page.depth).toEqual([0, 1, 2, 1]);
  expect(page.start).toEqual([0, 1, 0, 2]);
  expect(page.tokens).toEqual([null, null, null, 7]);
  expect(page.kind[3]).toBe(KINDS.indexOf("model"));
});

test("attempts that failed stand below the reply that ended them, once the request was sent again", () => {
  const sent = (id: string, second: number, status: number, ...more: string[]) =>
    record(`call: "${id}"`, "run: r-1", "match: y", ...more, "kind: model", `at: "2026-11-25T10:00:0${second}.000Z"`, "seconds: 0.1", "request:", '  post: "https://h"', "response:", `  status: ${status}`);
  const cassette = new Cassette(sent("0000000b", 1, 429) + sent("0000000b-2", 2, 500) + sent("0000000b-3", 3, 200) + sent("0000000b-4", 4, 200) + sent("0000000b-5", 5, 429, 'lineage: "1"'));
  const page = pageOf(cassette, [["r-1", "0-4"]], CELL);
  expect(page.id.slice(1)).toEqual(["r-1/0000000b-3", "r-1/0000000b", "r-1/0000000b-2", "r-1/0000000b-4", "r-1/0000000b-5"]);
  expect(page.depth.slice(1)).toEqual([1, 2, 2, 1, 1]);
  expect(page.mark.map((mark) => MARKS[mark]).slice(1)).toEqual(["", "retried", "retried", "", "error"]);
});

test("the time of a cell is that of its own run, not until another run answered days later", () => {
  const later = tool("00000005", 4).replace("run: r-1", "run: r-2").replace("2026-11-25", "2026-11-29");
  const page = pageOf(new Cassette(TEXT + later), [["r-1", "0-2"], ["r-2", "0"]], CELL);
  expect(page.note[0]).toBe("replay");
  expect([page.start[0], page.end[0]]).toEqual([0, 3]);
});

test("the stops of a step-through are no time of the cell, as where there is a kernel", () => {
  const end = (...more: string[]) => record("end: r-1", "outcome: ok", "seconds: 1.5", ...more, "calls: 3");
  expect(pageOf(new Cassette(TEXT + end("held: 40")), [["r-1", "0-2"]], CELL).end[0]).toBe(1.5);
  expect(pageOf(new Cassette(TEXT + end()), [["r-1", "0-2"]], CELL).end[0]).toBe(3);
});

test("only the calls at the places that were saved", () => {
  const cassette = new Cassette(TEXT);
  expect(idsAt(cassette, [["r-1", "0,2"]])).toEqual(["r-1/00000001", "r-1/0000000a"]);
  expect(countOf([["r-1", "0-4,7"], ["r-2", "1"]])).toBe(7);
  expect(bounds("nonsense,5-3,2")).toEqual([[2, 2]]);
});

test("a take's reply stands in the place of the recorded one, and is marked", () => {
  const take = record("tape: 1", 'take of: "../main.tape.yaml"') +
    record('override: "0000000a"', "run: r-1", "edit: text", "response:", "  status: 200", "  body:", "    content:", "      - type: text", "        text: positive");
  const page = pageOf(new Cassette(take, new Cassette(TEXT)), [["r-1", "2"]], CELL);
  expect(page.name[1]).toBe('"positive"');
  expect(page.mark[1]).toBe(MARKS.indexOf("overridden"));
  expect(new Cassette(take).of).toBe("../main.tape.yaml");
});

test("calls that were edited since are not as saved; others that came are no change", async () => {
  const ids = ["r-1/00000001", "r-1/0000000a"];
  const { createHash } = await import("node:crypto");
  const told = createHash("sha256").update(new Cassette(TEXT).textOf(ids)).digest("hex").slice(0, 16);
  expect(await asSaved(new Cassette(TEXT + tool("00000009", 5)), ids, told)).toBe(true);
  expect(await asSaved(new Cassette(TEXT.replace("negative", "positive")), ids, told)).toBe(false);
  expect(await asSaved(new Cassette(TEXT), ids, "")).toBe(null);
});
