import { expect, test } from "vitest";

import { Cassette } from "../../src/lab/cassette.ts";
import { pretty, TapeError } from "../../src/lab/tapetext.ts";

const record = (...lines: string[]) => ["---", ...lines, "...", ""].join("\n");
const id = (number: number) => number.toString(16).padStart(8, "0");
const call = (number: number, ...messages: string[]) =>
  record(`call: "${id(number)}"`, "run: r-1", "request:", '  post: "https://host/v1"', "  body:", "    messages:", ...messages.map((each) => `      - ${each}`), "response:", "  status: 200");
const from = (number: number, start: number, stop: number) => `"<from>": "${id(number)} messages[${start}:${stop}]"`;
const asked = (cassette: Cassette, number: number): unknown => JSON.parse(pretty(cassette.call(`r-1/${id(number)}`).request.body ?? null));

test("a request that refers to earlier ones is whole again", () => {
  const cassette = new Cassette(call(1, "one", "two") + call(2, from(1, 0, 2), "three") + call(3, "zero", from(2, 1, 3), "four"));
  expect(asked(cassette, 3)).toEqual({ messages: ["zero", "two", "three", "four"] });
});

test("a text that is a reference is that text, through any number of calls", () => {
  const texts = [record(`call: "${id(1)}"`, "run: r-1", "request:", '  post: "https://host"', "  body:", "    system: be kind")];
  for (let number = 2; number < 50; number++)
    texts.push(record(`call: "${id(number)}"`, "run: r-1", "request:", '  post: "https://host"', "  body:", "    system:", `      "<from>": "${id(number - 1)} system"`));
  expect(asked(new Cassette(texts.join("")), 49)).toEqual({ system: "be kind" });
});

test("ten thousand requests that each refer to the one before", () => {
  let text = call(0, "m0");
  for (let number = 1; number < 10_000; number++) text += call(number, from(number - 1, 0, number), `m${number}`);
  const got = asked(new Cassette(text), 9_999) as { messages: string[] };
  expect(got.messages).toHaveLength(10_000);
  expect(got.messages[5_000]).toBe("m5000");
});

test("references that multiply end in an error, not in a hang", () => {
  let text = call(0, "m", "m");
  let length = 2;
  for (let number = 1; number < 28; number++, length *= 2) text += call(number, from(number - 1, 0, length), from(number - 1, 0, length));
  expect(() => asked(new Cassette(text), 27)).toThrow(/expand to more/);
});

test("references to nothing, to themselves and in a circle end in an error", () => {
  expect(() => asked(new Cassette(call(1, from(9, 0, 1))), 1)).toThrow(/not in the cassette/);
  expect(() => asked(new Cassette(call(1, from(1, 0, 1))), 1)).toThrow(TapeError);
  expect(() => asked(new Cassette(call(1, from(2, 0, 1)) + call(2, from(1, 0, 1))), 1)).toThrow(TapeError);
});

test("a torn tail is left out; what begins with anything else is no cassette", () => {
  const cassette = new Cassette(`${call(1, "one")}---\ncall: "0000`);
  expect(asked(cassette, 1)).toEqual({ messages: ["one"] });
  expect(() => new Cassette("<<<<<<< HEAD\n")).toThrow(TapeError);
  expect(() => cassette.call("r-1/00000009")).toThrow(/no longer in the cassette/);
});
