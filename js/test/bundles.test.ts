// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { build, DOORS, here } from "../build.mjs";
import { bundles } from "../lab.mjs";

/** Bytes, minified. A view is what a door sends before anything is opened or edited. */
const MOST: Record<string, number> = { "widget.js": 60_000, "page.js": 60_000, "page-side.js": 60_000, "editor.js": 400_000, "cards.js": 107_000 };

test.each(DOORS)("$file stays small", async (door) => {
  const text = await build(door);
  expect(Buffer.byteLength(text)).toBeLessThan(MOST[door.file] ?? 100_000);
  expect(text).not.toMatch(/<\/script|<!--/i); // it is written into pages
});

test("the labextension loads its view when a list is drawn, and little before that", async () => {
  const { container, chunks } = await bundles();
  const size = Object.fromEntries(chunks.map(({ file, text }) => [file.split(".", 1)[0], Buffer.byteLength(text)])) as Record<"door" | "view" | "editor" | "cards" | "saved", number>;
  expect(Buffer.byteLength(container.text) + size.door).toBeLessThan(25_000); // with the page: kernel line, toolbar, status bar
  expect(size.view).toBeLessThan(60_000);
  expect(size.editor + size.cards).toBeLessThan(400_000);
});

test("no recorded text can become code or markup: the sources have no way to do it", () => {
  const forbidden = /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|srcdoc|\beval\(|new Function\b|createContextualFragment|DOMParser|javascript:/;
  const files = readdirSync(join(here, "src"), { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
  expect(files.length).toBeGreaterThan(30);
  for (const name of files) expect(forbidden.exec(readFileSync(join(here, "src", name), "utf8")), name).toBeNull();
});
