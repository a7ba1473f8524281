import { expect, test } from "vitest";

import { parse } from "../../src/lab/tapetext.ts";
import { answered, asked } from "../../src/lab/conversation.ts";

const read = (text: string) => parse(`${text.trim()}\n`, 0, text.trim().length + 1);

test("what was said to Anthropic, with a tool's result", () => {
  const body = read(`
system: be brief
messages:
  - role: user
    content: "where is it?"
  - role: assistant
    content:
      - type: tool_use
        id: t1
        name: lookup
        input:
          query: order
  - role: user
    content:
      - type: tool_result
        tool_use_id: t1
        content: shipped`);
  expect(asked(body).map(({ role, parts }) => [role, parts[0]])).toEqual([
    ["system", { type: "text", text: "be brief" }],
    ["user", { type: "text", text: "where is it?" }],
    ["assistant", { type: "tool_use", id: "t1", name: "lookup", input: { query: "order" } }],
    ["user", { type: "tool_result", id: "t1", text: "shipped", error: false }],
  ]);
});

test("Anthropic's stream, folded as cassettes fold it", () => {
  const response = read(`
events:
  - event: content_block_start
    data:
      type: content_block_start
      index: 0
      content_block:
        type: text
        text: ""
  - event: content_block_delta
    data:
      type: content_block_delta
      index: 0
      delta:
        type: text_delta
        text: ""
    at: delta.text
    text: Hello there
    cuts: [6, 5]
  - event: content_block_start
    data:
      index: 1
      content_block:
        type: tool_use
        id: t1
        name: lookup
        input: {}
  - event: content_block_delta
    data:
      index: 1
      delta:
        type: input_json_delta
        partial_json: "{\\"a\\": 1}"`);
  expect(answered(response)).toEqual([
    { role: "assistant", parts: [{ type: "text", text: "Hello there" }, { type: "tool_use", id: "t1", name: "lookup", input: { a: 1 } }] },
  ]);
});

test("OpenAI's chat stream and its Responses", () => {
  const chat = read(`
events:
  - data:
      choices:
        - index: 0
          delta:
            content: ""
    at: choices.0.delta.content
    text: "North, by far"
    cuts: [5, 8]`);
  expect(answered(chat)).toEqual([{ role: "assistant", parts: [{ type: "text", text: "North, by far" }] }]);
  const responses = read(`
events:
  - event: response.completed
    data:
      response:
        output:
          - type: message
            role: assistant
            content:
              - type: output_text
                text: South`);
  expect(answered(responses)).toEqual([{ role: "assistant", parts: [{ type: "text", text: "South" }] }]);
});

test("what is no conversation has no turns", () => {
  expect(asked(null)).toEqual([]);
  expect(answered(read("body:\n  items:\n    - 1"))).toEqual([]);
});
