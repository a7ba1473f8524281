import { deflateSync } from "node:zlib";
import { afterEach, expect, test } from "vitest";
import { unfolded, type Folded } from "../src/page/blocks.ts";
import { PageDoor } from "../src/page/model.ts";
import { Client } from "../src/view/client.ts";
import type { Detail, Page, Raw, Session } from "../src/view/protocol.ts";
import { detailOf, pageOf, sessionOf, STORY } from "./rows.ts";

function write(id: string, value: unknown): void {
  const script = document.createElement("script");
  const packed = id.includes("details") || id.startsWith("tape-rows-") || id === "tape-base";
  script.type = packed ? "text/plain" : "application/json";
  script.id = id;
  script.textContent = packed ? deflateSync(JSON.stringify(value)).toString("base64") : JSON.stringify(value);
  document.body.append(script);
}
const raw = (text: string): Raw => ({ text, hex: false, from: 0, total: text.length });
const known = (id: string): object => ({ detail: detailOf(id), raw: { request: raw("asked"), reply: raw("0123456789") }, turns: [0, detailOf(id).turns], texts: ["q", "a", "asked", "0123456789"].map((text) => [0, 0, text]) });
afterEach(() => document.body.replaceChildren());

function page(): Client {
  write("tape-state", { state: { title: "churn.ipynb" }, session: sessionOf() });
  write("tape-rows", pageOf(STORY.slice(0, 4), { total: 7 }));
  write("tape-rows-1", pageOf(STORY.slice(4), { from: 4, total: 7 }));
  write("tape-details-0", [known("r2/a"), known("r3/a")]);
  return new Client(new PageDoor(document));
}

test("a page answers from its own blocks, rows one after the other", async () => {
  const client = page();
  expect((await client.ask<Session>("session")).cassette).toBe("main");
  const rows = await client.ask<Page>("spans", { from: 0 });
  expect([rows.id.length, rows.total]).toEqual([4, 7]);
  expect((await client.ask<Page>("spans", { from: 4 })).id).toEqual(["r3/b", "r3/c", "r3/d"]);
  expect((await client.ask<Detail>("detail", { span: "r2/a" })).id).toBe("r2/a");
  expect((await client.ask<Raw>("raw", { span: "r2/a", side: "reply", from: 4, size: 3 })).text).toBe("456");
});

test("two calls of a page are compared; the others of its kind are offered, nearest first", async () => {
  const client = page();
  const { spans } = await client.ask<{ spans: { id: string }[] }>("candidates", { span: "r2/a" });
  expect(spans.map(({ id }) => id)).toEqual(["r3/a", "r3/d"]);
  expect(await client.ask("diff", { span: "r2/a", other: "r3/a" })).toMatchObject({ left_name: "r3/a", right_name: "r2/a" });
});

test("a call of a take is compared with how it was recorded", async () => {
  const client = page();
  const told = { left: "0", right: "3", left_name: "r2/a as recorded", right_name: "r2/a" };
  write("tape-base", { "r2/a": told });
  expect(await client.ask("diff", { span: "r2/a", other: "base" })).toEqual(told);
  await expect(client.ask("diff", { span: "r3/a", other: "base" })).rejects.toThrow("Open the notebook");
});

test("what was left out for its size is said, and so is what a page cannot do", async () => {
  const client = page();
  await expect(client.ask("detail", { span: "r3/d" })).rejects.toThrow("Open it in the notebook");
  await expect(client.ask("detail", { span: "constructor" })).rejects.toThrow("Open it in the notebook");
  await expect(client.ask("override", { span: "r2/a" })).rejects.toThrow("cannot");
});

test("a page without blocks is an empty tape", async () => {
  const client = new Client(new PageDoor(document));
  expect((await client.ask<Page>("spans", { from: 0 })).total).toBe(0);
});

test("a span is told as what it does not share with the one of its kind before it", () => {
  const told = (id: string, kind: string, turns: [number, string[]], text: [number, number, string]): object => ({ ...known(id), detail: { ...detailOf(id), kind }, turns, texts: [text, text, text, text] });
  const found = unfolded([
    told("m1", "model", [0, ["a", "b"]], [0, 0, "from here to there"]),
    told("t1", "tool", [0, []], [0, 0, "another"]),
    told("m2", "model", [2, ["c"]], [10, 6, "and 🙂 on to "]),
    told("m3", "model", [1, []], [0, 0, ""]),
  ] as unknown as Folded[]);
  const all = [...found.values()];
  expect(all.map(({ detail }) => detail.turns)).toEqual([["a", "b"], [], ["a", "b", "c"], ["a"]]);
  expect(all.map(({ raw }) => raw.reply.text)).toEqual(["from here to there", "another", "from here and 🙂 on to  there", ""]);
});

test("a block that is still on its way is waited for", async () => {
  const state = { now: "loading" };
  Object.defineProperty(document, "readyState", { configurable: true, get: () => state.now });
  const client = page();
  const asked = client.ask<Detail>("detail", { span: "r2/a" });
  let there = false;
  void asked.then(() => (there = true));
  expect((await client.ask<Page>("spans", { from: 4 })).id).toHaveLength(3);
  expect(there).toBe(false); // nothing follows its block: it may not be whole
  write("tape-details-1", []);
  expect((await asked).id).toBe("r2/a");
  const late = client.ask("detail", { span: "r3/d" });
  state.now = "interactive";
  document.dispatchEvent(new Event("DOMContentLoaded"));
  await expect(late).rejects.toThrow("Open it in the notebook");
  Reflect.deleteProperty(document, "readyState");
});

test("what was asked and answered is searched block by block, in small letters, each text where it was first said", async () => {
  const client = page();
  const said = (id: string, ...texts: string[]): object => ({ ...known(id), texts: texts.map((text) => [0, 0, text]) });
  document.getElementById("tape-details-0")?.remove();
  write("tape-details-0", [said("r2/a", '"Where is my \\"Order\\"?"', "On its way", "raw", "raw"), said("r3/a", "thanks", "Gladly", "", "")]);
  const found = async (words: string): Promise<string[]> => (await client.ask<{ spans: string[]; next: number | null }>("find", { words, from: 0 })).spans;
  expect(await found("order WAY")).toEqual(["r2/a"]);
  expect(await found('"order"')).toEqual(["r2/a"]);
  expect(await found("raw")).toEqual([]);
  expect(await client.ask("find", { words: "gladly", from: 0 })).toEqual({ spans: ["r3/a"], next: null, total: 7 });
});
