/** The rows of a cell's calls, from their records in a cassette: what `spans/rows.py` gives where there is a kernel. */
import { KINDS, MARKS, type Page } from "../view/protocol.ts";
import type { Cassette, Recorded } from "./cassette.ts";
import { answered } from "./conversation.ts";
import { bounds, type Places } from "./saved.ts";
import { kindOf, number, text, title } from "./savedSpans.ts";
import { fields, isFields, pretty, type Value } from "./tapetext.ts";

const LONG = 160;
const [, OVERRIDDEN, ERROR] = MARKS.keys();
const RETRIED = MARKS.indexOf("retried");

interface Row { id: string; depth: number; kind: number; mark: number; start: number; first: number | null; end: number; name: string; note: string; tokens: number | null }
interface Made extends Row { call: string; parent: string; path: string[]; failed: boolean; same: string }

/** The cell's own row and those of the calls below it. Raises TapeError. */
export function pageOf(cassette: Cassette, calls: Places, cell: { title: string; cell: string; mode: string }): Page {
  const made = idsAt(cassette, calls).map((id) => rowOf(id, cassette.call(id)));
  const begin = Math.min(...made.map(({ start }) => start));
  for (const row of made) Object.assign(row, { start: row.start - begin, end: row.end - begin, first: row.first === null ? null : row.first - begin });
  made.sort((a, b) => a.start - b.start);
  const run = calls[0]?.[0] ?? "";
  // what another run answered was made at another time
  const timed = made.filter(({ id }) => id.startsWith(`${run}/`));
  const [start, end] = [Math.min(...timed.map((row) => row.start)), Math.max(...timed.map((row) => row.end))].map((at) => isFinite(at) ? at : 0) as [number, number];
  const ended = cassette.endOf(run);
  const over = number(ended.held) ? start + (number(ended.seconds) ?? 0) : end; // the stops of a step-through are no time of the cell
  const own: Row = { id: run, depth: 0, kind: KINDS.indexOf("cell"), mark: 0, start, first: null, end: over, name: cell.title, note: cell.mode, tokens: null };
  return columns([own, ...inTree(made, own.id)], cell.cell);
}

export function idsAt(cassette: Cassette, calls: Places): string[] {
  return calls.flatMap(([run, places]) => {
    const ids = cassette.callsOf(run);
    return bounds(places).flatMap(([low, high]) => ids.slice(low, high + 1));
  });
}

function rowOf(id: string, call: Recorded): Made {
  const { head, request } = call;
  const response = call.response ?? fields();
  const kit = isFields(head.kit) ? head.kit : fields();
  const usage = isFields(kit.usage) ? kit.usage : fields();
  const kind = kindOf(head, request);
  const start = Date.parse(text(head.at)) / 1000 || 0;
  const waits: unknown[] = Array.isArray(response.waits) ? response.waits : [];
  const [tokensIn, tokensOut] = [number(usage.input), number(usage.output)];
  const failed = text(head.failed) !== "" || isFields(response.error) || (number(response.status) ?? 0) >= 400;
  return {
    id, depth: 1, kind: KINDS.indexOf(kind), mark: call.overridden ? OVERRIDDEN ?? 0 : failed ? ERROR ?? 0 : 0, start, failed,
    first: typeof waits[0] === "number" ? start + waits[0] : null, end: start + (number(head.seconds) ?? 0),
    name: oneLine(nameOf(call, kind)), note: kind === "model" ? text(kit.answered) || text(kit.model) : "",
    tokens: tokensIn === null && tokensOut === null ? null : (tokensIn ?? 0) + (tokensOut ?? 0),
    call: id.slice(id.indexOf("/") + 1), parent: text(head.parent), path: text(head.span) ? text(head.span).split(" / ") : [],
    same: kind === "model" || kind === "http" ? JSON.stringify([head.match, head.lineage, head.parent, head.span]) : id,
  };
}

/** `→ lookup_order`, `"negative"`, `429`, `lookup_order(query="my order")`. */
function nameOf({ head, request, response }: Recorded, kind: string): string {
  if (kind === "tool" || kind === "retrieval") {
    const given = isFields(request.arguments) ? Object.entries(request.arguments) : [];
    return `${title(request)}(${given.map(([name, value]) => `${name}=${short(value)}`).join(", ")})`;
  }
  const status = number(response?.status) ?? 0;
  if (status >= 400) return String(status);
  if (text(head.failed)) return text(head.failed);
  const parts = (kind === "model" && response ? answered(response) : []).flatMap((turn) => turn.parts);
  const used = parts.flatMap((part) => (part.type === "tool_use" ? [part.name] : []));
  const answer = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(" ").trim();
  return used.length ? `→ ${used.join(", ")}` : answer ? `"${answer}"` : title(request);
}

function short(value: Value): string {
  if (typeof value === "string") return `"${value.slice(0, LONG)}"`;
  if (Array.isArray(value)) return `[${value.length}]`;
  return isFields(value) ? `{${Object.keys(value).slice(0, 4).join(", ")}}` : pretty(value).slice(0, 40);
}

function oneLine(words: string): string {
  const line = words.slice(0, 4 * LONG).replace(/[\0-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]+/g, " ").replace(/\s+/g, " ").trim(); // eslint-disable-line no-control-regex
  return line.length <= LONG ? line : `${line.slice(0, LONG - 1)}…`;
}

/** Of each row that failed and was sent again from the same place: the one that ended this. */
function retries(made: readonly Made[]): Map<Made, Made> {
  const [last, found] = [new Map<string, Made>(), new Map<Made, Made>()];
  for (const row of made.toReversed()) {
    const answer = last.get(row.same);
    if (answer && row.failed) found.set(row, answer);
    else last.set(row.same, row);
  }
  return found;
}

/** Below the call whose body made it, else below the user's spans it was made in: as spans/tree.py. */
function inTree(made: readonly Made[], run: string): Row[] {
  const known = new Map(made.map((row) => [row.call, row]));
  const answers = retries(made);
  const below = new Map<string, Row[]>();
  const spans = new Map<string, Row>();
  const put = (container: string, row: Row): void => void (below.get(container) ?? below.set(container, []).get(container))?.push(row);
  for (const row of made) {
    const parent = row.parent === row.call ? undefined : known.get(row.parent);
    let container = parent?.id ?? "";
    for (const name of parent ? row.path.slice(parent.path.length) : row.path) {
      const key = `${container}\n${name}`;
      let span = spans.get(key);
      if (!span) {
        span = { id: `${run}/#${spans.size + 1}`, depth: 1, kind: KINDS.indexOf("span"), mark: 0, start: row.start, first: null, end: row.end, name: oneLine(name), note: "", tokens: null };
        spans.set(key, span);
        put(container, span);
      }
      span.start = Math.min(span.start, row.start);
      span.end = Math.max(span.end, row.end);
      container = span.id;
    }
    const answer = answers.get(row);
    if (answer && row.mark === ERROR) row.mark = RETRIED;
    put(answer?.id ?? container, row);
  }
  const found: Row[] = [];
  const walk = (container: string, depth: number): void => {
    const rows = below.get(container) ?? [];
    below.delete(container); // a circle of parents, made by hand, ends
    for (const row of rows) {
      found.push(Object.assign(row, { depth }));
      walk(row.id, Math.min(depth + 1, 64));
    }
  };
  walk("", 1);
  for (const container of [...below.keys()]) walk(container, 1);
  return found;
}

function columns(rows: readonly Row[], cell: string): Page {
  const column = <K extends keyof Row>(key: K): Row[K][] => rows.map((row) => row[key]);
  return {
    revision: 1, from: 0, total: rows.length, id: column("id"), depth: column("depth"), kind: column("kind"), mark: column("mark"), start: column("start"),
    first: column("first"), end: column("end"), name: column("name"), note: column("note"), tokens: column("tokens"), cost: rows.map(() => null), cell: rows.map(() => cell),
  };
}
