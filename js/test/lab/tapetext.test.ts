import { describe, expect, test } from "vitest";

import { Exact, parse, pretty, TapeError } from "../../src/lab/tapetext.ts";

const read = (...lines: string[]) => parse(`${lines.join("\n")}\n`, 0, lines.join("\n").length + 1);
const plain = (...lines: string[]): unknown => JSON.parse(pretty(read(...lines)));

describe("a record's text", () => {
  test("maps, lists, lists of maps and of lists", () => {
    const lines = ["call: f2fe2850", "request:", "  body:", "    messages:", "      - role: user", "        content: hello", "      - - 1", "        - two", "  reads: [582, 150]", "empty: {}", "none: []"];
    expect(plain(...lines)).toEqual({
      call: "f2fe2850",
      request: { body: { messages: [{ role: "user", content: "hello" }, [1, "two"]] }, reads: [582, 150] },
      empty: {},
      none: [],
    });
  });

  test("text blocks keep the line ends that their mark says", () => {
    expect(plain("a: |-", "  one", "", "    two", "b: |", "  three", "", "c: |+", "  four", "", "d: 1")).toEqual({ a: "one\n\n  two", b: "three\n", c: "four\n\n", d: 1 });
  });

  test("words, constants, quoted texts and numbers", () => {
    const got = read('a: "no \\"quotes\\" \\ud83d\\U0000de00 #x"', "b: null", "c: true", "d: 1.0", "e: 12345678901234567890", 'f: "{}"', "made by: tape-jupyter 0.1.0");
    expect(got.a).toBe('no "quotes" \ud83d\ude00 #x');
    expect([got.b, got.c, got.f, got["made by"]]).toEqual([null, true, "{}", "tape-jupyter 0.1.0"]);
    expect(got.d).toEqual(new Exact("1.0"));
    expect(pretty(got.e ?? null)).toBe("12345678901234567890");
  });

  test("__proto__ is a key like any other", () => {
    const got = read("__proto__:", "  polluted: true", "b:", "  constructor: x");
    expect(Object.keys(got)).toEqual(["__proto__", "b"]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test.each([
    ["a tab", ["a:\tb"]],
    ["a key twice", ["a: 1", "a: 2"]],
    ["an anchor", ["a: &x 1"]],
    ["a tag", ["a: !!python/object x"]],
    ["a key without a value", ["a:", "b: 1"]],
    ["an indentation of three", ["a:", "   b: 1"]],
    ["a list among keys", ["a: 1", "- b"]],
    ["an open quote", ['a: "b']],
    ["a bad escape", ['a: "\\q"']],
    ["a number of 1,000 digits", [`a: ${"9".repeat(1000)}`]],
    ["65 levels", Array.from({ length: 66 }, (_, depth) => `${"  ".repeat(depth)}a:`)],
    ["65 dashes", [`a:`, `  ${"- ".repeat(66)}1`]],
  ])("%s is refused, with its line", (_, lines) => {
    expect(() => read(...lines)).toThrow(TapeError);
    expect(() => read(...lines)).toThrow(/^line \d+: /);
  });

  test("lines of a million characters cost no more than their length", () => {
    for (const flaw of [`a: ${"x ".repeat(500_000)}`, `a: "${"\\\\".repeat(500_000)}`, "- ".repeat(500_000), `${"a ".repeat(500_000)}: b`, " ".repeat(1_000_000), `a: [${"1,".repeat(500_000)}x]`]) {
      expect(() => read(flaw)).toThrow(TapeError);
    }
  });
});
