/** A cassette's records, found by name and read when they are used; requests with their references filled in. */
import { fields, type Fields, isFields, parse, TapeError, type Value } from "./tapetext.ts";

const FROM = "<from>";
const ASSET = "<asset>";
const REF = /^(?:([^\s/]+)\/)?([0-9a-f]{8}(?:-\d+)?) ([^[\]]+?)(?:\[(\d{1,9}):(\d{1,9})\])?$/;
/** Steps that one request's references may take: a few hostile lines could ask for any number. */
const MOST_STEPS = 500_000;
const LONGEST = 64 * 1024 * 1024;

interface Span { start: number; end: number }
/** An item of a list, or a slice of one, and the call that holds it. */
interface Item { from: string; item: Value }
interface Slice { from: string; list: Value[]; start: number; stop: number }
export interface Recorded {
  head: Fields;
  request: Fields;
  /** The reply; null where the record has none. Bytes that came late are further sections. */
  response: Fields | null;
  more: Fields[];
  /** Whether a take gives the reply. */
  overridden: boolean;
}

export class Cassette {
  readonly #text: string;
  readonly #calls = new Map<string, Span>();
  readonly #more = new Map<string, Span[]>();
  readonly #runs = new Map<string, Span>();
  readonly #ends = new Map<string, Span>();
  readonly #overrides = new Map<string, Span>();
  readonly #base: Cassette | null;
  /** The take's base, relative to its folder; "" of a recording. */
  readonly of: string;
  readonly #requests = new Map<string, Fields>();
  #steps = 0;

  /** Raises TapeError where the text is no cassette. A torn tail is left out. `base`: what a take differs from. */
  constructor(text: string, base: Cassette | null = null) {
    this.#base = base;
    if (text.length > LONGEST) throw new TapeError("the cassette is too large to be read here: run %load_ext tape_jupyter");
    this.#text = text.includes("\r") ? text.replaceAll("\r\n", "\n") : text;
    this.#index();
    this.of = baseOf(this.#text);
  }

  /** The ids of a run's calls, in the order of the file. */
  callsOf(run: string): string[] {
    const own = [...this.#calls.keys()].filter((id) => id.startsWith(`${run}/`));
    return [...(this.#base?.callsOf(run) ?? []), ...own];
  }

  /** The records of calls as they stand in the file, by runs, each run's in its order. */
  textOf(ids: readonly string[]): string {
    const runs = new Map<string, string[]>();
    for (const id of ids) {
      const [run = ""] = id.split("/", 1);
      runs.set(run, [...(runs.get(run) ?? []), id]);
    }
    return [...runs].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, each]) => each.map((id) => this.#recordOf(id))).join("");
  }

  #recordOf(id: string): string {
    const span = this.#overrides.get(id) ?? this.#calls.get(id);
    if (span) return this.#text.slice(span.start, span.end);
    return this.#base ? this.#base.#recordOf(id) : "";
  }

  /** A call by its span's id, "RUN/CALL". Raises TapeError. */
  call(id: string): Recorded {
    const instead = this.#overrides.get(id);
    if (instead) return { ...this.#replaced(id), response: responseOf(this.#parsed(instead)), more: [], overridden: true };
    return this.#replaced(id);
  }

  /** A call as it was before an override of this take. */
  #replaced(id: string): Recorded {
    const span = this.#calls.get(id);
    if (!span && this.#base) return this.#base.call(id);
    if (!span) throw new TapeError("this call is no longer in the cassette");
    const record = this.#parsed(span);
    const { request, ...head } = record;
    const more = (this.#more.get(id) ?? []).map((each) => this.#parsed(each));
    return {
      head: Object.assign(fields(), head, { response: null }),
      request: this.#filled(id, isFields(request) ? request : fields()),
      response: responseOf(record),
      more,
      overridden: false,
    };
  }

  /** A run's record. Raises TapeError. */
  run(id: string): Fields {
    const span = this.#runs.get(id);
    if (!span && this.#base) return this.#base.run(id);
    if (!span) throw new TapeError("this run is no longer in the cassette");
    return this.#parsed(span);
  }

  /** A run's end mark; nothing in it where the run has none. */
  endOf(run: string): Fields {
    const span = this.#ends.get(run);
    return span ? this.#parsed(span) : this.#base?.endOf(run) ?? fields();
  }

  #index(): void {
    const text = this.#text;
    for (let pos = 0; pos < text.length; ) {
      if (!text.startsWith("---\n", pos)) throw new TapeError(`a record begins with ---, at character ${pos}`);
      const close = text.indexOf("\n...\n", pos);
      if (close < 0) break;
      this.#enter({ start: pos + 4, end: close + 1 });
      pos = close + 5;
    }
  }

  #enter(span: Span): void {
    const first = this.#text.indexOf("\n", span.start) + 1;
    const second = this.#text.indexOf("\n", first) + 1;
    const kind = /^(call|run|end|more|override):/.exec(this.#text.slice(span.start, span.start + 9))?.[1];
    if (!kind) return;
    const head = parse(this.#text, span.start, kind === "run" || kind === "end" ? first : Math.min(second, span.end));
    const run = name(head.run);
    const id = `${run}/${name(head[kind])}`;
    if (kind === "run") this.#runs.set(run, span);
    else if (kind === "end") this.#ends.set(name(head.end), span);
    else if (kind === "call") this.#calls.set(id, span);
    else if (kind === "override") this.#overrides.set(id, span);
    else this.#more.set(id, [...(this.#more.get(id) ?? []), span]);
  }

  #parsed({ start, end }: Span): Fields {
    return parse(this.#text, start, end);
  }

  // ---------------------------------------------------------------- references

  #filled(id: string, request: Fields): Fields {
    this.#steps = 0;
    return this.#fill(id, request) as Fields;
  }

  /** The value with every reference replaced. Depth is that of the text, at most 64: what is put in holds none. */
  #fill(id: string, value: Value): Value {
    this.#step();
    if (Array.isArray(value)) return this.#items(id, value, 0, Number.MAX_SAFE_INTEGER).map(({ from, item }) => this.#fill(from, item));
    if (!isFields(value)) return value;
    if (FROM in value) return this.#textOf(id, value[FROM]);
    if (typeof value[ASSET] === "string") return `(a long text, in a file of its own: assets/${value[ASSET]})`;
    const filled = fields();
    for (const [key, each] of Object.entries(value)) filled[key] = this.#fill(id, each);
    return filled;
  }

  /**
   * Items `start` to `stop` of an unfolded list, each with the call that holds it. Only what is asked for is followed,
   * on a list of our own: ten thousand requests that each refer to the one before are ten thousand steps.
   */
  #items(id: string, list: Value[], start: number, stop: number): Item[] {
    const found: Item[] = [];
    const todo: (Item | Slice)[] = [{ from: id, list, start, stop }];
    for (let part = todo.pop(); part; part = todo.pop()) {
      if ("item" in part) found.push(part);
      else for (const each of this.#split(part).reverse()) todo.push(each);
    }
    return found;
  }

  /** A slice's own items, and the slices that it refers to, in order. */
  #split(slice: Slice): (Item | Slice)[] {
    const parts: (Item | Slice)[] = [];
    let at = 0;
    for (const item of slice.list) {
      if (at >= slice.stop) break;
      this.#step();
      const ref = isFields(item) && FROM in item ? this.#ref(slice.from, item[FROM]) : null;
      const length = ref ? ref.stop - ref.start : 1;
      const low = Math.max(slice.start - at, 0);
      const high = Math.min(slice.stop - at, length);
      if (low < high) {
        if (ref) parts.push({ from: ref.call, list: this.#list(ref.call, ref.path), start: ref.start + low, stop: ref.start + high });
        else parts.push({ from: slice.from, item });
      }
      at += length;
    }
    return parts;
  }

  #list(id: string, path: string): Value[] {
    const list = this.#find(id, path);
    if (!Array.isArray(list)) throw new TapeError(`a reference to ${path} of ${id}, which has no such list`);
    return list;
  }

  #textOf(id: string, mark: Value | undefined): string {
    let from = id;
    let value: Value | undefined = mark;
    for (;;) {
      const ref = this.#ref(from, value);
      from = ref.call;
      const found = this.#find(ref.call, ref.path);
      if (typeof found === "string") return found;
      if (!isFields(found) || !(FROM in found)) throw new TapeError(`a reference to ${ref.path} of ${ref.call}, which has no such text`);
      value = found[FROM];
    }
  }

  #ref(from: string, mark: Value | undefined): { call: string; path: string; start: number; stop: number } {
    this.#step();
    const found = typeof mark === "string" ? REF.exec(mark) : null;
    if (!found) throw new TapeError("a reference that names no call");
    const [, run = from.split("/", 1)[0] ?? "", call = "", path = "", start = "0", stop = "0"] = found;
    return { call: `${run}/${call}`, path, start: Number(start), stop: Number(stop) };
  }

  /** What stands at a path of a call's body, as the file has it. */
  #find(id: string, path: string): Value | undefined {
    let request = this.#requests.get(id);
    if (!request) {
      const span = this.#calls.get(id);
      if (!span && this.#base) return this.#base.#find(id, path);
      if (!span) throw new TapeError(`a reference to the call ${id}, which is not in the cassette`);
      const record = this.#parsed(span);
      request = isFields(record.request) ? record.request : fields();
      this.#requests.set(id, request);
    }
    let value: Value | undefined = request.body;
    for (const key of path.split(".")) value = isFields(value) ? value[key] : undefined;
    return value;
  }

  #step(): void {
    if (++this.#steps > MOST_STEPS) throw new TapeError("its references expand to more than can be shown here");
  }
}

function responseOf({ response }: Fields): Fields | null {
  return isFields(response) ? response : null;
}

/** `take of: "../main.tape.yaml"` in the first record. */
function baseOf(text: string): string {
  const head = text.slice(0, Math.max(0, text.indexOf("\n...\n")));
  return /^take of: "?([^"\n]*)"?$/m.exec(head)?.[1] ?? "";
}

function name(value: Value | undefined): string {
  return typeof value === "string" ? value : "";
}
