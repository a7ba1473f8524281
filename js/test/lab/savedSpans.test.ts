import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { unchanged } from "../../src/lab/savedSpans.ts";

const text = "---\ntape: 1\n...\n---\ncall: é\n...\n";
const bytes = Buffer.byteLength(text);
const sha256 = createHash("sha256").update(text).digest("hex");

test("a cassette that only grew is as it was", async () => {
  expect(await unchanged(text, bytes, sha256)).toBe(true);
  expect(await unchanged(`${text}---\nrun: later\n...\n`, bytes, sha256)).toBe(true);
});

test("one that was edited or cut off is not", async () => {
  expect(await unchanged(text.replace("é", "è"), bytes, sha256)).toBe(false);
  expect(await unchanged(text.slice(0, -4), bytes, sha256)).toBe(false);
});
