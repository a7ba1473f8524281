/**
 * Reads the cassette text (tape_jupyter/encoding/yaml/parser.py is the original, and the stricter one) in the browser: for saved
 * outputs, whose details are in the cassette and nowhere else when there is no kernel. A file may be anybody's: it
 * costs time in proportion to its length, nests on a stack of our own, and what is wrong is a TapeError with its line.
 */

export type Value = null | boolean | number | string | Exact | Value[] | Fields;
/** Without a prototype: `__proto__` is a key like any other. */
export interface Fields { [key: string]: Value }

/** A number that JavaScript would write otherwise (1.0, 20 digits): as it stands in the file. */
export class Exact {
  readonly raw: string;
  constructor(raw: string) {
    this.raw = raw;
  }
}

export class TapeError extends Error {}

const MAX_DEPTH = 64;
const MAX_DIGITS = 400;
const CONSTANTS = new Map<string, null | boolean>([["null", null], ["true", true], ["false", false]]);
// Each repetition begins with a character that the one before it cannot take: no pattern can back off more than once.
const WORD = /[A-Za-z_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+()-]+)*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;

interface Line {
  /** Columns before and after the dashes. */
  at: number;
  inner: number;
  key: string | null;
  /** Whether a value stands on the line; `style` is that of a text block that follows. */
  has: boolean;
  value: Value;
  style: string;
}

export function fields(): Fields {
  return Object.create(null) as Fields;
}

export function isFields(value: Value | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Exact);
}

/** The map whose lines are text[start:end] (whole lines, LF). Raises TapeError. */
export function parse(text: string, start: number, end: number): Fields {
  return new Reading(text, start, end).map();
}

class Reading {
  readonly #text: string;
  readonly #end: number;
  #pos: number;

  constructor(text: string, start: number, end: number) {
    this.#text = text;
    this.#pos = start;
    this.#end = end;
  }

  map(): Fields {
    const root = fields();
    const outer: { column: number; here: Fields | Value[] }[] = [];
    let here: Fields | Value[] = root;
    let column = 0;
    let pending: string | null = null; // the key whose value begins on the next line
    const enter = (child: Fields | Value[], at: number) => {
      if (outer.length + 1 >= MAX_DEPTH) throw this.#error("nested too deep");
      outer.push({ column, here });
      here = child;
      column = at;
    };
    const put = (key: string | null, value: Value) => {
      if (key === null) (here as Value[]).push(value);
      else (here as Fields)[key] = value;
    };
    while (this.#pos < this.#end) {
      const line = this.#line();
      if (pending !== null) {
        if (line.at !== column + 2) throw this.#error("a key without a value");
        const child: Fields | Value[] = line.inner > line.at ? [] : fields();
        put(pending, child);
        enter(child, line.at);
      } else {
        while (line.at < column) ({ column, here } = outer.pop() ?? { column: 0, here: root });
        if (line.at !== column) throw this.#error("indented by a wrong number of spaces");
      }
      if (line.inner > line.at && !Array.isArray(here)) throw this.#error("a list item among keys");
      if (line.inner === line.at && (Array.isArray(here) || line.key === null)) throw this.#error("no key");
      for (let inner = line.at + 2; inner < line.inner; inner += 2) {
        const child: Value[] = [];
        put(null, child);
        enter(child, inner);
      }
      if (line.inner > line.at && line.key !== null) {
        const child = fields();
        put(null, child);
        enter(child, line.inner);
      }
      if (line.key !== null && line.key in here) throw this.#error(`the key ${line.key.slice(0, 40)} a second time`);
      pending = null;
      if (line.style) put(line.key, this.#literal(column + 2, line.style));
      else if (line.has) put(line.key, line.value);
      else pending = line.key;
    }
    if (pending !== null) throw this.#error("a key without a value");
    return root;
  }

  #line(): Line {
    const text = this.#text;
    const stop = text.indexOf("\n", this.#pos);
    if (stop < 0 || stop >= this.#end) throw this.#error("a line without an end");
    let pos = this.#pos;
    while (text[pos] === " ") pos++;
    const at = pos - this.#pos;
    while (text.startsWith("- ", pos)) pos += 2;
    const inner = pos - this.#pos;
    const line: Line = { at, inner, key: null, has: true, value: null, style: "" };
    const named = this.#key(pos, stop);
    if (named) {
      line.key = named.key;
      pos = named.after;
      if (pos === stop) {
        this.#pos = stop + 1;
        return { ...line, has: false };
      }
      if (text[pos] !== " ") throw this.#error("no space after the colon");
      pos++;
    }
    const block = /\|[-+]?\n/y;
    block.lastIndex = pos;
    const found = block.exec(text);
    if (found) line.style = found[0].trimEnd();
    else line.value = this.#scalar(text.slice(pos, stop));
    this.#pos = stop + 1;
    return line;
  }

  #key(pos: number, stop: number): { key: string; after: number } | null {
    const text = this.#text;
    let after: number;
    let key: string;
    if (text[pos] === '"') {
      after = quoteEnd(text, pos, stop);
      if (text[after] !== ":") return null;
      key = this.#unquote(text.slice(pos, after));
    } else {
      key = match(WORD, text, pos);
      after = pos + key.length;
      if (!key || text[after] !== ":") return null;
    }
    return { key, after: after + 1 };
  }

  #scalar(raw: string): Value {
    if (raw.startsWith('"') && quoteEnd(raw, 0, raw.length) === raw.length) return this.#unquote(raw);
    if (raw === "{}") return fields();
    if (raw.startsWith("[") && raw.endsWith("]")) return this.#flat(raw.slice(1, -1));
    const constant = CONSTANTS.get(raw);
    if (constant !== undefined) return constant;
    const number = match(NUMBER, raw, 0);
    if (number && number === raw) return this.#number(raw);
    if (match(WORD, raw, 0) === raw && raw) return raw;
    throw this.#error("not a line of a cassette");
  }

  #number(raw: string): number | Exact {
    if (raw.length > MAX_DIGITS) throw this.#error("a number that is too long");
    const number = Number(raw);
    return String(number) === raw ? number : new Exact(raw);
  }

  #flat(raw: string): Value[] {
    if (!raw.trim()) return [];
    return raw.split(",").map((each) => {
      const number = each.trim();
      if (match(NUMBER, number, 0) !== number || !number) throw this.#error("a list in brackets holds numbers");
      return this.#number(number);
    });
  }

  #unquote(raw: string): string {
    try {
      return JSON.parse(raw.replace(/\\(?:U0000(d[c-f][0-9a-f]{2})|[^])/g, (whole, half?: string) => (half ? `\\u${half}` : whole))) as string;
    } catch {
      throw this.#error("a bad escape in double quotes");
    }
  }

  /** The lines that are indented by `column`, from here on. */
  #literal(column: number, style: string): string {
    const text = this.#text;
    const pad = " ".repeat(column);
    const lines: string[] = [];
    while (this.#pos < this.#end) {
      const stop = text.indexOf("\n", this.#pos);
      const empty = stop === this.#pos;
      if (!empty && !text.startsWith(pad, this.#pos)) break;
      lines.push(empty ? "" : text.slice(this.#pos + column, stop));
      this.#pos = stop + 1;
    }
    if (!lines[0]) throw this.#error("a text block without a text");
    let kept = lines.length;
    if (style !== "|+") while (kept && !lines[kept - 1]) kept--;
    return lines.slice(0, kept).join("\n") + (style === "|-" ? "" : "\n");
  }

  #error(reason: string): TapeError {
    let line = 1;
    for (let pos = this.#text.indexOf("\n"); pos >= 0 && pos < this.#pos; pos = this.#text.indexOf("\n", pos + 1)) line++;
    return new TapeError(`line ${line}: ${reason}`);
  }
}

function match(pattern: RegExp, text: string, pos: number): string {
  pattern.lastIndex = pos;
  return pattern.exec(text)?.[0] ?? "";
}

/** Where a text in double quotes ends: after the quote, or at `stop` if it does not. */
function quoteEnd(text: string, pos: number, stop: number): number {
  for (let at = pos + 1; at < stop; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at + 1;
  }
  return stop;
}

/** JSON as a person reads it, two spaces a level, numbers as they stand in the file. */
export function pretty(value: Value, pad = ""): string {
  if (value instanceof Exact) return value.raw;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = `${pad}  `;
  const array = Array.isArray(value);
  const items = array
    ? value.map((each) => inner + pretty(each, inner))
    : Object.entries(value).map(([key, each]) => `${inner}${JSON.stringify(key)}: ${pretty(each, inner)}`);
  const [open, close] = array ? "[]" : "{}";
  return items.length ? `${open}\n${items.join(",\n")}\n${pad}${close}` : `${open}${close}`;
}
