import { expect, test } from "vitest";
import { bytes, dollars, duration, many, short } from "../src/view/format.ts";

test("durations are read at a glance", () => {
  expect([0, 0.0042, 0.34, 0.9996, 2.5, 9.96, 59.7, 125, 3725].map(duration)).toEqual(["0 ms", "4.2 ms", "340 ms", "1.0 s", "2.5 s", "10 s", "1 m 00 s", "2 m 05 s", "1 h 02 m"]);
  expect(duration(NaN)).toBe("");
});

test("counts, money and sizes", () => {
  expect([7, 999, 1204, 14_300, 2_500_000].map(short)).toEqual(["7", "999", "1.2 k", "14 k", "2.5 M"]);
  expect([0, 0.00001, 0.0042, 0.0812, 12.345].map(dollars)).toEqual(["$0", "<$0.0001", "$0.0042", "$0.081", "$12.35"]);
  expect([512, 20_480, 5_400_000].map(bytes)).toEqual(["512 B", "20 KB", "5.4 MB"]);
  expect([many(1, "call"), many(1204, "call")]).toEqual(["1 call", "1,204 calls"]);
  expect([short(null), dollars(null)]).toEqual(["", ""]);
});
