/** One span's detail, from its records in a cassette: what `spans/details.py` gives where there is a kernel. */
import type { Detail, Raw, Section } from "../view/protocol.ts";
import { Cassette, type Recorded } from "./cassette.ts";
import { fields, type Fields, isFields, pretty, type Value } from "./tapetext.ts";
import { answered, asked } from "./conversation.ts";

const CUT = 200_000; // characters of a section
const METHODS = /^(get|post|put|patch|delete|head|options|ws)$/;

export { Cassette };

/** A span of a cell's run: a call ("RUN/CALL"), or the run itself. Raises TapeError. */
export function detail(cassette: Cassette, id: string, path: string): Detail {
  return id.includes("/") ? callDetail(cassette.call(id), id, path) : runDetail(cassette.run(id), id, path);
}

function callDetail(call: Recorded, id: string, path: string): Detail {
  const { head, request, more } = call;
  const response = call.response ?? fields();
  const kit = isFields(head.kit) ? head.kit : fields();
  const usage = isFields(kit.usage) ? kit.usage : fields();
  const seconds = number(head.seconds) ?? 0;
  const waits = Array.isArray(response.waits) ? response.waits : [];
  const error = isFields(response.error) ? pretty(response.error) : null;
  return {
    ...empty(id, path),
    kind: kindOf(head, request),
    title: title(request),
    turns: [...asked(request.body), ...answered(response)],
    request: section(request),
    reply: section(response, more),
    headers: { request: headers(request.headers), reply: headers(response.headers) },
    status: number(response.status),
    ending: text(response.end) || "complete",
    error,
    timing: { at: text(head.at), seconds, first: number(waits[0]), chunks: Array.isArray(response.reads) ? response.reads.length : 1, rate: null },
    usage: { tokens_in: number(usage.input), tokens_out: number(usage.output), cost: null, model: text(kit.model) },
    kit: flat(kit),
    overridden: call.overridden ? { take: "", stale: false, note: "" } : null,
    tags: text(head.span) ? [["span", text(head.span)]] : [],
    raw: { request: bodyText(request).length, reply: bodyText(response).length },
  };
}

function runDetail(run: Fields, id: string, path: string): Detail {
  const kit = isFields(run.kit) ? run.kit : fields();
  return {
    ...empty(id, path),
    title: text(run.title) || id,
    cell: text(run.cell) || text(run.source).slice(0, 12),
    timing: { at: text(run.at), seconds: 0, first: null, chunks: 0, rate: null },
    kit: flat({ mode: run.mode ?? "", count: run.count ?? null, session: run.session ?? "", ...kit }),
  };
}

function empty(id: string, path: string): Detail {
  const none: Section = { text: "", json: false, whole: true };
  return {
    id, kind: "cell", title: id, cell: "", path, line: 0, turns: [], request: none, reply: none,
    headers: { request: [], reply: [] }, status: null, ending: "", error: null,
    timing: { at: "", seconds: 0, first: null, chunks: 0, rate: null },
    usage: { tokens_in: null, tokens_out: null, cost: null, model: "" },
    kit: [], tags: [], raw: { request: 0, reply: 0 }, overridden: null, editable: "no", source: null,
  };
}

/** Whether a file still begins as it did when it had so many bytes; null where the page may not compute digests. */
export async function unchanged(text: string, bytes: number, sha256: string): Promise<boolean | null> {
  const then = new TextEncoder().encode(text).subarray(0, bytes);
  const found = await digest(then);
  return found === null ? null : then.length === bytes && found === sha256;
}

/** Whether the calls' records are those that were saved; null where that cannot be said. */
export async function asSaved(cassette: Cassette, ids: readonly string[], sha256: string): Promise<boolean | null> {
  const found = sha256 ? await digest(new TextEncoder().encode(cassette.textOf(ids))) : null;
  return found === null ? null : found.startsWith(sha256);
}

async function digest(bytes: Uint8Array<ArrayBuffer>): Promise<string | null> {
  const subtle = (globalThis.crypto as Partial<Crypto>).subtle; // not on a page served over plain http
  if (!subtle) return null;
  return [...new Uint8Array(await subtle.digest("SHA-256", bytes))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A page of a body as text, for the raw tab. */
export function raw(cassette: Cassette, id: string, side: string, from: number, size: number): Raw {
  const call = cassette.call(id);
  const whole = bodyText(side === "request" ? call.request : (call.response ?? fields()));
  return { text: whole.slice(from, from + size), hex: false, from, total: whole.length };
}

/** A body as it was sent, where the record has it as text; JSON is spelled out anew. */
function bodyText(part: Fields): string {
  if (part.body !== undefined) return pretty(part.body);
  if (typeof part.text === "string") return part.text;
  for (const kind of ["events", "lines", "frames"]) {
    const entries = part[kind];
    if (Array.isArray(entries)) return entries.map((entry) => pretty(entry)).join("\n");
  }
  if (typeof part.base64 === "string") return part.base64;
  for (const kind of ["value", "arguments"]) if (part[kind] !== undefined) return pretty(part[kind]);
  return isFields(part.error) ? pretty(part.error) : "";
}

function section(part: Fields, more: Fields[] = []): Section {
  const whole = [part, ...more].map(bodyText).filter(Boolean).join("\n");
  const json = part.body !== undefined || part.value !== undefined || part.arguments !== undefined;
  return { text: whole.slice(0, CUT), json: json && whole.length <= CUT && !more.length, whole: whole.length <= CUT };
}

export function kindOf(head: Fields, request: Fields): Detail["kind"] {
  if ("tool" in request) return "tool";
  if ("retrieval" in request) return "retrieval";
  return head.kind === "model" ? "model" : "http";
}

export function title(request: Fields): string {
  const [method = "", target] = Object.entries(request)[0] ?? [];
  return METHODS.test(method) ? `${method.toUpperCase()} ${text(target)}` : text(target);
}

function headers(value: Value | undefined): [string, string][] {
  const maps = Array.isArray(value) ? value.filter(isFields) : isFields(value) ? [value] : [];
  return maps.flatMap((map) => Object.entries(map).map(([name, each]): [string, string] => [name, text(each)]));
}

/** Facts a line each: `clock.utc`, `usage.input`. */
function flat(value: Fields, prefix = ""): [string, string][] {
  return Object.entries(value).flatMap(([key, each]): [string, string][] => {
    if (isFields(each) && prefix.length < 200) return flat(each, `${prefix}${key}.`);
    return each === null || each === "" ? [] : [[`${prefix}${key}`, typeof each === "string" ? each : pretty(each)]];
  });
}

export function number(value: Value | undefined): number | null {
  return typeof value === "number" ? value : null;
}

export function text(value: Value | undefined): string {
  return typeof value === "string" ? value : "";
}
