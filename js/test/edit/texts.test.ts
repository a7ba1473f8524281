/** The pure parts: JSON by offsets, marks by words, tables by cells. */
import { expect, test } from "vitest";
import { align, parse } from "../../src/view/panels/csv.ts";
import { locate, put, steps } from "../../src/view/panels/json.ts";
import { lines, words } from "../../src/view/edit/labels.ts";

test.each([
  ["content[0].text", ["content", 0, "text"]],
  ["choices[0].message.tool_calls[12].function.arguments", ["choices", 0, "message", "tool_calls", 12, "function", "arguments"]],
  ['input["a key"][0]', ["input", "a key", 0]],
  ["$value", ["$value"]],
])("the path %s is followed step by step", (path, expected) => expect(steps(path)).toEqual(expected));

const JSON_TEXT = `{ "a" : [1, {"b]": "x\\"}y", "b]": "twice"}, []], "n": 1e400,"big":12345678901234567890 , "é\\u0041": null}`;

test.each([
  ["a[0]", "1"], ['a[1]["b]"]', '"twice"'], ["a[2]", "[]"], ["n", "1e400"], ["big", "12345678901234567890"], ["éA", "null"], ["a", '[1, {"b]": "x\\"}y", "b]": "twice"}, []]'],
])("the value at %s is found where it stands", (path, expected) => {
  const range = locate(JSON_TEXT, steps(path));
  expect(range && JSON_TEXT.slice(range.from, range.to)).toBe(expected);
});

test.each(["a[3]", "b", "a[0].x", "n[0]", "a[1].c"])("no value stands at %s", (path) => expect(locate(JSON_TEXT, steps(path))).toBeNull());

test("one value is replaced, and no other letter changes", () => {
  expect(put(JSON_TEXT, ["big"], "7")).toBe(JSON_TEXT.replace("12345678901234567890", "7"));
  expect(put(JSON_TEXT, ["none"], "7")).toBe(JSON_TEXT);
});

test("every value of a message is found by its own path", () => {
  const whole = { content: [{ text: "a \"quoted\" \\ text\n", input: { list: [1, [2, { deep: true }], "]"], "": { "a.b": 0 } } }], stop: null };
  for (const text of [JSON.stringify(whole), JSON.stringify(whole, null, 3)]) {
    const walk = (value: unknown, path: (string | number)[]): void => {
      const range = locate(text, path);
      expect(JSON.parse(range ? text.slice(range.from, range.to) : "") as unknown).toEqual(value);
      if (typeof value === "object" && value) for (const [key, inner] of Object.entries(value)) walk(inner, [...path, Array.isArray(value) ? Number(key) : key]);
    };
    walk(whole, []);
  }
});

test.each([
  ["a negative mood", "a positive mood", [["a ", "same"], ["negative", "gone"], ["positive", "new"], [" mood", "same"]]],
  ["", "new", [["new", "new"]]],
  ["gone", "", [["gone", "gone"]]],
  ["the same", "the same", [["the same", "same"]]],
  ["orders", "order", [["orders", "gone"], ["order", "new"]]],
  ["好的天气", "坏的天气", [["好", "gone"], ["坏", "new"], ["的天气", "same"]]],
  ["a 😀", "a 😁", [["a ", "same"], ["😀", "gone"], ["😁", "new"]]],
])("from %j to %j whole words are marked", (before, after, expected) => {
  expect(words(before, after).map(({ text, mark }) => [text, mark])).toEqual(expected);
});

test("both texts can be read off the marks, however different they are", () => {
  const letters = ["a", "b", " ", "\n", ".", "é", "好", "😀"];
  let seed = 7;
  const next = (most: number) => (seed = (seed * 48271) % 2147483647) % most;
  const text = () => Array.from({ length: next(40) }, () => letters[next(8)]).join("");
  for (let round = 0; round < 500; round++) {
    const [before, after] = [text(), text()];
    const runs = words(before, after);
    const side = (gone: string) => runs.filter(({ mark }) => mark !== gone).map((run) => run.text).join("");
    expect([side("new"), side("gone")]).toEqual([before, after]);
    const hunks = lines(before, after);
    const column = (of: "before" | "after") => hunks.flatMap((hunk) => hunk[of].length ? [hunk[of].map((run) => run.text).join("")] : []).join("\n");
    expect(column("before").replace(/\n/g, "")).toBe(before.replace(/\n/g, ""));
    expect(column("after").replace(/\n/g, "")).toBe(after.replace(/\n/g, ""));
  }
});

test("four megabytes with one changed word are marked at that word", () => {
  const half = "lorem ipsum dolor ".repeat(120_000);
  expect(words(`${half}one ${half}`, `${half}two ${half}`).map(({ text, mark }) => [text.length, mark]))
    .toEqual([[half.length, "same"], [3, "gone"], [3, "new"], [half.length + 1, "same"]]);
});

test("texts that have nothing in common are shown whole", () => {
  const text = (from: number) => Array.from({ length: 4000 }, (_, at) => String(from + at)).join(" ");
  expect(words(text(10_000), text(50_000)).length).toBeLessThan(4);
});

test.each([
  ["a,b\n1,2\n", [["a", "b"], ["1", "2"]]],
  ['a,b\r\n"x, ""y""","two\nlines"', [["a", "b"], ['x, "y"', "two\nlines"]]],
  ["a\n\n1", [["a"], [""], ["1"]]],
  [",\n,", [["", ""], ["", ""]]],
  ["", []],
])("CSV %j is read as its cells", (text, expected) => expect(parse(text)).toEqual(expected));

test("tables are aligned by column name and by row", () => {
  const { columns, rows } = align("name,n\nnorth,1\nsouth,2\neast,3\n", "name,mood,n\nnorth,calm,1\nsouth,angry,9\nwest,calm,4\n");
  expect(columns).toEqual([{ before: "name", after: "name" }, { before: null, after: "mood" }, { before: "n", after: "n" }]);
  expect(rows.map(({ mark, cells }) => [mark, ...cells.map(({ before, after }) => `${before ?? ""}>${after ?? ""}`)])).toEqual([
    ["same", "north>north", ">calm", "1>1"],
    ["changed", "south>south", ">angry", "2>9"],
    ["changed", "east>west", ">calm", "3>4"],
  ]);
});

test("a row that went and a row that came are no change of each other", () => {
  const { rows } = align("k,v\na,1\nb,2\nc,3\n", "k,v\na,9\nc,3\nd,4\n");
  expect(rows.map(({ mark }) => mark)).toEqual(["changed", "gone", "same", "added"]);
});
