import { expect, test } from "vitest";
import { Client } from "../src/view/client.ts";
import { Feed } from "../src/view/rowLoader.ts";
import { FakeDoor } from "./door.ts";
import { pageOf, type Made } from "./rows.ts";

const rows = (count: number, word = "s"): Made[] => Array.from({ length: count }, (_, at) => ({ id: `${word}${at}` }));
const settle = (): Promise<void> => new Promise((done) => setTimeout(done));

/** A door with so many rows, answering at most `most` a page. */
function fed(all: () => readonly Made[], most = 5000, revision = (): number => 1): { feed: Feed; door: FakeDoor; draws: () => number } {
  let draws = 0;
  const door = new FakeDoor({}, { spans: ({ from }) => pageOf(all().slice(Number(from), Number(from) + most), { from: Number(from), total: all().length, revision: revision() }) });
  const feed = new Feed(new Client(door), () => draws++);
  return { feed, door, draws: () => draws };
}

test("pages that are shorter than asked for are asked on from where they end", async () => {
  const { feed } = fed(() => rows(10), 3);
  await feed.load("main", "");
  expect(feed.spans.count).toBe(10);
  expect(feed.spans.id).toEqual(rows(10).map(({ id }) => id));
});

test("rows that are pushed take the place of those from there on", async () => {
  const { feed } = fed(() => rows(4));
  await feed.load("main", "");
  await feed.hear({ revision: 1, total: 5, running: null, page: pageOf([{ id: "new" }, { id: "newer" }], { from: 3, total: 5 }) });
  expect(feed.spans.id).toEqual(["s0", "s1", "s2", "new", "newer"]);
});

test("a push from row 0 begins anew, with its revision", async () => {
  const { feed } = fed(() => rows(4));
  await feed.load("main", "");
  await feed.hear({ revision: 7, total: 1, running: null, page: pageOf([{ id: "only" }], { revision: 7 }) });
  expect(feed.spans.id).toEqual(["only"]);
  expect(feed.spans.revision).toBe(7);
});

test("an answer that was on its way when rows were pushed is not taken for theirs", async () => {
  const { feed, door } = fed(() => rows(4));
  await feed.load("main", "");
  delete door.answers.spans;
  const waiting = feed.hear({ revision: 2, total: 4, running: null });
  await feed.hear({ revision: 1, total: 5, running: null, page: pageOf([{ id: "late" }], { from: 4, total: 5 }) });
  door.answer("spans", () => pageOf(rows(2, "old"), { revision: 2 }));
  await waiting;
  expect(feed.spans.id).toEqual(["s0", "s1", "s2", "s3", "late"]);
});

test("a new revision leaves the rows on show until as many are there", async () => {
  let revision = 1;
  const { feed, door } = fed(() => rows(8, `r${revision}-`), 3, () => revision);
  await feed.load("main", "");
  revision = 2;
  const counts = new Set<number>();
  const before = door.answers.spans;
  door.answers.spans = (asked) => {
    counts.add(feed.spans.count);
    return before?.(asked);
  };
  await feed.hear({ revision: 2, total: 8, running: null });
  await settle();
  expect([...counts]).toEqual([8]);
  expect(feed.spans.id[0]).toBe("r2-0");
});

test("another take shows nothing of the one before", async () => {
  const { feed, door } = fed(() => rows(3));
  await feed.load("main", "");
  delete door.answers.spans;
  void feed.load("main", "angry-customer");
  expect(feed.spans.count).toBe(0);
  expect(door.asked.at(-1)).toMatchObject({ cassette: "main", take: "angry-customer", from: 0 });
});

test("a door that has fewer rows than it says leaves what came", async () => {
  const { feed, door } = fed(() => rows(3));
  door.answers.spans = ({ from }) => pageOf(rows(3).slice(Number(from)), { from: Number(from), total: 9 });
  await feed.load("main", "");
  expect([feed.spans.count, feed.loading, feed.error]).toEqual([3, false, null]);
});

test("a door that gives other rows than those asked for is not asked for ever", async () => {
  const { feed, door } = fed(() => rows(3));
  door.answers.spans = () => pageOf(rows(3), { total: 9 });
  await feed.load("main", "");
  expect(feed.error).toContain("rows from 0 came where those from 3 were asked for");
});
