import { expect, test } from "vitest";
import { moment } from "../src/view/format.ts";
import { Spans } from "../src/view/spans.ts";
import { Timeline, zoomed } from "../src/view/timeline.ts";
import { pageOf, STORY, type Made } from "./rows.ts";

function timeline(rows: readonly Made[]): Timeline {
  const spans = new Spans();
  spans.append(pageOf(rows));
  return new Timeline(spans);
}
const COFFEE: Made[] = [{ id: "a", start: 10, end: 12 }, { id: "b", start: 612, end: 614 }, { id: "c", start: 613, end: 616 }];

test("without long pauses, time is drawn as it was", () => {
  const drawn = timeline(STORY);
  expect(drawn.pauses).toEqual([]);
  expect(drawn.length).toBeCloseTo(3.2);
  expect(drawn.at(1.7)).toBeCloseTo(1.7);
});

test("ten minutes in which nothing ran are cut out, and marked", () => {
  const drawn = timeline(COFFEE);
  expect(drawn.pauses).toHaveLength(1);
  expect(drawn.pauses[0]?.seconds).toBe(600);
  expect(drawn.length).toBeLessThan(6.5);
  expect(drawn.at(11)).toBeCloseTo(1);
  expect(drawn.at(614) - drawn.at(612)).toBeCloseTo(2);
});

test("later is always further right", () => {
  const drawn = timeline(COFFEE);
  const shown = Array.from({ length: 640 }, (_, second) => drawn.at(second));
  expect(shown).toEqual([...shown].sort((a, b) => a - b));
});

test("ticks stand at round moments of recorded time, on both sides of a cut", () => {
  const drawn = timeline(COFFEE);
  const ticks = drawn.ticks({ from: 0, to: drawn.length }, 8);
  expect(ticks.map(({ seconds }) => seconds)).toEqual([0, 1, 602, 603, 604, 605, 606]);
  for (const { at, seconds } of ticks) expect(at).toBeCloseTo(drawn.at(seconds + 10), 5);
});

test("no two ticks are nearer than their words are wide, whatever part is shown", () => {
  // A moment between two pauses is shorter than the words after either.
  const SHORT = [[0, 2], [9, 9.01], [20, 24]].map(([start, end], at) => ({ id: `${at}`, start: start ?? 0, end: end ?? 0 }));
  for (const spans of [COFFEE, SHORT]) {
    for (const from of [0, 0.7, 1.5, 2.9]) {
      for (const long of [0.4, 2, 3]) {
        const ticks = timeline(spans).ticks({ from, to: from + long }, 8);
        const gaps = ticks.slice(1).map(({ at }, index) => at - (ticks[index]?.at ?? 0));
        expect(Math.min(...gaps)).toBeGreaterThan((long / 8) * 0.75);
      }
    }
  }
});

test("no two ticks of a ruler read the same, however late in a session and however close one looks", () => {
  const late = [12, 600, 9960, 93_000].flatMap((end) => [{ id: `${end}`, start: end - 11, end }, { id: `${end} later`, start: end + 40, end: end + 200 }]);
  for (const rows of [late, COFFEE, [{ id: "a", start: 0, end: 9990 }]]) {
    const drawn = timeline(rows);
    for (let long = 0.002; long < drawn.length * 2; long *= 1.7) {
      for (let from = 0; from < drawn.length; from += drawn.length / 23) {
        const texts = drawn.ticks({ from, to: from + long }, 8).map(({ text }) => text);
        expect(texts).toEqual([...new Set(texts)]);
      }
    }
  }
});

test.each([
  [9960, 120, "2 h 46 m"], [9990, 30, "2:46:30"], [9990.25, 0.05, "2:46:30.25"], [3600, 60, "1:00:00"],
  [125, 1, "2 m 05 s"], [125.5, 0.5, "2:05.5"], [119.97, 0.1, "2:00.0"], [12.5, 0.5, "12.5 s"], [13, 0.5, "13 s"],
  [2, 0.5, "2 s"], [2.5, 0.1, "2.5 s"], [2.25, 0.05, "2.25 s"], [0.25, 0.05, "250 ms"], [0, 0.01, "0"],
])("%d s on a ruler of %d s a mark reads %s", (seconds, step, text) => {
  expect(moment(seconds, step)).toBe(text);
});

test("parallel calls leave no pause between them, in whatever order they come", () => {
  expect(timeline([{ id: "a", start: 0, end: 100 }, { id: "b", start: 50, end: 60 }, { id: "c", start: 2, end: 4 }]).pauses).toEqual([]);
});

test("one span of no length can be drawn", () => {
  expect(timeline([{ id: "a", start: 5, end: 5 }]).length).toBeGreaterThan(0);
  expect(timeline([]).length).toBeGreaterThan(0);
});

test("zooming stays within the whole, about the point one looks at", () => {
  expect(zoomed({ from: 0, to: 10 }, 10, 0.5, 0)).toEqual({ from: 0, to: 5 });
  expect(zoomed({ from: 4, to: 6 }, 10, 0.5, 0.5)).toEqual({ from: 4.5, to: 5.5 });
  expect(zoomed({ from: 4, to: 6 }, 10, 100, 0.5)).toEqual({ from: 0, to: 10 });
});
