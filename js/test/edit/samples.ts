/** What a door would answer about a support pipeline: classify a message, look an order up, answer. */
import type { Comparison, Divergence, Editable, Plan, Session } from "../../src/view/protocol.ts";

export const MESSAGE = `{
  "id": "msg_01",
  "type": "message",
  "role": "assistant",
  "model": "claude-sonnet-5",
  "content": [
    {"type": "text", "text": "The customer sounds upset.\\nSentiment: negative"},
    {"type": "tool_use", "id": "toolu_1", "name": "lookup_order", "input": {"query": "my order", "limit": 3}}
  ],
  "stop_reason": "tool_use",
  "usage": {"input_tokens": 12345678901234567890, "output_tokens": 21}
}`;

export const EDITABLE: Editable = {
  span: "r-1/c-1", form: "message", api: "anthropic",
  recorded: MESSAGE, current: MESSAGE,
  fields: [
    { path: "content[0].text", label: "text", kind: "text", value: "The customer sounds upset.\nSentiment: negative" },
    { path: "content[1].name", label: "tool 1: name", kind: "name", value: "lookup_order" },
    { path: "content[1].input", label: "tool 1: arguments", kind: "json", value: '{\n  "query": "my order",\n  "limit": 3\n}' },
    { path: "stop_reason", label: "stop reason", kind: "choice", value: "tool_use", choices: ["end_turn", "tool_use", "max_tokens", "stop_sequence"] },
  ],
  raw: { status: 200, headers: [["content-type", "application/json"], ["request-id", "req_011"]], body: MESSAGE, json: true },
  faults: [
    { name: "status", label: "an HTTP error", options: [{ name: "status", label: "status", value: 429 }, { name: "body", label: "body", value: '{"type":"error","error":{"type":"rate_limit_error"}}' }] },
    { name: "reset", label: "the connection breaks midway", options: [{ name: "after", label: "after events", value: 3 }] },
    { name: "timeout", label: "no answer in time", options: [] },
    { name: "rate_limit", label: "429, rate limit", options: [{ name: "partial", label: "its body breaks off halfway", value: true }] },
  ],
  take: "angry-customer", limit: 4 * 2 ** 20,
};

export const VALUE: Editable = {
  ...EDITABLE, span: "r-1/c-2", form: "value", api: "", fields: [], faults: [],
  recorded: '[\n  {"order": 4421, "state": "shipped"}\n]', current: '[\n  {"order": 4421, "state": "shipped"}\n]',
  raw: { status: null, headers: [], body: "", json: true },
};

export const SESSION: Session = {
  mode: "replay", cassettes: ["main"], cassette: "main", take: "angry-customer-2", default_take: "calm",
  takes: [
    { name: "angry-customer", of: "", overrides: 1, calls: 2, at: "2026-11-22T05:00:00Z", stale: 0 },
    { name: "angry-customer-2", of: "angry-customer", overrides: 2, calls: 1, at: "2026-11-22T05:10:00Z", stale: 1 },
    { name: "calm", of: "", overrides: 1, calls: 0, at: "2026-11-22T05:20:00Z", stale: 0 },
  ],
  totals: { spans: 9, calls: 5, errors: 0, seconds: 3.2, tokens_in: 1100, tokens_out: 104, cost: 0.004, partial: false },
  running: null, notes: [],
};

export const PLAN: Plan = {
  take: "angry-customer", total: 9, counted: "cells", from_tape: 4, maybe_live: 1, seconds: 4.2, hermetic: null,
  warnings: ["[7] report writes to sqlite `orders.db`: re-running repeats it."],
  cells: [
    { entry: 1, cell: "a", number: 2, title: "classify", role: "changed", reasons: ["holds the changed reply"], ticked: true, needs: [] },
    { entry: 2, cell: "b", number: 3, title: "answer", role: "downstream", reasons: ["reads `mood`, set by [2]"], ticked: true, needs: [1], asks: 1, cost: 0.0042 },
    { entry: 4, cell: "c", number: 5, title: "load rows", role: "restores", reasons: ["puts `rows` back, which [3] appended to"], ticked: true, needs: [] },
    { entry: 6, cell: "d", number: 7, title: "report", role: "downstream", reasons: ["reads `rows`, appended by [3]"], ticked: true, needs: [2, 4] },
    { entry: 8, cell: "e", number: 9, title: "a cell with a rather long first line that tells what it is about", role: "downstream", reasons: ["may read `memo`, which [3] could have changed"], ticked: false, needs: [] },
  ],
};

export const DIVERGENCE: Divergence = {
  id: "d-1", cell: "b", title: "[3] answer",
  fields: [
    { path: "messages[1].content", recorded: "Sentiment: negative. Apologise, and offer a refund.", now: "Sentiment: positive. Thank them, and offer a refund." },
    { path: "max_tokens", recorded: "200", now: "400" },
  ],
  asked: { text: '{\n  "model": "claude-sonnet-5",\n  "max_tokens": 400\n}', json: true, whole: true },
  recorded: { text: '{\n  "model": "claude-sonnet-5",\n  "max_tokens": 200\n}', json: true, whole: false },
  reply: { text: '{\n  "content": [{"type": "text", "text": "I am so sorry."}]\n}', json: true },
  cost: 0.0042, choices: ["live", "write", "stale", "skip"],
};

/** A white pixel, a black pixel. */
const WHITE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC";
const BLACK = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAwS2OUAAAAABJRU5ErkJggg==";

const LOG = Array.from({ length: 30 }, (_, at) => `line ${at}`).join("\n");

export const COMPARISON: Comparison = {
  take: "angry-customer", ran: 4, skipped: ["[9] a cell that was not ticked"], stopped: null,
  cells: [
    { cell: "b", number: 3, title: "answer", same: false, outputs: [
      { kind: "text", before: `Dear customer,\nwe are very sorry that your order is late.\n${LOG}\nYours, the team`, after: `Dear customer,\nwe are glad that your order arrived.\n${LOG}\nYours, the whole team` }] },
    { cell: "c", number: 5, title: "load rows", same: true, outputs: [] },
    { cell: "d", number: 7, title: "report", same: false, outputs: [
      { kind: "table", before: "region,customers,lost\nnorth,120,4\nsouth,80,2\neast,75,1\n", after: "region,customers,lost,mood\nnorth,120,9,angry\neast,75,1,calm\nwest,12,0,\"calm, mostly\"\n" },
      { kind: "image", before: WHITE, after: BLACK },
      { kind: "error", before: null, after: "ValueError: no refund for \"positive\"\n  line 3, in report" }] },
  ],
  spans: [
    { before: "r-1/1", after: "r-2/1", name: '"positive"', mark: "changed", note: "claude-sonnet-5 · edited" },
    { before: "r-1/2", after: "r-2/2", name: "→ lookup_order", mark: "same", note: "claude-sonnet-5" },
    { before: "r-1/3", after: null, name: "refund(order=4421)", mark: "gone", note: "tool" },
    { before: null, after: "r-2/3", name: "thank(order=4421)", mark: "added", note: "tool · went live" },
  ],
  variables: [{ name: "mood", before: "'negative'", after: "'positive'" }, { name: "rows", before: "[('north', 120, 4), ('south', 80, 2)]", after: "[('north', 120, 9)]" }],
  proof: { state: "proved", text: "", adopt: [] },
};
