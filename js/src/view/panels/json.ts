/**
 * Finds and replaces one value inside a JSON text, by offsets: all else keeps its spelling (long numbers, order, blanks),
 * which parsing and writing anew would lose. The texts must parse; `JSON.parse` has the say over that.
 */
export type Step = string | number;
export interface Range { from: number; to: number }

const [OPENS, CLOSES, PUNCTUATION] = [new Set("{["), new Set("}]"), new Set('{}[],:" \t\n\r')];

/** `content[0].text` as its steps; keys that are no words stand as `["a key"]`. */
export function steps(path: string): Step[] {
  const found = path.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g);
  return Array.from(found, ([, index, quoted, word]) =>
    index !== undefined ? Number(index) : quoted !== undefined ? (JSON.parse(quoted) as string) : (word ?? ""));
}

/** Where the value at `path` stands; null where there is none. */
export function locate(text: string, path: readonly Step[]): Range | null {
  let from: number | null = pastBlank(text, 0);
  for (const step of path) {
    from = typeof step === "number" ? item(text, from, step) : member(text, from, step);
    if (from === null) return null;
  }
  return { from, to: pastValue(text, from) };
}

/** The text with the value at `path` replaced by the JSON text `value`; unchanged where there is no such value. */
export function put(text: string, path: readonly Step[], value: string): string {
  const range = locate(text, path);
  return range ? text.slice(0, range.from) + value + text.slice(range.to) : text;
}

/** Why a text is no JSON, in the browser's words; "" where it is. */
export function wrongJson(text: string): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

function item(text: string, at: number, index: number): number | null {
  if (text[at] !== "[") return null;
  let from = pastBlank(text, at + 1);
  for (let left = index; left > 0 && text[from] !== "]"; left--) from = pastComma(text, pastValue(text, from));
  return text[from] === "]" ? null : from;
}

function member(text: string, at: number, key: string): number | null {
  if (text[at] !== "{") return null;
  let found: number | null = null; // the last one counts, as it does for JSON.parse
  for (let from = pastBlank(text, at + 1); text[from] === '"';) {
    const end = pastValue(text, from);
    const value = pastBlank(text, pastBlank(text, end) + 1);
    if (JSON.parse(text.slice(from, end)) === key) found = value;
    from = pastComma(text, pastValue(text, value));
  }
  return found;
}

function pastValue(text: string, at: number): number {
  let depth = 0;
  do {
    const letter = text[at] ?? "";
    depth += OPENS.has(letter) ? 1 : CLOSES.has(letter) ? -1 : 0;
    if (letter === '"') at = pastString(text, at);
    else if (PUNCTUATION.has(letter)) at++;
    else while (at < text.length && !PUNCTUATION.has(text[at] ?? "")) at++;
  } while (depth > 0 && at < text.length);
  return at;
}

function pastString(text: string, at: number): number {
  for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === "\\") at++;
  return at + 1;
}

function pastBlank(text: string, at: number): number {
  while (at < text.length && /\s/.test(text[at] ?? "")) at++;
  return at;
}

function pastComma(text: string, at: number): number {
  const next = pastBlank(text, at);
  return text[next] === "," ? pastBlank(text, next + 1) : next;
}
