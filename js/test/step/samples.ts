import type { StepCall, StepCompared, StepFrame, StepState, StepStrand, StepVariables } from "../../src/view/protocol.ts";

export function callOf(over: Partial<StepCall> = {}): StepCall {
  return {
    place: ":3", nth: 3, span: "r3/a", kind: "model", title: "→ lookup_order", name: "claude-sonnet-5", would: "play",
    request: { text: '{"model":"claude-sonnet-5","messages":[{"role":"user","content":"where is my order?"}]}', json: true, whole: true },
    reply: { text: '{"content":[{"type":"text","text":"Order #4421 is shipped."}],"stop_reason":"end_turn"}', json: true, whole: true },
    fields: [], request_edit: null, unchangeable: "", faults: [], edited: false,
    can: ["over", "model", "tool", "continue", "to", "jump", "back", "edit", "answer", "fault", "live", "refuse", "stop"],
    ...over,
  };
}

export function strandOf(over: Partial<StepStrand> = {}, call: Partial<StepCall> = {}): StepStrand {
  return { strand: "", name: "cell", call: callOf(call), at: "cell [3]", line: 4, ...over };
}

export function stateOf(over: Partial<StepState> = {}): StepState {
  return {
    revision: 1, state: "stopped", cell: "c3", title: "[3] answer", mode: "replay", cassette: "main", take: "", plays: "", edits: 0, breaks: [],
    strands: [strandOf()], passed: [], made: 2, note: "", ...over,
  };
}

export const FRAMES: StepFrame[] = [
  {
    index: 0, file: "cell [3]", cell: "c3", function: "ask", line: 4, first: 1, left_out: 9,
    source: ["def ask(text):", '    """Ask the model, and say what it said."""', '    asked = [{"role": "user", "content": text}]', '    reply = claude.messages.create(model="claude-sonnet-5", max_tokens=200, messages=asked)', "    return reply.content[0].text"],
  },
  { index: 1, file: "cell [3]", cell: "c3", function: "<module>", line: 12, first: 10, left_out: 0, source: ["orders = load()", "for order in orders:", "    answers.append(ask(order.question))"] },
  { index: 2, file: "/home/ada/shop/agent.py", cell: "", function: "run_agent", line: 88, first: 88, left_out: 2, source: [] },
];

export const VARIABLES: StepVariables = {
  total: 42,
  variables: [
    { name: "asked", type: "list", text: "[{'role': 'user', 'content': 'where is my order?'}]", whole: true },
    { name: "text", type: "str", text: "'where is my order?'", whole: true },
    { name: "orders", type: "DataFrame", text: "   id  question\n0  4421  where is my order?\n1  4422  I cannot see my billing", whole: false },
    { name: "claude", type: "Anthropic", text: "<anthropic.Anthropic object>", whole: true },
  ],
};

export const COMPARED: StepCompared = {
  variables: [{ name: "answers", before: "['negative']", after: "['negative', 'Order #4421 is shipped.']" }, { name: "mood", before: "'negative'", after: "'positive'" }],
  note: "Variables of frames that are gone are not compared.",
};

export const TWO: StepStrand[] = [
  strandOf({ strand: "0.1", name: "thread Thread-3 (ask)" }, { place: "0.1:2" }),
  strandOf({ strand: "0.2", name: "thread Thread-4 (ask)", line: 9 }, { place: "0.2:1", span: "r3/b", kind: "tool", title: 'lookup_order(query="my order")', name: "lookup_order", nth: 4 }),
];
