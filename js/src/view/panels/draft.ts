/** What a person typed about one span and has not saved: pure, kept while the view lives. */
import { locate, put, steps, wrongJson } from "./json.ts";
import type { Edit, Editable, Fault, FaultOptions, Field, Problem } from "../protocol.ts";

export type Tab = "message" | "json" | "value" | "raw" | "fault";

export interface Draft {
  tab: Tab;
  /** JSON text of the whole message. */
  message: string;
  /** Fields typed in and not yet put into `message`, by path. */
  fields: Readonly<Record<string, string>>;
  value: string;
  raw: { status: string; headers: string; body: string };
  /** Which fault, and what was typed in its options, by `fault.option`. */
  fault: { name: string; options: Readonly<Record<string, string>> };
  take: string;
  /** "Keep it as it is", said to the warnings. */
  accept: boolean;
}

export const TAKE = /^[a-z0-9-]{1,64}$/;

export function begin(of: Editable): Draft {
  return {
    tab: tabs(of)[0] ?? "raw",
    message: of.current,
    fields: {},
    value: of.current,
    raw: { status: String(of.raw.status ?? 200), headers: of.raw.headers.map(([name, value]) => `${name}: ${value}`).join("\n"), body: of.raw.body },
    fault: { name: of.faults[0]?.name ?? "", options: {} },
    take: of.take,
    accept: false,
  };
}

export function tabs(of: Editable): Tab[] {
  const forms: Tab[] = of.form === "message" ? ["message", "json", "raw"] : [of.form];
  return of.faults.length ? [...forms, "fault"] : forms;
}

/** What stands in a field now; null where the message no longer has it. */
export function shown(draft: Draft, of: Editable, field: Field): string | null {
  const typed = draft.fields[field.path];
  if (typed !== undefined) return typed;
  if (draft.message === of.current) return field.value;
  return read(draft.message, of.current, field);
}

/** A field as it was recorded, to mark what differs; null where the recording has no such field. */
export function recorded(of: Editable, field: Field): string | null {
  return of.recorded === of.current ? field.value : read(of.recorded, of.current, field);
}

function read(message: string, current: string, field: Field): string | null {
  if (wrongJson(message)) return null;
  const path = steps(field.path);
  const text = slice(message, path);
  if (text === null || text === slice(current, path)) return text === null ? null : field.value;
  return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}

function slice(message: string, path: ReturnType<typeof steps>): string | null {
  const range = locate(message, path);
  return range && message.slice(range.from, range.to);
}

/** The draft with its typed fields put into the message, so that both tabs say the same. */
export function settled(draft: Draft, of: Editable): Draft {
  let message = draft.message;
  const left: Record<string, string> = {};
  for (const field of of.fields) {
    const typed = draft.fields[field.path];
    if (typed === undefined) continue;
    if (field.kind === "json" && wrongJson(typed)) left[field.path] = typed;
    else message = put(message, steps(field.path), asJson(message, field, typed));
  }
  return { ...draft, message, fields: left };
}

/** Arguments that the message holds as text (OpenAI's) stay text; those it holds as an object (Anthropic's) stay one. */
function asJson(message: string, field: Field, typed: string): string {
  return field.kind === "json" && !slice(message, steps(field.path))?.startsWith('"') ? typed : JSON.stringify(typed);
}

/** Whether anything differs from what stands in the take. */
export function changed(draft: Draft, of: Editable): boolean {
  return PARTS.some((part) => changedIn(draft, of, part));
}

/** The message has two tabs, and is one part. */
export type Part = Exclude<Tab, "json">;
export const PARTS: readonly Part[] = ["message", "value", "raw"];

export function part(tab: Tab): Part {
  return tab === "json" ? "message" : tab;
}

export function changedIn(draft: Draft, of: Editable, part: Part): boolean {
  const fresh = begin(of);
  if (part === "fault") return false; // chosen each time, nothing to keep
  if (part === "raw") return (["status", "headers", "body"] as const).some((key) => draft.raw[key] !== fresh.raw[key]);
  if (part === "value") return draft.value !== fresh.value;
  return draft.message !== fresh.message || of.fields.some((field) => (draft.fields[field.path] ?? field.value) !== field.value);
}

/** What the tab in front would save. Only typed fields are sent where nothing else was touched: the smallest edit. */
export function edit(draft: Draft, of: Editable): Edit {
  if (draft.tab === "value") return { form: "value", value: draft.value };
  if (draft.tab === "fault") return { form: "fault", name: draft.fault.name, options: faultOf(draft.fault, of.faults).options };
  if (draft.tab === "raw") return { form: "raw", status: Number(draft.raw.status), headers: headers(draft.raw.headers), body: draft.raw.body };
  if (draft.message !== of.current) return { form: "message", message: settled(draft, of).message };
  const fields = of.fields.flatMap(({ path, value }) => {
    const typed = draft.fields[path];
    return typed === undefined || typed === value ? [] : [{ path, value: typed }];
  });
  return { form: "fields", fields };
}

/** A fault as it is asked for: what was typed of its options, else what they are by themselves. */
export function faultOf({ name, options: typed }: Draft["fault"], faults: readonly Fault[]): { name: string; options: FaultOptions } {
  const fault = faults.find((each) => each.name === name);
  const options = Object.fromEntries((fault?.options ?? []).map((option) => {
    const text = typed[`${name}.${option.name}`];
    return [option.name, text === undefined ? option.value : typeof option.value === "number" ? Number(text) : text];
  }));
  return { name, options };
}

export function headers(lines: string): [string, string][] {
  return lines.split("\n").filter((line) => line.trim()).map((line) => {
    const at = line.indexOf(":");
    return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}

/** What can be said without asking the kernel. `path` is a field's, or a part of the form. */
export function wrong(draft: Draft, of: Editable): Problem[] {
  const found: Problem[] = [];
  const error = (path: string, text: string) => found.push({ level: "error", path, text });
  const json = (path: string, text: string) => {
    const why = wrongJson(text);
    if (why) error(path, `Not JSON: ${why}`);
  };
  if (draft.tab === "message") {
    if (wrongJson(draft.message)) error("", "The JSON tab holds no valid JSON: fix it there first.");
    for (const field of of.fields) {
      const typed = draft.fields[field.path];
      if (typed !== undefined && field.kind === "json") json(field.path, typed);
      if (field.kind === "name" && typed?.trim() === "") error(field.path, "A tool call needs a name.");
    }
  }
  if (draft.tab === "json") json("json", draft.message);
  if (draft.tab === "value") json("value", draft.value);
  if (draft.tab === "fault" && Object.values(faultOf(draft.fault, of.faults).options).some((value) => Number.isNaN(value))) error("", "Enter a number here.");
  if (draft.tab === "raw") {
    if (!/^[1-5]\d\d$/.test(draft.raw.status)) error("status", "A status is a number from 100 to 599.");
    if (headers(draft.raw.headers).some(([name, value]) => !/^[\w!#$%&'*+.^`|~-]+$/.test(name) || /[\0\r]/.test(value))) {
      error("headers", "One header a line, as `name: value`.");
    }
  }
  const size = bytes(sent(edit(draft, of)));
  if (size > of.limit) error("", tooLong("This edit", size, of.limit));
  return found;
}

/** All texts of an edit, as one. */
function sent(what: Edit): string {
  if (what.form === "fields") return what.fields.map((field) => field.value).join("");
  return what.form === "message" ? what.message : what.form === "value" ? what.value : what.form === "raw" ? what.body : "";
}

export function bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

export function tooLong(what: string, size: number, limit: number): string {
  const mib = (count: number) => `${(count / 2 ** 20).toFixed(1).replace(/\.0$/, "")} MiB`;
  return `${what} is ${mib(size)}; an edit holds at most ${mib(limit)}.`;
}
