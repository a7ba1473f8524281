import { expect, test } from "vitest";
import { Desk } from "../src/view/store.ts";
import { find } from "../src/view/search.ts";
import { FakeDoor } from "./door.ts";
import { pageOf, sessionOf, STORY } from "./rows.ts";

async function desk(answers: { spans: string[]; next: number | null }[]): Promise<{ desk: Desk; door: FakeDoor }> {
  const door = new FakeDoor({}, { session: () => sessionOf(), spans: () => pageOf(STORY), find: () => ({ ...answers.shift(), total: 900 }) });
  const made = new Desk(door);
  await made.start();
  return { desk: made, door };
}
const shown = (made: Desk): string[] => [...made.visible].map((row) => made.spans.id[row] ?? "");

test("calls are found by their bodies, stretch by stretch, beside those whose rows say it", async () => {
  const { desk: made, door } = await desk([{ spans: [], next: 400 }, { spans: ["r2/a"], next: null }]);
  made.filter({ words: "nobody says this in a row" });
  expect(shown(made)).toEqual([]);
  const told: string[] = [];
  made.listen(() => told.push(made.look.finding));
  await find(made);
  expect(shown(made)).toEqual(["r2", "r2/a"]);
  expect(told).toEqual(["searching…", "400 of 900 spans searched…", ""]);
  expect(door.asked.filter(({ about }) => about === "find").map(({ from }) => from)).toEqual([0, 400]);
});

test("other words end a search, and what it had found is not shown for them", async () => {
  const { desk: made, door } = await desk([{ spans: ["r2/a"], next: 400 }, { spans: ["r3/a"], next: 800 }]);
  made.filter({ words: "nobody says this" });
  const search = find(made);
  made.filter({ words: "nor this" });
  await search;
  expect(shown(made)).toEqual([]);
  expect([made.look.finding, door.asked.filter(({ about }) => about === "find").length]).toEqual(["", 1]);
});

test("a door that cannot search says so", async () => {
  const { desk: made, door } = await desk([]);
  door.answers.find = () => new Error("this needs the notebook's kernel");
  made.filter({ words: "x" });
  await find(made);
  expect([made.look.finding, made.look.error]).toEqual(["", "this needs the notebook's kernel"]);
});
