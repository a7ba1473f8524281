/**
 * A recorded call as a conversation, read from its record alone: Anthropic Messages, OpenAI Chat and Responses, and
 * what is like them. With a kernel Python does it (providers/turns.py), for every wire; here the rest shows as JSON.
 */
import type { Part, Turn } from "../view/protocol.ts";
import { type Fields, isFields, pretty, type Value } from "./tapetext.ts";

const LEAVES = [["text", "delta.text"], ["thinking", "delta.thinking"], ["json", "delta.partial_json"]] as const;
const ROLES = new Set(["system", "user", "assistant", "tool"]);

/** What was said to the model. */
export function asked(body: Value | undefined): Turn[] {
  if (!isFields(body)) return [];
  const first = turns("system", body.system ?? body.instructions);
  const given = body.messages ?? body.input;
  const rest = Array.isArray(given) ? given.flatMap(turn) : turns("user", given);
  return [...first, ...rest];
}

/** What it answered: a JSON body or the events of a stream. */
export function answered(response: Fields): Turn[] {
  const body = isFields(response.body) ? response.body : streamed(response.events);
  if (!body) return [];
  if (Array.isArray(body.content)) return turn({ role: "assistant", content: body.content });
  if (Array.isArray(body.output)) return body.output.flatMap(turn);
  const message = Array.isArray(body.choices) ? at(body, "choices.0.message") : body.message;
  return isFields(message) ? turn({ role: "assistant", ...message }) : [];
}

function turns(role: Turn["role"], content: Value | undefined): Turn[] {
  const parts = partsOf(content);
  return parts.length ? [{ role, parts }] : [];
}

function turn(message: Value): Turn[] {
  if (!isFields(message)) return [];
  if (message.type === "function_call") return [{ role: "assistant", parts: [toolUse(message, message.name, message.arguments)] }];
  if (message.type === "function_call_output") return [{ role: "tool", parts: [result(message.call_id, message.output)] }];
  const role = message.role === "developer" ? "system" : message.role;
  if (typeof role !== "string" || !ROLES.has(role)) return [];
  if (role === "tool") return [{ role, parts: [result(message.tool_call_id, message.content)] }];
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.filter(isFields) : [];
  const used = calls.map((call) => toolUse(call, at(call, "function.name"), at(call, "function.arguments")));
  const parts = [...partsOf(message.content), ...used];
  return parts.length ? [{ role: role as Turn["role"], parts }] : [];
}

function partsOf(content: Value | undefined): Part[] {
  if (typeof content === "string") return content ? [{ type: "text", text: content }] : [];
  return Array.isArray(content) ? content.flatMap(part) : [];
}

function part(block: Value): Part[] {
  if (typeof block === "string") return [{ type: "text", text: block }];
  if (!isFields(block)) return [];
  if (typeof block.text === "string") return [{ type: "text", text: block.text }];
  if (typeof block.thinking === "string") return [{ type: "thinking", text: block.thinking }];
  if (block.type === "tool_use") return [toolUse(block, block.name, block.input)];
  if (block.type === "tool_result") return [{ ...result(block.tool_use_id, block.content), error: block.is_error === true }];
  return [{ type: "other", name: text(block.type) || "part", value: JSON.parse(pretty(block)) as unknown }];
}

function toolUse(call: Fields, name: Value | undefined, input: Value | undefined): Part {
  const value = typeof input === "string" ? parsed(input) : (JSON.parse(pretty(input ?? null)) as unknown);
  return { type: "tool_use", id: text(call.call_id ?? call.id), name: text(name), input: value };
}

function result(id: Value | undefined, content: Value | undefined): Part & { type: "tool_result" } {
  const plain = partsOf(content).map((each) => (each.type === "text" ? each.text : ""));
  return { type: "tool_result", id: text(id), text: plain.join("\n"), error: false };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return json;
  }
}

function text(value: Value | undefined): string {
  return typeof value === "string" ? value : "";
}

function at(value: Value | undefined, path: string): Value | undefined {
  for (const step of path.split(".")) {
    if (Array.isArray(value)) value = value[Number(step)];
    else value = isFields(value) ? value[step] : undefined;
  }
  return value;
}

// ---------------------------------------------------------------- streams

/** The message that a stream's folded events add up to, in the form of the JSON reply. */
function streamed(events: Value | undefined): Fields | null {
  if (!Array.isArray(events)) return null;
  const entries = events.filter(isFields);
  const completed = entries.map((entry) => at(entry, "data.response")).findLast((each) => isFields(each) && Array.isArray(each.output) && each.output.length > 0);
  if (isFields(completed)) return completed;
  return entries.some((entry) => at(entry, "data.choices")) ? chat(entries) : messages(entries);
}

function messages(entries: Fields[]): Fields {
  const blocks: Fields[] = [];
  for (const entry of entries) {
    const index = at(entry, "data.index");
    const start = at(entry, "data.content_block");
    if (isFields(start)) blocks.push(Object.assign(Object.create(null) as Fields, start, { index }));
    const block = blocks.find((each) => each.index === index);
    if (!block || start) continue;
    for (const [leaf, path] of LEAVES) {
      const whole = grown(block[leaf], entry, path);
      if (whole !== undefined) block[leaf] = whole;
    }
  }
  return { content: blocks.map(({ json, ...block }) => (text(json) ? { ...block, input: text(json) } : block)) };
}

function chat(entries: Fields[]): Fields {
  let content: Value | undefined = "";
  const calls: Fields[] = [];
  for (const entry of entries) {
    content = grown(content, entry, "choices.0.delta.content");
    const call = at(entry, "data.choices.0.delta.tool_calls.0");
    if (!isFields(call)) continue;
    let known = calls.find(({ index }) => index === call.index);
    if (!known) calls.push((known = { index: call.index ?? 0, id: call.id ?? "", name: "", arguments: "" }));
    known.name = grown(known.name, entry, "choices.0.delta.tool_calls.0.function.name") ?? "";
    known.arguments = grown(known.arguments, entry, "choices.0.delta.tool_calls.0.function.arguments") ?? "";
  }
  const used = calls.map(({ id, name, arguments: given }) => ({ id: id ?? "", function: { name: name ?? "", arguments: given ?? "" } }));
  return { choices: [{ message: { content: content ?? "", tool_calls: used } }] };
}

/** The text with what an entry adds to it: a folded entry holds the joined text of many events. */
function grown(before: Value | undefined, entry: Fields, path: string): Value | undefined {
  const columns = [entry, ...(Array.isArray(entry.vary) ? entry.vary.filter(isFields) : [])];
  const folded = columns.find((column) => column.at === path)?.text;
  const added = folded ?? at(entry, `data.${path}`);
  return typeof added === "string" ? text(before) + added : before;
}
